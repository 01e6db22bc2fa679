//===- Tensors.cpp - Tensors of Python and of the runtime -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Tensors.h"
#include "Errors.h"
#include "Torch.h"
#include <cstring>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::tp::python;
using tprt::Dtype;

namespace {
/// An element type of programs as DLPack has it.
struct Type {
  Dtype dtype;
  nb::dlpack::dtype_code code;
};
} // namespace

static constexpr Type kTypes[] = {
    {Dtype::F32, nb::dlpack::dtype_code::Float},
    {Dtype::F64, nb::dlpack::dtype_code::Float},
    {Dtype::F16, nb::dlpack::dtype_code::Float},
    {Dtype::BF16, nb::dlpack::dtype_code::Bfloat},
    {Dtype::I64, nb::dlpack::dtype_code::Int},
    {Dtype::I32, nb::dlpack::dtype_code::Int},
    {Dtype::I16, nb::dlpack::dtype_code::Int},
    {Dtype::I8, nb::dlpack::dtype_code::Int},
    {Dtype::UI8, nb::dlpack::dtype_code::UInt},
    {Dtype::I1, nb::dlpack::dtype_code::Bool},
};
static_assert(std::size(kTypes) == tprt::numDtypes);

static nb::dlpack::dtype makeType(const Type &type) {
  return {static_cast<uint8_t>(type.code),
          static_cast<uint8_t>(8 * tprt::byteWidth(type.dtype)), 1};
}

static std::string describe(nb::handle object) {
  return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

namespace {
/// A tensor as Python lends it.
using Lent = nb::ndarray<nb::ro>;
} // namespace

/// Why the object can't be lent: what its __dlpack__ says.
static std::string explainRefusal(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__"))
    return "is of type '" + describe(object) +
           "'; give a tensor of PyTorch or NumPy, or an object of the DLPack "
           "or "
           "the buffer protocol";
  try {
    object.attr("__dlpack__")();
  } catch (nb::python_error &error) {
    nb::object text = nb::str(error.value());
    return "can't be read: " + nb::cast<std::string>(text);
  }
  return "can't be read through the DLPack protocol";
}

static Lent lend(nb::handle object, const std::string &name) {
  Lent lent;
  // What a tensor's __dlpack__ checks in Python takes several times as long.
  if (const Torch *torch = Torch::find(); torch && torch->isPlain(object)) {
    nb::object capsule = torch->lend(object);
    if (capsule.is_valid() && nb::try_cast(capsule, lent))
      return lent;
  }
  if (nb::try_cast(object, lent))
    return lent;
  // PyTorch lends no tensor that requires a gradient.
  if (nb::getattr(object, "requires_grad", nb::none()).is(nb::bool_(true)) &&
      nb::hasattr(object, "detach"))
    if (nb::try_cast(object.attr("detach")(), lent))
      return lent;
  throw InputError("'" + name + "' " + explainRefusal(object));
}

static Dtype getDtype(const Lent &lent, const std::string &name) {
  for (const Type &type : kTypes)
    if (lent.dtype() == makeType(type))
      return type.dtype;
  nb::dlpack::dtype found = lent.dtype();
  throw InputError("'" + name + "' has an element type (DLPack code " +
                   std::to_string(found.code) + ", " +
                   std::to_string(found.bits) +
                   " bits) that programs don't compute with; types are f32, "
                   "f64, f16, bf16, i64, i32, i16, i8, ui8 and bool");
}

static bool isDense(const Lent &lent) {
  int64_t expected = 1;
  for (size_t i = lent.ndim(); i-- > 0;) {
    if (lent.shape(i) == 0)
      return true;
    if (lent.shape(i) != 1 && lent.stride(i) != expected)
      return false;
    expected *= lent.shape(i);
  }
  return true;
}

/// Copies the elements of dimension `dim` and those within it.
static std::byte *copyStrided(const Lent &lent, size_t dim, size_t bytes,
                              const std::byte *src, std::byte *dst) {
  if (dim == lent.ndim()) {
    std::memcpy(dst, src, bytes);
    return dst + bytes;
  }
  int64_t step = lent.stride(dim) * static_cast<int64_t>(bytes);
  for (size_t i = 0; i < lent.shape(dim); ++i)
    dst = copyStrided(lent, dim + 1, bytes, src + i * step, dst);
  return dst;
}

tprt::Tensor mlir::tp::python::readTensor(nb::handle object,
                                          const std::string &name) {
  if (const Array *own = nb::inst_check(object) && nb::isinstance<Array>(object)
                             ? nb::inst_ptr<Array>(object)
                             : nullptr)
    return own->tensor;
  Lent lent = lend(object, name);
  if (lent.device_type() != nb::device::cpu::value)
    throw InputError("'" + name +
                     "' isn't in the host's memory (DLPack device type " +
                     std::to_string(lent.device_type()) +
                     "); move it there, as PyTorch's cpu() does");
  tprt::Tensor tensor{getDtype(lent, name), {}, nullptr};
  for (size_t i = 0; i < lent.ndim(); ++i)
    tensor.shape.push_back(lent.shape(i));
  const auto *data = static_cast<const std::byte *>(lent.data());
  if (!isDense(lent)) {
    std::shared_ptr<std::byte> copy =
        tprt::allocateAligned(tensor.getNumBytes());
    copyStrided(lent, 0, tprt::byteWidth(tensor.dtype), data, copy.get());
    tensor.data = std::move(copy);
    return tensor;
  }
  // The last owner may be a thread without the GIL.
  auto *owner = new Lent(std::move(lent));
  tensor.data = std::shared_ptr<const std::byte>(data, [owner](const void *) {
    if (!Py_IsInitialized())
      return; // the interpreter has freed everything
    nb::gil_scoped_acquire locked;
    delete owner;
  });
  return tensor;
}

tprt::TensorMap mlir::tp::python::readTensors(nb::handle mapping,
                                              const char *what) {
  if (!PyMapping_Check(mapping.ptr()) || !nb::hasattr(mapping, "items"))
    throw InputError(std::string(what) +
                     " must be a mapping of names to tensors, not of type '" +
                     describe(mapping) + "'");
  tprt::TensorMap tensors;
  for (nb::handle item : mapping.attr("items")()) {
    nb::object name = item[0];
    if (!nb::isinstance<nb::str>(name))
      throw InputError(std::string(what) +
                       " must have names, found a key of "
                       "type '" +
                       describe(name) + "'");
    std::string text = nb::cast<std::string>(name);
    tensors[text] = readTensor(nb::object(item[1]), text);
  }
  return tensors;
}

nb::dict mlir::tp::python::makeArrays(const tprt::TensorMap &tensors) {
  nb::dict arrays;
  for (const auto &[name, tensor] : tensors)
    arrays[name.c_str()] = Array{tensor};
  return arrays;
}

namespace {
/// DLPack's DLManagedTensor, of an array.
struct Managed {
  nb::dlpack::dltensor view;
  void *context;
  void (*deleter)(Managed *);

  std::shared_ptr<const std::byte> data;
  std::vector<int64_t> shape, strides;
};
} // namespace

static constexpr const char *kCapsuleName = "dltensor";

static nb::dlpack::dtype makeType(Dtype dtype) {
  return makeType(
      *std::find_if(std::begin(kTypes), std::end(kTypes),
                    [&](const Type &type) { return type.dtype == dtype; }));
}

/// What __dlpack__() returns without options: PyTorch asks for none.
static nb::object makeCapsule(const tprt::Tensor &tensor) {
  auto managed = std::make_unique<Managed>();
  managed->data = tensor.data;
  managed->shape.assign(tensor.shape.begin(), tensor.shape.end());
  managed->strides.resize(managed->shape.size());
  int64_t stride = 1;
  for (size_t i = managed->shape.size(); i-- > 0;) {
    managed->strides[i] = stride;
    stride *= managed->shape[i];
  }
  managed->view = {const_cast<std::byte *>(tensor.data.get()),
                   {nb::device::cpu::value, 0},
                   static_cast<int32_t>(managed->shape.size()),
                   makeType(tensor.dtype),
                   managed->shape.data(),
                   managed->strides.data(),
                   /*byte_offset=*/0};
  managed->deleter = [](Managed *self) { delete self; };
  // Whoever takes the tensor renames the capsule.
  auto destroy = [](PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, kCapsuleName))
      delete static_cast<Managed *>(
          PyCapsule_GetPointer(capsule, kCapsuleName));
  };
  nb::object capsule =
      nb::steal(PyCapsule_New(managed.get(), kCapsuleName, destroy));
  if (!capsule.is_valid())
    throw nb::python_error();
  (void)managed.release();
  return capsule;
}

