//===- Uniformity.h - Values that ranks have in common ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a per-rank program, each rank has its own copy of a value. This analysis
// finds the mesh dimensions along which the copies may differ. A value that
// doesn't vary along `tp` is the same on all ranks that differ only in their
// index along `tp`. Arguments and parameters vary along the axes that split
// them or that they are Partial over (without `tp.sharding` they are
// replicated); pure ops vary as their operands do; all_gather, all_reduce and
// broadcast make a value the same in each group; slices and offsets depend on
// the rank's index. Values that enter or leave a region also vary along the
// mesh dimensions along which the control flow varies.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_UNIFORMITY_H
#define TP_SHARDING_UNIFORMITY_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

class Uniformity {
public:
  /// Analyses the values of `module`, a per-rank program over `mesh`. The first
  /// query analyses all functions. Values created after that count as varying
  /// along all dimensions. No value that existed then may be erased before the
  /// last query about its function.
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
  void analyze();
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

/// Whether `op` does nothing besides computing its results. A result needn't
/// depend on the operands alone: it may be a draw of random numbers.
bool onlyMakesResults(Operation *op);

/// The values that decide the control flow of `op`, an op with regions: the
/// operands of the op and of its regions' terminators that aren't passed to a
/// region or a result.
SmallVector<Value> getControlOperands(Operation *op);

} // namespace mlir::tp

#endif // TP_SHARDING_UNIFORMITY_H
