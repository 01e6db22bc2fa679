//===- TPRT.cpp - The tprt dialect ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TPRT/TPRT.h"
#include "DenseBuffers.h"
#include "tp/Dialect/TP/Elements.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::tprt;

#include "tp/Dialect/TPRT/TPRTDialect.cpp.inc"

void TPRTDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tp/Dialect/TPRT/TPRTOps.cpp.inc"
      >();
}

#include "tp/Dialect/TPRT/TPRTEnums.cpp.inc"

#include "tp/Dialect/TPRT/TPRTInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "tp/Dialect/TPRT/TPRTOps.cpp.inc"

//===----------------------------------------------------------------------===//
// CheckIndexOp
//===----------------------------------------------------------------------===//

bool CheckIndexOp::bufferizesToMemoryRead(
    OpOperand &, const bufferization::AnalysisState &) {
  return true;
}

bool CheckIndexOp::bufferizesToMemoryWrite(
    OpOperand &, const bufferization::AnalysisState &) {
  return false;
}

bufferization::AliasingValueList
CheckIndexOp::getAliasingValues(OpOperand &,
                                const bufferization::AnalysisState &) {
  return {};
}

LogicalResult
CheckIndexOp::bufferize(RewriterBase &rewriter,
                        const bufferization::BufferizationOptions &options,
                        bufferization::BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getIndices(), options, state);
  if (failed(buffer))
    return failure();
  rewriter.modifyOpInPlace(*this, [&] { getIndicesMutable().assign(*buffer); });
  return success();
}

/// Whether `op` checks constants, which are in range.
static bool checksConstants(CheckIndexOp op) {
  DenseIntElementsAttr indices;
  return matchPattern(op.getIndices(), m_Constant(&indices)) &&
         llvm::all_of(indices, [&](const APInt &value) {
           int64_t index = value.getSExtValue();
           return index == op.getIgnored() ||
                  (index >= 0 && index < static_cast<int64_t>(op.getBound()));
         });
}

/// Whether the program ends before `op` if `op` would end it. Tensors only: the
/// elements of a buffer may have changed since.
static bool isCheckedBefore(CheckIndexOp op) {
  return isa<TensorType>(op.getIndices().getType()) &&
         llvm::any_of(op.getIndices().getUsers(), [&](Operation *user) {
           auto other = dyn_cast<CheckIndexOp>(user);
           return other && other != op && other->getBlock() == op->getBlock() &&
                  other->isBeforeInBlock(op) &&
                  other.getBound() <= op.getBound() &&
                  other.getIgnored() == op.getIgnored();
         });
}

LogicalResult CheckIndexOp::canonicalize(CheckIndexOp op,
                                         PatternRewriter &rewriter) {
  if (!checksConstants(op) && !isCheckedBefore(op))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// OpaqueOp
//===----------------------------------------------------------------------===//

bool OpaqueOp::bufferizesToMemoryRead(OpOperand &,
                                      const bufferization::AnalysisState &) {
  return false;
}
bool OpaqueOp::bufferizesToMemoryWrite(OpOperand &,
                                       const bufferization::AnalysisState &) {
  return false;
}
bufferization::AliasingValueList
OpaqueOp::getAliasingValues(OpOperand &, const bufferization::AnalysisState &) {
  return {{getResult(), bufferization::BufferRelation::Equivalent}};
}
LogicalResult
OpaqueOp::bufferize(RewriterBase &rewriter,
                    const bufferization::BufferizationOptions &options,
                    bufferization::BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getInput(), options, state);
  if (failed(buffer))
    return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, *buffer);
  return success();
}

//===----------------------------------------------------------------------===//
// CollectiveOp
//===----------------------------------------------------------------------===//

FailureOr<Value>
tprt::getDense(RewriterBase &rewriter, Location loc, Value buffer, bool copy,
               const bufferization::BufferizationOptions &options) {
  auto type = cast<MemRefType>(buffer.getType());
  if (memref::isStaticShapeAndContiguousRowMajor(type))
    return buffer;
  auto denseType = MemRefType::get(type.getShape(), type.getElementType());
  FailureOr<Value> dense = options.createAlloc(rewriter, loc, denseType, {});
  if (failed(dense) ||
      (copy && failed(options.createMemCpy(rewriter, loc, buffer, *dense))))
    return failure();
  return dense;
}

