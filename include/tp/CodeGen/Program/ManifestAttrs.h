//===- ManifestAttrs.h - what a program says about itself -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While programs are lowered, the module's attribute `tprt.manifest` collects
// what the artifact's manifest will say (docs/Artifact.md), and each argument
// of a program has a role.
//
//===----------------------------------------------------------------------===//

#ifndef TP_CODEGEN_PROGRAM_MANIFESTATTRS_H
#define TP_CODEGEN_PROGRAM_MANIFESTATTRS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace mlir::tp {

/// DictionaryAttr on the module.
constexpr StringLiteral kManifestAttr = "tprt.manifest";
/// StringAttr on the arguments of a program: a Role.
constexpr StringLiteral kRoleAttr = "tprt.role";

/// ArrayAttr of StringAttr on the module: the texts of index checks that run on
/// a device, by number.
constexpr StringLiteral kSitesAttr = "tprt.sites";

/// FlatSymbolRefAttr on a declaration: the kernel that it calls for a range,
/// with the arguments of a table (tprt_range_function of the runtime's abi.h).
constexpr StringLiteral kRangeOfAttr = "tprt.range_of";

/// The functions that ranks run: those with `tp.ranks`, which run one each;
/// where there are none, `@main`, which all run.
SmallVector<func::FuncOp> getEntryPrograms(ModuleOp module);

/// The ranks that each of `programs` runs on. Fails with an error unless each
/// of `numRanks` ranks runs one of them.
FailureOr<SmallVector<SmallVector<int64_t>>>
findRanks(ArrayRef<func::FuncOp> programs, int64_t numRanks);

/// What an argument of a program is. They come in this order; there may be any
/// number of inputs, parameters and outputs, and one of each of the others.
enum class Role { Context, Rank, Input, Parameter, Output, Arena };

StringRef stringifyRole(Role role);

/// The arguments of `program` with `role`, in order.
SmallVector<BlockArgument> getArguments(func::FuncOp program, Role role);

/// The module's manifest; empty where it has none yet.
DictionaryAttr getManifest(ModuleOp module);

/// Sets one entry of the module's manifest.
void setManifestEntry(ModuleOp module, StringRef name, Attribute value);

/// The JSON form of strings, integers, arrays and dictionaries.
llvm::json::Value toJSON(Attribute attr);

} // namespace mlir::tp

#endif // TP_CODEGEN_PROGRAM_MANIFESTATTRS_H
