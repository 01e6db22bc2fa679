//===- LookupLowering.cpp - Embedding, gather, index_select ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bodies read the table with tensor.extract. All indices are checked first;
// an index out of range reads row 0, so that no body reads out of bounds even
// when it runs before the check.
//
//===----------------------------------------------------------------------===//

#include "LookupLowering.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

/// Finds the function's arguments that `value` is computed from through
/// integers alone; false if floats, or too many ops, are in between.
static bool findArguments(Value value, llvm::SmallSetVector<Value, 2> &found,
                          unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 16;
  if (!getElementTypeOrSelf(value.getType()).isIntOrIndex() ||
      depth > kMaxDepth)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    found.insert(value);
    return isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  }
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands = op->getOperands();
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    operands = destination.getDpsInputs();
  return llvm::all_of(operands, [&](Value operand) {
    return !isa<ShapedType>(operand.getType()) ||
           findArguments(operand, found, depth + 1);
  });
}

StringAttr mlir::tp::nnlinalg::getInputName(Value indices) {
  llvm::SmallSetVector<Value, 2> found;
  if (!findArguments(indices, found) || found.size() != 1)
    return {};
  auto argument = cast<BlockArgument>(found.front());
  auto function = cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                               tp::kNameAttr);
}

void mlir::tp::nnlinalg::buildIndexCheck(ImplicitLocOpBuilder &b, Operation *op,
                                         Value indices, int64_t bound,
                                         std::optional<int64_t> ignored) {
  // Use the bound of the global table if this is a part of it.
  if (auto whole = op->getAttrOfType<IntegerAttr>(tp::kIndexBoundAttr))
    bound = std::max(bound, whole.getInt());
  std::string what;
  auto fqn = op->getAttrOfType<StringAttr>("tp.fqn");
  if (fqn && !fqn.empty())
    what = (fqn.getValue() + ": ").str();
  what += op->getName().stripDialect();
  if (StringAttr input = getInputName(indices))
    what += (" of input '" + input.getValue() + "'").str();
  IntegerAttr ignoredAttr;
  if (ignored)
    ignoredAttr = b.getI64IntegerAttr(*ignored);
  tprt::CheckIndexOp::create(b, indices, b.getI64IntegerAttr(bound),
                             ignoredAttr, b.getStringAttr(what));
}

Value mlir::tp::nnlinalg::buildSafeIndex(ImplicitLocOpBuilder &b, Value index,
                                         int64_t bound) {
  Value wide = convertScalar(b, index, b.getI64Type());
  Value limit = arith::ConstantOp::create(b, b.getI64IntegerAttr(bound));
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  // Unsigned, so that negative indices are out of range too.
  Value isInRange =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, wide, limit);
  Value safe = arith::SelectOp::create(b, isInRange, wide, zero);
  return arith::IndexCastOp::create(b, b.getIndexType(), safe);
}

Value mlir::tp::nnlinalg::buildLookup(ImplicitLocOpBuilder &b,
                                      RankedTensorType type, Value table,
                                      int64_t dim, Operand index,
                                      ArrayRef<int64_t> loops) {
  int64_t bound = getTensorType(table).getDimSize(dim);
  if (getTensorType(table).getNumElements() == 0) {
    // There is nothing to read, and no index that would pass the check.
    Attribute zero = b.getZeroAttr(type.getElementType());
    return buildConstant(b, DenseElementsAttr::get(type, zero));
  }
  return buildElementwise(
      b, type, index,
      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
        SmallVector<Value> coordinates;
        for (auto [i, loop] : llvm::enumerate(loops))
          coordinates.push_back(static_cast<int64_t>(i) == dim
                                    ? buildSafeIndex(b, args[0], bound)
                                    : linalg::IndexOp::create(b, loop));
        return tensor::ExtractOp::create(b, table, coordinates);
      });
}

namespace {
struct EmbeddingPattern : OpRewritePattern<nn::EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::EmbeddingOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    int64_t column = type.getRank() - 1;
    buildIndexCheck(b, op, op.getIndices(),
                    getTensorType(op.getWeight()).getDimSize(0));
    Operand index = asRows(op.getIndices(), type.getRank(), column);
    rewriter.replaceOp(
        op, buildLookup(b, type, op.getWeight(), 0, index, {0, column}));
    return success();
  }
};

struct GatherPattern : OpRewritePattern<nn::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    buildIndexCheck(b, op, op.getIndex(),
                    getTensorType(op.getInput()).getDimSize(op.getDim()));
    Operand index = asRows(op.getIndex(), type.getRank(), {});
    rewriter.replaceOp(
        op, buildLookup(b, type, op.getInput(), op.getDim(), index,
                        llvm::to_vector(llvm::seq<int64_t>(type.getRank()))));
    return success();
  }
};

struct IndexSelectPattern : OpRewritePattern<nn::IndexSelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::IndexSelectOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    buildIndexCheck(b, op, op.getIndex(),
                    getTensorType(op.getInput()).getDimSize(op.getDim()));
    AffineMap map =
        AffineMap::get(type.getRank(), 0, b.getAffineDimExpr(op.getDim()));
    rewriter.replaceOp(
        op,
        buildLookup(b, type, op.getInput(), op.getDim(), {op.getIndex(), map},
                    llvm::to_vector(llvm::seq<int64_t>(type.getRank()))));
    return success();
  }
};
} // namespace

void mlir::tp::nnlinalg::populateLookupPatterns(RewritePatternSet &patterns) {
  patterns.add<EmbeddingPattern, GatherPattern, IndexSelectPattern>(
      patterns.getContext());
}
