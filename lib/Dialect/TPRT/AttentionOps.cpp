//===- AttentionOps.cpp - tprt.attention and its variants -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "tprt/abi.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <array>

using namespace mlir;
using namespace mlir::tprt;

namespace {
enum Loop { Row, Column, Depth, Width };

/// The role of an operand, and those of the last four loops that index it.
struct Role {
  StringRef name;
  Value operand;
  SmallVector<Loop, 2> loops;
  bool isMask = false;
  bool hasAllBatches = false;
  /// Null for the type of the query.
  Type element = nullptr;
};
} // namespace

/// Sums and logarithms are f32 for f16 and bf16.
static Type getWideElement(Value query) {
  Type element = cast<ShapedType>(query.getType()).getElementType();
  return element.isF64() ? element : Float32Type::get(element.getContext());
}

/// The mask and the offset of attention to a block, if there are any.
template <typename OpT>
static void addOptionalRoles(OpT op, SmallVectorImpl<Role> &roles) {
  if (op.getMask())
    roles.push_back({"mask", op.getMask(), {Row, Column}, /*isMask=*/true});
  if (op.getOffset())
    roles.push_back({"offset",
                     op.getOffset(),
                     {},
                     false,
                     false,
                     IntegerType::get(op.getContext(), 64)});
}

static SmallVector<Role> getRoles(AttentionOp op) {
  SmallVector<Role> roles = {{"query", op.getQuery(), {Row, Depth}},
                             {"key", op.getKey(), {Column, Depth}},
                             {"value", op.getValue(), {Column, Width}}};
  if (op.getMask())
    roles.push_back({"mask", op.getMask(), {Row, Column}, /*isMask=*/true});
  roles.push_back({"output", op.getOutput(), {Row, Width}});
  return roles;
}

static SmallVector<Role> getRoles(AttentionGradientOp op) {
  SmallVector<Role> roles = {{"query", op.getQuery(), {Row, Depth}},
                             {"key", op.getKey(), {Column, Depth}},
                             {"value", op.getValue(), {Column, Width}},
                             {"gradient", op.getGradient(), {Row, Width}}};
  if (op.getMask())
    roles.push_back({"mask", op.getMask(), {Row, Column}, /*isMask=*/true});
  for (Role role :
       {Role{"query's gradient", op.getQueryGradient(), {Row, Depth}},
        Role{"key's gradient", op.getKeyGradient(), {Column, Depth}},
        Role{"value's gradient", op.getValueGradient(), {Column, Width}}}) {
    role.hasAllBatches = true;
    roles.push_back(role);
  }
  return roles;
}

