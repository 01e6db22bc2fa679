//===- Redistribution.cpp - Plans of redistributions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Redistribution/Redistribution.h"
#include "PlanRedistribution.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

StringRef tp::stringifyStep(RedistributionStep::Kind kind) {
  // In the order of Kind.
  const StringRef names[] = {
      LocalSliceOp::getOperationName(), AllGatherOp::getOperationName(),
      AllReduceOp::getOperationName(),  ReduceScatterOp::getOperationName(),
      AllToAllOp::getOperationName(),   PermuteOp::getOperationName(),
      ExchangeOp::getOperationName()};
  return names[kind].split('.').second;
}

int64_t RedistributionPlan::getNumCollectives() const {
  return llvm::count_if(steps, [](const RedistributionStep &step) {
    return step.kind != RedistributionStep::LocalSlice;
  });
}

RankedTensorType RedistributionPlan::getViewed(RankedTensorType type) const {
  if (view.empty())
    return type;
  SmallVector<int64_t> shape;
  for (ArrayRef<int64_t> sizes : view)
    llvm::append_range(shape, sizes);
  return type.clone(shape);
}

/// Whether `to` is Partial only over axes that `from` is Partial over, with the
/// same reduction.
static bool isReachable(ShardingAttr from, ShardingAttr to, MeshOp mesh) {
  return llvm::all_of(to.getPartial(), [&](PartialAttr wanted) {
    return mesh.getAxisSize(wanted.getAxis()) == 1 ||
           llvm::is_contained(from.getPartial(), wanted);
  });
}

LogicalResult
tp::verifyRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                         function_ref<InFlightDiagnostic()> emitError) {
  if (isReachable(from, to, mesh))
    return success();
  return emitError() << "can't redistribute from "
                     << printPlacements(from, mesh) << " to "
                     << printPlacements(to, mesh)
                     << ": no value becomes Partial by a redistribution";
}

//===----------------------------------------------------------------------===//
// RedistributionPlanner
//===----------------------------------------------------------------------===//

/// Elements that aren't numbers count as eight bytes.
static RankedTensorType getCountedType(RankedTensorType type) {
  if (type.getElementType().isIntOrIndexOrFloat())
    return type;
  return type.clone(IntegerType::get(type.getContext(), 64));
}

/// Whether `to` only splits dimensions further than `from` does.
static bool isSlice(ShardingAttr from, ShardingAttr to) {
  return llvm::all_of(
      llvm::zip_equal(from.getDims(), to.getDims()), [](auto pair) {
        auto [have, want] = pair;
        return have.getSegments().empty() && want.getSegments().empty() &&
               have.getAxes() == want.getAxes().take_front(have.size());
      });
}

const RedistributionPlan &
RedistributionPlanner::getPlan(ShardingAttr from, ShardingAttr to,
                               RankedTensorType type) {
  auto &entry = plans[{from, to, type}];
  if (!entry) {
    entry = std::make_unique<RedistributionPlan>(
        planRedistribution(mesh, from, to, type, options, numStates));
  }
  return *entry;
}

FailureOr<const RedistributionPlan *>
RedistributionPlanner::plan(ShardingAttr from, ShardingAttr to,
                            RankedTensorType type,
                            function_ref<InFlightDiagnostic()> emitError) {
  if (failed(verifyRedistribution(from, to, mesh, emitError)))
    return failure();
  return &getPlan(from, to, type);
}

CommunicationCost RedistributionPlanner::Price::getCost() const {
  if (!isPossible)
    return CommunicationCost::infinite();
  CommunicationCost cost;
  cost.bytes = bytes;
  cost.collectives = collectives;
  return cost;
}

CommunicationCost RedistributionPlanner::getBound(ShardingAttr from,
                                                  ShardingAttr to,
                                                  RankedTensorType type) {
  return getPrice(from, to, type).getCost();
}

CommunicationCost RedistributionPlanner::getCost(ShardingAttr from,
                                                 ShardingAttr to,
                                                 RankedTensorType type) {
  Price &price = getPrice(from, to, type);
  if (price.isBound) {
    const RedistributionPlan &plan = getPlan(from, to, getCountedType(type));
    price.bytes = plan.receivedTotal;
    price.collectives = plan.getNumCollectives();
    price.isBound = false;
  }
  return price.getCost();
}

