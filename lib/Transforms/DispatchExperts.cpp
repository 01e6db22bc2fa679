//===- DispatchExperts.cpp - Lists of rows for parts of the experts -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model sorts the rows of all tokens by experts. Ranks that hold parts of the
// experts need only the rows of their own part, but which ones, and how many,
// depends on the data. In the rewritten model each part has a list with room
// for all rows: its rows, followed by empty slots. The parts are a dimension
// that a mesh dimension can split.
//
//   rows of 6, sorted by experts:   a0 a1 | b0 b1 b2 | c0 | d0
//   two parts:                      a0 a1 b0 b1 b2 -  -
//                                   c0 d0 -  -  -  -  -
//
// If data or context parallelism splits the tokens, too, they form groups, each
// of which has lists of its own: its rows, in the order of the sort.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/NN/NNExperts.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Transforms/ExpertDispatch.h"
#include "tp/Transforms/Utils.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::ShardingRule;

//===----------------------------------------------------------------------===//
// Patterns of imported models
//===----------------------------------------------------------------------===//

static bool isConstant(Value value, int64_t number) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !isa<IntegerType>(elementOf(value)))
    return false;
  auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  return elements && elements.isSplat() &&
         elements.getSplatValue<APInt>().getSExtValue() == number;
}

/// `index`, without what makes negative indices count from the end:
/// where(i < 0, i + n, i), and its inverse, where(j < 0, i, j).
static Value stripWrap(Value index) {
  while (auto where = index.getDefiningOp<WhereOp>()) {
    auto isNegative = where.getCondition().getDefiningOp<CompareOp>();
    if (!isNegative || isNegative.getPredicate() != ComparePredicate::LT ||
        !isConstant(isNegative.getRhs(), 0))
      return index;
    Value tested = isNegative.getLhs();
    Value other = where.getOperand(1);
    auto sum = other.getDefiningOp<AddOp>();
    if (where.getOperand(2) != tested ||
        !((sum && sum.getLhs() == tested) || stripWrap(tested) == other))
      return index;
    index = tested;
  }
  return index;
}

/// Whether `inverse` is the inverse of the permutation `order`, the indices of a
/// sort: the positions written at the places that `order` names.
static bool isInverse(Value inverse, Value order) {
  auto scatter = inverse.getDefiningOp<ScatterOp>();
  if (!scatter || scatter.getKind() != ScatterKind::Copy ||
      rankOf(inverse) != 1 || stripWrap(scatter.getIndex()) != order ||
      shapeOf(inverse) != shapeOf(order))
    return false;
  auto positions = scatter.getSource().getDefiningOp<IotaOp>();
  return positions && positions.getStart().isZero() &&
         positions.getStep().isExactlyValue(1);
}

/// Whether two lists of bounds are equal: each is a zero before the same ends.
static bool areSame(Value bounds, Value other) {
  if (bounds == other)
    return true;
  auto a = bounds.getDefiningOp<ConcatOp>(),
       b = other.getDefiningOp<ConcatOp>();
  return a && b && a->getNumOperands() == 2 && b->getNumOperands() == 2 &&
         a->getOperand(1) == b->getOperand(1) &&
         isConstant(a->getOperand(0), 0) && isConstant(b->getOperand(0), 0);
}

/// Whether elements of `value` are sums of booleans, as a histogram's are.
static bool isCount(Value value) {
  auto stripCasts = [](Value value) {
    while (auto cast = value.getDefiningOp<CastOp>())
      value = cast.getInput();
    return value;
  };
  auto sum = stripCasts(value).getDefiningOp<ReduceOp>();
  return sum && sum.getKind() == ReduceKind::Sum &&
         isBool(stripCasts(sum.getInput()));
}

/// Whether bounds are known to begin at 0 and to ascend: a zero before constants
/// or before a cumulative sum of counts.
static bool areAscending(Value bounds) {
  auto concat = bounds.getDefiningOp<ConcatOp>();
  if (!concat || concat->getNumOperands() != 2 ||
      !isConstant(concat->getOperand(0), 0) ||
      shapeOf(concat->getOperand(0))[0] != 1)
    return false;
  Value ends = concat->getOperand(1);
  if (auto sum = ends.getDefiningOp<CumSumOp>())
    return isCount(sum.getInput());
  auto constant = ends.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue())
                           : DenseIntElementsAttr();
  if (!elements)
    return false;
  auto numbers = llvm::map_to_vector(
      elements, [](const APInt &number) { return number.getSExtValue(); });
  return llvm::is_sorted(numbers) && numbers.front() >= 0;
}

