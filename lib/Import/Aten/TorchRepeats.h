//===- TorchRepeats.h - Constants that repeat themselves --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model computes its mask from positions, which are the same for all sequences
// of a batch. Computing it for each of them takes memory in proportion to the
// batch: 4 GiB for 64 sequences of 8192 tokens. Here, a constant holds what it
// repeats along a dimension once, as PyTorch's expanded tensors do, and ops
// compute it once.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_TORCHREPEATS_H
#define TP_LIB_IMPORT_ATEN_TORCHREPEATS_H

#include "TorchOps.h"

namespace mlir::tp {

/// `constant`, with a stride of 0 along the dimensions along which all its
/// slices are equal. Looks at integers and booleans alone, and not at large
/// tensors.
at::Tensor shareRepeats(const at::Tensor &constant);

/// Runs a pointwise op whose tensors are constants, on one slice along the
/// dimensions along which all of them repeat. Replaces the inputs on the stack
/// by the expanded result. Returns false if there are none, or if the op isn't
/// pointwise; PyTorch's exceptions pass through.
bool runOnSlices(const TorchOp &op, c10::Stack &stack);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHREPEATS_H