/// The input of a collective, dense: a view with gaps, such as a slice, is
/// copied. Null if the collective runs in place.
template <typename OpT>
static FailureOr<Value>
getDenseInput(OpT op, RewriterBase &rewriter,
              const bufferization::BufferizationOptions &options,
              bufferization::BufferizationState &state) {
  if (!op.getInput())
    return Value();
  FailureOr<Value> buffer = getBuffer(rewriter, op.getInput(), options, state);
  if (failed(buffer))
    return failure();
  return getDense(rewriter, op.getLoc(), *buffer, /*copy=*/true, options);
}

/// The runtime takes dense blocks. A view with gaps, of a slice or of a part of
/// a concatenation, goes through a copy.
LogicalResult
CollectiveOp::bufferize(RewriterBase &rewriter,
                        const bufferization::BufferizationOptions &options,
                        bufferization::BufferizationState &state) {
  FailureOr<Value> input = getDenseInput(*this, rewriter, options, state);
  FailureOr<Value> output = getBuffer(rewriter, getOutput(), options, state);
  if (failed(input) || failed(output))
    return failure();
  FailureOr<Value> dense =
      getDense(rewriter, getLoc(), *output, /*copy=*/!*input, options);
  if (failed(dense))
    return failure();
  CollectiveOp::create(rewriter, getLoc(), TypeRange(), getIdAttr(), *input,
                       *dense);
  if (*dense != *output &&
      failed(options.createMemCpy(rewriter, getLoc(), *dense, *output)))
    return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, *output);
  return success();
}

//===----------------------------------------------------------------------===//
// CollectiveStartOp
//===----------------------------------------------------------------------===//

LogicalResult CollectiveStartOp::verify() {
  if (getResults().empty())
    return success();
  Value result = getResults().front();
  auto wait = result.hasOneUse()
                  ? dyn_cast<CollectiveWaitOp>(*result.user_begin())
                  : CollectiveWaitOp();
  if (!wait || wait.getOutput() != result || wait.getId() != getId() ||
      wait.getInput() != getInput())
    return emitOpError("needs one use, the 'tprt.collective_wait' with its id "
                       "and its input");
  return success();
}

/// If the output has gaps, bufferizing the wait replaces it.
LogicalResult
CollectiveStartOp::bufferize(RewriterBase &rewriter,
                             const bufferization::BufferizationOptions &options,
                             bufferization::BufferizationState &state) {
  FailureOr<Value> input = getDenseInput(*this, rewriter, options, state);
  FailureOr<Value> output = getBuffer(rewriter, getOutput(), options, state);
  if (failed(input) || failed(output))
    return failure();
  CollectiveStartOp::create(rewriter, getLoc(), TypeRange(), getIdAttr(),
                            *input, *output);
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, *output);
  return success();
}

//===----------------------------------------------------------------------===//
// CollectiveWaitOp
//===----------------------------------------------------------------------===//

/// A copy would be useless: the result isn't there yet.
bool CollectiveWaitOp::mustBufferizeInPlace(
    OpOperand &operand, const bufferization::AnalysisState &) {
  return &operand == &getOutputMutable();
}

/// The start is already bufferized: its buffers are the ones that the runtime
/// uses.
LogicalResult
CollectiveWaitOp::bufferize(RewriterBase &rewriter,
                            const bufferization::BufferizationOptions &options,
                            bufferization::BufferizationState &state) {
  CollectiveStartOp start;
  if (auto started = getOutput().getDefiningOp<bufferization::ToTensorOp>())
    for (Operation *user :
         started.getBuffer().getUsers()) // the newest is first
      if (auto candidate = dyn_cast<CollectiveStartOp>(user);
          candidate && candidate.getId() == getId() &&
          candidate.getOutput() == started.getBuffer() &&
          candidate->getBlock() == getOperation()->getBlock()) {
        start = candidate;
        break;
      }
  if (!start)
    return emitOpError("waits for collective ")
           << getId() << ", which isn't started before it in its block";
  Value output = start.getOutput();
  FailureOr<Value> dense;
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(start);
    dense = getDense(rewriter, getLoc(), output, /*copy=*/!start.getInput(),
                     options);
  }
  if (failed(dense))
    return failure();
  rewriter.modifyOpInPlace(start,
                           [&] { start.getOutputMutable().assign(*dense); });
  CollectiveWaitOp::create(rewriter, getLoc(), TypeRange(), getIdAttr(),
                           start.getInput(), *dense);
  if (*dense != output &&
      failed(options.createMemCpy(rewriter, getLoc(), *dense, output)))
    return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, output);
  return success();
}

