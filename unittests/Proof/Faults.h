//===- Faults.h - Changes of one place of a program -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_UNITTESTS_PROOF_FAULTS_H
#define TP_UNITTESTS_PROOF_FAULTS_H

#include "tp/Dialect/TP/TP.h"
#include <functional>
#include <string>
#include <vector>

namespace mlir::tp::test {

/// A change of one place. Gets the op in a copy of the module.
struct Fault {
  std::string kind;
  std::function<void(Operation *)> plant;
};

/// Faults of what moves and places values: operands, groups, dimensions,
/// offsets, reductions, ops that are left out or done twice, ranks, and those
/// of blocks.
std::vector<Fault> getFaults(Operation *op, MeshOp mesh);

/// Of what a program says of where its arguments, results and parameters live.
std::vector<Fault> getPlacementFaults(Operation *op, MeshOp mesh);
/// Of the blocks that a program cuts and exchanges.
std::vector<Fault> getBlockFaults(Operation *op, MeshOp mesh);

/// Faults of what values are: comparisons, constants, casts, roundings, choices,
/// places of elements.
std::vector<Fault> getValueFaults(Operation *op, MeshOp mesh);

/// Of casts alone: roundings that are lost or come in, integers of another sign
/// or width.
std::vector<Fault> getCastFaults(Operation *op);

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_PROOF_FAULTS_H
