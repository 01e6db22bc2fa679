//===- Uniformity.h - Which values are the same on which ranks --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a per-rank program a value is one per rank. Here it is found over which
// mesh dimensions it may differ: a value that doesn't vary along `tp` is the
// same on all ranks that differ in their index along `tp` only. Arguments and
// parameters vary along the axes that split them or that they are Partial over
// (without `tp.sharding` they are replicated); pure ops vary as their operands
// do; all_gather, all_reduce and broadcast make a value the same in each group;
// slices and offsets depend on the rank's index. Values that leave a region
// vary as what decides about the control flow does.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_UNIFORMITY_H
#define TP_SHARDING_UNIFORMITY_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

class Uniformity {
public:
  /// About the values of `module`, a per-rank program over `mesh`. All
  /// functions are analysed when the first question is asked; values that are
  /// made later are taken for varying along all dimensions, and none that was
  /// there may be erased before the last question about its function.
  Uniformity(ModuleOp module, MeshOp mesh);

  /// Whether `value` is the same on all ranks of each group that `axes` span.
  bool isUniform(Value value, ArrayRef<AxisRefAttr> axes);
  /// Whether it is the same on all ranks.
  bool isUniform(Value value) { return getVarying(value) == 0; }
  /// The mesh dimensions along which `value` may differ.
  SmallVector<StringRef> getVaryingAxes(Value value);

private:
  /// A bit per mesh dimension with several ranks; a mesh has at most 2^16
  /// ranks.
  using Axes = uint32_t;

  Axes getBit(AxisRefAttr axis);
  Axes getBits(ArrayRef<AxisRefAttr> axes);
  Axes getBits(ShardingAttr sharding);
  Axes getVarying(Value value);
  void analyse();
  void add(Value value, Axes axes);
  void visit(Operation *op);
  void visitRegions(Operation *op);
  void visitCall(Operation *op);
  Axes getResultAxes(Operation *op);

  ModuleOp module;
  MeshOp mesh;
  Axes all = 0;
  DenseMap<Value, Axes> varying;
  bool changed = false, begun = false, complete = false;
};

/// Whether `op` does nothing besides computing its results. A result may be
/// more than a function of the operands, as a draw of random numbers is.
bool onlyMakesResults(Operation *op);

/// What decides about the control flow of `op`, an op with regions: operands of
/// its own and of its regions' terminators that no region and no result gets.
SmallVector<Value> getControlOperands(Operation *op);

} // namespace mlir::tp

#endif // TP_SHARDING_UNIFORMITY_H