//===----------------------------------------------------------------------===//
// GemmOp
//===----------------------------------------------------------------------===//

/// The buffer that `buffer` is a view of. Parts of an arena count as separate
/// buffers: they don't overlap while both are in use.
static Value getWholeBuffer(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<memref::ViewOp>(view.getOperation()))
      break;
    buffer = view.getViewSource();
  }
  return buffer;
}

LogicalResult GemmOp::verify() {
  auto elementOf = [](Value v) {
    return cast<MemRefType>(v.getType()).getElementType();
  };
  if (elementOf(getA()) != elementOf(getC()) ||
      elementOf(getB()) != elementOf(getC()) ||
      llvm::any_of(
          ValueRange{getBias(), getAddend(), getFactor()},
          [&](Value v) { return v && elementOf(v) != elementOf(getC()); }))
    return emitOpError("needs one element type");
  if (getSizes().size() != 3 || getBatch().size() != 2 ||
      getAStrides().size() != 4 || getBStrides().size() != 4 ||
      getCStrides().size() != 3)
    return emitOpError("needs 3 sizes, 2 batch sizes, 4 strides of A, 4 of B "
                       "and 3 of C");
  auto isMatrix = [](ArrayRef<int64_t> strides, int64_t rows, int64_t cols) {
    return (strides[1] == 1 && strides[0] >= cols) ||
           (strides[0] == 1 && strides[1] >= rows);
  };
  int64_t m = getSizes()[0], n = getSizes()[1], k = getSizes()[2];
  if (!isMatrix(getAStrides(), m, k))
    return emitOpError("A isn't a matrix with a unit stride: strides ")
           << getAStrides() << " for " << m << "x" << k;
  if (!isMatrix(getBStrides(), k, n))
    return emitOpError("B isn't a matrix with a unit stride: strides ")
           << getBStrides() << " for " << k << "x" << n;
  if (getAccumulate() && getAddend())
    return emitOpError("accumulates, and has an addend beside C");
  Value written = getWholeBuffer(getC());
  if (getAddend() && getWholeBuffer(getAddend()) == written)
    return emitOpError("the addend is in C's buffer");
  if (getFactor() && getWholeBuffer(getFactor()) == written)
    return emitOpError("the factor is in C's buffer");
  auto verifyStrides = [&](Value operand,
                           std::optional<ArrayRef<int64_t>> strides,
                           StringRef name) -> LogicalResult {
    if (!operand == !strides && (!strides || strides->size() == 3))
      return success();
    return emitOpError("needs 3 strides of the ")
           << name << ", and only where there is one";
  };
  if (failed(verifyStrides(getAddend(), getAddendStrides(), "addend")) ||
      failed(verifyStrides(getFactor(), getFactorStrides(), "factor")))
    return failure();
  return success();
}

int64_t GemmOp::getFlops() {
  return 2 * llvm::product_of(getSizes()) * llvm::product_of(getBatch());
}

int64_t GemmOp::getTouchedBytes() {
  // A batch stride of 0 reads the same matrix again.
  auto count = [&](ArrayRef<int64_t> batchStrides, int64_t rows, int64_t cols) {
    int64_t elements = rows * cols;
    for (auto [size, stride] : llvm::zip_equal(getBatch(), batchStrides))
      elements *= stride == 0 ? 1 : size;
    return elements;
  };
  int64_t m = getSizes()[0], n = getSizes()[1], k = getSizes()[2];
  int64_t ofC = count(getCStrides().drop_front(1), m, n);
  int64_t elements = count(getAStrides().drop_front(2), m, k) +
                     count(getBStrides().drop_front(2), k, n) + ofC +
                     (getAccumulate() || getAddend() ? ofC : 0) +
                     (getFactor() ? ofC : 0) + (getBias() ? n : 0);
  return elements * tp::getElementBytes(getComputedType());
}

