//===- DnnInterpreter.h - Graphs of cuDNN's, executed -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_DNNINTERPRETER_H
#define TPRT_FAKE_DNNINTERPRETER_H

#include "cuda/Dnn.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tprt::fake {

struct DnnTensor {
  int64_t id = 0;
  int32_t type = 0; ///< a CUDNN_DATA_...
  std::vector<int64_t> sizes, strides;
  bool isVirtual = false, isByValue = false;

  bool operator==(const DnnTensor &) const = default;
  int64_t getNumElements() const;
  /// Whether the whole tensor is allocated at `address`.
  bool checkMemory(const void *address) const;
};

/// Computes y from x, b and t, by kind and mode.
struct DnnOperation {
  int32_t kind = 0, mode = 0;
  int64_t axis = -1;
  std::optional<DnnTensor> x, b, t, y;
};

/// The operations of a graph, in an order in which they can be executed.
struct DnnProgram {
  std::vector<DnnOperation> operations;
  std::map<int64_t, DnnTensor> operands; ///< in memory or by value

  /// Executes each operation by its definition. Virtual tensors are rounded to
  /// their types.
  void run(const std::map<int64_t, void *> &addresses,
           const std::map<int64_t, float> &scalars) const;
};

} // namespace tprt::fake

#endif // TPRT_FAKE_DNNINTERPRETER_H
