//===- RedistributionWriter.h - Plans as collectives ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_REDISTRIBUTIONWRITER_H
#define TP_LIB_TRANSFORMS_REDISTRIBUTIONWRITER_H

#include "mlir/IR/Builders.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Redistribution/Redistribution.h"

namespace mlir::tp {

/// Writes plans of redistributions as the collectives of a rank's program.
class RedistributionWriter {
public:
  /// Ops are built where `builder` is.
  RedistributionWriter(MeshOp mesh, int64_t rank, OpBuilder &builder)
      : mesh(mesh), rank(rank), builder(builder) {}

  /// Takes `value`, which the rank has of the input of `op`, placed as `from`,
  /// to what it has of the result.
  Value write(const RedistributionPlan &plan, ShardingAttr from,
              RedistributeOp op, Value value);

  /// What docs/Report.md calls redistributions, in the order of the writing.
  ArrayRef<Attribute> getCertificates() const { return certificates; }

private:
  Value applyStep(const RedistributionStep &step, Value value,
                  RankedTensorType global, RedistributeOp op);
  Value applyAllToAlls(const RedistributionStep &step, Value value,
                       RedistributeOp op);

  MeshOp mesh;
  int64_t rank;
  OpBuilder &builder;
  SmallVector<Attribute> certificates;
  /// By plan and attributes of the redistribution.
  DenseMap<std::pair<const RedistributionPlan *, Attribute>, DictionaryAttr>
      knownCertificates;
  /// Of the collectives of a plan.
  DenseMap<const RedistributionStep *, Attribute> knownBytes;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_REDISTRIBUTIONWRITER_H
