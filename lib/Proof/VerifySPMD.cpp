//===- VerifySPMD.cpp - Proof of per-rank programs ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuseStages.h"
#include "ProgramForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Proof/Passes.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Training/Passes.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ManagedStatic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::tp {
#define GEN_PASS_DEF_VERIFYSPMD
#include "tp/Proof/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// Inlines calls, except of functions that are recursive or have several
/// blocks.
static void inlineCalls(func::FuncOp function) {
  constexpr int kMaxDepth = 64;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) { calls.push_back(call); });
    bool changed = false;
    for (func::CallOp call : calls) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!callee || callee == function || callee.isExternal() ||
          !callee.getBody().hasOneBlock())
        continue;
      OpBuilder builder(call);
      IRMapping mapping;
      Block &body = callee.getBody().front();
      mapping.map(body.getArguments(), call.getOperands());
      for (Operation &op : body.without_terminator())
        builder.clone(op, mapping);
      for (auto [result, value] : llvm::zip_equal(
               call.getResults(), body.getTerminator()->getOperands()))
        result.replaceAllUsesWith(mapping.lookupOrDefault(value));
      call.erase();
      changed = true;
    }
    if (!changed)
      return;
  }
}

namespace {
struct ProofCLOptions {
  llvm::cl::opt<bool> acceptTested{
      "accept-tested",
      llvm::cl::desc("Accept programs that --tp-verify-spmd tests by execution "
                     "and can't prove")};
};
} // namespace

static llvm::ManagedStatic<ProofCLOptions> clOptions;

void tp::registerProofCLOptions() { *clOptions; }

namespace {
struct VerifySPMD : tp::impl::VerifySPMDBase<VerifySPMD> {
  using VerifySPMDBase::VerifySPMDBase;

  bool acceptsTested() const {
    return acceptTested ||
           (clOptions.isConstructed() && clOptions->acceptTested);
  }

