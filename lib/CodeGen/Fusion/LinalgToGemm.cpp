//===- LinalgToGemm.cpp - Contractions as GEMM calls ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worked example: scores = Q·K^T of attention, straight from the projections'
// outputs, without moving anything:
//
//   C[b,h,s,t] += Q[b,s,h,d] * K[b,t,h,d]    Q, K: 8x128x12x32, C: 8x12x128x128
//
//   loop   size  class             stride in A=Q  B=K    C
//   b      8     A, B, C: batch    49152          49152  196608
//   h      12    A, B, C: batch    32             32     16384
//   s      128   A, C: row         384            -      128
//   t      128   B, C: column      -              384    1
//   d      32    A, B: summed      1              1      -
//
// b and h don't form one loop (49152 isn't 12 * 32), so both stay as batches; A
// is 128x32 with strides (384, 1), B is 32x128 with strides (1, 384).
//
//===----------------------------------------------------------------------===//

#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Loops/Loops.h"
#include "CodeGen/Program/Origin.h"
#include "GemmEpilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tprt/abi.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTLINALGTOGEMM
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

enum Operand { A, B, C };

/// One loop, or several that traverse memory like one.
struct Loop {
  int64_t size = 1;
  /// Elements between iterations in A, B and C; 0 if it doesn't occur.
  std::array<int64_t, 3> strides = {0, 0, 0};
};

/// C += A·B by its loops; see the top of the file.
struct Gemm {
  Loop row, column, summed;
  SmallVector<Loop> batches; // outermost first
  bool isTransposed = false; // A and B are exchanged
};

/// Sorts by the stride in `key`, largest first, and merges neighbors for which
/// outer stride = inner stride * inner size in every operand.
void mergeLoops(SmallVectorImpl<Loop> &loops, Operand key) {
  llvm::stable_sort(loops, [&](const Loop &x, const Loop &y) {
    return x.strides[key] > y.strides[key];
  });
  SmallVector<Loop> merged;
  for (const Loop &inner : loops) {
    bool walksAsOne = !merged.empty();
    for (int64_t i = 0; walksAsOne && i < 3; ++i)
      walksAsOne = merged.back().strides[i] == inner.strides[i] * inner.size;
    if (!walksAsOne) {
      merged.push_back(inner);
      continue;
    }
    merged.back().size *= inner.size;
    merged.back().strides = inner.strides;
  }
  loops.assign(merged.begin(), merged.end());
}

/// Removes the loop that GEMM itself runs from `loops`; the others become
/// batches.
Loop takeMatrixLoop(SmallVectorImpl<Loop> &loops) {
  if (loops.empty())
    return Loop();
  auto best = llvm::max_element(loops, [](const Loop &x, const Loop &y) {
    bool xUnit = x.strides[C] == 1, yUnit = y.strides[C] == 1;
    return xUnit != yUnit ? yUnit : x.size < y.size;
  });
  Loop taken = *best;
  loops.erase(best);
  return taken;
}

/// (row stride, column stride) of a rows×cols matrix as GEMM needs them: one is
/// 1, and the other is at least the size of the dimension whose stride is 1.
/// The stride of a dimension of size 1 doesn't matter.
std::optional<std::pair<int64_t, int64_t>>
asMatrix(int64_t rows, int64_t cols, int64_t rowStride, int64_t colStride) {
  if (cols == 1)
    colStride = 1;
  if (rows == 1)
    rowStride = colStride == 1 ? cols : 1;
  if ((colStride == 1 && rowStride >= cols) ||
      (rowStride == 1 && colStride >= rows))
    return std::pair(rowStride, colStride);
  return std::nullopt;
}