template <typename OpT>
static SmallVector<int64_t> getSizes(OpT op) {
  SmallVector<int64_t> sizes(op.getMap(0).getNumDims(), 1);
  for (OpOperand &operand : op->getOpOperands()) {
    auto shape = cast<ShapedType>(operand.get().getType()).getShape();
    AffineMap map = op.getMap(operand.getOperandNumber());
    for (auto [size, expr] : llvm::zip_equal(shape, map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sizes[dim.getPosition()] = size;
  }
  return sizes;
}

/// The operands and results of attention to a block.
static SmallVector<Role> getRoles(AttentionBlockOp op) {
  SmallVector<Role> roles = {{"query", op.getQuery(), {Row, Depth}},
                             {"key", op.getKey(), {Column, Depth}},
                             {"value", op.getValue(), {Column, Width}}};
  addOptionalRoles(op, roles);
  roles.push_back({"output", op.getOutput(), {Row, Width}});
  roles.push_back({"log-sum-exp",
                   op.getLse(),
                   {Row},
                   false,
                   true,
                   getWideElement(op.getQuery())});
  return roles;
}

static SmallVector<Role> getRoles(AttentionBlockGradientOp op) {
  Type wide = getWideElement(op.getQuery());
  SmallVector<Role> roles = {
      {"query", op.getQuery(), {Row, Depth}},
      {"key", op.getKey(), {Column, Depth}},
      {"value", op.getValue(), {Column, Width}},
      {"gradient", op.getGradient(), {Row, Width}},
      {"log-sum-exp", op.getLse(), {Row}, false, true, wide},
      {"delta", op.getDelta(), {Row}, false, true, wide}};
  addOptionalRoles(op, roles);
  for (Role role :
       {Role{"query's gradient", op.getQueryGradient(), {Row, Depth}},
        Role{"key's gradient", op.getKeyGradient(), {Column, Depth}},
        Role{"value's gradient", op.getValueGradient(), {Column, Width}}}) {
    role.hasAllBatches = true;
    roles.push_back(role);
  }
  return roles;
}

/// The FLOPs of `overDepth` products over depth and `overWidth` over width, all
/// of which compute or use the matrix of scores, or of a causal one the half
/// below the diagonal.
template <typename OpT>
static int64_t countFlops(OpT op, int64_t overDepth, int64_t overWidth,
                          bool isCausal) {
  SmallVector<int64_t> sizes = op.getLoopSizes();
  ArrayRef<int64_t> last = ArrayRef(sizes).take_back(4);
  int64_t scores = last[Row] * last[Column];
  if (isCausal) {
    scores = 0;
    for (int64_t row = 0; row < last[Row]; ++row)
      scores += std::min(row + 1, last[Column]);
  }
  return 2 * llvm::product_of(ArrayRef(sizes).drop_back(4)) * scores *
         (overDepth * last[Depth] + overWidth * last[Width]);
}

static int64_t countBytes(ValueRange operands) {
  return llvm::sum_of(llvm::map_range(operands.getTypes(), tp::getTensorBytes),
                      int64_t(0));
}

template <typename OpT>
static LogicalResult verifyRoles(OpT op) {
  Type element = cast<ShapedType>(op.getQuery().getType()).getElementType();
  if (!isa<Float32Type, Float64Type, Float16Type, BFloat16Type>(element))
    return op.emitOpError("computes f32, f64, f16 and bf16, not ") << element;
  if (op.getMaps().size() != op->getNumOperands())
    return op.emitOpError("has ") << op.getMaps().size() << " maps for "
                                  << op->getNumOperands() << " operands";
  unsigned numLoops = op.getMap(0).getNumDims();
  if (numLoops < 4 || numLoops > TPRT_ATTENTION_BATCHES + 4)
    return op.emitOpError("has ") << numLoops << " loops; expected 4 to "
                                  << TPRT_ATTENTION_BATCHES + 4;
  unsigned numBatches = numLoops - 4;
  SmallVector<int64_t> sizes(numLoops, -1);
  for (auto [number, role] : llvm::enumerate(getRoles(op))) {
    auto type = cast<ShapedType>(role.operand.getType());
    AffineMap map = op.getMap(number);
    if (type.getElementType() != (role.element ? role.element : element) &&
        !(role.isMask && type.getElementType().isInteger(1)))
      return op.emitOpError("has a ")
             << role.name << " of " << type.getElementType()
             << " beside a query of " << element;
    if (map.getNumDims() != numLoops || map.getNumSymbols() != 0 ||
        static_cast<int64_t>(map.getNumResults()) != type.getRank() ||
        !map.isProjectedPermutation(/*allowZeroInResults=*/role.isMask))
      return op.emitOpError("doesn't index the ")
             << role.name << " by " << op.getMaps()[number];
    for (unsigned loop = role.hasAllBatches ? 0 : numBatches; loop < numLoops;
         ++loop) {
      bool occurs = map.isFunctionOfDim(loop);
      bool belongs =
          (loop < numBatches && !role.loops.empty()) ||
          llvm::is_contained(role.loops, static_cast<Loop>(loop - numBatches));
      if (occurs ? !belongs : belongs && !role.isMask)
        return op.emitOpError("indexes the ")
               << role.name << (occurs ? " by" : " without") << " loop " << loop
               << " of (batches, row, column, depth, width): "
               << op.getMaps()[number];
    }
    for (auto [size, expr] : llvm::zip_equal(type.getShape(), map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        int64_t &known = sizes[dim.getPosition()];
        if (known >= 0 && known != size)
          return op.emitOpError("has a ")
                 << role.name << " of size " << size << " along loop "
                 << dim.getPosition() << ", which runs " << known << " times";
        known = size;
      }
  }
  if (llvm::is_contained(sizes, -1))
    return op.emitOpError("has a batch loop that indexes no operand");
  return success();
}

template <typename OpT>
static LogicalResult
bufferizeOperands(OpT op, RewriterBase &rewriter,
                  const bufferization::BufferizationOptions &options,
                  bufferization::BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  OpT::create(rewriter, op.getLoc(), TypeRange(), buffers, op->getAttrs());
  bufferization::replaceOpWithBufferizedValues(
      rewriter, op, ArrayRef(buffers).take_back(op.getNumDpsInits()));
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

SmallVector<int64_t> AttentionOp::getLoopSizes() { return getSizes(*this); }

int64_t AttentionOp::getFlops() { return countFlops(*this, 1, 1, getCausal()); }

int64_t AttentionOp::getTouchedBytes() {
  return countBytes(getOperation()->getOperands());
}

LogicalResult AttentionOp::verify() { return verifyRoles(*this); }

LogicalResult
AttentionOp::bufferize(RewriterBase &rewriter,
                       const bufferization::BufferizationOptions &options,
                       bufferization::BufferizationState &state) {
  return bufferizeOperands(*this, rewriter, options, state);
}

//===----------------------------------------------------------------------===//
// AttentionBlockOp, AttentionBlockGradientOp
//===----------------------------------------------------------------------===//

// Which columns a row sees is known only at run time, so all are counted.

SmallVector<int64_t> AttentionBlockOp::getLoopSizes() {
  return getSizes(*this);
}

int64_t AttentionBlockOp::getFlops() { return countFlops(*this, 1, 1, false); }

int64_t AttentionBlockOp::getTouchedBytes() {
  return countBytes(getOperation()->getOperands());
}

LogicalResult AttentionBlockOp::verify() { return verifyRoles(*this); }

LogicalResult
AttentionBlockOp::bufferize(RewriterBase &rewriter,
                            const bufferization::BufferizationOptions &options,
                            bufferization::BufferizationState &state) {
  return bufferizeOperands(*this, rewriter, options, state);
}

SmallVector<int64_t> AttentionBlockGradientOp::getLoopSizes() {
  return getSizes(*this);
}

int64_t AttentionBlockGradientOp::getFlops() {
  return countFlops(*this, 3, 2, false);
}

int64_t AttentionBlockGradientOp::getTouchedBytes() {
  return countBytes(getOperation()->getOperands());
}

LogicalResult AttentionBlockGradientOp::verify() { return verifyRoles(*this); }

LogicalResult AttentionBlockGradientOp::bufferize(
    RewriterBase &rewriter, const bufferization::BufferizationOptions &options,
    bufferization::BufferizationState &state) {
  return bufferizeOperands(*this, rewriter, options, state);
}

//===----------------------------------------------------------------------===//
// AttentionGradientOp
//===----------------------------------------------------------------------===//

SmallVector<int64_t> AttentionGradientOp::getLoopSizes() {
  return getSizes(*this);
}

int64_t AttentionGradientOp::getFlops() {
  return countFlops(*this, 3, 2, getCausal());
}

int64_t AttentionGradientOp::getTouchedBytes() {
  return countBytes(getOperation()->getOperands());
}

LogicalResult AttentionGradientOp::verify() { return verifyRoles(*this); }

LogicalResult AttentionGradientOp::bufferize(
    RewriterBase &rewriter, const bufferization::BufferizationOptions &options,
    bufferization::BufferizationState &state) {
  return bufferizeOperands(*this, rewriter, options, state);
}
