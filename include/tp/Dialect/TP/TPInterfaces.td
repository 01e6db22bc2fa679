//===- TPInterfaces.td - what all collectives share --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPINTERFACES_TD
#define TP_DIALECT_TP_TPINTERFACES_TD

include "mlir/IR/OpBase.td"

def TP_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mlir::tp";
  let description = [{
    Data movement between ranks. One rank's program holds the op once; the group is formed by the
    ranks that differ in `getAxes()` only, ordered by their index along those axes, the first axis
    major.
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
      How often every rank waits for the others' data: twice where a value is reduced first and
      gathered then.
    }], "unsigned", "getNumPhases", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<[{
      Whether what a rank receives is of use to the others of its group too (a gather, or,
          the other way round, a
      reduction), so that it may be passed on from neighbour to neighbour and from node to node.
    }], "bool", "isRelayed", (ins), [{}], [{ return true; }]>,
  ];
}

#endif // TP_DIALECT_TP_TPINTERFACES_TD
