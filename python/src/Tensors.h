//===- Tensors.h - Tensors of Python and of the runtime ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PYTHON_TENSORS_H
#define TP_PYTHON_TENSORS_H

#include "tprt/TensorMap.h"
#include <nanobind/nanobind.h>
#include <string>

namespace mlir::tp::python {

/// The Python class of tensors that the package returns.
struct Array {
  tprt::Tensor tensor;
};

/// The memory of a Python tensor, which the result keeps alive, or a dense copy
/// of it if it isn't dense. `name` is the tensor's name in messages. Throws an
/// InputError if the object isn't a tensor in the host's memory, or has a type
/// that programs don't compute with.
tprt::Tensor readTensor(nanobind::handle object, const std::string &name);

/// The same for a mapping of names to tensors.
tprt::TensorMap readTensors(nanobind::handle mapping, const char *what);

nanobind::dict makeArrays(const tprt::TensorMap &tensors);

void bindTensors(nanobind::module_ &module);

} // namespace mlir::tp::python

#endif // TP_PYTHON_TENSORS_H
