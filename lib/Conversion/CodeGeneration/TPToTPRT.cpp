//===- TPToTPRT.cpp - collectives and rank queries ------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/Conversion/Manifest.h"
#include "tp/Conversion/Passes.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTTPTOTPRT
#include "tp/Conversion/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// `rank`'s index along `axes`, the first major: the same as
/// MeshOp::getIndexAlong, computed by the program.
Value buildIndexAlong(OpBuilder &b, Location loc, Value rank, MeshOp mesh,
                      ArrayRef<AxisRefAttr> axes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value index = constant(0);
  for (AxisRefAttr axis : axes) {
    int64_t position = *mesh.getAxisIndex(axis.getName());
    int64_t stride = 1;
    for (int64_t size : mesh.getAxisSizes().drop_front(position + 1))
      stride *= size;
    int64_t size = mesh.getAxisSize(axis);
    // A part is followed by the minor parts of its mesh dimension.
    if (!axis.isWhole())
      stride *= mesh.getAxisSizes()[position] / (axis.getPreSize() * size);
    Value along = arith::DivUIOp::create(b, loc, rank, constant(stride));
    along = arith::RemUIOp::create(b, loc, along, constant(size));
    index = arith::MulIOp::create(b, loc, index, constant(size));
    index = arith::AddIOp::create(b, loc, index, along);
  }
  return index;
}