  void runOnOperation() override {
    // Treat an asynchronous collective as done at its start: its operand can't
    // change later.
    OwningOpRef<ModuleOp> copy(getOperation().clone());
    PassManager pm(&getContext());
    pm.addPass(createLowerStartWait());
    if (failed(pm.run(*copy)))
      return signalPassFailure();
    ModuleOp module = *copy;
    FailureOr<MeshOp> mesh =
        getMesh(module, ": declare the mesh that the programs run on");
    if (failed(mesh))
      return signalPassFailure();
    auto functions = getPrograms(module);
    if (failed(functions))
      return signalPassFailure();
    if (reference.empty()) {
      module.emitError("no reference to prove the programs against; "
                       "'reference' is the path of the model");
      return signalPassFailure();
    }
    llvm::SourceMgr sources;
    OwningOpRef<ModuleOp> model;
    auto file = readInput(reference);
    if (!file) {
      module.emitError() << "can't read the reference '" << reference
                         << "': " << llvm::toString(file.takeError());
      return signalPassFailure();
    }
    sources.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
    model = parseSourceFile<ModuleOp>(sources, &getContext());
    if (!model) {
      module.emitError() << "can't read the reference '" << reference << "'";
      return signalPassFailure();
    }
    std::vector<OwningOpRef<ModuleOp>> forms;
    auto marked = markSplitLosses(*model, train);
    forms.push_back(std::move(model));
    if (marked)
      forms.push_back(std::move(marked));
    auto first = llvm::map_to_vector(
        *functions, [](const auto &programs) { return programs.front(); });
    for (size_t i = 0, end = forms.size(); i < end; ++i)
      for (auto &form : divideExperts(*forms[i], *mesh, first, train))
        forms.push_back(std::move(form));
    for (size_t i = 0, end = forms.size(); i < end; ++i)
      for (auto &form : setContextMethods(*forms[i], train))
        forms.push_back(std::move(form));
    for (auto &form : forms) {
      if (failed(buildStep(*form, *mesh, getPipeline(module), *functions)))
        return signalPassFailure();
      inlineModules(*form);
      // Stopped gradients don't affect a program's values.
      dropGradientForms(*form);
    }
    dropGradientForms(module);
    bool proven = succeeded(checkComplete(module, *forms.front()));
    for (auto &[name, programs] : joinStages(*functions))
      proven &= succeeded(programs.front()->hasAttr(kStageAttr)
                              ? verifyStages(name, programs, *mesh, forms)
                              : verify(programs, *mesh, forms));
    if (failed(writeReport()) || !proven)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  /// Turns `model` into its training step, and lets it compute the microbatches
  /// of `pipeline`, which may be null. The batch that an example belongs to
  /// depends on the rank that has it. So the step is built for arguments with
  /// the programs' placements.
  LogicalResult buildStep(ModuleOp model, MeshOp mesh, PipelineOp pipeline,
                          ArrayRef<SmallVector<func::FuncOp>> functions) {
    if (train.empty() && !pipeline)
      return success();
    MeshOp added;
    if (!model.lookupSymbol(mesh.getSymName()))
      added = cast<MeshOp>(
          OpBuilder::atBlockBegin(model.getBody()).clone(*mesh.getOperation()));
    for (ArrayRef<func::FuncOp> programs : functions) {
      func::FuncOp first = programs.front();
      if (auto function = model.lookupSymbol<func::FuncOp>(first.getSymName()))
        placeArguments(function, first);
    }
    PipelineOp own;
    if (pipeline)
      own = cast<PipelineOp>(OpBuilder::atBlockEnd(model.getBody())
                                 .clone(*pipeline.getOperation()));
    PassManager passes(&getContext());
    if (train.empty())
      passes.addPass(createSplitBatch());
    else
      passes.addPass(createGrad({train, /*inputs=*/false}));
    if (failed(passes.run(model)))
      return failure();
    // Neither does when and where an op runs.
    if (own) {
      own.erase();
      model.walk([](Operation *op) { op->removeAttr(kPassAttr); });
    }
    // From here on, the placements don't affect what is computed.
    for (auto function : model.getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        function.removeArgAttr(i, kShardingAttr);
        function.removeArgAttr(i, kBatchAttr);
        function.removeArgAttr(i, kSequenceAttr);
      }
    if (added)
      added.erase();
    return success();
  }

  /// Places arguments of `function` as in `program`. A split dimension that is
  /// larger in `program` is the batch.
  static void placeArguments(func::FuncOp function, func::FuncOp program) {
    unsigned count =
        std::min(function.getNumArguments(), program.getNumArguments());
    for (unsigned i = 0; i < count; ++i) {
      auto type = dyn_cast<ShapedType>(function.getArgumentTypes()[i]);
      auto whole = program.getArgAttrOfType<TypeAttr>(i, kGlobalTypeAttr);
      ShardingAttr sharding = getArgSharding(program, i);
      if (!type || !whole || !sharding)
        continue;
      function.setArgAttr(i, kShardingAttr, sharding);
      auto shape = cast<ShapedType>(whole.getValue()).getShape();
      for (auto [dim, sizes] :
           llvm::enumerate(llvm::zip(type.getShape(), shape))) {
        AxisListAttr axes = sharding.getDims()[dim];
        if (std::get<0>(sizes) == std::get<1>(sizes) || axes.empty())
          continue;
        SmallVector<Attribute> names;
        for (AxisRefAttr axis : axes.getAxes())
          names.push_back(
              StringAttr::get(function.getContext(), axis.getName()));
        function.setArgAttr(i, kBatchAttr,
                            ArrayAttr::get(function.getContext(), names));
      }
    }
  }

  /// Proves what each stage of a pipeline returns and assigns. `programs` are
  /// those of all stages.
  LogicalResult verifyStages(StringAttr name, ArrayRef<func::FuncOp> programs,
                             MeshOp mesh,
                             ArrayRef<OwningOpRef<ModuleOp>> forms) {
    func::FuncOp first = programs.front();
    auto module = first->getParentOfType<ModuleOp>();
    PipelineOp pipeline = getPipeline(module);
    if (!pipeline)
      return first.emitError(
          "is a stage of a pipeline, but there is no 'tp.pipeline'");
    first.setSymName((name.getValue() + "_stage0").str());
    int64_t numStages =
        mesh.getAxisSize(AxisRefAttr::get(&getContext(), pipeline.getAxis()));
    bool proven = true;
    for (int64_t stage = 0; stage < numStages; ++stage) {
      auto fused = fuseStages(programs, name, mesh, pipeline, stage);
      if (failed(fused))
        return failure();
      std::vector<OwningOpRef<ModuleOp>> own;
      for (const auto &form : forms)
        own.emplace_back(ModuleOp(form.get()).clone());
      proven &= succeeded(verify(*fused, mesh, own));
      for (func::FuncOp function : *fused)
        function.erase();
    }
    return success(proven);
  }

  /// `functions` are the programs of one of the model's functions; the first of
  /// `forms` is the model as it was written.
  LogicalResult verify(ArrayRef<func::FuncOp> functions, MeshOp mesh,
                       ArrayRef<OwningOpRef<ModuleOp>> forms) {
    func::FuncOp first = functions.front();
    // A private function is proven as part of its callers.
    if (first.isPrivate())
      return success();
    auto find = [&](ModuleOp form) {
      return form.lookupSymbol<func::FuncOp>(first.getSymName());
    };
    func::FuncOp function = find(*forms.front());
    if (!function)
      return first.emitError()
             << "the reference has no function '" << first.getSymName() << "'";
    FailureOr<SmallVector<Program>> programs = getRanks(functions, mesh);
    if (failed(programs))
      return failure();
    // The values that a training step assigns are compared as results.
    SmallVector<Assignment> assigned = exposeAssignments(function);
    for (func::FuncOp each : functions)
      if (failed(checkAssigned(each, exposeAssignments(each), assigned)))
        return failure();
    for (func::FuncOp each :
         llvm::concat<const func::FuncOp>(functions, ArrayRef(function))) {
      if (each.isExternal() || !each.getBody().hasOneBlock())
        return each.emitError("only functions of one block can be proven");
      if (each.getNumArguments() != function.getNumArguments() ||
          each.getNumResults() != function.getNumResults()) {
        InFlightDiagnostic diag = each.emitError(
            "the program has other arguments or results than the "
            "reference");
        diag.attachNote(function.getLoc()) << "the reference is here";
        return diag;
      }
    }
    EquivalenceOptions options;
    for (const auto &form : ArrayRef(forms).drop_front()) {
      options.otherForms.push_back(find(*form));
      exposeAssignments(options.otherForms.back());
    }
    for (func::FuncOp each : llvm::concat<const func::FuncOp>(
             functions, ArrayRef(function), options.otherForms))
      inlineCalls(each);
    options.alwaysExecute = alwaysExecute;
    options.maxOperations = maxOperations;
    Equivalence result = checkEquivalence(function, *programs, mesh, options);
    functionReports.push_back(getJSON(function.getSymName(), result, mesh));
    return conclude(result, *programs, mesh);
  }

  /// Each public function of the reference must have programs.
  static LogicalResult checkComplete(ModuleOp programs, ModuleOp reference) {
    FailureOr<SmallVector<func::FuncOp>> roots = getRoots(reference);
    if (failed(roots))
      return failure();
    for (func::FuncOp root : *roots) {
      if (root.isPrivate())
        continue;
      auto own = programs.lookupSymbol<func::FuncOp>(root.getSymName());
      if (own && !own.isPrivate() && !own.isExternal())
        continue;
      InFlightDiagnostic diag =
          programs.emitError("no program computes function '")
          << root.getSymName() << "' of the reference";
      diag.attachNote(root.getLoc()) << "the reference is here";
      return diag;
    }
    return success();
  }

  /// A program must assign the same parameters as the reference.
  static LogicalResult checkAssigned(func::FuncOp program,
                                     ArrayRef<Assignment> found,
                                     ArrayRef<Assignment> expected) {
    auto find = [](ArrayRef<Assignment> all, StringAttr fqn) {
      return llvm::find_if(all, [=](const Assignment &assignment) {
        return assignment.fqn == fqn;
      });
    };
    for (const Assignment &assignment : expected) {
      auto own = find(found, assignment.fqn);
      if (own == found.end())
        return program.emitError("the program doesn't assign ")
               << assignment.fqn << ", but the reference does";
      if (own->init != assignment.init)
        return program.emitError("the program gives ")
               << assignment.fqn << " another initial value than the reference";
    }
    for (const Assignment &assignment : found)
      if (find(expected, assignment.fqn) == expected.end())
        return program.emitError("the program assigns ")
               << assignment.fqn << ", but the reference doesn't";
    return success();
  }

  static llvm::json::Object getJSON(StringRef name, const Equivalence &result,
                                    MeshOp mesh) {
    auto verdict = [&]() -> StringRef {
      switch (result.verdict) {
      case Verdict::Proven:
        return "proven";
      case Verdict::Tested:
        return "tested";
      case Verdict::Refuted:
        return "refuted";
      case Verdict::Unproven:
        return "unproven";
      }
      llvm_unreachable("unknown verdict");
    };
    llvm::json::Object executed;
    for (auto &[op, count] : countExecuted(result))
      executed[op] = count;
    llvm::json::Object object{{"function", name},
                              {"ranks", mesh.getNumRanks()},
                              {"verdict", verdict()},
                              {"ops_by_rule", result.numByRule},
                              {"helper_ops", result.numHelpers},
                              {"movements", result.numMovements},
                              {"inputs", result.numInputs},
                              {"ops_left_to_execution", std::move(executed)},
                              {"executed_operations", result.numOperations}};
    if (result.mismatch) {
      object["not_proven"] = llvm::json::Object{
          {"op", result.mismatch->op->getName().getStringRef()},
          {"fqn", getFqn(result.mismatch->op)},
          {"reason", result.mismatch->reason}};
    }
    if (result.difference && result.verdict == Verdict::Refuted) {
      llvm::json::Object values;
      for (const auto &[input, value] : result.inputs)
        values[input] = value;
      object["counter_example"] = llvm::json::Object{
          {"rank", result.difference->rank},
          {"result", *result.result},
          {"element", llvm::json::Array(result.difference->local)},
          {"of_whole", llvm::json::Array(result.difference->global)},
          {"found", result.difference->found},
          {"expected", result.difference->expected},
          {"inputs", std::move(values)}};
    }
    return object;
  }

  /// The number of ops of each name that are left to execution, in the order of
  /// the ops.
  static llvm::MapVector<StringRef, int64_t>
  countExecuted(const Equivalence &result) {
    llvm::MapVector<StringRef, int64_t> count;
    for (Operation *op : result.executed)
      ++count[op->getName().getStringRef()];
    return count;
  }

  LogicalResult writeReport() {
    if (report.empty())
      return success();
    llvm::json::Object all{{"schema", 1},
                           {"functions", std::move(functionReports)}};
    std::string json =
        llvm::formatv("{0:2}\n", llvm::json::Value(std::move(all)));
    llvm::Error error = writeFile(report, json);
    if (!error)
      return success();
    return getOperation().emitError() << llvm::toString(std::move(error));
  }

  LogicalResult conclude(const Equivalence &result, ArrayRef<Program> programs,
                         MeshOp mesh) {
    func::FuncOp first = programs.front().function;
    // Diagnostics show the source line; a module's is short, a function's
    // isn't.
    Operation *module = first->getParentOp();
    if (result.verdict == Verdict::Proven) {
      module->emitRemark() << "'" << first.getSymName() << "' is proven for "
                           << mesh.getNumRanks()
                           << " ranks: " << result.numByRule << " ops by rule ("
                           << result.numHelpers << " more as parts of them), "
                           << result.numMovements
                           << " movements by block algebra";
    } else if (result.verdict == Verdict::Tested) {
      InFlightDiagnostic diag =
          describe(acceptsTested() ? result.mismatch->op->emitRemark()
                                   : result.mismatch->op->emitError(),
                   *result.mismatch, programs);
      diag << "; tested instead: '" << first.getSymName() << "' gives what the "
           << "reference gives on " << result.numInputs << " inputs, with "
           << result.executed.size() << " ops left to execution (";
      llvm::interleaveComma(countExecuted(result), diag, [&](auto &each) {
        diag << each.second << " " << each.first;
      });
      diag << ")";
      if (acceptsTested())
        return success();
      diag.attachNote(first.getLoc())
          << "'accept-tested' accepts programs that are only tested";
      return diag;
    } else {
      return reportFailure(result, programs);
    }
    if (!result.reason.empty())
      mlir::emitWarning(result.at.value_or(module->getLoc()))
          << "the programs can't be executed: " << result.reason;
    if (result.numOperations)
      module->emitRemark()
          << "'" << first.getSymName() << "' is executed for "
          << mesh.getNumRanks() << " ranks on " << result.numInputs
          << " inputs, in " << result.numOperations
          << " scalar operations: all results are the blocks of the "
             "reference's";
    return success();
  }

  LogicalResult reportFailure(const Equivalence &result,
                              ArrayRef<Program> programs) {
    func::FuncOp first = programs.front().function;
    const Mismatch &mismatch = *result.mismatch;
    InFlightDiagnostic diag =
        describe(mismatch.op->emitError(), mismatch, programs);
    if (mismatch.referenceAt)
      diag.attachNote(*mismatch.referenceAt)
          << "the reference computes this here";
    if (result.verdict == Verdict::Unproven) {
      if (!result.reason.empty())
        diag.attachNote(result.at.value_or(first.getLoc()))
            << "nor can the programs be tested: " << result.reason;
      return diag;
    }
    auto attach = [&](Operation *at, const Twine &what,
                      const Difference &difference) {
      Diagnostic &note = diag.attachNote(at->getLoc());
      note << "refuted by execution: on rank " << difference.rank;
      if (difference.global.empty()) {
        note << ", " << what << " has another shape than the block";
        return;
      }
      note << ", element [";
      llvm::interleaveComma(difference.local, note);
      note << "] of " << what << " isn't element [";
      llvm::interleaveComma(difference.global, note);
      note << "] of what the reference computes: it is " << difference.found
           << ", not " << difference.expected;
    };
    if (result.differenceAtOp)
      attach(mismatch.op, "this op's result", *result.differenceAtOp);
    if (result.difference)
      attach(first.getBody().front().getTerminator(),
             "result " + Twine(*result.result), *result.difference);
    else
      diag.attachNote(result.at.value_or(first.getLoc()))
          << "refuted by execution: " << result.reason;
    if (!result.inputs.empty()) {
      Diagnostic &note = diag.attachNote(first.getLoc());
      note << "with these inputs: ";
      llvm::interleaveComma(result.inputs, note, [&](auto &each) {
        note << each.first << " = " << each.second;
      });
    }
    return diag;
  }

  InFlightDiagnostic describe(InFlightDiagnostic diag, const Mismatch &mismatch,
                              ArrayRef<Program> programs) {
    diag << "not proven";
    if (StringRef fqn = getFqn(mismatch.op); !fqn.empty())
      diag << ", of '" << fqn << "'";
    if (programs.size() > 1) {
      diag << ", for ranks ";
      llvm::interleaveComma(programs[mismatch.program].ranks, diag);
    }
    return std::move(diag) << ": " << mismatch.reason;
  }

  llvm::json::Array functionReports;
};
} // namespace
