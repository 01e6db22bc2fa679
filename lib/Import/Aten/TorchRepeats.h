//===- TorchRepeats.h - Constants that repeat themselves --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model computes its mask from positions, which are the same for all sequences
// of a batch. Computing it for each of them takes memory in proportion to the
// batch: 4 GiB for 64 sequences of 8192 tokens. Here, a constant holds what it
// repeats along a dimension once, as PyTorch's expanded tensors do, and ops
// compute it once. A model can't see the difference but for strides: an op that
// needs those of a tensor without repeats, such as a view, gets a copy.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_TORCHREPEATS_H
#define TP_LIB_IMPORT_ATEN_TORCHREPEATS_H

#include "TorchOps.h"

namespace mlir::tp {

/// Runs an op whose tensors are constants, which may repeat themselves, and
/// replaces the inputs on the stack by the results, which may, too. PyTorch's
/// exceptions pass through.
void runSharingRepeats(const TorchOp &op, c10::Stack &stack);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHREPEATS_H
