//===- RedistributionWriter.h - Collectives of redistributions --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_REDISTRIBUTIONWRITER_H
#define TP_LIB_TRANSFORMS_REDISTRIBUTIONWRITER_H

#include "mlir/IR/Builders.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Sharding/Redistribution/Redistribution.h"

namespace mlir::tp {

/// Writes plans of redistributions as the collectives of a rank's program.
class RedistributionWriter {
public:
  /// Ops are built at the insertion point of `builder`.
  RedistributionWriter(MeshOp mesh, int64_t rank, OpBuilder &builder)
      : mesh(mesh), rank(rank), builder(builder) {}

  /// Builds the rank's part of the result of `op` from `value`, its part of the
  /// input, which is placed as `from`.
  Value write(const RedistributionPlan &plan, ShardingAttr from,
              RedistributeOp op, Value value);

  /// The entries of docs/Report.md's `redistributions`, in the order in which
  /// `write` was called.
  ArrayRef<Attribute> getCertificates() const { return certificates; }

private:
  Value applyStep(const RedistributionStep &step, Value value,
                  RankedTensorType global, RedistributeOp op);
  Value applyAllToAlls(const RedistributionStep &step, Value value,
                       RedistributeOp op);

  /// Builds the reshapes and transposes of the program that `op` belongs to.
  const TensorBuilder &getTensors(Operation *op);

  MeshOp mesh;
  int64_t rank;
  OpBuilder &builder;
  const TensorBuilder *tensors = nullptr;
  SmallVector<Attribute> certificates;
  /// Indexed by plan and attributes of the redistribution.
  DenseMap<std::pair<const RedistributionPlan *, Attribute>, DictionaryAttr>
      knownCertificates;
  /// The `bytes` of each step's collective.
  DenseMap<const RedistributionStep *, Attribute> knownBytes;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_REDISTRIBUTIONWRITER_H