//===----------------------------------------------------------------------===//
// Mixtures
//===----------------------------------------------------------------------===//

namespace {

/// A mixture of experts.
struct Mixture {
  IndexSelectOp rows; ///< of tokens, sorted by experts
  Value bounds;       ///< of the experts' rows
  /// What is computed with the sorted rows, in program order.
  SmallVector<Operation *> chain = {};
  IndexSelectOp unsorted = {}; ///< rows in the order of tokens
  ReduceOp result = {};        ///< sums over the rows of each token
};

/// How an op computes row by row: which operands have one row for each of its
/// results' rows.
std::optional<llvm::BitVector> getRowOperands(Operation *op,
                                              const DenseSet<Value> &sorted) {
  llvm::BitVector hasRows(op->getNumOperands());
  auto redistribute = dyn_cast<tp::RedistributeOp>(op);
  if (redistribute && redistribute.getSharding().getDims().front().empty())
    return hasRows.set();
  auto ruled = dyn_cast<tp::ShardingRuleOpInterface>(op);
  if (!ruled || op->getNumRegions())
    return std::nullopt;
  ShardingRule rule = ruled.getShardingRule();
  // The factor of a dimension 0 that has one factor.
  auto getRowFactor =
      [](const tp::TensorFactors &dims) -> std::optional<unsigned> {
    if (dims.empty() || dims.front().size() != 1)
      return std::nullopt;
    return dims.front().front();
  };
  auto uses = [](const tp::TensorFactors &dims, unsigned factor) {
    return llvm::count_if(dims, [&](const tp::DimFactors &dim) {
      return llvm::is_contained(dim, factor);
    });
  };
  std::optional<unsigned> factor;
  for (OpOperand &operand : op->getOpOperands())
    if (sorted.contains(operand.get())) {
      auto own = getRowFactor(rule.operands[operand.getOperandNumber()]);
      if (!own || (factor && factor != own))
        return std::nullopt;
      factor = own;
    }
  auto isRowDim = [&](const tp::TensorFactors &dims) {
    return getRowFactor(dims) == factor && uses(dims, *factor) == 1;
  };
  bool isParallel = rule.factors[*factor].kind == tp::FactorKind::Parallel ||
                    isa<GroupedMatmulOp>(op);
  if (!isParallel || !llvm::all_of(rule.results, isRowDim) ||
      llvm::any_of(rule.windows,
                   [&](const tp::Window &window) { return window.dim == 0; }))
    return std::nullopt;
  for (auto [i, dims] : llvm::enumerate(rule.operands)) {
    if (isRowDim(dims))
      hasRows.set(i);
    else if (uses(dims, *factor))
      return std::nullopt;
  }
  return hasRows;
}

/// Finds the mixture that begins at `first`, the first product of its rows.
/// Fails with an error.
FailureOr<Mixture> findMixture(GroupedMatmulOp first,
                               const tp::TokenBlocks &blocks) {
  auto emit = [&](Operation *op) {
    InFlightDiagnostic error =
        first.emitError("these experts can't be divided by expert_parallel: ");
    if (op != first)
      error.attachNote(op->getLoc()) << "'" << op->getName() << "' is here";
    return error;
  };
  auto rows = first.getInput().getDefiningOp<IndexSelectOp>();
  if (!rows || rows.getDim() != 0 || rankOf(rows.getInput()) != 2) {
    emit(first) << "their rows aren't taken from a matrix of tokens by "
                   "'nn.index_select'";
    return failure();
  }
  auto quotient = stripWrap(rows.getIndex()).getDefiningOp<FloorDivOp>();
  auto sort = quotient ? quotient.getLhs().getDefiningOp<SortOp>() : SortOp();
  int64_t numRows = shapeOf(rows)[0], numTokens = shapeOf(rows.getInput())[0];
  int64_t numExperts = shapeOf(first.getWeight())[0];
  if (numExperts % blocks.parts || numTokens % blocks.getCount()) {
    emit(first) << "the " << blocks.parts
                << " ranks of the mesh dimension must divide the " << numExperts
                << " experts, and the " << blocks.getCount()
                << " ranks that split the tokens must divide the " << numTokens
                << " tokens";
    return failure();
  }
  if (!areAscending(first.getBounds())) {
    emit(first)
        << "their bounds aren't a 0 before a cumulative sum of how many "
           "rows each expert has";
    return failure();
  }
  if (!sort || quotient.getLhs() != sort.getIndices() || numTokens == 0 ||
      numRows % numTokens != 0 ||
      !isConstant(quotient.getRhs(), numRows / numTokens)) {
    emit(first) << "their rows aren't in the order of a sort of the tokens' "
                   "experts";
    return failure();
  }
  Mixture mixture{rows, first.getBounds()};
  DenseSet<Value> sorted = {rows.getResult()};
  Block *block = rows->getBlock();
  for (Operation &op :
       llvm::make_range(std::next(rows->getIterator()), block->end())) {
    if (llvm::none_of(op.getOperands(),
                      [&](Value operand) { return sorted.contains(operand); }))
      continue;
    auto select = dyn_cast<IndexSelectOp>(op);
    if (select && select.getDim() == 0) {
      if (mixture.unsorted ||
          !isInverse(stripWrap(select.getIndex()), sort.getIndices())) {
        emit(&op) << "'nn.index_select' doesn't bring the rows back to the "
                     "order of the tokens: its index isn't the inverse of the "
                     "sort";
        return failure();
      }
      mixture.unsorted = select;
      continue;
    }
    auto product = dyn_cast<GroupedMatmulOp>(op);
    if ((product && !areSame(product.getBounds(), mixture.bounds)) ||
        !getRowOperands(&op, sorted)) {
      emit(&op) << "an op between the sort and the sum over experts doesn't "
                   "compute row by row";
      return failure();
    }
    mixture.chain.push_back(&op);
    sorted.insert_range(op.getResults());
  }
  for (Value value : sorted)
    for (Operation *user : value.getUsers())
      if (user->getBlock() != block) {
        emit(user) << "an op in another region uses their rows; only ops in "
                      "the block of the experts may";
        return failure();
      }
  ReshapeOp byToken;
  if (mixture.unsorted && mixture.unsorted.getResult().hasOneUse())
    byToken = dyn_cast<ReshapeOp>(*mixture.unsorted->user_begin());
  if (byToken && byToken.getResult().hasOneUse())
    mixture.result = dyn_cast<ReduceOp>(*byToken->user_begin());
  ReduceOp sum = mixture.result;
  if (!sum || sum.getKind() != ReduceKind::Sum || sum.getKeepdim() ||
      sum.getDims() != ArrayRef<int64_t>{1} || rankOf(byToken) != 3 ||
      shapeOf(byToken)[0] != numTokens || rankOf(sum) != 2) {
    emit(first) << "no 'nn.reshape' and sum over dimension 1 add the rows of "
                   "each token";
    return failure();
  }
  return mixture;
}

/// Rewrites one mixture.
class Dispatcher {
public:
  Dispatcher(Mixture &mixture, const tp::TokenBlocks &blocks)
      : mixture(mixture), b(mixture.rows.getLoc(), mixture.unsorted),
        blocks(blocks), numLists(blocks.getCount()),
        numGroups(blocks.major * blocks.minor),
        numRows(shapeOf(mixture.rows)[0] / numGroups),
        blockSize(shapeOf(mixture.rows.getInput())[0] / numLists),
        numExperts(shapeOf(mixture.bounds)[0] - 1) {}

