//===- RedistributionWriter.cpp - Collectives of redistributions ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RedistributionWriter.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"

using namespace mlir;
using namespace mlir::tp;

Value RedistributionWriter::applyStep(const RedistributionStep &step,
                                      Value value, RankedTensorType global,
                                      RedistributeOp op) {
  Location loc = op.getLoc();
  auto meshRef = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  auto axes = AxisListAttr::get(op.getContext(), step.axes, step.segments);
  Type type = getLocalType(global, step.result, mesh, rank);
  StringAttr fqn = op.getFqnAttr(), reason = op.getReasonAttr();
  IntegerAttr dim = builder.getI64IntegerAttr(step.dim);
  IntegerAttr bytes; // set once the op exists

  switch (step.kind) {
  case RedistributionStep::LocalSlice:
    return LocalSliceOp::create(builder, loc, type, value, dim, meshRef, axes);
  case RedistributionStep::AllGather:
    return AllGatherOp::create(builder, loc, type, value, dim, meshRef, axes,
                               fqn, reason, bytes);
  case RedistributionStep::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, value, step.reduction,
                                   dim, meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::AllReduce:
    return AllReduceOp::create(builder, loc, type, value, step.reduction,
                               meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::AllToAll:
    if (!step.pairs.empty())
      return applyAllToAlls(step, value, op);
    return AllToAllOp::create(builder, loc, type, value, dim,
                              builder.getI64IntegerAttr(step.concatDim),
                              meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::Permute:
    return PermuteOp::create(builder, loc, type, value,
                             builder.getDenseI64ArrayAttr(step.source), meshRef,
                             axes, fqn, reason, bytes);
  case RedistributionStep::Exchange:
    return ExchangeOp::create(builder, loc, type, value,
                              builder.getDenseI64ArrayAttr(global.getShape()),
                              step.operand, step.result, meshRef, axes, fqn,
                              reason, bytes);
  }
  llvm_unreachable("unknown step");
}

const TensorBuilder &RedistributionWriter::getTensors(Operation *op) {
  if (!tensors)
    tensors = &TensorBuilder::get(op);
  return *tensors;
}

/// One all-to-all along several pairs of dimensions. A new leading dimension
/// separates what each rank of the group gets.
Value RedistributionWriter::applyAllToAlls(const RedistributionStep &step,
                                           Value value, RedistributeOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rank = type.getRank(), group = mesh.getAxesSize(step.axes);
  // For each dimension the pair that splits it, and the pair that concatenates
  // it.
  SmallVector<std::optional<size_t>> splitBy(rank), concatBy(rank);
  for (auto [i, pair] : llvm::enumerate(step.pairs)) {
    splitBy[pair.first] = i;
    concatBy[pair.second] = i;
  }
  auto getSize = [&](size_t pair) { return mesh.getAxisSize(step.axes[pair]); };

  SmallVector<int64_t> cut, rest, places(step.pairs.size()), order;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t size = type.getDimSize(dim);
    if (splitBy[dim]) {
      places[*splitBy[dim]] = cut.size();
      cut.push_back(getSize(*splitBy[dim]));
      size /= cut.back();
    }
    order.push_back(cut.size());
    cut.push_back(size);
    rest.push_back(size);
  }
  order.insert(order.begin(), places.begin(), places.end());
  value = getTensors(op).reshape(builder, loc, value, cut);
  value = getTensors(op).transpose(builder, loc, value, order);

  SmallVector<int64_t> packed = {group, 1};
  packed.append(rest);
  value = getTensors(op).reshape(builder, loc, value, packed);
  std::swap(packed[0], packed[1]);
  value = AllToAllOp::create(
      builder, loc, type.clone(packed), value, builder.getI64IntegerAttr(0),
      builder.getI64IntegerAttr(1),
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      AxisListAttr::get(op.getContext(), step.axes), op.getFqnAttr(),
      op.getReasonAttr(), IntegerAttr());

  SmallVector<int64_t> sizes, back, result;
  for (size_t pair = 0; pair < step.pairs.size(); ++pair)
    sizes.push_back(getSize(pair));
  for (int64_t dim = 0; dim < rank; ++dim) {
    result.push_back(rest[dim]);
    if (concatBy[dim]) {
      back.push_back(*concatBy[dim]);
      result.back() *= sizes[*concatBy[dim]];
    }
    back.push_back(step.pairs.size() + dim);
  }
  sizes.append(rest);
  value = getTensors(op).reshape(builder, loc, value, sizes);
  value = getTensors(op).transpose(builder, loc, value, back);
  return getTensors(op).reshape(builder, loc, value, result);
}

/// An entry of docs/Report.md's `redistributions`.
static DictionaryAttr getCertificate(const RedistributionPlan &plan,
                                     ShardingAttr from, RedistributeOp op) {
  Builder b(op.getContext());
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  SmallVector<Attribute> steps;
  for (const RedistributionStep &step : plan.steps)
    steps.push_back(b.getDictionaryAttr(
        {{"kind", b.getStringAttr(stringifyStep(step.kind))},
         {"axes", AxisListAttr::get(op.getContext(), step.axes, step.segments)},
         {"to", step.result}}));
  return b.getDictionaryAttr(
      {{"from", from},
       {"to", op.getSharding()},
       {"type", TypeAttr::get(op.getType())},
       {"view",
        b.getDenseI64ArrayAttr(plan.getViewed(op.getType()).getShape())},
       {"fqn", b.getStringAttr(op.getFqn().value_or(""))},
       {"reason", b.getStringAttr(op.getReason().value_or(""))},
       {"received_total", number(plan.receivedTotal)},
       {"received_max", number(plan.receivedMax)},
       {"lower_bound_total", number(plan.lowerBoundTotal)},
       {"lower_bound_max", number(plan.lowerBoundMax)},
       {"peak", number(plan.peak)},
       {"peak_lower_bound", number(plan.peakLowerBound)},
       {"steps", b.getArrayAttr(steps)}});
}

/// The collective of a step; reshapes and transposes may follow it.
static CollectiveOpInterface getCollective(Value value) {
  while (isa_and_nonnull<ReshapeOpInterface, TransposeOpInterface>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getDefiningOp<CollectiveOpInterface>();
}

Value RedistributionWriter::write(const RedistributionPlan &plan,
                                  ShardingAttr from, RedistributeOp op,
                                  Value value) {
  RankedTensorType viewed = plan.getViewed(op.getType());
  auto getShape = [&](RankedTensorType type, ShardingAttr sharding) {
    return getLocalType(type, sharding, mesh, rank).getShape();
  };
  if (viewed != op.getType())
    value =
        getTensors(op).reshape(builder, op.getLoc(), value,
                               getShape(viewed, plan.steps.front().operand));
  for (const RedistributionStep &step : plan.steps) {
    value = applyStep(step, value, viewed, op);
    auto collective = getCollective(value);
    if (!collective)
      continue;
    Attribute &bytes = knownBytes[&step];
    if (bytes) {
      collective->setAttr("bytes", bytes);
    } else {
      setCollectiveBytes(collective, mesh);
      bytes = collective->getAttr("bytes");
    }
  }
  if (viewed != op.getType())
    value = getTensors(op).reshape(builder, op.getLoc(), value,
                                   getShape(op.getType(), op.getSharding()));
  DictionaryAttr &certificate =
      knownCertificates[{&plan, op->getAttrDictionary()}];
  if (!certificate)
    certificate = getCertificate(plan, from, op);
  certificates.push_back(certificate);
  return value;
}
