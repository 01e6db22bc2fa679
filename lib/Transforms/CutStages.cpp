//===- CutStages.cpp - A program for each stage of a pipeline -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass works on the programs of ranks, in which collectives are over other
// mesh dimensions than the pipeline's. So each stage's program is a subset of
// the ops, in the order of the schedule, and transfers.
//
//===----------------------------------------------------------------------===//

#include "StageAnalysis.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Sharding/Uniformity.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CUTSTAGES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// The type of a value that a stage doesn't have.
RankedTensorType getEmpty(RankedTensorType type) {
  return type.clone(SmallVector<int64_t>(type.getRank(), 0));
}

/// A scalar travels as a tensor of one element.
RankedTensorType getTransferred(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getRank() == 0 ? tensor.clone({1}) : tensor;
}

/// Builds the program of the ranks at one index along the pipeline, `rank`.
class StageBuilder {
public:
  StageBuilder(func::FuncOp program, func::FuncOp whole, int64_t rank,
               int64_t numRanks, const StageAnalysis &analysis,
               PipelineOp pipeline, MeshOp mesh, Uniformity &uniformity)
      : program(program), old(whole.getBody().front()), rank(rank),
        numRanks(numRanks), analysis(analysis), pipeline(pipeline), mesh(mesh),
        uniformity(uniformity), builder(program.getContext()),
        tensors(TensorBuilder::get(whole)), numReceived(numRanks, 0),
        numSent(numRanks, 0), pending(numRanks) {}

  void build() {
    Block *block = builder.createBlock(&program.getBody());
    for (BlockArgument argument : old.getArguments())
      mapping.map(argument,
                  block->addArgument(argument.getType(), argument.getLoc()));
    for (Operation *op : analysis.getOps(rank)) {
      for (Value value : StageAnalysis::getReads(op))
        receive(value);
      Operation *copy = builder.clone(*op, mapping);
      copy->walk([](Operation *inner) {
        inner->removeAttr(kStageAttr);
        // A pass that reads again keeps its number.
        if (!isa<nn::RecomputeOp>(inner))
          inner->removeAttr(kPassAttr);
      });
      for (Value result : op->getResults())
        for (int64_t to = 0; to < numRanks; ++to)
          if (ArrayRef<Value> passed = analysis.getPassed(rank, to);
              numSent[to] < passed.size() && passed[numSent[to]] == result)
            send(op, result, to);
    }
    finish(block);
  }

private:
  /// Makes `value` available; first receives what its sender has sent before.
  void receive(Value value) {
    std::optional<int64_t> sender = analysis.getSender(value, rank);
    while (sender && !mapping.contains(value)) {
      Value next = analysis.getPassed(*sender, rank)[numReceived[*sender]++];
      RankedTensorType type = getTransferred(next.getType());
      Value empty = tensor::EmptyOp::create(builder, next.getLoc(),
                                            getEmpty(type).getShape(),
                                            type.getElementType());
      Value result = wait(start(next, empty, type, *sender, rank));
      mapping.map(next, tensors.reshape(
                            builder, next.getLoc(), result,
                            cast<RankedTensorType>(next.getType()).getShape()));
    }
  }

  /// The sender goes on at once. So that only few values are on their way, it
  /// first waits for those that were received two steps before. Such a wait
  /// can't be in the way of any other: each of them is for what happens in an
  /// earlier step.
  void send(Operation *op, Value value, int64_t to) {
    ++numSent[to];
    int64_t step = analysis.getStep(op, rank);
    llvm::erase_if(pending[to], [&](const auto &earlier) {
      bool isDone = earlier.second + 2 <= step;
      if (isDone)
        wait(earlier.first);
      return isDone;
    });
    RankedTensorType type = getTransferred(value.getType());
    Value sent = tensors.reshape(builder, op->getLoc(), mapping.lookup(value),
                                 type.getShape());
    Value started = start(value, sent, getEmpty(type), rank, to);
    pending[to].push_back({started, analysis.getStepOfReceipt(value, to)});
  }

