//===- Redistribution.cpp - From one placement to another -----------------===//

#include "tp/Analysis/Redistribution.h"
#include "RedistributionSearch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

StringRef tp::stringifyStep(RedistributionStep::Kind kind) {
  switch (kind) {
  case RedistributionStep::LocalSlice:
    return LocalSliceOp::getOperationName().split('.').second;
  case RedistributionStep::AllGather:
    return AllGatherOp::getOperationName().split('.').second;
  case RedistributionStep::AllReduce:
    return AllReduceOp::getOperationName().split('.').second;
  case RedistributionStep::ReduceScatter:
    return ReduceScatterOp::getOperationName().split('.').second;
  case RedistributionStep::AllToAll:
    return AllToAllOp::getOperationName().split('.').second;
  case RedistributionStep::Permute:
    return PermuteOp::getOperationName().split('.').second;
  case RedistributionStep::Exchange:
    return ExchangeOp::getOperationName().split('.').second;
  }
  llvm_unreachable("unknown step");
}

int64_t RedistributionPlan::getNumCollectives() const {
  return llvm::count_if(steps, [](const RedistributionStep &step) {
    return step.kind != RedistributionStep::LocalSlice;
  });
}

LogicalResult
tp::verifyRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                         function_ref<InFlightDiagnostic()> emitError) {
  for (PartialAttr wanted : to.getPartial()) {
    if (mesh.getAxisSize(wanted.getAxis()) == 1 ||
        llvm::is_contained(from.getPartial(), wanted))
      continue;
    return emitError() << "can't redistribute from "
                       << printPlacements(from, mesh) << " to "
                       << printPlacements(to, mesh)
                       << ": no value becomes Partial by a redistribution";
  }
  return success();
}

namespace {

/// The mesh dimensions with which a search takes those in that aren't asked
/// for.
constexpr size_t kMaxAxes = 3;
/// The parts of prime size that a search may handle one by one.
constexpr size_t kMaxParts = 5;

/// Plans one redistribution.
class Planning {
public:
  Planning(MeshOp mesh, ShardingAttr from, ShardingAttr to,
           RankedTensorType type, RedistributionOptions options);
  RedistributionPlan run();

private:
  int64_t getMaxReductions() const;
  bool hasPending() const { return target.getPartial() != from.getPartial(); }
  void searchPlan();
  void append(const Space &space, ArrayRef<Move> moves);
  void appendExchange(ShardingAttr result);
  void addReceived(ArrayRef<int64_t> elements) {
    for (auto [sum, more] : llvm::zip_equal(received, elements))
      sum += more;
  }
  void certify(RedistributionPlan &plan);

  MeshOp mesh;
  /// Both without axes of size 1; the target's Partial in the source's order.
  ShardingAttr from, target;
  RankedTensorType type;
  RedistributionOptions options;
  std::vector<TensorBlock> source, wanted;

  SmallVector<RedistributionStep> steps;
  SmallVector<int64_t> received;
  /// The largest block so far, in elements.
  int64_t peak = 0;
};

} // namespace

static ShardingAttr dropUnitAxes(ShardingAttr sharding, MeshOp mesh) {
  for (int64_t i = 0, e = mesh.getNumAxes(); i < e; ++i)
    if (mesh.getAxisSizes()[i] == 1)
      sharding = sharding.without(mesh.getAxisName(i));
  return sharding;
}

Planning::Planning(MeshOp mesh, ShardingAttr from, ShardingAttr to,
                   RankedTensorType type, RedistributionOptions options)
    : mesh(mesh), from(dropUnitAxes(from, mesh)),
      target(dropUnitAxes(to, mesh)), type(type), options(options),
      received(mesh.getNumRanks(), 0) {
  SmallVector<PartialAttr> partial;
  for (PartialAttr entry : this->from.getPartial())
    if (llvm::is_contained(target.getPartial(), entry))
      partial.push_back(entry);
  target = ShardingAttr::get(to.getContext(), to.getMesh(), target.getDims(),
                             partial);
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    source.push_back(getBlock(type.getShape(), this->from, mesh, rank));
    wanted.push_back(getBlock(type.getShape(), target, mesh, rank));
  }
}

