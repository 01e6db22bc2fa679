//===- StageAnalysis.cpp - The stages that ops run on ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StageAnalysis.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include <tuple>

using namespace mlir;
using namespace mlir::tp;

static std::optional<int64_t> getNumber(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? std::optional(attr.getInt()) : std::nullopt;
}

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
                             int64_t numStages)
    : block(function.getBody().front()), pipeline(pipeline),
      numStages(numStages), needed(numStages), slots(numStages), ops(numStages),
      channels(numStages * numStages) {
  for (auto [number, op] : llvm::enumerate(block))
    index[&op] = number;
  findHomes();
  findPasses();
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
                                                int64_t stage) const {
  int64_t home = getHome(value);
  return home < 0 || home == stage ? std::nullopt : std::optional(home);
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
      hasBackward |= *pass % 2 == 1;
    }
  int64_t numPasses = last / 2 * 2 + 2;
  PipelineSchedule schedule =
      *symbolizePipelineSchedule(pipeline.getSchedule());
  for (int64_t stage = 0; stage < numStages; ++stage) {
    order.push_back(
        getPassOrder(schedule, stage, numStages, numPasses / 2, hasBackward));
    auto &places = placeOf.emplace_back(numPasses, 0);
    for (auto [place, pass] : llvm::enumerate(order.back()))
      places[pass] = place;
  }
}

//===----------------------------------------------------------------------===//
// What a stage needs
//===----------------------------------------------------------------------===//

void StageAnalysis::need(Value value, int64_t stage) {
  SmallVector<std::pair<Value, int64_t>> worklist{{value, stage}};
  while (!worklist.empty()) {
    auto [value, stage] = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (std::optional<int64_t> sender = getSender(value, stage)) {
      llvm::BitVector &stages =
          passedTo.try_emplace(value, numStages).first->second;
      stages.set(stage);
      stage = *sender;
    }
    if (!needed[stage].insert(op))
      continue;
    for (Value read : getReads(op))
      worklist.push_back({read, stage});
  }
}

void StageAnalysis::findNeeded() {
  for (Value result : block.getTerminator()->getOperands()) {
    llvm::BitVector &stages = returned.emplace_back(numStages);
    int64_t home = getHome(result);
    if (isScalar(result.getType()))
      stages.set();
    else
      stages.set(home < 0 ? numStages - 1 : home);
    for (unsigned stage : stages.set_bits())
      need(result, stage);
  }
  placeAssignments();
}

/// A stage that reads a parameter also updates it, and so does the stage that
/// computes the next value. One that neither determines, as no stage reads it
/// and its next value combines values of several, is updated by the first.
void StageAnalysis::placeAssignments() {
  auto place = [&](AssignOpInterface assign, const llvm::BitVector &stages) {
    bool isNew = false;
    for (unsigned stage : stages.set_bits())
      if (needed[stage].insert(assign)) {
        need(assign.getValue(), stage);
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
    for (int64_t stage = 0; stage < numStages; ++stage)
      for (Operation *op : needed[stage])
        if (auto parameter = getParameter(op))
          readers.try_emplace(parameter.getFqnAttr(), numStages)
              .first->second.set(stage);
    for (auto assign : block.getOps<AssignOpInterface>()) {
      Value value = assign.getValue();
      llvm::BitVector stages(numStages);
      if (auto it = readers.find(assign.getFqnAttr()); it != readers.end())
        stages = it->second;
      if (isScalar(value.getType()))
        stages.set();
      if (int64_t home = getHome(value); home >= 0)
        stages.set(home);
      changed |= place(assign, stages);
    }
    if (changed)
      continue;
    for (auto assign : block.getOps<AssignOpInterface>())
      if (!changed && !isPlaced(assign)) {
        llvm::BitVector first(numStages);
        first.set(0);
        changed = place(assign, first);
      }
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

int64_t StageAnalysis::getSlot(Value value, int64_t stage) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  std::optional<int64_t> sender = getSender(value, stage);
  if (!sender)
    return slots[stage].lookup(op);
  return placeOf[stage][order[*sender][slots[*sender].lookup(op)]];
}

int64_t StageAnalysis::getPass(Operation *op, int64_t stage) const {
  return order[stage][slots[stage].lookup(op)];
}

/// An op runs in its pass, and not before its operands are there.
void StageAnalysis::findSlots() {
  for (Operation &op : block)
    for (int64_t stage = 0; stage < numStages; ++stage) {
      if (!needed[stage].contains(&op))
        continue;
      int64_t slot = 0;
      std::optional<int64_t> pass = getNumber(&op, kPassAttr);
      if (pass && sources.find(&op)->second.home >= 0)
        slot = placeOf[stage][*pass];
      for (Value value : getReads(&op))
        slot = std::max(slot, getSlot(value, stage));
      slots[stage][&op] = slot;
    }
}

/// Ops with a home are ordered by their slots, and then as before. Other ops
/// come right before the first op that needs them, and assignments last.
void StageAnalysis::sortOps() {
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  for (int64_t stage = 0; stage < numStages; ++stage) {
    DenseMap<Operation *, Key> keys;
    for (Operation &op : llvm::reverse(block)) {
      if (!needed[stage].contains(&op))
        continue;
      int64_t own = index[&op];
      Key key{kEnd, kEnd, own};
      if (isa<AssignOpInterface>(op))
        key = {kEnd, own, own};
      else if (sources[&op].home >= 0)
        key = {slots[stage][&op], own, own};
      else
        for (Operation *user : op.getUsers())
          if (auto it = keys.find(block.findAncestorOpInBlock(*user));
              it != keys.end())
            key = std::min(key, Key{std::get<0>(it->second),
                                    std::get<1>(it->second), own});
      keys[&op] = key;
      ops[stage].push_back(&op);
    }
    llvm::sort(ops[stage],
               [&](Operation *a, Operation *b) { return keys[a] < keys[b]; });
    for (Operation *op : ops[stage])
      for (Value result : op->getResults())
        if (auto it = passedTo.find(result);
            it != passedTo.end() && sources[op].home == stage)
          for (unsigned to : it->second.set_bits())
            channels[stage * numStages + to].push_back(result);
  }
}

void StageAnalysis::findReceipts() {
  for (int64_t stage = 0; stage < numStages; ++stage) {
    // An op without a home runs right before one with a home, in its pass.
    std::optional<int64_t> pass;
    for (Operation *op : llvm::reverse(ops[stage])) {
      if (sources.find(op)->second.home >= 0)
        pass = getPass(op, stage);
      // The first op that reads a value comes last here.
      for (Value value : getReads(op))
        if (getSender(value, stage)) {
          if (pass)
            receivedIn[{value, stage}] = *pass;
          else
            receivedIn.erase({value, stage});
        }
    }
  }
}