int64_t RedistributionPlanner::sumShared(const llvm::SmallBitVector &axes,
                                         ArrayRef<unsigned> dims,
                                         ArrayRef<int64_t> shape,
                                         ArrayRef<AxisListAttr> a,
                                         ArrayRef<AxisListAttr> b) {
  WordList key;
  for (unsigned dim : dims)
    key.append({static_cast<Word>(shape[dim]),
                toWord(a[dim].getAsOpaquePointer()),
                toWord(b[dim].getAsOpaquePointer())});
  auto [number, isNew] = summed.insert(key);
  if (!isNew)
    return sums[number];
  SmallVector<AxisRefAttr> spanning;
  for (unsigned axis : axes.set_bits())
    spanning.push_back(
        AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(axis)));
  int64_t sum = 0;
  for (int64_t rank : mesh.getGroupOf(mesh.getRank(0), spanning)) {
    int64_t product = 1;
    for (unsigned dim : dims)
      product *= getNumShared({getDimBlock(shape[dim], a[dim], mesh, rank)},
                              {getDimBlock(shape[dim], b[dim], mesh, rank)});
    sum += product;
  }
  sums.push_back(sum);
  return sum;
}

int64_t RedistributionPlanner::getTotalShared(ArrayRef<int64_t> shape,
                                              ArrayRef<AxisListAttr> a,
                                              ArrayRef<AxisListAttr> b) {
  // A rank shares the product of what it shares in each dimension. Dimensions
  // that different mesh dimensions split are independent, so the sum over all
  // ranks is the product of sums over a few of them.
  struct Part {
    llvm::SmallBitVector axes;
    SmallVector<unsigned, 4> dims;
  };
  SmallVector<Part, 4> parts;
  llvm::SmallBitVector others(mesh.getNumAxes(), true);
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    Part part{llvm::SmallBitVector(mesh.getNumAxes()), {}};
    for (AxisListAttr list : {a[dim], b[dim]})
      for (AxisRefAttr axis : list)
        part.axes.set(*mesh.getAxisIndex(axis.getName()));
    others.reset(part.axes);
    llvm::erase_if(parts, [&](const Part &other) {
      if (!other.axes.anyCommon(part.axes))
        return false;
      part.axes |= other.axes;
      llvm::append_range(part.dims, other.dims);
      return true;
    });
    part.dims.push_back(dim);
    parts.push_back(std::move(part));
  }
  int64_t total = 1;
  for (unsigned axis : others.set_bits())
    total *= mesh.getAxisSizes()[axis];
  for (const Part &part : parts)
    total *= sumShared(part.axes, part.dims, shape, a, b);
  return total;
}

RedistributionPlanner::Price &
RedistributionPlanner::getPrice(ShardingAttr from, ShardingAttr to,
                                RankedTensorType type) {
  auto &row = prices[{from, type}];
  if (!row)
    row = std::make_unique<DenseMap<ShardingAttr, Price>>();
  auto [it, inserted] = row->try_emplace(to);
  if (inserted && from != to)
    it->second = computePrice(from, to, getCountedType(type));
  return it->second;
}

RedistributionPlanner::Price
RedistributionPlanner::computePrice(ShardingAttr from, ShardingAttr to,
                                    RankedTensorType type) {
  Price price;
  price.isPossible = isReachable(from, to, mesh);
  if (!price.isPossible)
    return price;
  llvm::SmallSetVector<ReductionKind, 2> reductions;
  // Counts like the certificate of a plan.
  int64_t n = 1, problems = 1;
  for (PartialAttr entry : from.getPartial()) {
    int64_t size = mesh.getAxisSize(entry.getAxis());
    bool stays = llvm::is_contained(to.getPartial(), entry);
    (stays ? problems : n) *= size;
    if (!stays && size > 1)
      reductions.insert(entry.getKind());
  }
  // The elements that ranks need, and those that they need from others. A
  // reduction doesn't move elements between blocks.
  int64_t moved = getTotalShared(type.getShape(), to.getDims(), to.getDims());
  int64_t missing =
      moved - getTotalShared(type.getShape(), from.getDims(), to.getDims());
  if (reductions.empty())
    moved = missing;
  else
    moved += (n - 2) * problems * type.getNumElements();
  price.bytes = moved * getElementBytes(type.getElementType());
  price.collectives = reductions.size() + (missing != 0);
  // One exchange moves exactly what ranks need and don't have, so the price is
  // exact.
  bool isOne = options.oneShot && reductions.empty() && moved != 0;
  price.isBound = !isOne && !(reductions.empty() && isSlice(from, to));
  return price;
}
