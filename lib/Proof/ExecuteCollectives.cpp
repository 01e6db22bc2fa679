//===- ExecuteCollectives.cpp - Collectives over exact numbers ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs all ranks together: each rank runs until it issues a collective, and
// continues with its result once all ranks have issued theirs.
//
//===----------------------------------------------------------------------===//

#include "Executor.h"
#include "ValueNumbering.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

static Scalar combine(Interpretation &meaning, ReductionKind kind, bool isFloat,
                      Scalar a, Scalar b) {
  auto isFirstLarger = [&]() {
    return isFloat ? meaning.isFirstLarger(nullptr, a, b)
                   : a.getInt() > b.getInt();
  };
  auto takeExtremum = [&](bool isLarger) {
    for (Scalar each : {a, b})
      if (isFloat && each.bits == kNaN)
        return each;
    return isFirstLarger() == isLarger ? a : b;
  };
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg:
    return isFloat ? add(a, b) : Scalar{a.bits + b.bits};
  case ReductionKind::Max:
    return takeExtremum(true);
  case ReductionKind::Min:
    return takeExtremum(false);
  case ReductionKind::Product:
    return isFloat ? mul(a, b) : Scalar{a.bits * b.bits};
  }
  llvm_unreachable("unknown reduction");
}

Datum exact::reduceParts(Session &session, ArrayRef<Datum> parts,
                         ReductionKind kind, Type element) {
  bool isFloat = isa<FloatType>(element);
  auto result = std::make_shared<Tensor>(*parts.front().tensor);
  for (const Datum &part : parts.drop_front()) {
    if (!part.tensor || part.tensor->shape != result->shape)
      return {};
    for (auto [own, other] : llvm::zip_equal(result->data, part.tensor->data)) {
      own = combine(session.meaning, kind, isFloat, own, other);
      if (!isFloat)
        own.bits = wrap(own.bits, element.getIntOrFloatBitWidth());
    }
  }
  if (kind == ReductionKind::Avg && isFloat)
    for (Scalar &value : result->data)
      value = div(value, fromInteger(parts.size()));
  return {result, {}};
}

/// What `rank` gets from the group's operands by boxes.
static FailureOr<Datum> transfer(CollectiveOpInterface op, int64_t rank,
                                 ArrayRef<Datum> operands, MeshOp mesh) {
  auto result = std::make_shared<Tensor>();
  result->shape = llvm::to_vector(
      cast<RankedTensorType>(op->getResult(0).getType()).getShape());
  result->data.resize(llvm::product_of(result->shape));
  SmallVector<int64_t> strides = computeStrides(result->shape);
  int64_t filled = 0;
  for (const Transfer &box : op.getTransfers(rank, mesh)) {
    const Tensor &source = *operands[box.source].tensor;
    if (source.shape.size() != result->shape.size())
      return failure();
    for (size_t i = 0; i < box.size.size(); ++i)
      if (box.sourceOffset[i] + box.size[i] > source.shape[i] ||
          box.offset[i] + box.size[i] > result->shape[i])
        return failure();
    filled += llvm::product_of(box.size);
    SmallVector<int64_t> sourceStrides = computeStrides(source.shape);
    SmallVector<int64_t> index(box.size.size(), 0);
    do {
      int64_t from = 0, to = 0;
      for (size_t i = 0; i < index.size(); ++i) {
        from += (box.sourceOffset[i] + index[i]) * sourceStrides[i];
        to += (box.offset[i] + index[i]) * strides[i];
      }
      result->data[to] = source.data[from];
    } while (advance(index, box.size));
  }
  if (filled != static_cast<int64_t>(result->data.size()))
    return failure();
  return Datum{result, {}};
}

FailureOr<SmallVector<Datum>>
exact::evaluateCollective(Session &session, ArrayRef<Operation *> ops,
                          ArrayRef<Datum> operands) {
  MeshOp mesh = session.mesh;
  SmallVector<Datum> results;
  for (auto [rank, op] : llvm::enumerate(ops)) {
    if (op->getName() != ops.front()->getName() ||
        getMeaning(op) != getMeaning(ops.front()))
      return session.fail(op, "ranks issue different collectives");
    AxisListAttr axes = cast<CollectiveOpInterface>(op).getAxes();
    SmallVector<int64_t> group = mesh.getGroupOf(rank, axes.getAxes());
    auto parts = llvm::map_to_vector(
        group, [&](int64_t member) { return operands[member]; });
    Type element =
        cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
    auto slice = [&](const Datum &whole, int64_t dim) {
      return take(whole, dim,
                  getDimBlock(whole.tensor->shape[dim], axes, mesh, rank));
    };
    auto join = [&](ArrayRef<Datum> parts, int64_t dim) -> FailureOr<Datum> {
      for (const Datum &part : parts)
        for (size_t i = 0; i < part.tensor->shape.size(); ++i)
          if (i != static_cast<size_t>(dim) &&
              part.tensor->shape[i] != parts.front().tensor->shape[i])
            return failure();
      return concat(parts, dim);
    };
    auto compute = [&, op = op, rank = rank]() -> FailureOr<Datum> {
      auto collective = cast<CollectiveOpInterface>(op);
      std::optional<Dataflow> flow = collective.getDataflow();
      if (!flow)
        return transfer(collective, rank, operands, mesh);
      size_t mine = llvm::find(group, rank) - group.begin();
      if (std::optional<int64_t> source = flow->getSource(mine))
        parts = {parts[*source]};
      if (flow->reduction) {
        parts = {reduceParts(session, parts, *flow->reduction, element)};
        if (!parts.front().tensor)
          return failure();
      }
      if (flow->cut)
        for (Datum &part : parts)
          part = slice(part, *flow->cut);
      if (flow->joined)
        return join(parts, *flow->joined);
      return parts.front();
    };
    FailureOr<Datum> result = compute();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (failed(result) || ArrayRef(result->tensor->shape) != type.getShape())
      return session.fail(op, "on rank " + Twine(rank) +
                                  ", the group's operands don't fit together");
    results.push_back(*result);
  }
  return results;
}

FailureOr<std::vector<std::unique_ptr<Machine>>>
exact::runRanks(Session &session, ArrayRef<func::FuncOp> functions,
                ArrayRef<SmallVector<Datum>> arguments) {
  std::vector<std::unique_ptr<Machine>> machines;
  for (auto [rank, function] : llvm::enumerate(functions))
    machines.push_back(
        std::make_unique<Machine>(session, function, rank, arguments[rank]));
  SmallVector<Datum> received;
  while (true) {
    SmallVector<Operation *> ops;
    SmallVector<Datum> operands;
    for (auto [rank, machine] : llvm::enumerate(machines)) {
      auto status = machine->run(received.empty() ? nullptr : &received[rank]);
      if (status == Machine::Status::Failed)
        return failure();
      if (status == Machine::Status::Waiting) {
        ops.push_back(machine->getCollective());
        operands.push_back(machine->get(ops.back()->getOperand(0)));
      }
    }
    if (ops.empty())
      return std::move(machines);
    if (ops.size() != machines.size())
      return session.fail(ops.front(),
                          "some ranks have ended, and others wait for them");
    auto results = evaluateCollective(session, ops, operands);
    if (failed(results))
      return failure();
    received = std::move(*results);
  }
}