  Value start(Value value, Value operand, RankedTensorType type, int64_t from,
              int64_t to) {
    Location loc = value.getLoc();
    MLIRContext *context = builder.getContext();
    auto started =
        StartOp::create(builder, loc, PendingType::get(context, type));
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&started.getBody());
    SmallVector<AxisRefAttr> varying;
    for (StringRef name : uniformity.getVaryingAxes(value))
      if (name != pipeline.getAxis())
        varying.push_back(AxisRefAttr::get(context, name));
    auto transfer = TransferOp::create(
        builder, loc, type, operand, builder.getI64IntegerAttr(from),
        builder.getI64IntegerAttr(to),
        varying.empty() ? AxisListAttr() : AxisListAttr::get(context, varying),
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
        AxisListAttr::get(context,
                          {AxisRefAttr::get(context, pipeline.getAxis())}),
        builder.getStringAttr(getFqn(value.getDefiningOp())),
        builder.getStringAttr("pipeline: " +
                              analysis.describeTransfer(value, to)),
        IntegerAttr());
    YieldOp::create(builder, loc, transfer);
    setCollectiveBytes(transfer, mesh);
    return started;
  }

  Value wait(Value started) {
    return WaitOp::create(builder, started.getLoc(),
                          cast<PendingType>(started.getType()).getTensor(),
                          started);
  }

  void finish(Block *block) {
    auto terminator = cast<func::ReturnOp>(old.getTerminator());
    UnitAttr unit = builder.getUnitAttr();
    SmallVector<Value> results;
    for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
      if (analysis.returns(rank, i)) {
        receive(value);
        results.push_back(mapping.lookup(value));
        continue;
      }
      auto type = cast<RankedTensorType>(value.getType());
      results.push_back(tensor::EmptyOp::create(builder, terminator.getLoc(),
                                                getEmpty(type).getShape(),
                                                type.getElementType()));
      program.setResultAttr(i, kAbsentAttr, unit);
    }
    for (auto &list : pending)
      for (auto &[started, step] : list)
        wait(started);
    func::ReturnOp::create(builder, terminator.getLoc(), results);
    for (BlockArgument argument : block->getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          type && type.getRank() && argument.use_empty()) {
        argument.setType(getEmpty(type));
        program.setArgAttr(argument.getArgNumber(), kAbsentAttr, unit);
      }
    program.setFunctionType(FunctionType::get(program.getContext(),
                                              block->getArgumentTypes(),
                                              ValueRange(results).getTypes()));
  }

  func::FuncOp program;
  Block &old;
  int64_t rank, numRanks;
  const StageAnalysis &analysis;
  PipelineOp pipeline;
  MeshOp mesh;
  Uniformity &uniformity;
  OpBuilder builder;
  const TensorBuilder &tensors;
  IRMapping mapping;
  /// By rank: the values received from it, and sent to it.
  SmallVector<size_t> numReceived, numSent;
  /// By rank: what was sent to it and isn't waited for yet, with the step in
  /// which it is received.
  SmallVector<SmallVector<std::pair<Value, int64_t>>> pending;
};

/// A step has two passes for each of its batches, each a copy of the model.
constexpr int64_t kMaxPasses = int64_t(1) << 20;
/// Every stage has each pass.
constexpr int64_t kMaxStagePasses = int64_t(1) << 23;

struct CutStages : tp::impl::CutStagesBase<CutStages> {
  void runOnOperation() override {
    PipelineOp pipeline = getPipeline(getOperation());
    if (!pipeline)
      return;
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    auto functions = getPrograms(getOperation());
    if (failed(functions))
      return signalPassFailure();
    // The first query analyses the programs as they are now.
    Uniformity uniformity(getOperation(), *mesh);
    for (ArrayRef<func::FuncOp> programs : *functions)
      for (Value value : func::FuncOp(programs.front()).getArguments())
        (void)uniformity.isUniform(value);
    for (ArrayRef<func::FuncOp> programs : *functions) {
      func::FuncOp first = programs.front();
      if (first.isPublic() &&
          failed(cut(programs, pipeline, *mesh, uniformity)))
        return signalPassFailure();
    }
  }