  void rewrite() {
    Operation *before = mixture.unsorted->getPrevNode();
    Value tokens = mixture.rows.getInput();
    buildSlots();
    auto slotted = RankedTensorType::get(
        {numLists, numRows, shapeOf(tokens)[1]}, elementOf(tokens));
    SmallVector<int64_t> groups = {blocks.major, blocks.minor};
    Value dispatched = DispatchOp::create(b, slotted, tokens, slots, groups);
    moved[mixture.rows] =
        reshape(b, dispatched, {numLists * numRows, shapeOf(tokens)[1]});
    for (Operation *op : mixture.chain)
      move(op);
    Value own = moved.lookup(mixture.unsorted.getInput());
    own = reshape(b, own, {numLists, numRows, shapeOf(own)[1]});
    Value result = mixture.result.getResult();
    result.replaceAllUsesWith(
        CombineOp::create(b, typeOf(result), own, slots, groups));
    // In a pipeline, the new ops are in the stage of the rows.
    if (Attribute stage = mixture.rows->getAttr(tp::kStageAttr))
      for (Operation *op = before->getNextNode(); op != mixture.unsorted;
           op = op->getNextNode())
        op->setAttr(tp::kStageAttr, stage);
  }

private:
  Value number(int64_t value) { return integer(b, b.getI64Type(), value); }
  Value count(ArrayRef<int64_t> shape, int64_t dim) {
    return iota(b, shape, dim, b.getI64Type());
  }