std::optional<Gemm> matchGemm(linalg::GenericOp op) {
  if (!isContraction(op))
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> strides(3);
  Type element;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    int64_t offset;
    if (!type || !type.hasStaticShape() ||
        !isa<Float32Type, Float64Type, Float16Type, BFloat16Type>(
            type.getElementType()) ||
        (element && element != type.getElementType()) ||
        failed(type.getStridesAndOffset(strides[i], offset)) ||
        llvm::any_of(strides[i], ShapedType::isDynamic))
      return std::nullopt;
    element = type.getElementType();
  }

  SmallVector<Loop> rows, columns, summed, batches;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [d, size] : llvm::enumerate(ranges)) {
    if (size == 0)
      return std::nullopt;
    if (size == 1)
      continue;
    Loop loop;
    loop.size = size;
    std::array<bool, 3> occurs;
    for (int64_t i = 0; i < 3; ++i) {
      std::optional<unsigned> position =
          maps[i].getResultPosition(getAffineDimExpr(d, op.getContext()));
      occurs[i] = position.has_value();
      if (position)
        loop.strides[i] = strides[i][*position];
    }
    if (occurs[A] && occurs[B] && occurs[C])
      batches.push_back(loop);
    else if (occurs[A] && occurs[C])
      rows.push_back(loop);
    else if (occurs[B] && occurs[C])
      columns.push_back(loop);
    else if (occurs[A] && occurs[B])
      summed.push_back(loop);
    else
      return std::nullopt;
  }
  mergeLoops(rows, C);
  mergeLoops(columns, C);
  mergeLoops(summed, A);
  if (summed.size() > 1)
    return std::nullopt;

  Gemm gemm;
  gemm.row = takeMatrixLoop(rows);
  gemm.column = takeMatrixLoop(columns);
  gemm.summed = summed.empty() ? Loop() : summed.front();
  batches.append(rows);
  batches.append(columns);
  mergeLoops(batches, C);
  gemm.batches = std::move(batches);

  auto columnsAreContiguous = [&] {
    return gemm.column.size == 1 || gemm.column.strides[C] == 1;
  };
  if (!columnsAreContiguous()) {
    gemm.isTransposed = true;
    std::swap(gemm.row, gemm.column);
    for (Loop *loop : {&gemm.row, &gemm.column, &gemm.summed})
      std::swap(loop->strides[A], loop->strides[B]);
    for (Loop &loop : gemm.batches)
      std::swap(loop.strides[A], loop.strides[B]);
    if (!columnsAreContiguous())
      return std::nullopt;
  }
  return gemm;
}

/// The last op before `op` that touches `buffer`, if it overwrites all of it.
linalg::LinalgOp findInit(linalg::GenericOp op, Value buffer) {
  Value root = getRootBuffer(buffer);
  for (Operation *prev = op->getPrevNode(); prev; prev = prev->getPrevNode()) {
    if (isa<ViewLikeOpInterface>(prev))
      continue;
    if (prev->getNumRegions() && !isa<linalg::LinalgOp>(prev))
      return nullptr;
    auto touches = [&](ValueRange values) {
      return llvm::any_of(values,
                          [&](Value v) { return getRootBuffer(v) == root; });
    };
    SmallVector<Value> captured = getCapturedBuffers(prev);
    if (!touches(prev->getOperands()) && !touches(captured))
      continue;
    auto init = dyn_cast<linalg::LinalgOp>(prev);
    if (init && init.getNumDpsInits() == 1 && init.getDpsInits()[0] == buffer &&
        !touches(init.getDpsInputs()) && !touches(captured) &&
        visitsEachOnce(init, *init.getDpsInitOperand(0)))
      return init;
    return nullptr;
  }
  return nullptr;
}

