//===- NNDialect.td - The nn dialect -----------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNDIALECT_TD
#define TP_DIALECT_NN_NNDIALECT_TD

include "mlir/IR/DialectBase.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::mlir::nn";
  let summary = "The ops of a PyTorch model, as values on static tensors";
  let description = [{
    Importers produce this dialect: functional ops with PyTorch's meaning and names, on ranked
    tensors of static shape. `nn.module` regions mirror the model's module tree, so a parallelize
    plan can address modules by FQN. `nn.parameter` stands for a parameter or buffer, whose data
    stays in a safetensors file.

    Each op states its sharding rule in its definition (`NN_RuleOp`), which is the only place where
    the rest of the compiler learns how the op may be split.

    The dialect has one discardable attribute:

    | attribute | on | meaning | set by | read by |
    |---|---|---|---|---|
    | `nn.traced` | an `nn.module` with several inputs | the names and positions of its inputs come from a trace and aren't those of `forward`'s arguments | the TorchScript importer | `tp-apply-plan` |
  }];
  let dependentDialects = ["::mlir::tp::TPDialect"];
  let hasConstantMaterializer = 1;
}

#endif // TP_DIALECT_NN_NNDIALECT_TD
