//===- Passes.td - the passes that prove -------------------*- tablegen -*-===//

#ifndef TP_PROOF_PASSES_TD
#define TP_PROOF_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifySPMD : Pass<"tp-verify-spmd", "::mlir::ModuleOp"> {
  let summary = "Prove that the ranks' programs compute what the model does";
  let description = [{
    Given per-rank IR and the model that it was made from, proves for all ranks that each
    result is the rank's block, as its `tp.sharding` says, of what the model computes.
  }];
  let options = [
    Option<"reference", "reference", "std::string", /*default=*/"\"\"",
           "Path of the model: Model IR, Annotated IR or Sharded IR">,
    Option<"alwaysExecute", "always-execute", "bool", /*default=*/"false",
           "Whether to execute what is proven as well, which checks the rules">,
    Option<"maxOperations", "max-operations", "int64_t",
           /*default=*/"1000000000",
           "How many scalar operations, of all ranks together, may be executed "
           "where the rules don't prove a program; 0: none, it fails">,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::nn::NNDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::tp::TPDialect", "::mlir::tprt::TPRTDialect"];
}

#endif // TP_PROOF_PASSES_TD
