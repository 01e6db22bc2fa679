//===- FuseStages.cpp - One program of a pipeline's stages ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuseStages.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "tp/Transforms/Utils.h"
#include <deque>
#include <map>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// A value on its way, and the op that has sent it.
struct Sent {
  Value value;
  TransferOp by;
};

class StageFuser {
public:
  /// `stages` are the programs of a rank and of its partners.
  StageFuser(ArrayRef<func::FuncOp> stages, func::FuncOp fused,
             int64_t preferred)
      : stages(stages), fused(fused), preferred(preferred),
        builder(fused.getContext()), mappings(stages.size()) {}

  LogicalResult run() {
    builder.setInsertionPointToEnd(fused.addEntryBlock());
    if (failed(addArguments()))
      return failure();
    chooseAssignments();
    SmallVector<Block::iterator> next;
    for (func::FuncOp stage : stages)
      next.push_back(stage.getBody().front().begin());
    bool progress = true;
    while (progress) {
      progress = false;
      for (auto [index, op] : llvm::enumerate(next))
        while (!op->hasTrait<OpTrait::IsTerminator>()) {
          FailureOr<bool> isDone = step(index, &*op);
          if (failed(isDone))
            return failure();
          if (!*isDone)
            break;
          ++op;
          progress = true;
        }
    }
    for (auto [index, op] : llvm::enumerate(next))
      if (!op->hasTrait<OpTrait::IsTerminator>())
        return op->emitError("stage ")
               << index << " waits here forever: no stage sends this value";
    for (auto &[channel, queue] : channels)
      if (!queue.empty())
        return queue.front().by.emitError("stage ")
               << channel.first << " sends a value that stage "
               << channel.second << " doesn't receive";
    return addResults();
  }

private:
  LogicalResult addArguments() {
    for (unsigned i = 0; i < fused.getNumArguments(); ++i) {
      BlockArgument argument = fused.getArgument(i);
      for (auto [stage, mapping] : llvm::zip_equal(stages, mappings)) {
        func::FuncOp program = stage;
        BlockArgument own = program.getArgument(i);
        if (program.getArgAttr(i, kAbsentAttr)) {
          if (!own.use_empty())
            return program.emitError()
                   << "argument " << i << " is 'tp.absent', but it has uses";
          continue;
        }
        if (own.getType() != argument.getType())
          return program.emitError()
                 << "argument " << i << " has type " << own.getType()
                 << ", expected " << argument.getType();
        mapping.map(own, argument);
      }
    }
    return success();
  }

  /// Of several stages that assign a parameter, the fused program has the
  /// assignment of one.
  void chooseAssignments() {
    auto choose = [&](int64_t index) {
      stages[index].getBody().walk([&](AssignOpInterface assign) {
        assigning.insert({assign.getFqnAttr(), index});
      });
    };
    choose(preferred);
    for (size_t index = 0; index < stages.size(); ++index)
      choose(index);
  }

  /// Runs an op of a stage; false if the value that it receives isn't sent yet.
  FailureOr<bool> step(int64_t stage, Operation *op) {
    IRMapping &mapping = mappings[stage];
    auto transfer = dyn_cast<TransferOp>(op);
    if (!transfer) {
      if (auto assign = dyn_cast<AssignOpInterface>(op);
          assign && assigning.lookup(assign.getFqnAttr()) != stage)
        return true;
      // A scalar travels in another shape.
      if (Value original = undoReshape(op, mapping)) {
        mapping.map(op->getResult(0), original);
        return true;
      }
      if (op->walk([](TransferOp) {
              return WalkResult::interrupt();
            }).wasInterrupted())
        return op->emitError("transfers a value in a region; transfers are "
                             "only proven outside of regions");
      builder.clone(*op, mapping);
      return true;
    }
    auto from = static_cast<int64_t>(transfer.getFrom());
    auto to = static_cast<int64_t>(transfer.getTo());
    std::deque<Sent> &queue = channels[{from, to}];
    if (stage == from) {
      queue.push_back({mapping.lookup(transfer.getInput()), transfer});
      mapping.map(transfer.getResult(),
                  tensor::EmptyOp::create(builder, op->getLoc(),
                                          transfer.getType().getShape(),
                                          transfer.getType().getElementType())
                      .getResult());
      return true;
    }
    if (queue.empty())
      return false;
    Sent sent = queue.front();
    queue.pop_front();
    if (sent.value.getType() != transfer.getType()) {
      InFlightDiagnostic diagnostic = op->emitError("receives a value of type ")
                                      << transfer.getType()
                                      << ", but one of type "
                                      << sent.value.getType() << " is sent";
      diagnostic.attachNote(sent.by.getLoc()) << "it is sent here";
      return diagnostic;
    }
    mapping.map(transfer.getResult(), sent.value);
    return true;
  }

  /// What was reshaped to the operand of `op` before it was sent, if `op`
  /// reshapes it back; null if not.
  static Value undoReshape(Operation *op, const IRMapping &mapping) {
    if (!isa<ReshapeOpInterface>(op) ||
        !op->getOperand(0).getDefiningOp<TransferOp>())
      return {};
    auto *first = mapping.lookup(op->getOperand(0)).getDefiningOp();
    return isa_and_nonnull<ReshapeOpInterface>(first) &&
                   first->getOperand(0).getType() == op->getResult(0).getType()
               ? first->getOperand(0)
               : Value();
  }

