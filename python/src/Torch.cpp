//===- Torch.cpp - What the extension calls of PyTorch --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Torch.h"

namespace nb = nanobind;
using namespace mlir::tp::python;

Torch::Torch(nb::handle torch)
    : tensor(torch.attr("Tensor").inc_ref().ptr()),
      parameter(torch.attr("nn").attr("Parameter").inc_ref().ptr()),
      toDlpack(torch.attr("_C").attr("_to_dlpack").inc_ref().ptr()),
      version(nb::handle(tensor).attr("_version").inc_ref().ptr()),
      dataPtr(nb::handle(tensor).attr("data_ptr").inc_ref().ptr()),
      requiresGradient(
          nb::handle(tensor).attr("requires_grad").inc_ref().ptr()) {}

const Torch *Torch::find() {
  static const Torch *found = nullptr;
  if (found)
    return found;
  nb::object name = nb::str("torch");
  nb::object module = nb::steal(PyImport_GetModule(name.ptr()));
  if (!module.is_valid()) {
    PyErr_Clear();
    return nullptr;
  }
  // Another thread may be importing it.
  for (const char *each : {"Tensor", "nn", "_C"})
    if (!nb::hasattr(module, each))
      return nullptr;
  if (!nb::hasattr(module.attr("nn"), "Parameter"))
    return nullptr;
  return found = new Torch(module);
}

/// The object, or the error that Python has set.
static nb::object check(PyObject *object) {
  if (!object)
    throw nb::python_error();
  return nb::steal(object);
}

static nb::object call(PyObject *function, nb::handle argument) {
  return check(PyObject_CallOneArg(function, argument.ptr()));
}

/// The attribute of `tensor` that `descriptor`, found in its class, stands for:
/// a look-up by name costs several times as much.
static nb::object get(PyObject *descriptor, nb::handle tensor) {
  PyTypeObject *type = Py_TYPE(tensor.ptr());
  return check(Py_TYPE(descriptor)
                   ->tp_descr_get(descriptor, tensor.ptr(),
                                  reinterpret_cast<PyObject *>(type)));
}

static uint64_t toInteger(const nb::object &object) {
  uint64_t value = PyLong_AsUnsignedLongLong(object.ptr());
  if (value == static_cast<uint64_t>(-1) && PyErr_Occurred())
    throw nb::python_error();
  return value;
}

nb::object Torch::lend(nb::handle tensor) const {
  nb::object capsule = nb::steal(PyObject_CallOneArg(toDlpack, tensor.ptr()));
  if (!capsule.is_valid())
    PyErr_Clear();
  return capsule;
}

uint64_t Torch::getVersion(nb::handle tensor) const {
  return toInteger(get(version, tensor));
}

uint64_t Torch::getPointer(nb::handle tensor) const {
  return toInteger(call(dataPtr, tensor));
}

bool Torch::requiresGrad(nb::handle tensor) const {
  return get(requiresGradient, tensor).is(nb::bool_(true));
}
