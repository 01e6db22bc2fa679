//===- ManifestAttrs.h - Attributes of the artifact manifest ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While programs are lowered, the module's attribute `tprt.manifest` collects
// the content of the artifact's manifest (docs/Artifact.md), and each argument
// of a program has a role.
//
//===----------------------------------------------------------------------===//

#ifndef TP_CODEGEN_PROGRAM_MANIFESTATTRS_H
#define TP_CODEGEN_PROGRAM_MANIFESTATTRS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace mlir::tp {

/// DictionaryAttr on the module.
constexpr StringLiteral kManifestAttr = "tprt.manifest";
/// StringAttr on the arguments of a program: a Role.
constexpr StringLiteral kRoleAttr = "tprt.role";
/// IntegerAttr on an input, parameter or output of a program: its place among
/// all that have this role, if the program no longer takes all of them.
constexpr StringLiteral kPlaceAttr = "tprt.place";

/// ArrayAttr of StringAttr on the module: the messages of index checks that run
/// on a device, by number.
constexpr StringLiteral kSitesAttr = "tprt.sites";

/// FlatSymbolRefAttr on a declaration: the kernel that the function calls for a
/// range, with arguments that it reads from a table (tprt_range_function of the
/// runtime's abi.h).
constexpr StringLiteral kRangeOfAttr = "tprt.range_of";
/// FlatSymbolRefAttr on a declaration: the function with tprt::kRepeatedAttr
/// that it calls, with buffers whose addresses it loads from tables.
constexpr StringLiteral kCallOfAttr = "tprt.call_of";

/// The functions that ranks run. These are the functions with `tp.ranks`; each
/// rank runs one of them. If there are none, all ranks run `@main`.
SmallVector<func::FuncOp> getEntryPrograms(ModuleOp module);

/// The functions whose ops a program runs one after the other: the entry
/// programs, and the functions with tprt::kRepeatedAttr.
SmallVector<func::FuncOp> getProgramFunctions(ModuleOp module);

/// What an argument of a program is. Arguments come in this order; there may be
/// any number of inputs, parameters and outputs, and at most one of each of the
/// others. The tables are those of the addresses of a program's buffers, for its
/// calls. A function with tprt::kRepeatedAttr has buffers without a role behind
/// its rank, and numbers: the offsets, marks and collectives of the call.
enum class Role {
  Context,
  Tables,
  Rank,
  Input,
  Parameter,
  Output,
  Arena,
  Numbers
};

StringRef stringifyRole(Role role);

/// The role of argument `number` of `program`, if it has one.
std::optional<Role> getRole(func::FuncOp program, unsigned number);

/// The arguments of `program` with `role`, in order.
SmallVector<BlockArgument> getArguments(func::FuncOp program, Role role);

/// The module's manifest; empty if it has none yet.
DictionaryAttr getManifest(ModuleOp module);

/// Sets one entry of the module's manifest.
void setManifestEntry(ModuleOp module, StringRef name, Attribute value);

/// Writes strings, numbers, arrays and dictionaries as JSON.
void writeJSON(llvm::json::OStream &os, Attribute attr);

} // namespace mlir::tp

#endif // TP_CODEGEN_PROGRAM_MANIFESTATTRS_H