  /// For each group and part, the first `count` of the bounds (groups, n) of
  /// its experts.
  Value getBounds(Value bounds, int64_t count) {
    SmallVector<int64_t> places;
    for (int64_t part = 0; part < blocks.parts; ++part)
      for (int64_t i = 0; i < count; ++i)
        places.push_back(part * (numExperts / blocks.parts) + i);
    int64_t size = places.size();
    auto type = RankedTensorType::get({size}, b.getI64Type());
    Value index =
        ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef(places)));
    return reshape(b, IndexSelectOp::create(b, bounds, index, 1),
                   {numGroups, blocks.parts, count});
  }

  /// The lists' values (groups, parts, n) in the order of the tokens' blocks,
  /// as (lists, n).
  Value orderLists(Value values) {
    int64_t size = shapeOf(values)[2];
    if (blocks.minor > 1)
      values = transpose(
          b,
          reshape(b, values, {blocks.major, blocks.minor, blocks.parts, size}),
          {0, 2, 1, 3});
    return reshape(b, values, {numLists, size});
  }

  /// The sorted rows of each group, in their order: (groups, n). Each token has
  /// as many rows, so all groups have.
  Value getRows(Value tokens) {
    Value block = binary<FloorDivOp>(b, tokens, number(blockSize));
    Value group =
        binary<FloorDivOp>(b, block, number(blocks.parts * blocks.minor));
    if (blocks.minor > 1)
      group = add(b, binary<MulOp>(b, group, number(blocks.minor)),
                  binary<RemainderOp>(b, block, number(blocks.minor)));
    auto sort = SortOp::create(b, group, /*dim=*/0, numGroups * numRows,
                               /*descending=*/false);
    return reshape(b, sort.getIndices(), {numGroups, numRows});
  }

  /// The numbers of `tokens` in their groups.
  Value getNumberInGroup(Value tokens) {
    Value part = binary<RemainderOp>(
        b, binary<FloorDivOp>(b, tokens, number(blockSize * blocks.minor)),
        number(blocks.parts));
    return add(b, binary<MulOp>(b, part, number(blockSize)),
               binary<RemainderOp>(b, tokens, number(blockSize)));
  }

  /// Slot s of a list has row begin + s of the group's sorted rows, if this is
  /// before the next part's begin. The last part also has the rows of no
  /// expert, so that each row has a slot: a product makes them 0, and what
  /// follows may not.
  void buildSlots() {
    Type i64 = b.getI64Type();
    int64_t numOwn = numExperts / blocks.parts;
    Value tokens = castTo(b, mixture.rows.getIndex(), i64);
    Value bounds = castTo(b, mixture.bounds, i64), rows;
    if (numGroups > 1) {
      rows = getRows(tokens);
      // A group has as many rows before a bound as its rows that are less.
      Value isBefore = compare(b, ComparePredicate::LT,
                               reshape(b, rows, {numGroups, numRows, 1}),
                               reshape(b, bounds, {1, 1, numExperts + 1}));
      bounds = reduce(b, ReduceKind::Sum, castTo(b, isBefore, i64), {1},
                      /*keepdim=*/false);
    } else {
      bounds = reshape(b, bounds, {1, numExperts + 1});
    }
    Value begins = getBounds(bounds, 1);
    Value ends =
        filled(b, RankedTensorType::get({numGroups, 1, 1}, i64), numRows);
    if (blocks.parts > 1) {
      auto type = RankedTensorType::get({numGroups, blocks.parts - 1, 1}, i64);
      Value next = SliceOp::create(b, type, begins, /*dim=*/1, /*start=*/1,
                                   /*step=*/1);
      ends = ConcatOp::create(b, ValueRange{next, ends}, 1);
    }
    Value place = add(b, begins, count({1, 1, numRows}, 2));
    Value isUsed = compare(b, ComparePredicate::LT, place, ends);
    place = select(b, isUsed, place, number(0));
    if (numGroups > 1)
      place = IndexSelectOp::create(
          b, reshape(b, rows, {numGroups * numRows}),
          reshape(b,
                  add(b, place,
                      binary<MulOp>(b, count({numGroups, 1, 1}, 0),
                                    number(numRows))),
                  {numLists * numRows}),
          0);
    places = reshape(
        b, orderLists(reshape(b, place, {numGroups, blocks.parts, numRows})),
        {numLists * numRows});
    tokens = IndexSelectOp::create(b, tokens, places, 0);
    if (numGroups > 1)
      tokens = getNumberInGroup(tokens);
    slots = select(b, orderLists(isUsed),
                   reshape(b, tokens, {numLists, numRows}), number(-1));
    ownBounds =
        orderLists(castTo(b, sub(b, getBounds(bounds, numOwn + 1), begins),
                          elementOf(mixture.bounds)));
  }

  /// The experts' `matrices` for each of the lists.
  Value repeat(Value matrices) {
    if (numGroups == 1)
      return matrices;
    ArrayRef<int64_t> shape = shapeOf(matrices);
    SmallVector<int64_t> whole = {blocks.major, blocks.parts,
                                  blocks.minor, shape[0] / blocks.parts,
                                  shape[1],     shape[2]};
    SmallVector<int64_t> once(whole);
    once[0] = once[2] = 1;
    return reshape(b, broadcast(b, reshape(b, matrices, once), whole),
                   {numGroups * shape[0], shape[1], shape[2]});
  }

  /// What the slots need of a value that has a row for each sorted row.
  Value take(Value rows) {
    Value &taken = moved[rows];
    if (taken)
      return taken;
    auto lookup = rows.getDefiningOp<IndexSelectOp>();
    if (lookup && lookup.getDim() == 0)
      taken = IndexSelectOp::create(
          b, lookup.getInput(),
          IndexSelectOp::create(b, lookup.getIndex(), places, 0), 0);
    else
      taken = IndexSelectOp::create(b, rows, places, 0);
    return taken;
  }

  void move(Operation *op) {
    DenseSet<Value> sorted;
    for (Value operand : op->getOperands())
      if (isSorted(operand))
        sorted.insert(operand);
    llvm::BitVector hasRows = *getRowOperands(op, sorted);
    SmallVector<Value> operands(op->getOperands());
    for (unsigned i : hasRows.set_bits())
      operands[i] = take(operands[i]);
    if (isa<GroupedMatmulOp>(op)) {
      operands[1] = repeat(operands[1]);
      operands[2] = ownBounds;
    }
    Operation *copy = b.clone(*op);
    copy->setOperands(operands);
    for (auto [from, to] :
         llvm::zip_equal(op->getResults(), copy->getResults())) {
      auto type = cast<RankedTensorType>(from.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = numLists * numRows;
      to.setType(type.clone(shape));
      moved[from] = to;
    }
  }

  bool isSorted(Value value) {
    return value == mixture.rows ||
           llvm::is_contained(mixture.chain, value.getDefiningOp());
  }

  Mixture &mixture;
  ImplicitLocOpBuilder b;
  tp::TokenBlocks blocks;
  int64_t numLists;   ///< of all groups and parts
  int64_t numGroups;  ///< of tokens
  int64_t numRows;    ///< of a group
  int64_t blockSize;  ///< tokens
  int64_t numExperts; ///< of all parts
  Value places;       ///< of the slots among the sorted rows, flat
  Value slots;        ///< the numbers of their tokens in the groups
  Value ownBounds;    ///< of the experts of each list, from its first slot on
  DenseMap<Value, Value> moved;
};