void Planning::append(const Space &space, ArrayRef<Move> moves) {
  State state = space.getState(from);
  for (const Move &move : moves) {
    addReceived(space.getReceived(state, move));
    peak = std::max(peak, *llvm::max_element(space.getSizes(move.result)));
    RedistributionStep step{move.kind, space.getAxes(move.atoms), move.dim,
                            move.concatDim, move.reduction};
    step.operand = space.getSharding(state);
    step.result = space.getSharding(move.result);
    if (move.kind == RedistributionStep::Permute) {
      SmallVector<uint8_t> used;
      for (uint8_t atom = 0; atom < space.getNumAtoms(); ++atom) {
        auto holds = [&](const auto &list) {
          return llvm::is_contained(list, atom);
        };
        if (llvm::any_of(state.dims, holds) ||
            llvm::any_of(move.result.dims, holds))
          used.push_back(atom);
      }
      step.axes = space.getAxes(used);
      step.source = space.getSources(state, move.result, step.axes);
      // Every rank holds its new block already, under another name.
      if (llvm::equal(step.source, llvm::seq<int64_t>(step.source.size()))) {
        state = move.result;
        continue;
      }
    } else if (move.kind == RedistributionStep::Exchange) {
      step.axes = getSplittingAxes(step.operand);
    }
    // Slices of one dimension are one slice.
    if (step.kind == RedistributionStep::LocalSlice && !steps.empty() &&
        steps.back().kind == RedistributionStep::LocalSlice &&
        steps.back().dim == step.dim) {
      llvm::append_range(steps.back().axes, step.axes);
      steps.back().result = step.result;
    } else {
      steps.push_back(std::move(step));
    }
    state = move.result;
  }
}

/// One step from where `from` is reduced to the target.
void Planning::appendExchange(ShardingAttr result) {
  RedistributionStep step{RedistributionStep::Exchange, getSplittingAxes(from)};
  step.operand = ShardingAttr::get(from.getContext(), from.getMesh(),
                                   from.getDims(), result.getPartial());
  step.result = result;
  steps.push_back(std::move(step));
  for (auto [rank, sum] : llvm::enumerate(received)) {
    int64_t size = getNumElements(wanted[rank]);
    sum += size - getNumShared(source[rank], wanted[rank]);
    peak = std::max(peak, size);
  }
}

static int64_t getNumCollectives(ArrayRef<Move> moves) {
  return llvm::count_if(moves, [](const Move &move) {
    return move.kind != RedistributionStep::LocalSlice;
  });
}

/// As many collectives as take each Partial to where it goes, those of one kind
/// that go to one place together, and each other axis that moves.
int64_t Planning::getMaxReductions() const {
  llvm::SmallSetVector<std::pair<ReductionKind, int64_t>, 4> reductions;
  int64_t moving = 0;
  for (PartialAttr entry : from.getPartial())
    if (!llvm::is_contained(target.getPartial(), entry))
      reductions.insert({entry.getKind(),
                         target.getShardedDim(entry.getAxis()).value_or(-1)});
  for (auto [dim, axes] : llvm::enumerate(from.getDims()))
    for (AxisRefAttr axis : axes)
      moving += target.getShardedDim(axis) != static_cast<int64_t>(dim);
  return reductions.size() + moving;
}

void Planning::searchPlan() {
  auto segmentsDiffer = [](auto pair) {
    auto [a, b] = pair;
    return a != b && !(a.getSegments().empty() && b.getSegments().empty());
  };
  // Blocks of several pieces are no collective's: reduced where they are, then
  // exchanged.
  ShardingAttr reduced = ShardingAttr::get(from.getContext(), from.getMesh(),
                                           from.getDims(), target.getPartial());
  ShardingAttr reachable = target;
  if (llvm::any_of(llvm::zip(from.getDims(), target.getDims()), segmentsDiffer))
    reachable = reduced;

  std::optional<SmallVector<Move>> best;
  std::optional<Space> bestSpace;
  int64_t bestBytes = 0;
  auto attempt = [&](bool split, bool all = false) {
    Space space(mesh, type.getShape(), from, reachable, split, all);
    if (space.getNumAtoms() > 64 || (split && space.getNumAtoms() > kMaxParts))
      return;
    State state = space.getState(from), end = space.getState(reachable);
    SearchOptions search{options.oneShot, options.memory};
    auto moves = redistribution::search(space, state, end, search);
    // Splitting reductions up can save bytes, but not for any number of them.
    if (hasPending() &&
        (!moves || getNumCollectives(*moves) > getMaxReductions())) {
      search.fewestCollectives = true;
      moves = redistribution::search(space, state, end, search);
    }
    if (!moves)
      return;
    int64_t bytes = 0;
    for (const Move &move : *moves) {
      bytes += llvm::sum_of(space.getReceived(state, move));
      state = move.result;
    }
    if (best && bestBytes <= bytes)
      return;
    best = std::move(moves);
    bestSpace.emplace(std::move(space));
    bestBytes = bytes;
  };
  // Parts of mesh dimensions need sizes that divide by all of them.
  Space whole(mesh, type.getShape(), from, reachable, /*split=*/false);
  bool divides = llvm::all_of(type.getShape(), [&](int64_t size) {
    return size % whole.getNumBlocks(whole.getAllAtoms()) == 0;
  });
  if (divides && whole.hasOverlaps())
    attempt(/*split=*/true);
  if (!best)
    attempt(/*split=*/false);
  // They can also do better than whole dimensions.
  int64_t needed = 0;
  for (auto [have, want] : llvm::zip_equal(source, wanted))
    needed += getNumElements(want) - getNumShared(have, want);
  bool couldImprove =
      !options.oneShot && !hasPending() && (!best || bestBytes > needed);
  if (couldImprove && divides)
    attempt(/*split=*/true);
  // So can mesh dimensions that neither placement uses: slices of what they
  // replicate are less to move.
  if (couldImprove && mesh.getNumAxes() <= kMaxAxes)
    attempt(/*split=*/false, /*all=*/true);
  if (!best && hasPending() && reachable == target) {
    reachable = reduced;
    attempt(/*split=*/false);
  }
  if (best)
    append(*bestSpace, *best);
  if (!best || reachable != target)
    appendExchange(target);
}

