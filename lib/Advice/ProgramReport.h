//===- ProgramReport.h - Data and communication of programs -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_PROGRAMREPORT_H
#define TP_LIB_ADVICE_PROGRAMREPORT_H

#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Cost/MachineModel.h"

namespace mlir::tp {

/// The report on the per-rank programs of `module` (docs/Report.md), with a
/// prediction if there is a machine, which is also written to `table` unless
/// that is null. Emits a remark for each collective, and a warning if a rank
/// needs more memory than the machine has. Fails with an error if the programs
/// of a function issue different numbers of collectives.
FailureOr<llvm::json::Object> buildReport(ModuleOp module, MeshOp mesh,
                                          const std::optional<Machine> &machine,
                                          raw_ostream *table);

} // namespace mlir::tp

#endif // TP_LIB_ADVICE_PROGRAMREPORT_H