//===----------------------------------------------------------------------===//
// CallOp
//===----------------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getCalleeAttr());
  if (!callee)
    return emitOpError("there is no function '") << getCallee() << "'";
  if (!callee->hasAttr(kRepeatedAttr))
    return emitOpError("'")
           << getCallee() << "' has no attribute '" << kRepeatedAttr << "'";
  if (auto caller = getOperation()->getParentOfType<FunctionOpInterface>();
      caller && caller->hasAttr(kRepeatedAttr))
    return emitOpError("is in a function with '") << kRepeatedAttr << "'";
  auto isSame = [](Type operand, Type argument) {
    auto shaped = dyn_cast<ShapedType>(operand);
    auto buffer = dyn_cast<MemRefType>(argument);
    if (!shaped || !buffer)
      return operand == argument;
    return shaped.getShape() == buffer.getShape() &&
           shaped.getElementType() == buffer.getElementType();
  };
  ArrayRef<Type> arguments = callee.getArgumentTypes();
  if (arguments.size() >= getNumOperands() &&
      llvm::all_of_zip(getOperandTypes(),
                       arguments.take_front(getNumOperands()), isSame))
    return success();
  InFlightDiagnostic diagnostic =
      emitOpError("'") << getCallee()
                       << "' doesn't take an 'index' and buffers of the "
                          "operands' shapes and element types";
  diagnostic.attachNote(callee.getLoc()) << "the function is here";
  return diagnostic;
}

LogicalResult CallOp::verify() {
  for (Type type : getUpdated().getTypes())
    if (isa<MemRefType>(type) != updatesBuffers())
      return emitOpError("must update either tensors or buffers, not both");
  return success();
}

/// `buffer` without a layout, if it is dense and begins at its base; else null.
static Value castToPlain(RewriterBase &rewriter, Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  auto plain = MemRefType::get(type.getShape(), type.getElementType());
  if (type == plain)
    return buffer;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || offset != 0 ||
      !memref::isStaticShapeAndContiguousRowMajor(type))
    return {};
  return memref::CastOp::create(rewriter, loc, plain, buffer);
}

/// The function takes addresses of dense buffers. A view with gaps, or of the
/// end of a buffer, goes through a copy.
LogicalResult
CallOp::bufferize(RewriterBase &rewriter,
                  const bufferization::BufferizationOptions &options,
                  bufferization::BufferizationState &state) {
  SmallVector<Value> operands{getRank()}, results;
  SmallVector<std::pair<Value, Value>> copies;
  for (OpOperand &operand : getOperation()->getOpOperands().drop_front()) {
    if (isa<MemRefType>(operand.get().getType())) {
      operands.push_back(operand.get());
      continue;
    }
    FailureOr<Value> buffer =
        getBuffer(rewriter, operand.get(), options, state);
    if (failed(buffer))
      return failure();
    bool isInit = isDpsInit(&operand);
    if (isInit)
      results.push_back(*buffer);
    if (Value plain = castToPlain(rewriter, getLoc(), *buffer)) {
      operands.push_back(plain);
      continue;
    }
    auto type = cast<MemRefType>(buffer->getType());
    FailureOr<Value> dense = options.createAlloc(
        rewriter, getLoc(),
        MemRefType::get(type.getShape(), type.getElementType()), {});
    if (failed(dense) ||
        ((!isInit || isUpdated(operand)) &&
         failed(options.createMemCpy(rewriter, getLoc(), *buffer, *dense))))
      return failure();
    operands.push_back(*dense);
    if (isInit)
      copies.push_back({*dense, *buffer});
  }
  CallOp::create(rewriter, getLoc(), TypeRange(), operands,
                 getOperation()->getAttrs());
  for (auto [dense, buffer] : copies)
    if (failed(options.createMemCpy(rewriter, getLoc(), dense, buffer)))
      return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, results);
  return success();
}

//===----------------------------------------------------------------------===//
// ParallelOp
//===----------------------------------------------------------------------===//

LogicalResult ParallelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getKernelAttr());
  if (!kernel)
    return emitOpError("there is no function '") << getKernel() << "'";
  SmallVector<Type> types(getArguments().getTypes());
  types.append(2, IndexType::get(getContext()));
  if (kernel.getArgumentTypes() != ArrayRef<Type>(types) ||
      !kernel.getResultTypes().empty()) {
    InFlightDiagnostic diagnostic =
        emitOpError("'") << getKernel()
                         << "' doesn't take the arguments' types and a range "
                            "of two 'index', without results";
    diagnostic.attachNote(kernel.getLoc()) << "the function is here";
    return diagnostic;
  }
  return success();
}
