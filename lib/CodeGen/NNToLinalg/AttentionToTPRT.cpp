//===- AttentionToTPRT.cpp - Attention as one call ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Grouping.h"
#include "LinalgBuilders.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tprt/abi.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTATTENTIONTOTPRT
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp::nnlinalg;

namespace {

enum { Row, Column, Depth, Width, NumInner };

/// Operands and maps of attention and of its gradient.
class Call {
public:
  template <typename OpT>
  Call(ImplicitLocOpBuilder &b, OpT op)
      : b(b), grouping(op.getQuery(), op.getKey()),
        columns(getTensorType(op.getKey()).getShape().end()[-2]) {
    Value query = grouping.split(b, op.getQuery());
    scoreShape.assign(getTensorType(query).getShape());
    scoreShape.back() = columns;
    add(query, Row, Depth);
    add(op.getKey(), Column, Depth, /*isShared=*/true);
    add(op.getValue(), Column, Width, /*isShared=*/true);
  }

  template <typename OpT>
  static bool isPossible(OpT op) {
    bool isGrouped = Grouping(op.getQuery(), op.getKey()).isGrouped();
    return op.getQuery().getType().getRank() - 2 + isGrouped <=
           TPRT_ATTENTION_BATCHES;
  }

  /// An operand whose heads are split.
  void addSplit(Value value, unsigned first, unsigned second) {
    add(grouping.split(b, value), first, second);
  }

  /// An operand or a result with one element for each row. Its last dimension,
  /// of size 1, is dropped.
  void addRows(Value value) {
    add(buildReshape(b, value, getRowShape(value)), getRowMap());
  }
  void addRowResult(Value result) {
    types.push_back(getTensorType(result).clone(getRowShape(result)));
    add(buildEmpty(b, cast<RankedTensorType>(types.back())), getRowMap());
  }

  void addScalar(Value value) {
    if (value)
      add(value, AffineMap::get(getNumLead() + NumInner, 0, b.getContext()));
  }

  void addMask(Value mask) {
    if (!mask)
      return;
    Operand read = broadcastTo(grouping.split(b, mask), scoreShape);
    operands.push_back(read.value);
    maps.push_back(AffineMap::get(getNumLead() + NumInner, 0,
                                  read.map.getResults(), b.getContext()));
  }

  void addResult(Value result, unsigned first, unsigned second) {
    RankedTensorType type = getTensorType(result);
    types.push_back(type.clone(grouping.split(type.getShape())));
    add(buildEmpty(b, cast<RankedTensorType>(types.back())), first, second);
  }

  /// Replaces `op` by the call.
  template <typename CallOp, typename OpT>
  void replace(OpT op, PatternRewriter &rewriter,
               ArrayRef<NamedAttribute> more) {
    NamedAttrList attributes;
    attributes.append("scale", op.getScaleAttr());
    attributes.append("maps", b.getAffineMapArrayAttr(maps));
    attributes.append(more);
    auto call = CallOp::create(b, types, operands, attributes.getAttrs());
    SmallVector<Value> results;
    for (auto [result, old] :
         llvm::zip_equal(call.getResults(), op->getResults()))
      results.push_back(buildReshape(b, result, getTensorType(old).getShape()));
    rewriter.replaceOp(op, results);
  }

private:
  unsigned getNumLead() const { return scoreShape.size() - 2; }

  void add(Value value, unsigned first, unsigned second,
           bool isShared = false) {
    add(value, grouping.getMap(b.getContext(), getNumLead(), NumInner, first,
                               second, isShared));
  }
  void add(Value value, AffineMap map) {
    operands.push_back(value);
    maps.push_back(map);
  }

  SmallVector<int64_t> getRowShape(Value value) const {
    SmallVector<int64_t> shape =
        grouping.split(getTensorType(value).getShape());
    shape.pop_back();
    return shape;
  }
  /// The batches and the rows.
  AffineMap getRowMap() const {
    auto loops = llvm::to_vector(llvm::seq<unsigned>(0, getNumLead()));
    loops.push_back(getNumLead() + Row);
    return AffineMap::getMultiDimMapWithTargets(getNumLead() + NumInner, loops,
                                                b.getContext());
  }

