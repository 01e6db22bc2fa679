//===- Torch.h - What the extension calls of PyTorch ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By Python's interface, which all versions of PyTorch that the package
// supports have in common.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PYTHON_TORCH_H
#define TP_PYTHON_TORCH_H

#include <cstdint>
#include <nanobind/nanobind.h>

namespace mlir::tp::python {

class Torch {
public:
  /// Null if the process hasn't imported PyTorch. The caller has the GIL.
  static const Torch *find();

  /// Whether the object is a tensor of PyTorch's own classes. Subclasses may
  /// have attributes and an interface of their own.
  bool isPlain(nanobind::handle object) const {
    return Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject *>(tensor) ||
           Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject *>(parameter);
  }

  /// A capsule of DLPack with the memory of a plain tensor, whether or not it
  /// requires a gradient; none if PyTorch refuses.
  nanobind::object lend(nanobind::handle tensor) const;
  /// How often a plain tensor was written to. This and the following functions
  /// throw Python's errors.
  uint64_t getVersion(nanobind::handle tensor) const;
  uint64_t getPointer(nanobind::handle tensor) const;
  bool requiresGrad(nanobind::handle tensor) const;

private:
  Torch(nanobind::handle torch);

  // Never released: Python ends before statics are destroyed.
  PyObject *tensor, *parameter;
  PyObject *toDlpack, *version, *dataPtr, *requiresGradient;
};

} // namespace mlir::tp::python

#endif // TP_PYTHON_TORCH_H