  LogicalResult addResults() {
    SmallVector<Value> results;
    for (unsigned i = 0; i < fused.getNumResults(); ++i) {
      std::optional<size_t> source;
      for (size_t index = stages.size(); index-- > 0;)
        if (!stages[index].getResultAttr(i, kAbsentAttr) &&
            source != static_cast<size_t>(preferred))
          source = index;
      if (!source)
        return fused.emitError("no stage returns result ") << i;
      Block &body = stages[*source].getBody().front();
      results.push_back(
          mappings[*source].lookup(body.getTerminator()->getOperand(i)));
      if (results.back().getType() != fused.getResultTypes()[i])
        return fused.emitError("result ")
               << i << " has type " << results.back().getType() << ", expected "
               << fused.getResultTypes()[i];
    }
    func::ReturnOp::create(builder, fused.getLoc(), results);
    return success();
  }

  SmallVector<func::FuncOp> stages;
  func::FuncOp fused;
  int64_t preferred;
  OpBuilder builder;
  SmallVector<IRMapping> mappings;
  /// The stage whose assignment of each parameter is taken.
  DenseMap<StringAttr, int64_t> assigning;
  /// What is on its way from a stage to another.
  std::map<std::pair<int64_t, int64_t>, std::deque<Sent>> channels;
};

} // namespace

/// The type that a rank's block has, as an argument or result that a stage may
/// lack.
static Type getBlockType(Type type, DictionaryAttr attrs, MeshOp mesh,
                         int64_t rank) {
  auto whole = attrs ? attrs.getAs<TypeAttr>(kGlobalTypeAttr) : TypeAttr();
  auto sharding =
      attrs ? attrs.getAs<ShardingAttr>(kShardingAttr) : ShardingAttr();
  if (!whole)
    return type;
  auto tensor = cast<RankedTensorType>(whole.getValue());
  return sharding ? getLocalType(tensor, sharding, mesh, rank) : tensor;
}

FailureOr<SmallVector<func::FuncOp>>
tp::fuseStages(ArrayRef<func::FuncOp> programs, StringAttr name, MeshOp mesh,
               PipelineOp pipeline, int64_t preferred) {
  auto byRank = getProgramsByRank(programs, mesh.getNumRanks());
  if (failed(byRank))
    return failure();
  auto axis = AxisRefAttr::get(mesh.getContext(), pipeline.getAxis());
  // Ranks whose stages run the same programs share a fused one.
  std::vector<std::pair<SmallVector<func::FuncOp>, SmallVector<int64_t>>> ranks;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    SmallVector<func::FuncOp> own;
    for (auto [index, partner] : llvm::enumerate(mesh.getGroupOf(rank, axis))) {
      own.push_back((*byRank)[partner]);
      auto stage = own.back()->getAttrOfType<IntegerAttr>(kStageAttr);
      if (!stage || stage.getInt() != static_cast<int64_t>(index))
        return own.back().emitError("rank ")
               << partner << " is in stage " << index
               << " of the pipeline, but runs the program of another";
    }
    auto known =
        llvm::find_if(ranks, [&](auto &entry) { return entry.first == own; });
    if (known == ranks.end())
      known = ranks.insert(known, {std::move(own), {}});
    known->second.push_back(rank);
  }
  Builder b(mesh.getContext());
  SmallVector<func::FuncOp> fused;
  for (auto &[own, sharing] : ranks) {
    func::FuncOp first = own.front();
    SmallVector<Type> arguments, results;
    SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
    auto add = [&](Type type, DictionaryAttr attrs, SmallVector<Type> &types,
                   SmallVector<DictionaryAttr> &list) {
      types.push_back(getBlockType(type, attrs, mesh, sharing.front()));
      NamedAttrList entries(attrs);
      entries.erase(kAbsentAttr);
      list.push_back(entries.getDictionary(b.getContext()));
    };
    for (unsigned i = 0; i < first.getNumArguments(); ++i)
      add(first.getArgumentTypes()[i], first.getArgAttrDict(i), arguments,
          argumentAttrs);
    for (unsigned i = 0; i < first.getNumResults(); ++i)
      add(first.getResultTypes()[i], first.getResultAttrDict(i), results,
          resultAttrs);
    auto function = func::FuncOp::create(first.getLoc(), name,
                                         b.getFunctionType(arguments, results));
    for (auto [i, attrs] : llvm::enumerate(argumentAttrs))
      function.setArgAttrs(i, attrs);
    for (auto [i, attrs] : llvm::enumerate(resultAttrs))
      function.setResultAttrs(i, attrs);
    function->setAttr(kRanksAttr, b.getDenseI64ArrayAttr(sharing));
    first->getParentOfType<ModuleOp>().push_back(function);
    fused.push_back(function);
    if (fused.size() > 1) {
      function.setSymName(
          (name.getValue() + "_" + Twine(fused.size() - 1)).str());
      function->setAttr(kCopyOfAttr, FlatSymbolRefAttr::get(name));
    }
    if (failed(StageFuser(own, function, preferred).run()))
      return failure();
  }
  return fused;
}
