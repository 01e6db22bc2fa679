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
  ];
  let dependentDialects = ["::mlir::nn::NNDialect", "::mlir::tp::TPDialect"];
}

#endif // TP_PROOF_PASSES_TD