void Planning::certify(RedistributionPlan &plan) {
  int64_t width = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t largest = 0, total = 0, most = 0, elements = 0;
  for (auto [have, want] : llvm::zip_equal(source, wanted)) {
    int64_t size = getNumElements(want);
    int64_t missing = size - getNumShared(have, want);
    largest = std::max({largest, getNumElements(have), size});
    total += missing;
    most = std::max(most, missing);
    elements += size;
  }
  if (hasPending()) {
    // Of each element n parts meet in n - 1 transfers, and the result reaches
    // the c - 1 others that want it; what stays partial is as many such
    // problems.
    int64_t n = 1, problems = 1;
    for (PartialAttr entry : from.getPartial())
      (llvm::is_contained(target.getPartial(), entry) ? problems : n) *=
          mesh.getAxisSize(entry.getAxis());
    most = 0;
    for (const TensorBlock &want : wanted)
      most = std::max(most, getNumElements(want));
    total = elements + (n - 2) * problems * type.getNumElements();
    most = std::max<int64_t>(most, llvm::divideCeil(total, mesh.getNumRanks()));
  }
  plan.receivedTotal = width * llvm::sum_of(received);
  plan.receivedMax = width * *llvm::max_element(received);
  plan.lowerBoundTotal = width * total;
  plan.lowerBoundMax = width * most;
  plan.peak = width * std::max(peak, largest);
  plan.peakLowerBound = width * largest;
}

RedistributionPlan Planning::run() {
  RedistributionPlan plan;
  if (from != target)
    searchPlan();
  certify(plan);
  plan.steps = std::move(steps);
  return plan;
}

FailureOr<const RedistributionPlan *>
RedistributionPlanner::plan(ShardingAttr from, ShardingAttr to,
                            RankedTensorType type,
                            function_ref<InFlightDiagnostic()> emitError) {
  if (failed(verifyRedistribution(from, to, mesh, emitError)))
    return failure();
  auto &entry = plans[{from, to, type}];
  if (!entry)
    entry = std::make_unique<RedistributionPlan>(
        Planning(mesh, from, to, type, options).run());
  return entry.get();
}

CommunicationCost tp::getRedistributionCost(ShardingAttr from, ShardingAttr to,
                                            RankedTensorType type,
                                            MeshOp mesh) {
  return RedistributionCosts(mesh).get(from, to, type);
}

CommunicationCost RedistributionCosts::get(ShardingAttr from, ShardingAttr to,
                                           RankedTensorType type) {
  if (from == to)
    return {};
  auto [it, inserted] = costs.try_emplace({from, to, type});
  if (inserted)
    it->second = compute(from, to, type);
  return it->second;
}

ArrayRef<int64_t> RedistributionCosts::getShared(int64_t size, AxisListAttr a,
                                                 AxisListAttr b) {
  auto [it, inserted] = shared.try_emplace({size, a, b});
  if (inserted)
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      it->second.push_back(getNumShared({getDimBlock(size, a, mesh, rank)},
                                        {getDimBlock(size, b, mesh, rank)}));
  return it->second;
}

int64_t RedistributionCosts::getTotalShared(ArrayRef<int64_t> shape,
                                            ArrayRef<AxisListAttr> a,
                                            ArrayRef<AxisListAttr> b) {
  SmallVector<int64_t> product(mesh.getNumRanks(), 1);
  for (auto [size, inA, inB] : llvm::zip_equal(shape, a, b))
    for (auto [elements, here] :
         llvm::zip_equal(product, getShared(size, inA, inB)))
      elements *= here;
  return std::accumulate(product.begin(), product.end(), int64_t(0));
}

