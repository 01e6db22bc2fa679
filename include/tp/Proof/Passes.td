//===- Passes.td - Passes that prove -----------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PROOF_PASSES_TD
#define TP_PROOF_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifySPMD : Pass<"tp-verify-spmd", "::mlir::ModuleOp"> {
  let summary = "Prove that the ranks' programs compute what the model does";
  let description = [{
    Takes per-rank IR and the model that it was made from. Proves for all ranks that each result is
    the rank's block, as its `tp.sharding` says, of the model's result. [Proof](Proof.md) describes
    the rules, and what the proof trusts.

    - Block algebra follows data movement: which elements of which value each rank holds, in which
      order.
    - Each op is matched with an op of the model. That op's sharding rule gives the split, from the
      placements of the operands, and its partition hook gives the ops that each rank has to run.
    - If this doesn't prove a function, the model and all ranks are executed on inputs that are
      chosen around the programs' boundaries. `max-operations` limits the work.

    The verdict on a function is one of

    | | | exit code |
    |---|---|---|
    | proven | by rules and block algebra, for all inputs | 0 |
    | tested | not proven completely, but all results agree when executed on some inputs. The message says on how many, and which ops only execution checks | 0 with `accept-tested`, else 1 |
    | refuted | the message names a rank, an element and inputs for which the results differ | 1 |

    It is also an error if a function isn't proven and either can't be executed or has a part that
    no inputs test.

    With

    ```mlir
    // model.mlir
    tp.mesh @mesh(tp = 2)
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
      %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<6x8xf32>
      %b = nn.parameter "b" : tensor<6xf32>
      %0 = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
      %1 = nn.add %0, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
      return %1 : tensor<4x6xf32>
    }
    ```

    `tp-opt model.mlir --tp-parallelize -o ranks.mlir` and
    `tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir` say

    ```
    remark: 'main' is proven for 2 ranks: 4 ops by rule (0 more as parts of them), 2 movements by block algebra
    ```

    and, if the all-reduce were missing,

    ```
    ranks.mlir:10:10: error: not proven: for operands placed (Partial(sum)), (Replicate), the reference's op must be computed differently
    model.mlir:7:8: note: the reference computes this here
    ranks.mlir:10:10: note: refuted by execution: on rank 0, element [0, 0] of this op's result isn't element [0, 0] of what the reference computes: it is 1.74952431, not 0.575413126
    ```

    and the inputs that show it. The IR isn't changed.
  }];
  let options = [
    Option<"reference", "reference", "std::string", /*default=*/"\"\"",
           "Path of the model: Model IR, Annotated IR or Sharded IR">,
    Option<"train", "train", "std::string", /*default=*/"\"\"",
           "Path of the training file, if the programs are a training step of the reference">,
    Option<"alwaysExecute", "always-execute", "bool", /*default=*/"false",
           "Whether to execute programs that are proven, too, which checks the rules">,
    Option<"report", "report", "std::string", /*default=*/"\"\"",
           "Path of a JSON file with the verdict on each function; none is "
           "written when empty">,
    Option<"acceptTested", "accept-tested", "bool", /*default=*/"false",
           "Whether programs that are tested, by execution on some inputs, and "
           "not proven are accepted">,
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
