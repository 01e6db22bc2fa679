//===- VerifySPMD.cpp - Prove per-rank programs against their model -------===//

#include "ExactCheck.h"
#include "ProgramMatcher.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Proof/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/SourceMgr.h"

namespace mlir::tp {
#define GEN_PASS_DEF_VERIFYSPMD
#include "tp/Proof/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {
struct VerifySPMD : tp::impl::VerifySPMDBase<VerifySPMD> {
  using VerifySPMDBase::VerifySPMDBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> mesh = getMesh(module);
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh) {
      module.emitError("no tp.mesh that the programs would run on");
      return signalPassFailure();
    }
    if (reference.empty()) {
      module.emitError("no reference to prove the programs against; "
                       "'reference' is the path of the model");
      return signalPassFailure();
    }
    llvm::SourceMgr sources;
    OwningOpRef<ModuleOp> model =
        parseSourceFile<ModuleOp>(reference, sources, &getContext());
    if (!model) {
      module.emitError() << "can't read the reference '" << reference << "'";
      return signalPassFailure();
    }
    inlineModules(*model);
    bool proven = true;
    for (ArrayRef<func::FuncOp> functions : getPrograms(module))
      proven &= succeeded(verify(functions, *mesh, *model));
    if (!proven)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  /// `functions` are the programs of one of the model's functions.
  LogicalResult verify(ArrayRef<func::FuncOp> functions, MeshOp mesh,
                       ModuleOp model) {
    func::FuncOp first = functions.front();
    auto function = model.lookupSymbol<func::FuncOp>(first.getSymName());
    if (!function)
      return first.emitError()
             << "the reference has no function '" << first.getSymName() << "'";
    FailureOr<SmallVector<Program>> programs = getRanks(functions, mesh);
    if (failed(programs))
      return failure();
    for (func::FuncOp each :
         llvm::concat<const func::FuncOp>(functions, ArrayRef(function))) {
      if (each.isExternal() || !each.getBody().hasOneBlock())
        return each.emitError("only functions of one block can be proven");
      if (each.getNumArguments() != function.getNumArguments() ||
          each.getNumResults() != function.getNumResults()) {
        InFlightDiagnostic diag =
            each.emitError("has other arguments or results than the reference");
        diag.attachNote(function.getLoc()) << "the reference is here";
        return diag;
      }
    }
    ReferenceGraph graph(function);
    ProgramMatcher matcher(graph, *programs, mesh);
    std::optional<Mismatch> mismatch = matcher.run();
    if (mismatch)
      return execute(*mismatch, function, *programs, mesh);
    // The module's line is short, a function's is not.
    first->getParentOp()->emitRemark()
        << "'" << first.getSymName() << "' is proven for " << mesh.getNumRanks()
        << " ranks: " << matcher.numByRule << " ops by rule ("
        << matcher.numHelpers << " more as parts of them), "
        << matcher.numMovements << " movements by block algebra";
    return success();
  }

  /// What the rules don't prove is run over exact integers.
  LogicalResult execute(const Mismatch &mismatch, func::FuncOp function,
                        ArrayRef<Program> programs, MeshOp mesh) {
    func::FuncOp first = programs.front().function;
    ExactCheck check(function, programs, mesh, maxOperations);
    auto outcome = maxOperations && !mismatch.isInterface
                       ? check.run()
                       : ExactCheck::Outcome::NotExecuted;
    if (outcome == ExactCheck::Outcome::Equal) {
      describe(mismatch.op->emitRemark(), mismatch, programs)
          << "; executed instead";
      first->getParentOp()->emitRemark()
          << "'" << first.getSymName() << "' is executed for "
          << mesh.getNumRanks() << " ranks over exact integers, in "
          << check.getNumOperations()
          << " scalar operations: all results are the blocks of the "
             "reference's";
      return success();
    }
    InFlightDiagnostic diag =
        describe(mismatch.op->emitError(), mismatch, programs);
    if (mismatch.reference)
      diag.attachNote(mismatch.reference->getLoc())
          << "the reference computes this here";
    if (mismatch.isInterface || !maxOperations)
      return diag;
    if (outcome == ExactCheck::Outcome::NotExecuted) {
      diag.attachNote(check.at ? check.at->getLoc() : first.getLoc())
          << "nor can the programs be executed over exact integers: "
          << check.reason;
      return diag;
    }
    if (check.what.empty()) {
      diag.attachNote(check.at->getLoc())
          << "executed over exact integers: " << check.reason;
      return diag;
    }
    auto attach = [&](Operation *at, StringRef what,
                      const ExactCheck::Difference &difference) {
      Diagnostic &note = diag.attachNote(at->getLoc());
      note << "executed over exact integers: on rank " << difference.rank
           << ", element [";
      llvm::interleaveComma(difference.local, note);
      note << "] of " << what;
      if (difference.global.empty()) {
        note << " doesn't exist: the block has another shape";
        return;
      }
      note << " isn't element [";
      llvm::interleaveComma(difference.global, note);
      note << "] of what the reference computes";
    };
    if (mismatch.reference)
      if (auto wrong = check.findDifference(mismatch.op, mismatch.program,
                                            mismatch.reference))
        attach(mismatch.op, "this op's result", *wrong);
    attach(first, check.what, check.difference);
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

  /// Which ranks run which; each must run one.
  FailureOr<SmallVector<Program>> getRanks(ArrayRef<func::FuncOp> functions,
                                           MeshOp mesh) {
    SmallVector<Program> programs;
    std::vector<func::FuncOp> byRank(mesh.getNumRanks());
    for (func::FuncOp function : functions) {
      auto ranks = function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
      programs.push_back({function, {}});
      if (!ranks)
        programs.back().ranks = llvm::to_vector(llvm::seq(mesh.getNumRanks()));
      else
        llvm::append_range(programs.back().ranks, ranks.asArrayRef());
      if (programs.back().ranks.empty())
        return function.emitError("no rank runs this program");
      for (int64_t rank : programs.back().ranks) {
        if (rank < 0 || rank >= mesh.getNumRanks())
          return function.emitError()
                 << "rank " << rank << " isn't one of the mesh, which has "
                 << mesh.getNumRanks();
        if (byRank[rank])
          return function.emitError()
                 << "rank " << rank << " runs two programs";
        byRank[rank] = function;
      }
    }
    for (auto [rank, function] : llvm::enumerate(byRank))
      if (!function)
        return functions.front()->emitError()
               << "rank " << rank << " runs none of the programs";
    return programs;
  }
};
} // namespace