CommunicationCost RedistributionCosts::compute(ShardingAttr from,
                                               ShardingAttr to,
                                               RankedTensorType type) {
  from = dropUnitAxes(from, mesh);
  to = dropUnitAxes(to, mesh);
  SmallVector<PartialAttr> pending;
  for (PartialAttr entry : to.getPartial())
    if (!llvm::is_contained(from.getPartial(), entry))
      return CommunicationCost::infinite();
  for (PartialAttr entry : from.getPartial())
    if (!llvm::is_contained(to.getPartial(), entry))
      pending.push_back(entry);
  int64_t width = type.getElementType().isIntOrFloat()
                      ? llvm::divideCeil(type.getElementTypeBitWidth(), 8)
                      : 8;
  MLIRContext *context = from.getContext();
  auto uses = [&](AxisRefAttr axis) {
    auto overlaps = [&](AxisRefAttr other) { return other.overlaps(axis); };
    return llvm::any_of(from.getDims(), [&](AxisListAttr list) {
      return llvm::any_of(list, overlaps);
    });
  };
  auto getTotal = [&](ArrayRef<AxisListAttr> of) {
    return getTotalShared(type.getShape(), of, of);
  };
  // What the target splits further is sliced, or reduced in parts: runs of axes
  // per dimension, all slices that come first before all others.
  struct Run {
    size_t dim;
    bool isScattered;
    SmallVector<AxisRefAttr> axes;
  };
  SmallVector<Run> runs;
  for (auto [index, have, want] :
       llvm::enumerate(from.getDims(), to.getDims())) {
    if (!have.empty() && have.getSegments() != want.getSegments())
      continue;
    if (have.getAxes() != want.getAxes().take_front(have.size()))
      continue;
    for (AxisRefAttr axis : want.getAxes().drop_front(have.size())) {
      if (uses(axis))
        break;
      auto *entry = llvm::find_if(pending, [&](PartialAttr partial) {
        return partial.getAxis() == axis;
      });
      bool isScattered = entry != pending.end();
      if (isScattered)
        pending.erase(entry);
      else if (llvm::any_of(from.getPartial(), [&](PartialAttr partial) {
                 return partial.getAxis().overlaps(axis);
               }))
        break;
      if (runs.empty() || runs.back().dim != index ||
          runs.back().isScattered != isScattered)
        runs.push_back({index, isScattered, {}});
      runs.back().axes.push_back(axis);
    }
  }
  CommunicationCost cost;
  SmallVector<AxisListAttr> dims(from.getDims());
  auto apply = [&](const Run &run) {
    SmallVector<AxisRefAttr> axes(dims[run.dim].getAxes());
    axes.append(run.axes);
    dims[run.dim] =
        AxisListAttr::get(context, axes, to.getDims()[run.dim].getSegments());
  };
  auto comesFirst = [&](const Run &run) {
    return !run.isScattered &&
           (&run == runs.begin() || (&run - 1)->dim != run.dim);
  };
  for (const Run &run : runs)
    if (comesFirst(run))
      apply(run);
  for (const Run &run : runs) {
    if (comesFirst(run))
      continue;
    apply(run);
    if (!run.isScattered)
      continue;
    // Each rank receives its block from all others of the group.
    cost.bytes += (mesh.getAxesSize(run.axes) - 1) * getTotal(dims) * width;
    cost.collectives += 1;
  }
  // One all-reduce for each kind of what is left.
  llvm::SmallMapVector<ReductionKind, int64_t, 2> ranksByKind;
  for (PartialAttr entry : pending)
    ranksByKind.try_emplace(entry.getKind(), 1).first->second *=
        mesh.getAxisSize(entry.getAxis());
  for (auto [kind, ranks] : ranksByKind) {
    cost.bytes += 2 * (ranks - 1) * getTotal(dims) * width / ranks;
    cost.collectives += 1;
  }
  ShardingAttr reduced =
      ShardingAttr::get(context, from.getMesh(), dims, to.getPartial());
  if (reduced == to)
    return cost;
  int64_t moved = getTotal(to.getDims()) -
                  getTotalShared(type.getShape(), dims, to.getDims());
  cost.bytes += moved * width;
  // Without elements, there is a collective all the same.
  bool isSlice =
      llvm::all_of(llvm::zip(reduced.getDims(), to.getDims()), [](auto pair) {
        auto [have, want] = pair;
        return have.getAxes() == want.getAxes().take_front(have.size());
      });
  cost.collectives += moved != 0 || (type.getNumElements() == 0 && !isSlice);
  return cost;
}