class ConvertLinalgToGemm
    : public tp::impl::ConvertLinalgToGemmBase<ConvertLinalgToGemm> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::GenericOp> contractions;
    getOperation().walk([&](linalg::GenericOp op) {
      if (isContraction(op))
        contractions.push_back(op);
    });
    // If an op adds two GEMM results, the later GEMM should take it as its
    // epilogue.
    for (linalg::GenericOp op : llvm::reverse(contractions)) {
      if (std::optional<Gemm> gemm = matchGemm(op); gemm && convert(op, *gemm))
        ++numGemms;
      else {
        widenContraction(op);
        ++numLoops;
      }
    }
  }

  bool convert(linalg::GenericOp op, const Gemm &gemm) {
    int64_t m = gemm.row.size, n = gemm.column.size, k = gemm.summed.size;
    auto a = asMatrix(m, k, gemm.row.strides[A], gemm.summed.strides[A]);
    auto b = asMatrix(k, n, gemm.summed.strides[B], gemm.column.strides[B]);
    int64_t cRow = m == 1 ? n : gemm.row.strides[C];
    if (!a || !b || cRow < n)
      return false;
    // The runtime's and its libraries' sizes have 32 bits.
    for (int64_t number :
         {m, n, k, gemm.row.strides[A], gemm.summed.strides[A],
          gemm.summed.strides[B], gemm.column.strides[B], cRow})
      if (number > INT32_MAX)
        return false;

    OpBuilder builder(op);
    Value operands[] = {op.getDpsInputs()[gemm.isTransposed ? 1 : 0],
                        op.getDpsInputs()[gemm.isTransposed ? 0 : 1],
                        op.getDpsInits()[0]};
    bool accumulate = true;
    Value bias;
    SmallVector<Location> locations{op.getLoc()};
    linalg::LinalgOp init = findInit(op, operands[C]);
    if (init) {
      if (isZeroFill(init))
        accumulate = false;
      else if ((bias = getRowBias(init, gemm)))
        accumulate = false;
      if (accumulate)
        init = nullptr;
      else if (bias) // zeros have no origin
        locations.push_back(init->getLoc());
    }

    // The call runs the innermost two batches; the others become loops around
    // it.
    ArrayRef<Loop> batches = gemm.batches;
    ArrayRef<Loop> outer =
        batches.drop_back(std::min<size_t>(2, batches.size()));
    batches = batches.take_back(2);
    Loop batch0 = batches.size() == 2 ? batches[0] : Loop();
    Loop batch1 = batches.empty() ? Loop() : batches.back();
    GemmEpilogue ending{
        {},
        {operands[C], {cRow, batch0.strides[C], batch1.strides[C]}},
        std::nullopt,
        std::nullopt,
        std::nullopt};
    if (outer.empty() && !accumulate) {
      auto getLoop = [](const Loop &loop) {
        return ResultLoop{loop.size, loop.strides[C]};
      };
      ResultLoops loops{getLoop(gemm.row),
                        getLoop(gemm.column),
                        {getLoop(batch0), getLoop(batch1)}};
      auto found = findGemmEpilogue(op, init, loops);
      bool endsInBias = found && !bias && isBias(found->addend);
      if (found && !(isTraining() && rounds(*found)) &&
          (hasOwnKernel(op, gemm, *a, *b) ||
           isComputed(*found, loops, bias, endsInBias))) {
        ending = *found;
        operands[C] = ending.result.buffer;
        locations.push_back(getLocationOfAll(ending.op));
        builder.setInsertionPoint(ending.op);
        ++numEpilogues;
        if (endsInBias) {
          bias = ending.addend->buffer;
          ending.addend.reset();
        }
      }
    }

    Location loc = builder.getFusedLoc(locations);
    for (const Loop &loop : outer)
      enterLoop(builder, loc, loop, operands);
    auto getBuffer = [](std::optional<GemmEpilogue::Operand> &operand) {
      return operand ? operand->buffer : Value();
    };
    auto getStrides = [&](std::optional<GemmEpilogue::Operand> &operand) {
      return operand ? builder.getDenseI64ArrayAttr(operand->strides) : nullptr;
    };
    tprt::GemmOp::create(
        builder, loc, operands[A], operands[B], operands[C], bias,
        getBuffer(ending.addend), getBuffer(ending.factor),
        accumulate ? builder.getUnitAttr() : nullptr,
        ending.activation ? tprt::ActivationAttr::get(builder.getContext(),
                                                      *ending.activation)
                          : nullptr,
        builder.getDenseI64ArrayAttr({m, n, k}),
        builder.getDenseI64ArrayAttr({batch0.size, batch1.size}),
        builder.getDenseI64ArrayAttr(
            {a->first, a->second, batch0.strides[A], batch1.strides[A]}),
        builder.getDenseI64ArrayAttr(
            {b->first, b->second, batch0.strides[B], batch1.strides[B]}),
        builder.getDenseI64ArrayAttr(ending.result.strides),
        getStrides(ending.addend), getStrides(ending.factor));
    op->erase();
    if (init)
      init->erase();
    if (ending.op)
      ending.op->erase();
    return true;
  }

  /// Whether the program is a training step, which updates parameters and has
  /// a loss. Values for its backward pass must have the same bits whether they
  /// are kept or computed again.
  bool isTraining() {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    DictionaryAttr manifest = module ? getManifest(module) : DictionaryAttr();
    auto hasAny = [&](StringRef list, auto is) {
      auto tensors = manifest ? manifest.getAs<ArrayAttr>(list) : ArrayAttr();
      return tensors && llvm::any_of(tensors.getAsRange<DictionaryAttr>(), is);
    };
    return hasAny("parameters",
                  [](DictionaryAttr tensor) {
                    return tensor.contains("updated");
                  }) &&
           hasAny("outputs", [](DictionaryAttr tensor) {
             auto name = tensor.getAs<StringAttr>("name");
             return name && name == "loss";
           });
  }

  /// Whether a GEMM with this epilogue gives other bits than separate ops.
  static bool rounds(const GemmEpilogue &epilogue) {
    if (epilogue.activation && *epilogue.activation != tprt::Activation::Relu)
      return true;
    Type element =
        cast<MemRefType>(epilogue.result.buffer.getType()).getElementType();
    return element.getIntOrFloatBitWidth() == 16 &&
           (epilogue.addend || epilogue.factor);
  }

  /// Whether the addend is a whole buffer and a row that is added to all rows.
  static bool isBias(const std::optional<GemmEpilogue::Operand> &addend) {
    return addend && addend->buffer == getRootBuffer(addend->buffer) &&
           llvm::all_of(addend->strides, [](int64_t s) { return s == 0; });
  }

  /// Whether a CUDA device is likely to compute the product by an own kernel,
  /// which has every epilogue; see TPRT_FEW_ROWS. The runtime decides, which
  /// knows the addresses; elsewhere a second kernel applies the epilogue. `a`
  /// and `b` are the strides of rows and columns.
  static bool hasOwnKernel(linalg::GenericOp op, const Gemm &gemm,
                           std::pair<int64_t, int64_t> a,
                           std::pair<int64_t, int64_t> b) {
    unsigned bits =
        getElementTypeOrSelf(op.getDpsInits()[0]).getIntOrFloatBitWidth();
    int64_t ofVector = 128 / bits; // elements
    return gemm.row.size <= TPRT_FEW_ROWS && bits < 64 &&
           llvm::all_of(
               gemm.batches, [](const Loop &loop) { return loop.size == 1; }) &&
           gemm.summed.size % ofVector == 0 && a.second == 1 && b.first == 1 &&
           a.first % ofVector == 0 && b.second % ofVector == 0;
  }

  /// Whether the call can compute this epilogue of a GEMM with `bias`, if not
  /// null. `endsInBias`: the addend is a bias.
  bool isComputed(const GemmEpilogue &epilogue, const ResultLoops &loops,
                  Value bias, bool endsInBias) {
    if (!cudaEpilogues)
      return true;
    // D = epilogue(A * B + C + bias), where C is a matrix like D.
    if (epilogue.factor)
      return false;
    bool adds = epilogue.addend && !endsInBias;
    const ResultLoop walked[] = {loops.row, loops.batches[0], loops.batches[1]};
    if (adds)
      for (auto [stride, loop] :
           llvm::zip_equal(epilogue.addend->strides, walked))
        if (loop.size > 1 && stride == 0)
          return false;
    Type element =
        cast<MemRefType>(epilogue.result.buffer.getType()).getElementType();
    if (element.isF64())
      return !epilogue.activation && !(adds && bias);
    return !epilogue.activation ||
           llvm::is_contained(
               {tprt::Activation::Relu, tprt::Activation::GeluTanh},
               *epilogue.activation);
  }

  static bool isZeroFill(linalg::LinalgOp init) {
    auto fill = dyn_cast<linalg::FillOp>(init.getOperation());
    FloatAttr value;
    return fill && matchPattern(fill.value(), m_Constant(&value)) &&
           value.getValue().isZero();
  }

  /// The vector that `init` broadcasts over the rows of C, if it does so; the
  /// vector's dimension must be all of C's columns.
  static Value getRowBias(linalg::LinalgOp init, const Gemm &gemm) {
    auto generic = dyn_cast<linalg::GenericOp>(init.getOperation());
    if (!generic || !isDataMovement(generic))
      return nullptr;
    Value bias = generic.getDpsInputs()[0];
    // Nothing writes to an argument in between.
    if (!isa<BlockArgument>(getRootBuffer(bias)))
      return nullptr;
    auto biasType = cast<MemRefType>(bias.getType());
    auto type = cast<MemRefType>(generic.getDpsInits()[0].getType());
    AffineMap biasMap = generic.getIndexingMapsArray()[0];
    if (biasType.getRank() != 1 ||
        biasType.getElementType() != type.getElementType() ||
        biasType.getDimSize(0) != gemm.column.size ||
        !memref::isStaticShapeAndContiguousRowMajor(biasType) ||
        biasMap.getNumResults() != 1 ||
        !isa<AffineDimExpr>(biasMap.getResult(0)))
      return nullptr;
    std::optional<unsigned> dim =
        generic.getIndexingMapsArray()[1].getResultPosition(
            biasMap.getResult(0));
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!dim || type.getDimSize(*dim) != gemm.column.size ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        (gemm.column.size > 1 && strides[*dim] != gemm.column.strides[C]))
      return nullptr;
    return bias;
  }

  /// Builds and enters the loop, and replaces `operands` by their views in its
  /// iteration.
  static void enterLoop(OpBuilder &builder, Location loc, const Loop &loop,
                        MutableArrayRef<Value> operands) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value zero = constant(0), size = constant(loop.size), one = constant(1);
    auto loopOp = scf::ForOp::create(builder, loc, zero, size, one);
    builder.setInsertionPointToStart(loopOp.getBody());
    for (auto [operand, stride] : llvm::zip_equal(operands, loop.strides)) {
      if (stride == 0)
        continue;
      auto type = cast<MemRefType>(operand.getType());
      auto metadata =
          memref::ExtractStridedMetadataOp::create(builder, loc, operand);
      Value step = arith::MulIOp::create(builder, loc, loopOp.getInductionVar(),
                                         constant(stride));
      Value offset =
          arith::AddIOp::create(builder, loc, metadata.getOffset(), step);
      SmallVector<int64_t> strides;
      int64_t unused;
      (void)type.getStridesAndOffset(strides, unused);
      auto layout = StridedLayoutAttr::get(builder.getContext(),
                                           ShapedType::kDynamic, strides);
      SmallVector<OpFoldResult> sizes =
          getAsIndexOpFoldResult(builder.getContext(), type.getShape());
      operand = memref::ReinterpretCastOp::create(
          builder, loc,
          MemRefType::get(type.getShape(), type.getElementType(), layout),
          metadata.getBaseBuffer(), offset, sizes,
          getAsIndexOpFoldResult(builder.getContext(), strides));
    }
  }
};

} // namespace