/// Finds the blocks with products whose bounds have one dimension. Those of
/// modules in such a block aren't among them: they become a part of it.
void findBlocks(Block &block, SmallVector<Block *> &found) {
  bool hasProducts =
      llvm::any_of(block.getOps<GroupedMatmulOp>(), [](GroupedMatmulOp op) {
        return rankOf(op.getBounds()) == 1;
      });
  if (hasProducts)
    found.push_back(&block);
  for (Operation &op : block) {
    if (hasProducts && isa<tp::ModuleOpInterface>(op))
      continue;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        findBlocks(inner, found);
  }
}

void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

} // namespace

LogicalResult tp::dispatchExperts(mlir::ModuleOp model,
                                  const TokenBlocks &tokens) {
  SmallVector<Block *> blocks;
  findBlocks(*model.getBody(), blocks);
  for (Block *block : blocks) {
    for (auto inner : llvm::to_vector(block->getOps<ModuleOpInterface>()))
      inlineModule(inner);
    for (;;) {
      eraseDead(*block);
      auto products = block->getOps<GroupedMatmulOp>();
      auto first = llvm::find_if(products, [](GroupedMatmulOp product) {
        return rankOf(product.getBounds()) == 1;
      });
      if (first == products.end())
        break;
      FailureOr<Mixture> mixture = findMixture(*first, tokens);
      if (failed(mixture))
        return failure();
      Dispatcher(*mixture, tokens).rewrite();
    }
  }
  return success();
}