/// The array as nanobind's class, which has both protocols.
static nb::object makeView(nb::handle self) {
  const tprt::Tensor &tensor = nb::inst_ptr<Array>(self)->tensor;
  std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return nb::cast(nb::ndarray<nb::array_api>(
      const_cast<std::byte *>(tensor.data.get()), shape.size(), shape.data(),
      self, nullptr, makeType(tensor.dtype), nb::device::cpu::value));
}

void mlir::tp::python::bindTensors(nb::module_ &module) {
  nb::class_<Array>(module, "Array",
                    "A dense, row-major tensor in the host's memory that "
                    "nothing writes to any more.")
      .def_prop_ro("shape",
                   [](const Array &self) {
                     return nb::tuple(nb::cast(self.tensor.shape));
                   })
      .def_prop_ro("dtype",
                   [](const Array &self) {
                     return std::string(tprt::toString(self.tensor.dtype));
                   })
      .def_prop_ro("nbytes",
                   [](const Array &self) { return self.tensor.getNumBytes(); })
      .def("__dlpack__",
           [](nb::handle self, const nb::kwargs &arguments) -> nb::object {
             if (nb::len(arguments) == 0)
               return makeCapsule(nb::inst_ptr<Array>(self)->tensor);
             return makeView(self).attr("__dlpack__")(**arguments);
           })
      .def("__dlpack_device__",
           [](nb::handle) { return nb::make_tuple(nb::device::cpu::value, 0); })
      .def("__repr__", [](const Array &self) {
        return "<Array " + self.tensor.getTypeString() + ">";
      });
}