  ImplicitLocOpBuilder &b;
  Grouping grouping;
  int64_t columns;
  SmallVector<int64_t> scoreShape;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<AffineMap> maps;
};

template <typename OpT>
static SmallVector<NamedAttribute> getCausalAttr(OpT op) {
  Builder b(op.getContext());
  if (!op.getCausal())
    return {};
  return {b.getNamedAttr("causal", b.getUnitAttr())};
}

/// For `before` operands, an optional mask, an optional offset, and `after`
/// operands.
template <typename OpT>
static NamedAttribute getSegments(OpT op, unsigned before, unsigned after) {
  Builder b(op.getContext());
  SmallVector<int32_t> sizes(before, 1);
  sizes.append({op.getMask() ? 1 : 0, op.getOffset() ? 1 : 0});
  sizes.append(after, 1);
  return b.getNamedAttr("operandSegmentSizes", b.getDenseI32ArrayAttr(sizes));
}

/// If `value` repeats each head for a group of query heads, the tensor without
/// the repetition: of
///
///   (b, h, 1, s, d) -> (b, h, n, s, d) -> (b, h * n, s, d),
///
/// the first one, joined to (b, h, s, d). Null otherwise.
static Value buildUnrepeated(ImplicitLocOpBuilder &b, Value value) {
  auto join = value.getDefiningOp<nn::ReshapeOp>();
  auto repeat =
      join ? join.getInput().getDefiningOp<nn::BroadcastOp>() : nullptr;
  if (!repeat)
    return nullptr;
  ArrayRef<int64_t> joined = getTensorType(value).getShape();
  ArrayRef<int64_t> repeated = getTensorType(repeat).getShape();
  if (joined.size() != 4 || repeated.size() != 5 ||
      joined.take_front(1) != repeated.take_front(1) ||
      joined.take_back(2) != repeated.take_back(2))
    return nullptr;
  SmallVector<int64_t> single(repeated), shape(joined);
  single[2] = 1;
  shape[1] = repeated[1];
  if (getTensorType(repeat.getInput()).getShape() != ArrayRef(single))
    return nullptr;
  return buildReshape(b, repeat.getInput(), shape);
}

/// Lets the query heads of a group share key and value, instead of a copy of
/// each for every head.
static void shareRepeatedHeads(ImplicitLocOpBuilder &b, nn::AttentionOp op,
                               PatternRewriter &rewriter) {
  Value key = buildUnrepeated(b, op.getKey());
  Value value = key ? buildUnrepeated(b, op.getValue()) : nullptr;
  if (!value ||
      getTensorType(key).getDimSize(1) != getTensorType(value).getDimSize(1))
    return;
  rewriter.modifyOpInPlace(op, [&] {
    op.getKeyMutable().assign(key);
    op.getValueMutable().assign(value);
  });
}

struct AttentionPattern : OpRewritePattern<nn::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!Call::isPossible(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    shareRepeatedHeads(b, op, rewriter);
    Call call(b, op);
    call.addMask(op.getMask());
    call.addResult(op.getResult(), Row, Width);
    call.replace<tprt::AttentionOp>(op, rewriter, getCausalAttr(op));
    return success();
  }
};

struct GradientPattern : OpRewritePattern<nn::AttentionGradientOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionGradientOp op,
                                PatternRewriter &rewriter) const override {
    if (!Call::isPossible(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Call call(b, op);
    call.addSplit(op.getGradient(), Row, Width);
    call.addMask(op.getMask());
    call.addResult(op.getQueryGradient(), Row, Depth);
    call.addResult(op.getKeyGradient(), Column, Depth);
    call.addResult(op.getValueGradient(), Column, Width);
    call.replace<tprt::AttentionGradientOp>(op, rewriter, getCausalAttr(op));
    return success();
  }
};

struct BlockPattern : OpRewritePattern<nn::AttentionBlockOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionBlockOp op,
                                PatternRewriter &rewriter) const override {
    if (!Call::isPossible(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Call call(b, op);
    call.addMask(op.getMask());
    call.addScalar(op.getOffset());
    call.addResult(op.getResult(), Row, Width);
    call.addRowResult(op.getLse());
    call.replace<tprt::AttentionBlockOp>(op, rewriter, getSegments(op, 3, 2));
    return success();
  }
};

struct BlockGradientPattern : OpRewritePattern<nn::AttentionBlockGradientOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionBlockGradientOp op,
                                PatternRewriter &rewriter) const override {
    if (!Call::isPossible(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Call call(b, op);
    call.addSplit(op.getGradient(), Row, Width);
    call.addRows(op.getLse());
    call.addRows(op.getDelta());
    call.addMask(op.getMask());
    call.addScalar(op.getOffset());
    call.addResult(op.getQueryGradient(), Row, Depth);
    call.addResult(op.getKeyGradient(), Column, Depth);
    call.addResult(op.getValueGradient(), Column, Width);
    call.replace<tprt::AttentionBlockGradientOp>(op, rewriter,
                                                 getSegments(op, 6, 3));
    return success();
  }
};

struct ConvertAttentionToTPRT
    : tp::impl::ConvertAttentionToTPRTBase<ConvertAttentionToTPRT> {
  using ConvertAttentionToTPRTBase::ConvertAttentionToTPRTBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<AttentionPattern, GradientPattern>(&getContext());
    if (!onDevice)
      patterns.add<BlockPattern, BlockGradientPattern>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
