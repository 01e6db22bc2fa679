//===- GemmEpilogue.cpp - GEMM epilogues ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worked example: y[s,b,n] = gelu(C[b,s,n]), for a product of 1024 rows of 384
// columns, b and s being 8 and 128.
//
//   loop   size  stride in C  stride in y
//   b      8     49152        384
//   s      128   384          3072
//   n      384   1            1
//
// The product's columns are n. Its rows, stride 384 in C, are b and s. In y
// these don't form one loop, so the op stays. If y is [b,s,n], b and s form one
// loop of 1024 in both, and its iterations are the product's rows.
//
//===----------------------------------------------------------------------===//

#include "GemmEpilogue.h"
#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Loops/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "tp/CodeGen/NNToLinalg/Activations.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

/// What an elementwise op computes from one operand, the product.
struct Formula {
  std::optional<tprt::Activation> activation;
  /// The number of the operand that is added to the product, and of the one
  /// that its activation is multiplied by.
  std::optional<unsigned> addend, factor;
};

/// A loop of an elementwise op; `strides` are the operands'.
struct ElementLoop {
  int64_t size;
  SmallVector<int64_t> strides;
};

} // namespace

/// Follows `value` through conversions between `element`, of 16 bits, and f32:
/// a GEMM rounds once, at the end.
static Value skipRounding(Value value, Type element) {
  while (element.getIntOrFloatBitWidth() == 16 &&
         value.getDefiningOp<CastOpInterface>()) {
    Operation *cast = value.getDefiningOp();
    if (!isa<arith::ExtFOp, arith::TruncFOp>(cast))
      break;
    auto isEither = [&](Type type) { return type == element || type.isF32(); };
    if (!isEither(cast->getOperand(0).getType()) || !isEither(value.getType()))
      break;
    value = cast->getOperand(0);
  }
  return value;
}

/// `op` as a formula of operand `product`, if it is one.
static std::optional<Formula> matchFormula(linalg::GenericOp op,
                                           unsigned product) {
  Block &body = op.getRegion().front();
  Type element = body.getArgument(product).getType();
  if (llvm::any_of(body.getArgumentTypes(),
                   [&](Type type) { return type != element; }))
    return std::nullopt;
  auto look = [&](Value value) { return skipRounding(value, element); };
  // The number of the input that `value` is, if it isn't the product.
  auto getOther = [&](Value value) -> std::optional<unsigned> {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &body ||
        argument.getArgNumber() == product ||
        argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
    return argument.getArgNumber();
  };
  // Splits the two operands of `pair` into another input and the rest.
  auto split =
      [&](Operation *pair) -> std::pair<std::optional<unsigned>, Value> {
    for (unsigned i : {0, 1})
      if (auto number = getOther(look(pair->getOperand(i))))
        return {number, look(pair->getOperand(1 - i))};
    return {};
  };

  Formula formula;
  Value value = look(body.getTerminator()->getOperand(0));
  if (auto mul = value.getDefiningOp<arith::MulFOp>())
    if (auto [factor, rest] = split(mul); factor) {
      formula.factor = factor;
      value = rest;
    }
  // Whether the value is `x` or an activation of it; `x` is the product, with
  // or without an addend.
  auto matchOf = [&](Value x) {
    formula.activation = matchActivation(value, x, look);
    return value == x || formula.activation;
  };
  if (matchOf(body.getArgument(product)))
    return formula;
  for (auto add : body.getOps<arith::AddFOp>())
    if (auto [addend, rest] = split(add);
        addend && rest == body.getArgument(product) && matchOf(add)) {
      formula.addend = addend;
      return formula;
    }
  return std::nullopt;
}

