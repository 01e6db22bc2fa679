//===- Attention.cpp - tprt.attention -------------------------------------===//

#include "tp/Dialect/TPRT/TPRT.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tprt;

/// TPRT_ATTENTION_BATCHES of runtime/include/tprt/abi.h.
static constexpr unsigned kMaxBatches = 8;

SmallVector<int64_t> AttentionOp::getLoopSizes() {
  SmallVector<int64_t> sizes(getMap(0).getNumDims(), 1);
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    auto shape = cast<ShapedType>(operand.get().getType()).getShape();
    AffineMap map = getMap(operand.getOperandNumber());
    for (auto [size, expr] : llvm::zip_equal(shape, map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sizes[dim.getPosition()] = size;
  }
  return sizes;
}

int64_t AttentionOp::getFlops() {
  SmallVector<int64_t> sizes = getLoopSizes();
  auto [rows, columns, depth, width] = std::tuple(
      sizes.end()[-4], sizes.end()[-3], sizes.end()[-2], sizes.end()[-1]);
  int64_t scores = rows * columns;
  if (getCausal()) {
    scores = 0;
    for (int64_t row = 0; row < rows; ++row)
      scores += std::min(row + 1, columns);
  }
  return 2 * llvm::product_of(ArrayRef(sizes).drop_back(4)) * scores *
         (depth + width);
}

int64_t AttentionOp::getTouchedBytes() {
  int64_t bytes = 0;
  for (Value operand : getOperation()->getOperands()) {
    auto type = cast<ShapedType>(operand.getType());
    bytes += type.getNumElements() *
             llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

Type AttentionOp::getComputedType() {
  return cast<ShapedType>(getOutput().getType()).getElementType();
}

LogicalResult AttentionOp::verify() {
  Type element = cast<ShapedType>(getQuery().getType()).getElementType();
  if (!isa<Float32Type, Float64Type, Float16Type, BFloat16Type>(element))
    return emitOpError("computes f32, f64, f16 and bf16, not ") << element;
  if (getMaps().size() != getNumOperands())
    return emitOpError("has ") << getMaps().size() << " maps for "
                               << getNumOperands() << " operands";
  unsigned numLoops = getMap(0).getNumDims();
  if (numLoops < 4 || numLoops > kMaxBatches + 4)
    return emitOpError("has ")
           << numLoops << " loops; expected 4 to " << kMaxBatches + 4;
  unsigned row = numLoops - 4, column = row + 1, depth = row + 2,
           width = row + 3;
  struct Role {
    StringRef name;
    Value operand;
    SmallVector<unsigned> loops;
  };
  SmallVector<Role> roles = {{"query", getQuery(), {row, depth}},
                             {"key", getKey(), {column, depth}},
                             {"value", getValue(), {column, width}}};
  if (getMask())
    roles.push_back({"mask", getMask(), {row, column}});
  roles.push_back({"output", getOutput(), {row, width}});

  SmallVector<int64_t> sizes(numLoops, -1);
  for (auto [number, role] : llvm::enumerate(roles)) {
    auto type = cast<ShapedType>(role.operand.getType());
    AffineMap map = getMap(number);
    bool isMask = role.name == "mask";
    if (type.getElementType() != element &&
        !(isMask && type.getElementType().isInteger(1)))
      return emitOpError("has a ")
             << role.name << " of " << type.getElementType()
             << " beside a query of " << element;
    if (map.getNumDims() != numLoops || map.getNumSymbols() != 0 ||
        static_cast<int64_t>(map.getNumResults()) != type.getRank() ||
        !map.isProjectedPermutation(/*allowZeroInResults=*/isMask))
      return emitOpError("doesn't index the ")
             << role.name << " by " << getMaps()[number];
    for (unsigned loop = row; loop < numLoops; ++loop) {
      bool occurs = map.isFunctionOfDim(loop);
      bool belongs = llvm::is_contained(role.loops, loop);
      if (occurs ? !belongs : belongs && !isMask)
        return emitOpError("indexes the ")
               << role.name << (occurs ? " by" : " without") << " loop " << loop
               << " of (batches, row, column, depth, width): "
               << getMaps()[number];
    }
    for (auto [size, expr] : llvm::zip_equal(type.getShape(), map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        int64_t &known = sizes[dim.getPosition()];
        if (known >= 0 && known != size)
          return emitOpError("has a ")
                 << role.name << " of size " << size << " along loop "
                 << dim.getPosition() << ", which runs " << known << " times";
        known = size;
      }
  }
  if (llvm::is_contained(sizes, -1))
    return emitOpError("has a batch loop that indexes no operand");
  return success();
}

bool AttentionOp::bufferizesToMemoryRead(OpOperand &operand,
                                         const bufferization::AnalysisState &) {
  return &operand != &getOutputMutable();
}

bool AttentionOp::bufferizesToMemoryWrite(
    OpOperand &operand, const bufferization::AnalysisState &) {
  return &operand == &getOutputMutable();
}

bufferization::AliasingValueList
AttentionOp::getAliasingValues(OpOperand &operand,
                               const bufferization::AnalysisState &) {
  if (&operand != &getOutputMutable())
    return {};
  return {{getResults().front(), bufferization::BufferRelation::Equivalent}};
}

LogicalResult
AttentionOp::bufferize(RewriterBase &rewriter,
                       const bufferization::BufferizationOptions &options,
                       bufferization::BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value operand : getOperands()) {
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  AttentionOp::create(rewriter, getLoc(), TypeRange(), buffers,
                      getOperation()->getAttrs());
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, buffers.back());
  return success();
}
