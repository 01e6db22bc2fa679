//===- Guards.cpp - Whether what a program was made of is unchanged -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call of a module depends on all modules inside it and on all of their
// tensors. A guard looks at these in a few microseconds. It holds only if
// nothing has changed; if it doesn't, Python finds out what has.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Torch.h"
#include <array>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace mlir::tp::python;

static nb::object intern(const char *text) {
  return nb::steal(PyUnicode_InternFromString(text));
}

namespace {
/// A key of a dictionary, and where PyDict_Next finds it: there it mostly stays,
/// and a look-up by its hash takes several times as long.
struct Key {
  nb::object object;
  Py_ssize_t position = 0;

  static Key locate(nb::handle dictionary, nb::object object) {
    Key key{std::move(object)};
    PyObject *found, *value;
    for (Py_ssize_t i = 0; PyDict_Next(dictionary.ptr(), &i, &found, &value);
         key.position = i)
      if (found == key.object.ptr())
        break;
    return key;
  }

  /// Its value, borrowed; null if there is none.
  PyObject *find(nb::handle dictionary) const {
    PyObject *found, *value;
    Py_ssize_t i = position;
    if (PyDict_Next(dictionary.ptr(), &i, &found, &value) &&
        found == object.ptr())
      return value;
    value = PyDict_GetItemWithError(dictionary.ptr(), object.ptr());
    if (!value)
      PyErr_Clear(); // a key that can't be compared isn't the one of before
    return value;
  }
};
} // namespace

/// Begins to load an object's memory. A run leaves nothing of it in the caches,
/// and what is loaded at once takes as long as one object.
static void prefetch(const void *object, size_t size = 64) {
  const auto *begin = static_cast<const char *>(object);
  for (size_t offset = 0; offset < size; offset += 64)
    __builtin_prefetch(begin + offset);
  __builtin_prefetch(begin + size - 1);
}