class ConvertTPToTPRT : public tp::impl::ConvertTPToTPRTBase<ConvertTPToTPRT> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    SmallVector<BlockArgument> ranks;
    if (main)
      ranks = getArguments(main, Role::Rank);
    if (ranks.size() != 1) {
      getOperation().emitError("'@main' has no rank argument: run "
                               "tp-form-entry first");
      return signalPassFailure();
    }
    rank = ranks.front();

    IRRewriter rewriter(&getContext());
    SmallVector<Operation *> ops;
    main.walk([&](Operation *op) {
      if (isa_and_present<TPDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      rewriter.setInsertionPoint(op);
      if (auto collective = dyn_cast<CollectiveOpInterface>(op))
        convert(rewriter, collective);
      else if (auto index = dyn_cast<ShardIndexOp>(op))
        convert(rewriter, index);
      else if (auto slice = dyn_cast<LocalSliceOp>(op))
        convert(rewriter, slice);
    }
    setManifestEntry(getOperation(), "collectives",
                     rewriter.getArrayAttr(collectives));
    // What it said is in the manifest and in the arithmetic now.
    for (MeshOp mesh :
         llvm::make_early_inc_range(getOperation().getOps<MeshOp>()))
      mesh.erase();
  }

  void convert(RewriterBase &rewriter, CollectiveOpInterface op) {
    Location loc = op.getLoc();
    Value input = op->getOperand(0);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    // A function's inputs are read-only, so that writing to one costs a copy.
    bool inPlace = input.getType() == type && input.hasOneUse() &&
                   input.getDefiningOp() &&
                   !isa<bufferization::ToTensorOp>(input.getDefiningOp());
    Value init = input;
    if (!inPlace)
      init = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                     type.getElementType());
    IntegerAttr id = rewriter.getI64IntegerAttr(collectives.size());
    collectives.push_back(describe(op));
    rewriter.replaceOpWithNewOp<tprt::CollectiveOp>(
        op, TypeRange(type), id, inPlace ? Value() : input, init);
  }

  void convert(RewriterBase &rewriter, ShardIndexOp op) {
    Value index = buildIndexAlong(rewriter, op.getLoc(), rank,
                                  lookupMesh(op, op.getMeshAttr()),
                                  op.getAxes().getAxes());
    Value integer = arith::IndexCastOp::create(rewriter, op.getLoc(),
                                               rewriter.getI64Type(), index);
    rewriter.replaceOpWithNewOp<tensor::FromElementsOp>(op, op.getType(),
                                                        integer);
  }

  void convert(RewriterBase &rewriter, LocalSliceOp op) {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    Value index =
        buildIndexAlong(rewriter, loc, rank, lookupMesh(op, op.getMeshAttr()),
                        op.getAxes().getAxes());
    Value size = arith::ConstantIndexOp::create(rewriter, loc,
                                                type.getDimSize(op.getDim()));
    SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), rewriter.getIndexAttr(1));
    offsets[op.getDim()] =
        arith::MulIOp::create(rewriter, loc, index, size).getResult();
    rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(
        op, type, op.getInput(), offsets,
        getAsIndexOpFoldResult(rewriter.getContext(), type.getShape()),
        strides);
  }

  /// docs/Artifact.md's COLLECTIVE.
  DictionaryAttr describe(CollectiveOpInterface op) {
    MLIRContext *context = &getContext();
    Builder b(context);
    MeshOp mesh = lookupMesh(op, op.getMeshAttr());
    auto operandType = cast<RankedTensorType>(op->getOperand(0).getType());
    auto resultType = cast<RankedTensorType>(op->getResult(0).getType());

    int64_t dim = 0, splitDim = 0, concatDim = 0, root = 0;
    ArrayRef<int64_t> source;
    StringRef reduction = "sum";
    llvm::TypeSwitch<Operation *>(op.getOperation())
        .Case([&](AllGatherOp gather) { dim = gather.getDim(); })
        .Case([&](ReduceScatterOp scatter) {
          dim = scatter.getDim();
          reduction = stringifyReductionKind(scatter.getKind());
        })
        .Case([&](AllReduceOp reduce) {
          reduction = stringifyReductionKind(reduce.getKind());
        })
        .Case([&](AllToAllOp exchange) {
          splitDim = exchange.getSplitDim();
          concatDim = exchange.getConcatDim();
        })
        .Case([&](PermuteOp permute) { source = permute.getSource(); })
        .Case([&](BroadcastOp broadcast) { root = broadcast.getRoot(); });

    SmallVector<int64_t> bytes = getReceivedBytesByRank(op, mesh);
    SmallVector<Attribute> groups, axes;
    for (ArrayRef<int64_t> group : mesh.getGroups(op.getAxes().getAxes()))
      groups.push_back(b.getDenseI64ArrayAttr(group));
    for (AxisRefAttr axis : op.getAxes()) {
      std::string name;
      llvm::raw_string_ostream os(name);
      axis.printAxis(os);
      axes.push_back(b.getStringAttr(name));
    }
    std::string dtype;
    llvm::raw_string_ostream(dtype) << operandType.getElementType();

    auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
    return b.getDictionaryAttr(
        {b.getNamedAttr("kind", b.getStringAttr(op.getCollectiveKind())),
         b.getNamedAttr("reduction", b.getStringAttr(reduction)),
         b.getNamedAttr("dtype", b.getStringAttr(dtype)),
         b.getNamedAttr("operand_shape",
                        b.getDenseI64ArrayAttr(operandType.getShape())),
         b.getNamedAttr("result_shape",
                        b.getDenseI64ArrayAttr(resultType.getShape())),
         b.getNamedAttr("dim", number(dim)),
         b.getNamedAttr("split_dim", number(splitDim)),
         b.getNamedAttr("concat_dim", number(concatDim)),
         b.getNamedAttr("root", number(root)),
         b.getNamedAttr("source", b.getDenseI64ArrayAttr(source)),
         b.getNamedAttr("groups", b.getArrayAttr(groups)),
         b.getNamedAttr("axes", b.getArrayAttr(axes)),
         b.getNamedAttr("bytes_by_rank", b.getDenseI64ArrayAttr(bytes)),
         b.getNamedAttr("fqn", b.getStringAttr(op.getOriginFqn())),
         b.getNamedAttr("reason", b.getStringAttr(op.getOriginReason()))});
  }

  Value rank;
  SmallVector<Attribute> collectives;
};

} // namespace
