//===- VerifyCollectives.cpp - Order of collectives on all ranks ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that issue the same collectives in the same order can't wait for each
// other forever. Here that is proven from the text of the programs:
//
// - Within a program, collectives run in program order, except where regions
//   repeat or are chosen. A region with collectives may do so only if the
//   values that control it are the same on all ranks (Uniformity.h): then all
//   of them run it equally often, and at the same time.
// - Walked side by side, the programs of different ranks have the same
//   collectives, over the same group and with the same fields, in regions of
//   the same ops. A call counts as the body of its callee.
//
// By induction over the structure, all ranks then issue the same sequence,
// whatever the data.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_VERIFYCOLLECTIVES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

constexpr StringLiteral kWhy = "the ranks would wait for each other forever";

/// A step that all ranks must take: a collective, or an op whose regions or
/// callee issue collectives.
struct Step {
  Operation *op;
  /// The steps of each region, or of the callee.
  std::vector<std::vector<Step>> inner;

  bool isCollective() const { return isa<CollectiveOpInterface>(op); }
};

class CollectivesVerifier {
public:
  CollectivesVerifier(ModuleOp module, MeshOp mesh)
      : uniformity(module, mesh) {}

  LogicalResult verify(ArrayRef<func::FuncOp> programs) {
    std::vector<std::vector<Step>> steps;
    for (func::FuncOp program : programs) {
      active = {program};
      if (failed(collect(program.getBody(), program, steps.emplace_back())))
        return failure();
    }
    for (auto [program, list] :
         llvm::zip(programs.drop_front(), ArrayRef(steps).drop_front()))
      if (failed(compare(steps.front(), programs.front(), list, program)))
        return failure();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // One program
  //===--------------------------------------------------------------------===//

  LogicalResult collect(Region &region, func::FuncOp program,
                        std::vector<Step> &steps) {
    for (Block &block : region)
      for (Operation &op : block)
        if (failed(collect(&op, program, steps)))
          return failure();
    if (!steps.empty() && !region.hasOneBlock()) {
      InFlightDiagnostic diagnostic = region.getParentOp()->emitError(
          "can't prove that all ranks issue the "
          "same collectives where control flows "
          "between blocks");
      diagnostic.attachNote(steps.front().op->getLoc())
          << "this collective is in one of them";
      return diagnostic;
    }
    return success();
  }

  LogicalResult collect(Operation *op, func::FuncOp program,
                        std::vector<Step> &steps) {
    if (isa<CollectiveOpInterface>(op)) {
      steps.push_back({op, {}});
      return success();
    }
    if (auto start = dyn_cast<StartOp>(op)) {
      steps.push_back({start.getCollective(), {}});
      return success();
    }
    if (isa<CallOpInterface>(op))
      return collectCall(op, steps);
    Step step{op, {}};
    for (Region &region : op->getRegions())
      if (failed(collect(region, program, step.inner.emplace_back())))
        return failure();
    auto holding = llvm::find_if(
        step.inner, [](const auto &list) { return !list.empty(); });
    if (holding == step.inner.end())
      return success();
    if (failed(checkControl(op, holding->front().op)))
      return failure();
    steps.push_back(std::move(step));
    return success();
  }

  LogicalResult collectCall(Operation *op, std::vector<Step> &steps) {
    auto callee = dyn_cast_or_null<func::FuncOp>(
        cast<CallOpInterface>(op).resolveCallableInTable(&tables));
    if (!callee || callee.isExternal())
      return success();
    if (llvm::is_contained(active, callee)) {
      if (getCollectives(callee).empty())
        return success();
      InFlightDiagnostic diagnostic = op->emitError(
          "can't prove how often a function that calls itself issues its "
          "collectives");
      diagnostic.attachNote(getCollectives(callee).front().getLoc())
          << "this is one of them";
      return diagnostic;
    }
    Step step{op, {}};
    active.push_back(callee);
    LogicalResult result =
        collect(callee.getBody(), callee, step.inner.emplace_back());
    active.pop_back();
    if (failed(result))
      return failure();
    if (!step.inner.front().empty())
      steps.push_back(std::move(step));
    return success();
  }

  /// Whether all ranks run the regions of `op`, which hold `collective`, alike.
  LogicalResult checkControl(Operation *op, Operation *collective) {
    auto refuse = [&](const Twine &why) {
      InFlightDiagnostic diagnostic = op->emitError() << why << "; " << kWhy;
      diagnostic.attachNote(collective->getLoc())
          << "'" << collective->getName() << "' is issued in it";
      return diagnostic;
    };
    if (!isa<RegionBranchOpInterface>(op) ||
        op->hasTrait<OpTrait::HasParallelRegion>())
      return refuse("'" + op->getName().getStringRef() +
                    "' doesn't say in which order, and how often, its regions "
                    "run, but issues collectives");
    for (Value value : getControlOperands(op)) {
      if (uniformity.isUniform(value))
        continue;
      InFlightDiagnostic diagnostic =
          refuse("what '" + op->getName().getStringRef() +
                 "' decides by may differ between ranks along " +
                 llvm::join(llvm::map_range(uniformity.getVaryingAxes(value),
                                            [](StringRef name) {
                                              return ("'" + name + "'").str();
                                            }),
                            ", "));
      diagnostic.attachNote(value.getLoc()) << "this is what it decides by";
      return diagnostic;
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Two programs
  //===--------------------------------------------------------------------===//

  LogicalResult compare(ArrayRef<Step> first, func::FuncOp firstProgram,
                        ArrayRef<Step> other, func::FuncOp otherProgram) {
    for (auto [a, b] : llvm::zip(first, other))
      if (failed(compare(a, firstProgram, b, otherProgram)))
        return failure();
    if (first.size() == other.size())
      return success();
    if (first.size() > other.size()) {
      std::swap(first, other);
      std::swap(firstProgram, otherProgram);
    }
    InFlightDiagnostic diagnostic = other[first.size()].op->emitError("'")
                                    << other[first.size()].op->getName()
                                    << "' of '@" << otherProgram.getName()
                                    << "' meets nothing in '@"
                                    << firstProgram.getName() << "'; " << kWhy;
    if (!first.empty())
      diagnostic.attachNote(first.back().op->getLoc())
          << "this is the last one there";
    return diagnostic;
  }

  LogicalResult compare(const Step &first, func::FuncOp firstProgram,
                        const Step &other, func::FuncOp otherProgram) {
    std::string difference;
    llvm::raw_string_ostream os(difference);
    if (first.op->getName() != other.op->getName()) {
      os << "'" << other.op->getName() << "' of '@" << otherProgram.getName()
         << "' meets '" << first.op->getName() << "' of '@"
         << firstProgram.getName() << "'";
    } else if (first.isCollective()) {
      DictionaryAttr found = getMeaning(other.op),
                     required = getMeaning(first.op);
      for (NamedAttribute entry : found)
        if (difference.empty() &&
            required.get(entry.getName()) != entry.getValue())
          os << "'" << other.op->getName() << "' has "
             << entry.getName().getValue() << " " << entry.getValue()
             << " in '@" << otherProgram.getName() << "' and "
             << required.get(entry.getName()) << " in '@"
             << firstProgram.getName() << "'";
    }
    if (!difference.empty()) {
      InFlightDiagnostic diagnostic = other.op->emitError()
                                      << difference << "; " << kWhy;
      diagnostic.attachNote(first.op->getLoc()) << "the other one is here";
      return diagnostic;
    }
    if (!first.inner.empty() && !isa<CallOpInterface>(first.op) &&
        failed(compareControl(first.op, other.op)))
      return failure();
    for (auto [a, b] : llvm::zip(first.inner, other.inner))
      if (failed(compare(a, firstProgram, b, otherProgram)))
        return failure();
    return success();
  }

  /// Whether the same computations control two ops of the same name.
  LogicalResult compareControl(Operation *first, Operation *other) {
    SmallVector<Value> required = getControlOperands(first);
    SmallVector<Value> found = getControlOperands(other);
    for (auto [a, b] : llvm::zip(required, found)) {
      if (isSameComputation(a, b))
        continue;
      InFlightDiagnostic diagnostic =
          other->emitError("what '")
          << other->getName()
          << "' decides by is computed in another way by other ranks; " << kWhy;
      diagnostic.attachNote(a.getLoc()) << "by this there";
      diagnostic.attachNote(b.getLoc()) << "and by this here";
      return diagnostic;
    }
    return success();
  }

  /// Whether values of two programs are computed by the same ops from the same
  /// arguments. Shapes may differ.
  bool isSameComputation(Value a, Value b) {
    auto [it, isNew] = same.try_emplace({a, b}, true);
    if (!isNew)
      return it->second;
    bool result = [&] {
      if (auto x = dyn_cast<BlockArgument>(a)) {
        auto y = dyn_cast<BlockArgument>(b);
        return y && x.getArgNumber() == y.getArgNumber() &&
               x.getOwner()->getParentOp()->getName() ==
                   y.getOwner()->getParentOp()->getName();
      }
      Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
      return y &&
             cast<OpResult>(a).getResultNumber() ==
                 cast<OpResult>(b).getResultNumber() &&
             isSameOp(x, y);
    }();
    return same[{a, b}] = result;
  }

  bool isSameOp(Operation *x, Operation *y) {
    SmallVector<Operation *> xs, ys;
    x->walk([&](Operation *op) { xs.push_back(op); });
    y->walk([&](Operation *op) { ys.push_back(op); });
    return llvm::equal(xs, ys, [&](Operation *p, Operation *q) {
      return p->getName() == q->getName() && getMeaning(p) == getMeaning(q) &&
             llvm::equal(
                 p->getOperands(), q->getOperands(),
                 [&](Value v, Value w) { return isSameComputation(v, w); });
    });
  }

  Uniformity uniformity;
  DenseMap<std::pair<Value, Value>, bool> same;
  SymbolTableCollection tables;
  /// The functions that are being walked, callers first.
  SmallVector<func::FuncOp> active;
};

struct VerifyCollectives : tp::impl::VerifyCollectivesBase<VerifyCollectives> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    if (*mesh) {
      auto functions = getPrograms(getOperation());
      if (failed(functions))
        return signalPassFailure();
      CollectivesVerifier verifier(getOperation(), *mesh);
      for (ArrayRef<func::FuncOp> programs : *functions) {
        if (failed(verifier.verify(programs)))
          return signalPassFailure();
        numProven += getCollectives(programs.front()).size();
      }
      if (failed(verifyStages(*functions, *mesh)))
        return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  /// Whether the stages of each pipeline get to their ends.
  LogicalResult verifyStages(ArrayRef<SmallVector<func::FuncOp>> functions,
                             MeshOp mesh) {
    PipelineOp pipeline = getPipeline(getOperation());
    for (auto &[name, programs] : joinStages(functions)) {
      func::FuncOp first = programs.front();
      if (!first->hasAttr(kStageAttr)) {
        if (failed(refuseTransfers(programs)))
          return failure();
        continue;
      }
      if (!pipeline)
        return first.emitError(
            "is a stage of a pipeline, but there is no 'tp.pipeline'");
      auto byRank = getProgramsByRank(programs, mesh.getNumRanks());
      if (failed(byRank) || failed(verifyTransfers(*byRank, mesh, pipeline)))
        return failure();
    }
    return success();
  }

  static LogicalResult refuseTransfers(ArrayRef<func::FuncOp> programs) {
    for (func::FuncOp program : programs)
      for (CollectiveOpInterface op : getCollectives(program))
        if (isa<TransferOp>(op))
          return op.emitError("is in a program that isn't a stage's: it needs "
                              "'tp.stage'");
    return success();
  }
};

} // namespace
