//===- StageAnalysis.cpp - The stages that ops run on ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StageAnalysis.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include <string>
#include <tuple>

using namespace mlir;
using namespace mlir::tp;

static std::optional<int64_t> getNumber(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? std::optional(attr.getInt()) : std::nullopt;
}

static bool isBackward(int64_t pass) { return pass % 2 == 1; }
static int64_t getMicrobatch(int64_t pass) { return pass / 2; }

static bool isScalar(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || tensor.getRank() == 0;
}

llvm::SetVector<Value> StageAnalysis::getReads(Operation *op) {
  llvm::SetVector<Value> values;
  values.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

StageAnalysis::StageAnalysis(func::FuncOp function, PipelineOp pipeline,
                             MeshOp mesh)
    : block(function.getBody().front()), pipeline(pipeline),
      numRanks(mesh.getAxisSize(
          AxisRefAttr::get(mesh.getContext(), pipeline.getAxis()))),
      numStages(pipeline.getNumStages(mesh)), needed(numRanks), slots(numRanks),
      ops(numRanks), channels(numRanks * numRanks) {
  for (auto [number, op] : llvm::enumerate(block))
    index[&op] = number;
  findHomes();
  findPasses();
  if (!isValid())
    return;
  findAwaited();
  findNeeded();
  findSlots();
  sortOps();
  findReceipts();
}

int64_t StageAnalysis::getHome(Value value) const {
  Operation *op = value.getDefiningOp();
  return op ? sources.find(op)->second.home : -1;
}

std::optional<int64_t> StageAnalysis::getSender(Value value,
                                                int64_t rank) const {
  int64_t home = getHome(value);
  return home < 0 || getRankOf(home) == rank ? std::nullopt
                                             : std::optional(getRankOf(home));
}

void StageAnalysis::findHomes() {
  for (Operation &op : block) {
    Source source;
    source.stages.resize(numStages);
    for (Value value : getReads(&op)) {
      Operation *producer = value.getDefiningOp();
      if (!producer) {
        source.hasArgument = true;
        continue;
      }
      const Source &other = sources.find(producer)->second;
      source.hasArgument |= other.hasArgument;
      source.hasParameter |= other.hasParameter;
      if (other.home >= 0)
        source.stages.set(other.home);
      else
        source.stages |= other.stages;
    }
    if (isa<ParameterOpInterface>(op))
      source.hasParameter = !op.hasAttr(kBufferAttr);
    std::optional<int64_t> mark = getNumber(&op, kStageAttr);
    bool isActivation =
        source.stages.any() || (source.hasArgument && source.hasParameter);
    // Only tensors are passed from stage to stage; what decides a branch is
    // computed again.
    if (!llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      source.home = -1;
    else if (mark && isActivation)
      source.home = *mark;
    else if (source.stages.count() == 1)
      source.home = source.stages.find_first();
    sources[&op] = std::move(source);
  }
}

void StageAnalysis::findPasses() {
  int64_t last = 0;
  bool hasBackward = false;
  for (Operation &op : block)
    if (std::optional<int64_t> pass = getNumber(&op, kPassAttr)) {
      last = std::max(last, *pass);
      hasBackward |= isBackward(*pass);
    }
  numMicrobatches = getMicrobatch(last) + 1;
  // Accumulation repeats the pipeline's microbatches, and their rounds.
  PipelineShape shape{*symbolizePipelineSchedule(pipeline.getSchedule()),
                      numRanks,
                      numStages / numRanks,
                      numMicrobatches,
                      getRoundSize(pipeline.getMicrobatches(), numRanks)
                          .value_or(numMicrobatches),
                      hasBackward};
  for (int64_t rank = 0; rank < numRanks; ++rank)
    order.push_back(getPassOrder(shape, rank));
  if (auto found = getPassSteps(shape, order))
    steps = std::move(*found);
  // Without a pass of their own, gradients of weights are part of the backward
  // pass.
  placeOf.assign(numStages * numMicrobatches * kNumPassKinds, 0);
  for (ArrayRef<StagePass> passes : order)
    for (auto [place, pass] : llvm::enumerate(passes)) {
      auto *begin = &placeOf[(pass.stage * numMicrobatches + pass.microbatch) *
                             kNumPassKinds];
      for (int64_t kind = static_cast<int64_t>(pass.kind); kind < kNumPassKinds;
           ++kind)
        begin[kind] = place;
    }
}

/// What another stage needs, directly or not, can't wait for the gradients of
/// weights.
void StageAnalysis::findAwaited() {
  for (Operation &op : llvm::reverse(block)) {
    int64_t home = sources[&op].home;
    for (Operation *user : op.getUsers()) {
      user = block.findAncestorOpInBlock(*user);
      int64_t userHome = sources.find(user)->second.home;
      if (awaited.contains(user) ||
          (home >= 0 && userHome >= 0 && userHome != home)) {
        awaited.insert(&op);
        break;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// What a rank needs
//===----------------------------------------------------------------------===//

void StageAnalysis::need(Value value, int64_t rank) {
  SmallVector<std::pair<Value, int64_t>> worklist{{value, rank}};
  while (!worklist.empty()) {
    auto [value, rank] = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (std::optional<int64_t> sender = getSender(value, rank)) {
      passedTo.try_emplace(value, numRanks).first->second.set(rank);
      rank = *sender;
    }
    if (!needed[rank].insert(op))
      continue;
    for (Value read : getReads(op))
      worklist.push_back({read, rank});
  }
}

void StageAnalysis::findNeeded() {
  for (Value result : block.getTerminator()->getOperands()) {
    llvm::BitVector &ranks = returned.emplace_back(numRanks);
    int64_t home = getHome(result);
    if (isScalar(result.getType()))
      ranks.set();
    else
      ranks.set(home < 0 ? numRanks - 1 : getRankOf(home));
    for (unsigned rank : ranks.set_bits())
      need(result, rank);
  }
  placeAssignments();
}

/// A rank that reads a parameter also updates it, and so does the rank that
/// computes the next value. One that neither determines, as no rank reads it
/// and its next value combines values of several, is updated by the first.
void StageAnalysis::placeAssignments() {
  auto place = [&](AssignOpInterface assign, const llvm::BitVector &ranks) {
    bool isNew = false;
    for (unsigned rank : ranks.set_bits())
      if (needed[rank].insert(assign)) {
        need(assign.getValue(), rank);
        isNew = true;
      }
    return isNew;
  };
  auto isPlaced = [&](AssignOpInterface assign) {
    return llvm::any_of(needed, [&](const auto &ops) {
      return ops.contains(assign.getOperation());
    });
  };
  bool changed = true;
  while (changed) {
    changed = false;
    llvm::DenseMap<StringAttr, llvm::BitVector> readers;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      for (Operation *op : needed[rank])
        if (auto parameter = getParameter(op))
          readers.try_emplace(parameter.getFqnAttr(), numRanks)
              .first->second.set(rank);
    for (auto assign : block.getOps<AssignOpInterface>()) {
      Value value = assign.getValue();
      llvm::BitVector ranks(numRanks);
      if (auto it = readers.find(assign.getFqnAttr()); it != readers.end())
        ranks = it->second;
      if (isScalar(value.getType()))
        ranks.set();
      if (int64_t home = getHome(value); home >= 0)
        ranks.set(getRankOf(home));
      changed |= place(assign, ranks);
    }
    if (changed)
      continue;
    for (auto assign : block.getOps<AssignOpInterface>())
      if (!changed && !isPlaced(assign)) {
        llvm::BitVector first(numRanks);
        first.set(0);
        changed = place(assign, first);
      }
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

int64_t StageAnalysis::getOwnSlot(Operation *op) const {
  std::optional<int64_t> pass = getNumber(op, kPassAttr);
  int64_t home = sources.find(op)->second.home;
  if (!pass || home < 0)
    return 0;
  PassKind kind = !isBackward(*pass)     ? PassKind::Forward
                  : awaited.contains(op) ? PassKind::Backward
                                         : PassKind::WeightGradients;
  return placeOf[(home * numMicrobatches + getMicrobatch(*pass)) *
                     kNumPassKinds +
                 static_cast<int64_t>(kind)];
}

int64_t StageAnalysis::getSlot(Value value, int64_t rank) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  std::optional<int64_t> sender = getSender(value, rank);
  if (!sender)
    return slots[rank].lookup(op);
  return std::distance(steps[rank].begin(),
                       llvm::upper_bound(steps[rank], getStep(op, *sender)));
}

/// An op runs in its pass, and not before its operands are there.
void StageAnalysis::findSlots() {
  for (Operation &op : block)
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      if (!needed[rank].contains(&op))
        continue;
      int64_t slot = getOwnSlot(&op);
      for (Value value : getReads(&op))
        slot = std::max(slot, getSlot(value, rank));
      slots[rank][&op] = slot;
    }
}

/// Ops with a home are ordered by their slots, and then as before. Other ops
/// come right before the first op that needs them, and assignments last.
void StageAnalysis::sortOps() {
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    DenseMap<Operation *, Key> keys;
    for (Operation &op : llvm::reverse(block)) {
      if (!needed[rank].contains(&op))
        continue;
      int64_t own = index[&op];
      Key key{kEnd, kEnd, own};
      if (isa<AssignOpInterface>(op))
        key = {kEnd, own, own};
      else if (sources[&op].home >= 0)
        key = {slots[rank][&op], own, own};
      else
        for (Operation *user : op.getUsers())
          if (auto it = keys.find(block.findAncestorOpInBlock(*user));
              it != keys.end())
            key = std::min(key, Key{std::get<0>(it->second),
                                    std::get<1>(it->second), own});
      keys[&op] = key;
      ops[rank].push_back(&op);
    }
    llvm::sort(ops[rank],
               [&](Operation *a, Operation *b) { return keys[a] < keys[b]; });
    for (Operation *op : ops[rank])
      for (Value result : op->getResults())
        if (auto it = passedTo.find(result);
            it != passedTo.end() && getRankOf(sources[op].home) == rank)
          for (unsigned to : it->second.set_bits())
            channels[rank * numRanks + to].push_back(result);
  }
}

void StageAnalysis::findReceipts() {
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    // An op without a home runs right before one with a home, in its pass.
    Receipt next;
    for (Operation *op : llvm::reverse(ops[rank])) {
      if (int64_t home = sources.find(op)->second.home; home >= 0)
        next = {home, getStep(op, rank)};
      // The first op that reads a value comes last here.
      for (Value value : getReads(op))
        if (getSender(value, rank))
          receipts[{value, rank}] = next;
    }
  }
}

int64_t StageAnalysis::getStepOfReceipt(Value value, int64_t rank) const {
  return receipts.lookup({value, rank}).step;
}

std::string StageAnalysis::describeTransfer(Value value, int64_t rank) const {
  int64_t from = getHome(value), to = receipts.lookup({value, rank}).stage;
  std::string text = "stage " + std::to_string(from) + " to " +
                     std::to_string(to < 0 ? rank : to);
  std::optional<int64_t> pass = getNumber(value.getDefiningOp(), kPassAttr);
  if (!pass)
    return text;
  return text + (isBackward(*pass) ? ", backward" : ", forward") +
         " pass of microbatch " + std::to_string(getMicrobatch(*pass));
}