/// The same for what a dictionary refers to, whose own memory is there.
static void prefetchEntries(const nb::object &dictionary) {
  const auto *object = reinterpret_cast<PyDictObject *>(dictionary.ptr());
  if (!object->ma_used)
    return;
  prefetch(object->ma_keys, 192);
  if (object->ma_values)
    prefetch(object->ma_values, 192);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

namespace {
/// Guards the structure of modules: what is inside them, their hooks, and which
/// parameters and buffers they have, whatever the values of these.
class ModuleGuard {
public:
  ModuleGuard(const nb::list &modules, const nb::list &globalHooks);

  /// For each module, whether it is in training, as bytes of 0 and 1. None if
  /// something may have changed.
  nb::object check();

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  /// Where the keys and the values of a dictionary are in `contents`. Those
  /// that don't matter are left out.
  struct Dictionary {
    nb::object object;
    uint32_t begin, size;
    bool hasValues;
  };

  void addModule(nb::handle module);
  void addDictionary(nb::handle dictionary, bool hasValues);
  bool isSame(const Dictionary &dictionary) const;

  bool isUsable = true;
  std::vector<nb::object> attributes; ///< of each module
  /// The global ones, and those of each module in the order of kDictionaries.
  std::vector<Dictionary> dictionaries;
  size_t numGlobal;
  std::vector<nb::object> contents;
  /// Parameters and buffers that are None: a dictionary of the list, and a key.
  std::vector<std::pair<size_t, Key>> absent;
  std::vector<Key> keys; ///< of each module, for kDictionaries and `training`
  std::vector<char> modes, lastModes;
  nb::object lastBytes;
};
} // namespace

/// The attributes of a module that are dictionaries which a program depends on.
static constexpr std::array kDictionaries = {
    "_modules",           "_parameters",        "_buffers",
    "_forward_hooks",     "_forward_pre_hooks", "_backward_hooks",
    "_backward_pre_hooks"};
static constexpr size_t kModules = 0, kParameters = 1, kBuffers = 2;

ModuleGuard::ModuleGuard(const nb::list &modules, const nb::list &globalHooks) {
  for (nb::handle dictionary : globalHooks)
    addDictionary(dictionary, /*hasValues=*/false);
  numGlobal = dictionaries.size();
  for (nb::handle module : modules)
    addModule(module);
}

void ModuleGuard::addModule(nb::handle module) {
  nb::object found = module.attr("__dict__");
  attributes.push_back(found);
  for (size_t i = 0; i < kDictionaries.size(); ++i) {
    keys.push_back(Key::locate(found, intern(kDictionaries[i])));
    nb::object dictionary = nb::borrow(keys.back().find(found));
    if (dictionary.is_valid() && (i == kParameters || i == kBuffers) &&
        PyDict_Check(dictionary.ptr()))
      for (auto [key, value] : nb::borrow<nb::dict>(dictionary))
        if (value.is_none())
          absent.emplace_back(dictionaries.size(),
                              Key::locate(dictionary, nb::borrow(key)));
    addDictionary(dictionary, /*hasValues=*/i == kModules);
  }
  keys.push_back(Key::locate(found, intern("training")));
}

void ModuleGuard::addDictionary(nb::handle dictionary, bool hasValues) {
  // Modules of TorchScript have objects of another kind.
  if (!dictionary.is_valid() || !PyDict_Check(dictionary.ptr())) {
    isUsable = false;
    return;
  }
  auto begin = static_cast<uint32_t>(contents.size());
  PyObject *key, *value;
  for (Py_ssize_t i = 0; PyDict_Next(dictionary.ptr(), &i, &key, &value);) {
    contents.push_back(nb::borrow(key));
    if (hasValues)
      contents.push_back(nb::borrow(value));
  }
  dictionaries.push_back({nb::borrow(dictionary), begin,
                          static_cast<uint32_t>(contents.size()) - begin,
                          hasValues});
}

bool ModuleGuard::isSame(const Dictionary &dictionary) const {
  auto size = static_cast<size_t>(PyDict_GET_SIZE(dictionary.object.ptr()));
  if (size * (dictionary.hasValues ? 2 : 1) != dictionary.size)
    return false;
  if (!size)
    return true;
  const nb::object *expected = &contents[dictionary.begin];
  const nb::object *end = expected + dictionary.size;
  PyObject *key, *value;
  Py_ssize_t i = 0;
  while (expected != end &&
         PyDict_Next(dictionary.object.ptr(), &i, &key, &value)) {
    if (key != (expected++)->ptr())
      return false;
    if (dictionary.hasValues && value != (expected++)->ptr())
      return false;
  }
  return expected == end;
}

nb::object ModuleGuard::check() {
  if (!isUsable)
    return nb::none();
  for (const nb::object &each : attributes)
    prefetch(each.ptr());
  for (const Dictionary &each : dictionaries)
    prefetch(each.object.ptr(), sizeof(PyDictObject));
  for (const nb::object &each : attributes)
    prefetchEntries(each);
  for (const Dictionary &each : dictionaries)
    prefetchEntries(each.object);
  const Dictionary *dictionary = dictionaries.data();
  for (size_t i = 0; i < numGlobal; ++i, ++dictionary)
    if (!isSame(*dictionary))
      return nb::none();
  modes.clear();
  const Key *key = keys.data();
  for (const nb::object &each : attributes) {
    for (size_t i = 0; i < kDictionaries.size(); ++i, ++dictionary)
      if ((key++)->find(each) != dictionary->object.ptr() ||
          !isSame(*dictionary))
        return nb::none();
    PyObject *mode = (key++)->find(each);
    if (mode != Py_True && mode != Py_False)
      return nb::none();
    modes.push_back(mode == Py_True);
  }
  for (const auto &[index, key] : absent)
    if (key.find(dictionaries[index].object) != Py_None)
      return nb::none();
  if (modes != lastModes) {
    lastModes = modes;
    lastBytes = nb::bytes(modes.data(), modes.size());
  }
  return lastBytes;
}

int ModuleGuard::traverse(visitproc visit, void *arg) const {
  for (const nb::object &each : attributes)
    Py_VISIT(each.ptr());
  for (const Dictionary &each : dictionaries)
    Py_VISIT(each.object.ptr());
  for (const nb::object &each : contents)
    Py_VISIT(each.ptr());
  return 0;
}

void ModuleGuard::clear() {
  isUsable = false;
  // What is released may run code that comes back here.
  auto released = std::make_tuple(
      std::exchange(attributes, {}), std::exchange(dictionaries, {}),
      std::exchange(contents, {}), std::exchange(absent, {}));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {
/// Guards the values of tensors in dictionaries, lists or tuples: that each is
/// the same tensor, and that nothing was written to it or given to it as data.
class TensorGuard {
public:
  /// `slots`: containers and keys. `tensors`: what was there when the versions
  /// and the pointers were read.
  TensorGuard(const nb::list &slots, const nb::list &tensors,
              const nb::list &versions, const nb::list &pointers);

  bool holds() const;

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  struct Slot {
    nb::object container, tensor;
    Key key;          ///< in a dictionary
    Py_ssize_t index; ///< in a list or a tuple
    uint64_t version, pointer;
  };

  static PyObject *findTensor(const Slot &slot);

  bool isUsable;
  std::vector<Slot> slots;
};
} // namespace

TensorGuard::TensorGuard(const nb::list &slots, const nb::list &tensors,
                         const nb::list &versions, const nb::list &pointers) {
  const Torch *torch = Torch::find();
  size_t size = nb::len(slots);
  isUsable = torch && nb::len(tensors) == size && nb::len(versions) == size &&
             nb::len(pointers) == size;
  if (!isUsable)
    return;
  this->slots.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    nb::object key = slots[i][1];
    Slot slot{slots[i][0], tensors[i], {}, 0, 0, 0};
    bool isSequence = PyList_Check(slot.container.ptr()) ||
                      PyTuple_Check(slot.container.ptr());
    if (!isSequence && PyDict_Check(slot.container.ptr()))
      slot.key = Key::locate(slot.container, key);
    // Those of other classes, such as DTensor, have memory of another kind.
    isUsable = torch->isPlain(slot.tensor) &&
               (isSequence || PyDict_Check(slot.container.ptr())) &&
               nb::try_cast(versions[i], slot.version) &&
               nb::try_cast(pointers[i], slot.pointer) &&
               (!isSequence || nb::try_cast(key, slot.index));
    if (!isUsable)
      return;
    this->slots.push_back(std::move(slot));
  }
}

PyObject *TensorGuard::findTensor(const Slot &slot) {
  PyObject *container = slot.container.ptr();
  if (PyDict_Check(container))
    return slot.key.find(slot.container);
  if (slot.index < 0 || slot.index >= PySequence_Fast_GET_SIZE(container))
    return nullptr;
  return PySequence_Fast_GET_ITEM(container, slot.index);
}

bool TensorGuard::holds() const {
  const Torch *torch = Torch::find();
  if (!isUsable || !torch)
    return false;
  for (const Slot &slot : slots) {
    prefetch(slot.container.ptr());
    prefetch(slot.tensor.ptr());
  }
  for (const Slot &slot : slots)
    if (PyDict_Check(slot.container.ptr()))
      prefetchEntries(slot.container);
  try {
    for (const Slot &slot : slots)
      if (findTensor(slot) != slot.tensor.ptr() ||
          torch->getVersion(slot.tensor) != slot.version ||
          torch->getPointer(slot.tensor) != slot.pointer)
        return false;
  } catch (nb::python_error &) {
    return false; // a tensor of torch.inference_mode() has no version
  }
  return true;
}

int TensorGuard::traverse(visitproc visit, void *arg) const {
  for (const Slot &slot : slots) {
    Py_VISIT(slot.container.ptr());
    Py_VISIT(slot.key.object.ptr());
    Py_VISIT(slot.tensor.ptr());
  }
  return 0;
}

void TensorGuard::clear() {
  isUsable = false;
  std::vector<Slot> released = std::exchange(slots, {});
}

static bool requiresGrad(const nb::list &dictionaries) {
  const Torch *torch = Torch::find();
  for (nb::handle dictionary : dictionaries) {
    nb::object kept = nb::borrow(dictionary);
    PyObject *key, *value;
    for (Py_ssize_t i = 0; PyDict_Check(kept.ptr()) &&
                           PyDict_Next(kept.ptr(), &i, &key, &value);) {
      nb::object tensor = nb::borrow(value);
      if (!tensor.is_none() &&
          (torch && torch->isPlain(tensor)
               ? torch->requiresGrad(tensor)
               : nb::cast<bool>(tensor.attr("requires_grad"))))
        return true;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

/// A module may be reached from what it consists of, so guards take part in
/// Python's search for cycles.
template <typename Guard>
static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Guard>(self)->traverse(visit, arg)
                              : 0;
}

template <typename Guard>
static int clear(PyObject *self) {
  nb::inst_ptr<Guard>(self)->clear();
  return 0;
}

template <typename Guard>
static PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(&traverse<Guard>)},
    {Py_tp_clear, reinterpret_cast<void *>(&clear<Guard>)},
    {0, nullptr}};

void mlir::tp::python::bindGuards(nb::module_ &module) {
  using namespace nb::literals;
  nb::class_<ModuleGuard>(module, "ModuleGuard",
                          "Guards the structure of modules.",
                          nb::type_slots(slots<ModuleGuard>))
      .def(nb::init<const nb::list &, const nb::list &>(), "modules"_a,
           "global_hooks"_a)
      .def("check", &ModuleGuard::check);
  nb::class_<TensorGuard>(module, "TensorGuard",
                          "Guards the values of tensors.",
                          nb::type_slots(slots<TensorGuard>))
      .def(nb::init<const nb::list &, const nb::list &, const nb::list &,
                    const nb::list &>(),
           "slots"_a, "tensors"_a, "versions"_a, "pointers"_a)
      .def("holds", &TensorGuard::holds);
  module.def("requires_grad", &requiresGrad, "dictionaries"_a);
}
