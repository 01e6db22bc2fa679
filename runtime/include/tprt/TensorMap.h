//===- TensorMap.h - Tensors by name ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_TENSORMAP_H
#define TPRT_TENSORMAP_H

#include "tprt/Manifest.h"
#include "tprt/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace tprt {

using TensorMap = std::map<std::string, Tensor>;

/// Compares the names, types and shapes of `given` with `wanted`. Returns all
/// problems, one per line: tensors that are missing (and have no initial
/// value), unknown, or of the wrong type or shape. Empty if there are none.
/// `kind` is "input", "weight", … Accepts f32 for a wanted bf16; if
/// `convertsFloats`, any float type for another one.
TPRT_API std::string checkTensors(const std::vector<TensorInfo> &wanted,
                                  const TensorMap &given, std::string_view kind,
                                  bool allowUnused,
                                  bool convertsFloats = false);

/// The same for parameters, of which `values` has global values, and `blocks`
/// the dense shards of the one rank in `ranks`, those of this process.
TPRT_API std::string checkParameters(const std::vector<TensorInfo> &wanted,
                                     const TensorMap &values,
                                     const TensorMap &blocks,
                                     const std::vector<int64_t> &ranks,
                                     std::string_view kind, bool allowUnused);

} // namespace tprt

#endif // TPRT_TENSORMAP_H