/// The loops of `op`, by their stride in operand `product`, largest first;
/// loops that traverse all `operands` like one loop are merged.
static std::optional<SmallVector<ElementLoop>>
getLoops(linalg::GenericOp op, unsigned product, ArrayRef<unsigned> operands) {
  SmallVector<ElementLoop> loops;
  for (int64_t size : op.getStaticLoopRanges())
    loops.push_back({size, SmallVector<int64_t>(op->getNumOperands(), 0)});
  for (unsigned number : operands) {
    AffineMap map = op.getIndexingMapsArray()[number];
    SmallVector<int64_t> strides;
    int64_t offset;
    auto type = dyn_cast<MemRefType>(op->getOperand(number).getType());
    if (!type || !type.hasStaticShape() ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        llvm::any_of(strides, ShapedType::isDynamic) ||
        !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return std::nullopt;
    for (auto [stride, expr] : llvm::zip_equal(strides, map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        loops[dim.getPosition()].strides[number] = stride;
  }
  llvm::erase_if(loops, [](const ElementLoop &loop) { return loop.size == 1; });
  llvm::stable_sort(loops, [&](const ElementLoop &x, const ElementLoop &y) {
    return x.strides[product] > y.strides[product];
  });
  SmallVector<ElementLoop> merged;
  for (ElementLoop &inner : loops) {
    bool walksAsOne =
        !merged.empty() && llvm::all_of(operands, [&](unsigned i) {
          return merged.back().strides[i] == inner.strides[i] * inner.size;
        });
    if (!walksAsOne) {
      merged.push_back(std::move(inner));
      continue;
    }
    merged.back().size *= inner.size;
    merged.back().strides = inner.strides;
  }
  return merged;
}

/// Whether loops of these sizes and strides visit each of `count` elements
/// once.
static bool visitAll(SmallVector<ResultLoop> loops, int64_t count) {
  llvm::erase_if(loops, [](const ResultLoop &loop) { return loop.size == 1; });
  llvm::sort(loops, [](const ResultLoop &x, const ResultLoop &y) {
    return x.stride < y.stride;
  });
  int64_t visited = 1;
  for (const ResultLoop &loop : loops) {
    if (loop.stride != visited)
      return false;
    visited *= loop.size;
  }
  return visited == count;
}

/// The stride of `operand` for `part`, which has to be a part of one of
/// `loops`; 0 if it runs once.
static std::optional<int64_t> getStride(ArrayRef<ElementLoop> loops,
                                        unsigned product, unsigned operand,
                                        const ResultLoop &part) {
  if (part.size == 1)
    return 0;
  for (const ElementLoop &loop : loops) {
    int64_t stride = loop.strides[product];
    if (part.stride % stride == 0 &&
        part.stride / stride * part.size <= loop.size)
      return part.stride / stride * loop.strides[operand];
  }
  return std::nullopt;
}

/// The linalg op behind `contraction`, in the same block, if nothing but it,
/// `contraction` and `init` touches `buffer`, a whole allocation.
static linalg::GenericOp getOnlyReader(linalg::GenericOp contraction,
                                       linalg::LinalgOp init, Value buffer) {
  linalg::GenericOp reader;
  SmallVector<Value> views{buffer};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (isa<ViewLikeOpInterface>(user)) {
        llvm::append_range(views, user->getResults());
        continue;
      }
      if (user == contraction || user == init || user == reader)
        continue;
      auto generic = dyn_cast<linalg::GenericOp>(user);
      if (!generic || reader ||
          generic->getBlock() != contraction->getBlock() ||
          !contraction->isBeforeInBlock(generic))
        return nullptr;
      reader = generic;
    }
  return reader;
}

/// Whether other ops may move past `op`: it doesn't interact with other ranks
/// and doesn't write to `buffers`.
static bool leaves(Operation *op, ArrayRef<Value> buffers) {
  if (isMemoryEffectFree(op) || isa<memref::AllocOp>(op))
    return true;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects ||
      !isa<linalg::LinalgOp, memref::CopyOp, tprt::LibraryCallOpInterface>(op))
    return false;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::none_of(instances, [&](const auto &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect()) && effect.getValue() &&
           llvm::is_contained(buffers, getRootBuffer(effect.getValue()));
  });
}

