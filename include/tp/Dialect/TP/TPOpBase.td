//===- TPOpBase.td - The classes of tp ops -----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPOPBASE_TD
#define TP_DIALECT_TP_TPOPBASE_TD

include "tp/Dialect/TP/TPAttrs.td"
include "tp/Dialect/TP/TPInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class TP_Op<string mnemonic, list<Trait> traits = []>
    : Op<TP_Dialect, mnemonic, traits>;

/// The order of collectives is part of a program's meaning: every rank must issue
/// the same ones in the same order. All of them read and write this resource.
def TP_CommResource : Resource<"::mlir::tp::CommResource">;

class TP_PerRankOp<string mnemonic, list<Trait> traits = []>
    : TP_Op<mnemonic, traits # [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  dag base = (ins FlatSymbolRefAttr:$mesh, TP_AxisListAttr:$axes);
}

class TP_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : TP_PerRankOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<TP_CollectiveOpInterface,
                                  ["getDataflow", "getReceivedBytes"]>,
        MemoryEffects<[MemRead<TP_CommResource>, MemWrite<TP_CommResource>]>]> {
  dag provenance = (ins OptionalAttr<StrAttr>:$fqn, OptionalAttr<StrAttr>:$reason,
                        OptionalAttr<I64Attr>:$bytes);
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
  code baseDescription = [{

    Blocks follow the chunk convention of `#tp.sharding`: the blocks of a group's members may differ
    in size along the dimension that is concatenated or split. `bytes` is the largest number of
    bytes that any rank receives; `fqn` and `reason` name the origin of the collective.

    **Constraints:** (C1) the mesh exists and has the axes; there is at least one axis; axes have no
    segments; (C2) operand and result have the same element type; (C3) the shapes are related as
    described above.
  }];
}

#endif // TP_DIALECT_TP_TPOPBASE_TD
