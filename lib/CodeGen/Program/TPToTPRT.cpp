//===- TPToTPRT.cpp - Collectives and rank queries ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ManifestCollectives.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/RankIndices.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTTPTOTPRT
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// The offsets of one segment of the blocks of a dimension: the one that all
/// ranks of a program have, or a table by rank.
struct Offsets {
  std::optional<int64_t> same;
  DenseIntElementsAttr table;
};

class ConvertTPToTPRT : public tp::impl::ConvertTPToTPRTBase<ConvertTPToTPRT> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions = getEntryPrograms(module);
    auto meshes = llvm::to_vector(module.getOps<MeshOp>());
    int64_t numRanks = meshes.empty() ? 1 : meshes.front().getNumRanks();
    if (!functions.empty() && failed(getProgramsByRank(functions, numRanks)))
      return signalPassFailure();
    if (!meshes.empty())
      indices.emplace(meshes.front());
    SmallVector<RankedProgram> programs;
    for (func::FuncOp function : functions) {
      RankedProgram &program = programs.emplace_back();
      program.function = function;
      program.ranks = getRanksOf(function, numRanks);
      function.walk(
          [&](CollectiveOpInterface op) { program.collectives.push_back(op); });
    }

    ArrayAttr collectives = ArrayAttr::get(&getContext(), {});
    if (!programs.empty() && !meshes.empty()) {
      FailureOr<ArrayAttr> described =
          describeCollectives(programs, meshes.front());
      if (failed(described))
        return signalPassFailure();
      collectives = *described;
    }
    if (programs.empty() || llvm::any_of(programs, [&](auto &program) {
          return failed(convert(program));
        })) {
      module.emitError("there is no program with a rank argument: run "
                       "tp-create-entry-point first");
      return signalPassFailure();
    }
    setManifestEntry(module, "collectives", collectives);
    // Its content is in the manifest and in the tables now.
    for (MeshOp mesh : meshes)
      mesh.erase();
    if (PipelineOp pipeline = getPipeline(module))
      pipeline.erase();
  }

  /// Fails where the program has no rank argument.
  LogicalResult convert(RankedProgram &program) {
    func::FuncOp function = program.function;
    SmallVector<BlockArgument> arguments = getArguments(function, Role::Rank);
    if (arguments.size() != 1)
      return failure();
    rank = arguments.front();
    ranks = program.ranks;
    ids = program.ids;
    known.clear();

    IRRewriter rewriter(&getContext());
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa<CollectiveOpInterface, ShardOffsetOp, LocalSliceOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      rewriter.setInsertionPoint(op);
      if (auto start = dyn_cast<StartOp>(op->getParentOp()))
        convert(rewriter, start);
      else if (auto collective = dyn_cast<CollectiveOpInterface>(op))
        convert(rewriter, collective);
      else if (auto offset = dyn_cast<ShardOffsetOp>(op))
        convert(rewriter, offset);
      else if (auto slice = dyn_cast<LocalSliceOp>(op))
        convert(rewriter, slice);
    }
    return success();
  }

  /// The input of a collective, null if it runs in place, and the destination
  /// of its result.
  static std::pair<Value, Value> getBuffers(RewriterBase &rewriter,
                                            CollectiveOpInterface op) {
    Value input = op->getOperand(0);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    // In other collectives, ranks would overwrite what others have yet to read.
    // A function's inputs are read-only, so writing to one costs a copy.
    bool inPlace = isa<AllReduceOp>(op) && input.hasOneUse() &&
                   input.getDefiningOp() &&
                   !isa<bufferization::ToTensorOp>(input.getDefiningOp());
    if (inPlace)
      return {Value(), input};
    return {input,
            tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                    type.getElementType())};
  }

  IntegerAttr takeId(Builder &b) {
    IntegerAttr id = b.getI64IntegerAttr(ids.front());
    ids = ids.drop_front();
    return id;
  }

  void convert(RewriterBase &rewriter, CollectiveOpInterface op) {
    auto [input, init] = getBuffers(rewriter, op);
    IntegerAttr id = takeId(rewriter);
    rewriter.replaceOpWithNewOp<tprt::CollectiveOp>(
        op, TypeRange(op->getResult(0).getType()), id, input, init);
  }

  void convert(RewriterBase &rewriter, StartOp op) {
    CollectiveOpInterface collective = op.getCollective();
    auto wait = cast<WaitOp>(*op->user_begin());
    rewriter.setInsertionPoint(op);
    auto [input, init] = getBuffers(rewriter, collective);
    IntegerAttr id = takeId(rewriter);
    TypeRange type(wait->getResultTypes());
    auto start = tprt::CollectiveStartOp::create(rewriter, collective.getLoc(),
                                                 type, id, input, init);
    rewriter.setInsertionPoint(wait);
    rewriter.replaceOpWithNewOp<tprt::CollectiveWaitOp>(
        wait, type, id, input, start.getResults().front());
    rewriter.eraseOp(op);
  }

  const Offsets &getOffsets(MeshOp mesh, int64_t size, AxisListAttr axes,
                            unsigned segment) {
    Offsets &offsets = known[{size, axes, segment}];
    if (offsets.same || offsets.table)
      return offsets;
    auto values = indices->map(axes, [&](int64_t r) -> int64_t {
      return getDimBlock(size, axes, mesh, r)[segment].offset;
    });
    int64_t first = values[ranks.front()];
    if (llvm::all_of(ranks, [&](int64_t r) { return values[r] == first; }))
      offsets.same = first;
    else
      offsets.table = Builder(mesh.getContext()).getI64TensorAttr(values);
    return offsets;
  }

  /// The first index of a segment of the rank's block of a dimension.
  Value buildOffset(OpBuilder &b, Location loc, MeshOp mesh, int64_t size,
                    AxisListAttr axes, unsigned segment) {
    const Offsets &offsets = getOffsets(mesh, size, axes, segment);
    if (offsets.same)
      return arith::ConstantIndexOp::create(b, loc, *offsets.same);
    Value table = arith::ConstantOp::create(b, loc, offsets.table);
    Value value = tensor::ExtractOp::create(b, loc, table, rank);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }

  /// Replaces a query, whose result is a tensor<i64>.
  void convert(RewriterBase &rewriter, ShardOffsetOp op) {
    MeshOp mesh = lookupMesh(op, op.getMeshAttr());
    Value index = buildOffset(rewriter, op.getLoc(), mesh, op.getSize(),
                              op.getAxes(), /*segment=*/0);
    Value integer = arith::IndexCastOp::create(rewriter, op.getLoc(),
                                               rewriter.getI64Type(), index);
    rewriter.replaceOpWithNewOp<tensor::FromElementsOp>(op, op.getType(),
                                                        integer);
  }

  void convert(RewriterBase &rewriter, LocalSliceOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    auto inputType = cast<RankedTensorType>(op.getInput().getType());
    if (type.getNumElements() == 0) {
      // extract_slice rejects an offset at the end.
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, type.getShape(),
                                                   type.getElementType());
      return;
    }
    MeshOp mesh = lookupMesh(op, op.getMeshAttr());
    int64_t dim = op.getDim(), size = inputType.getDimSize(dim);
    // One piece of each segment; ranks that share a program have pieces of the
    // same sizes.
    SmallVector<Value> pieces;
    for (auto [segment, interval] : llvm::enumerate(
             getDimBlock(size, op.getAxes(), mesh, ranks.front()))) {
      if (interval.size == 0)
        continue;
      Value offset =
          buildOffset(rewriter, op.getLoc(), mesh, size, op.getAxes(), segment);
      SmallVector<OpFoldResult> offsets(type.getRank(),
                                        rewriter.getIndexAttr(0));
      SmallVector<OpFoldResult> strides(type.getRank(),
                                        rewriter.getIndexAttr(1));
      SmallVector<int64_t> shape(type.getShape());
      offsets[dim] = getAsOpFoldResult(offset);
      shape[dim] = interval.size;
      pieces.push_back(tensor::ExtractSliceOp::create(
          rewriter, op.getLoc(), type.clone(shape), op.getInput(), offsets,
          getAsIndexOpFoldResult(rewriter.getContext(), shape), strides));
    }
    if (pieces.size() == 1)
      rewriter.replaceOp(op, pieces.front());
    else
      rewriter.replaceOpWithNewOp<tensor::ConcatOp>(op, type, dim, pieces);
  }

  Value rank;
  ArrayRef<int64_t> ranks;
  std::optional<RankIndices> indices;
  /// By size, axes and segment.
  DenseMap<std::tuple<int64_t, AxisListAttr, unsigned>, Offsets> known;
  /// Of the collectives that are left to convert.
  ArrayRef<int64_t> ids;
};

} // namespace
