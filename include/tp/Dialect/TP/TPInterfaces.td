//===- TPInterfaces.td - Interfaces of collectives ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPINTERFACES_TD
#define TP_DIALECT_TP_TPINTERFACES_TD

include "mlir/IR/OpBase.td"

def TP_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mlir::tp";
  let description = [{
    Data movement between ranks. Each rank's program holds the op once. A group consists of the
    ranks that differ only along `getAxes()`, ordered by their index along those axes, the first
    axis major.
  }];
  let methods = [
    InterfaceMethod<"The kind as reports and artifacts name it.",
      "::llvm::StringRef", "getCollectiveKind", (ins), [{
        return $_op->getName().stripDialect();
      }]>,
    InterfaceMethod<"The mesh.", "::mlir::FlatSymbolRefAttr", "getMeshAttr">,
    InterfaceMethod<"Mesh dimensions that span a group, major to minor.",
      "::mlir::tp::AxisListAttr", "getAxes">,
    InterfaceMethod<"Whether all ranks of a group get the same result.",
      "bool", "isSameInGroup", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"The FQN of the module that asked for it.",
      "::llvm::StringRef", "getOriginFqn", (ins), [{
        auto attr = $_op->template getAttrOfType<::mlir::StringAttr>("fqn");
        return attr ? attr.getValue() : ::llvm::StringRef();
      }]>,
    InterfaceMethod<"The plan entry or op that asked for it.",
      "::llvm::StringRef", "getOriginReason", (ins), [{
        auto attr = $_op->template getAttrOfType<::mlir::StringAttr>("reason");
        return attr ? attr.getValue() : ::llvm::StringRef();
      }]>,
    InterfaceMethod<[{
      What it computes; nullopt for a collective that moves boxes of elements (`getTransfers`).
    }], "::std::optional<::mlir::tp::Dataflow>", "getDataflow">,
    InterfaceMethod<[{
      The boxes that `rank`'s result consists of, disjoint and ordered by source, if the collective
      has no dataflow.
    }], "::llvm::SmallVector<::mlir::tp::Transfer>", "getTransfers",
      (ins "int64_t":$rank, "::mlir::tp::MeshOp &":$mesh), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      Bytes that `rank`, one of those that run this program, receives from others
      (docs/Artifact.md has the formulas).
    }], "int64_t", "getReceivedBytes", (ins "int64_t":$rank, "::mlir::tp::MeshOp &":$mesh)>,
    InterfaceMethod<[{
      The ranks that `rank` receives from: all others of its group, unless the op knows better.
    }], "::llvm::SmallVector<int64_t>", "getSources",
      (ins "int64_t":$rank, "::mlir::tp::MeshOp &":$mesh), [{}], [{
        return ::mlir::tp::getOtherMembers($_op.getAxes(), rank, mesh);
      }]>,
    InterfaceMethod<[{
      How often every rank waits for the others' data: twice if a value is first reduced and then
      gathered.
    }], "unsigned", "getNumPhases", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<[{
      Whether the other ranks of the group also need the data that a rank receives (a gather), or
      contribute to it (a reduction). Such data may be passed from neighbor to neighbor and from
      node to node.
    }], "bool", "isRelayed", (ins), [{}], [{ return true; }]>,
  ];
}

#endif // TP_DIALECT_TP_TPINTERFACES_TD