std::optional<GemmEpilogue> tp::findGemmEpilogue(linalg::GenericOp contraction,
                                                 linalg::LinalgOp init,
                                                 const ResultLoops &loops) {
  Value whole = getRootBuffer(contraction.getDpsInits()[0]);
  auto type = cast<MemRefType>(whole.getType());
  if (!whole.getDefiningOp<memref::AllocOp>() ||
      !memref::isStaticShapeAndContiguousRowMajor(type) ||
      !visitAll({loops.row, loops.column, loops.batches[0], loops.batches[1]},
                type.getNumElements()))
    return std::nullopt;
  linalg::GenericOp op = getOnlyReader(contraction, init, whole);
  if (!op || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0)
    return std::nullopt;

  // It must read the product, exactly once.
  auto isView = [&](OpOperand *operand) {
    return getRootBuffer(operand->get()) == whole;
  };
  SmallVector<OpOperand *> inputs = op.getDpsInputOperands();
  if (llvm::count_if(inputs, isView) != 1 || isView(op.getDpsInitOperand(0)))
    return std::nullopt;
  unsigned product = (*llvm::find_if(inputs, isView))->getOperandNumber();
  unsigned result = op.getDpsInitOperand(0)->getOperandNumber();
  std::optional<Formula> formula = matchFormula(op, product);
  if (!formula || !visitsEachOnce(op, op->getOpOperand(product)) ||
      !visitsEachOnce(op, op->getOpOperand(result)))
    return std::nullopt;

  // Ops that move down read their operands later, and write where the op does.
  SmallVector<Value> read;
  for (Value input : contraction.getDpsInputs())
    read.push_back(getRootBuffer(input));
  if (init) {
    for (Value input : init.getDpsInputs())
      read.push_back(getRootBuffer(input));
    for (Value loaded : getCapturedBuffers(init))
      read.push_back(getRootBuffer(loaded));
  }
  Value written = getRootBuffer(op.getDpsInits()[0]);
  if (llvm::is_contained(read, written) ||
      llvm::any_of(inputs, [&](OpOperand *operand) {
        return getRootBuffer(operand->get()) == written;
      }))
    return std::nullopt;
  for (Operation *between = contraction->getNextNode(); between != op;
       between = between->getNextNode())
    if (!leaves(between, read))
      return std::nullopt;

  // Find the loops of the op in terms of the product.
  SmallVector<unsigned> operands{product, result};
  for (std::optional<unsigned> other : {formula->addend, formula->factor})
    if (other)
      operands.push_back(*other);
  std::optional<SmallVector<ElementLoop>> elements =
      getLoops(op, product, operands);
  if (!elements)
    return std::nullopt;
  SmallVector<ResultLoop> ofProduct;
  for (const ElementLoop &loop : *elements)
    ofProduct.push_back({loop.size, loop.strides[product]});
  if (!visitAll(ofProduct, type.getNumElements()))
    return std::nullopt;

  GemmEpilogue epilogue;
  epilogue.op = op;
  epilogue.activation = formula->activation;
  auto locate = [&](unsigned number) -> std::optional<GemmEpilogue::Operand> {
    GemmEpilogue::Operand operand{op->getOperand(number), {}};
    auto column = getStride(*elements, product, number, loops.column);
    if (!column || (loops.column.size > 1 && *column != 1))
      return std::nullopt;
    const ResultLoop others[] = {loops.row, loops.batches[0], loops.batches[1]};
    for (auto [stride, loop] : llvm::zip_equal(operand.strides, others)) {
      auto found = getStride(*elements, product, number, loop);
      if (!found)
        return std::nullopt;
      stride = *found;
    }
    return operand;
  };
  if (formula->addend)
    epilogue.addend = locate(*formula->addend);
  if (formula->factor)
    epilogue.factor = locate(*formula->factor);
  std::optional<GemmEpilogue::Operand> place = locate(result);
  if (!place || (loops.row.size > 1 && place->strides[0] < loops.column.size) ||
      (formula->addend && !epilogue.addend) ||
      (formula->factor && !epilogue.factor))
    return std::nullopt;
  if (loops.row.size == 1)
    place->strides[0] = loops.column.size;
  epilogue.result = *place;
  return epilogue;
}
