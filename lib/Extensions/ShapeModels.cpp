//===- ShapeModels.cpp - Upstream ops that only move elements -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "tp/Extensions/Extensions.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

template <typename OpT>
struct ReshapeModel
    : ReshapeOpInterface::ExternalModel<ReshapeModel<OpT>, OpT> {
  Value getInput(Operation *op) const { return cast<OpT>(op).getSrc(); }
};

struct TransposeModel
    : TransposeOpInterface::ExternalModel<TransposeModel, linalg::TransposeOp> {
  Value getInput(Operation *op) const {
    return cast<linalg::TransposeOp>(op).getInput();
  }
  ArrayRef<int64_t> getPermutation(Operation *op) const {
    return cast<linalg::TransposeOp>(op).getPermutation();
  }
};

struct SliceModel
    : SliceOpInterface::ExternalModel<SliceModel, tensor::ExtractSliceOp> {
  Value getInput(Operation *op) const {
    return cast<tensor::ExtractSliceOp>(op).getSource();
  }
  std::optional<DimRange> getRange(Operation *op) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    ArrayRef<int64_t> shape = slice.getSourceType().getShape();
    std::optional<DimRange> range;
    if (slice.getType().getRank() != slice.getSourceType().getRank() ||
        !slice.hasUnitStride())
      return range;
    for (auto [dim, start, size] :
         llvm::enumerate(slice.getStaticOffsets(), slice.getStaticSizes())) {
      if (size == shape[dim])
        continue;
      if (range || ShapedType::isDynamic(start) || ShapedType::isDynamic(size))
        return std::nullopt;
      range = {static_cast<int64_t>(dim), start};
    }
    return range;
  }
};

struct ConcatModel
    : ConcatOpInterface::ExternalModel<ConcatModel, tensor::ConcatOp> {
  int64_t getDim(Operation *op) const {
    return cast<tensor::ConcatOp>(op).getDim();
  }
};

} // namespace

void tp::registerShapeModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    linalg::TransposeOp::attachInterface<TransposeModel>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    CollapseShapeOp::attachInterface<ReshapeModel<CollapseShapeOp>>(*context);
    ConcatOp::attachInterface<::ConcatModel>(*context);
    ExpandShapeOp::attachInterface<ReshapeModel<ExpandShapeOp>>(*context);
    ExtractSliceOp::attachInterface<SliceModel>(*context);
  });
}