  /// `programs` are those of one function.
  LogicalResult cut(ArrayRef<func::FuncOp> programs, PipelineOp pipeline,
                    MeshOp mesh, Uniformity &uniformity) {
    auto axis = AxisRefAttr::get(&getContext(), pipeline.getAxis());
    int64_t numIndices = mesh.getAxisSize(axis);
    SymbolTable symbols(getOperation());
    Builder b(&getContext());
    // By index: the function whose copies are for the other ranks.
    SmallVector<func::FuncOp> first(numIndices);
    for (func::FuncOp whole : programs) {
      if (!whole.getBody().hasOneBlock())
        return whole.emitError(
            "only functions of one block can be cut into stages");
      if (whole->hasAttr(kStageAttr))
        return whole.emitError("is the program of a stage already");
      if (failed(check(whole, axis.getName(), pipeline.getNumStages(mesh))))
        return failure();
      StageAnalysis analysis(whole, pipeline, mesh);
      if (!analysis.isValid())
        return pipeline.emitError("schedule '")
               << pipeline.getSchedule()
               << "' makes the ranks wait for each other forever";
      SmallVector<int64_t> ranks = getRanksOf(whole, mesh.getNumRanks());
      SmallVector<func::FuncOp> stages;
      for (int64_t index = 0; index < numIndices; ++index) {
        auto program = cast<func::FuncOp>(whole->cloneWithoutRegions());
        SmallVector<int64_t> own;
        for (int64_t rank : ranks)
          if (mesh.getIndexAlong(rank, axis) == index)
            own.push_back(rank);
        if (own.empty()) {
          program.erase();
          return whole.emitError()
                 << "no rank that runs this program is at index " << index
                 << " of '" << axis.getName()
                 << "'; a pipeline's mesh dimension can't split values";
        }
        program->setAttr(kRanksAttr, b.getDenseI64ArrayAttr(own));
        program->setAttr(kStageAttr, b.getI64IntegerAttr(index));
        if (index > 0) {
          program->removeAttr(kRedistributionsAttr);
          program.setSymName(
              (whole.getSymName() + "_stage" + Twine(index)).str());
          symbols.insert(program,
                         std::next(Block::iterator(
                             stages.size() > 1 ? stages.back() : whole)));
          if (whole == programs.front())
            program->setAttr(kStageOfAttr, FlatSymbolRefAttr::get(whole));
          else
            program->setAttr(kCopyOfAttr, FlatSymbolRefAttr::get(first[index]));
        } else {
          getOperation().getBody()->getOperations().insert(
              std::next(Block::iterator(whole)), program);
        }
        if (!first[index])
          first[index] = program;
        stages.push_back(program);
        StageBuilder(program, whole, index, numIndices, analysis, pipeline,
                     mesh, uniformity)
            .build();
        numTransfers += getNumSent(program);
      }
      // The first stage's program takes the place of the function.
      whole->setAttrs(stages.front()->getAttrs());
      whole.getBody().takeBody(stages.front().getBody());
      stages.front().erase();
      if (first.front() == stages.front())
        first.front() = whole;
    }
    return success();
  }

  /// Whether `attr` names mesh dimension `axis`.
  static bool names(Attribute attr, StringRef axis) {
    bool found = false;
    attr.walk([&](AxisRefAttr ref) { found |= ref.getName() == axis; });
    return found;
  }

  /// Whether the ops of `program` can be given to the stages that the ranks
  /// along `axis` run.
  static LogicalResult check(func::FuncOp program, StringRef axis,
                             int64_t numStages) {
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      if (ShardingAttr sharding = getArgSharding(program, i);
          sharding && names(sharding, axis))
        return program.emitError("argument ")
               << i << " is split over '" << axis
               << "', but the ranks along it run the stages of the pipeline";
    WalkResult walked = program.getBody().walk([&](Operation *op) {
      for (NamedAttribute attr : op->getAttrs())
        if (names(attr.getValue(), axis)) {
          op->emitError("'") << op->getName() << "' is over '" << axis
                             << "', but the ranks along it run the stages of "
                                "the pipeline";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    int64_t numPasses = 1;
    for (Operation &op : program.getBody().front().without_terminator()) {
      if (op.getNumResults() == 0 && !isa<AssignOpInterface>(op))
        return op.emitError("'") << op.getName()
                                 << "' has no results, so no stage of the "
                                    "pipeline needs it";
      auto stage = op.getAttrOfType<IntegerAttr>(kStageAttr);
      if (stage && stage.getInt() >= numStages)
        return op.emitError("belongs to stage ")
               << stage.getInt() << ", but the pipeline has " << numStages
               << " stages";
      auto pass = op.getAttrOfType<IntegerAttr>(kPassAttr);
      if (pass && (pass.getInt() < 0 || pass.getInt() >= kMaxPasses))
        return op.emitError("belongs to pass ")
               << pass.getInt() << ", and passes are numbered from 0 to "
               << kMaxPasses - 1;
      if (pass)
        numPasses = std::max(numPasses, pass.getInt() + 1);
    }
    if (numStages > kMaxStagePasses / numPasses)
      return program.emitError("has ")
             << numPasses << " passes over " << numStages << " stages; at most "
             << kMaxStagePasses << " passes of stages are supported";
    return success();
  }

  static int64_t getNumSent(func::FuncOp program) {
    int64_t count = 0;
    program.walk([&](TransferOp op) { count += op.isSent(); });
    return count;
  }
};

} // namespace
