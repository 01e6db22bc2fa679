//===- PrepareFunctions.h - make_input_…, make_output_… ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In PyTorch 2.0 a style takes functions that prepare the input and the output
// of its module. Each of them is a layout.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PLAN_STYLES_PREPAREFUNCTIONS_H
#define TP_LIB_PLAN_STYLES_PREPAREFUNCTIONS_H

#include "WeightedModule.h"

namespace mlir::tp::plan {

/// Checks the arguments `_prepare_input` and `_prepare_output`, and emits
/// errors. The functions must exist and need a mesh of one dimension. They
/// can't be combined with the layouts of later versions.
LogicalResult verifyPrepareFunctions(const Arguments &arguments,
                                     const MeshGroup &group);

/// The layout that the function in the argument `function` makes, or the one
/// that the argument `layout` has.
NamedLayout getPreparedLayout(const Arguments &arguments, StringRef function,
                              StringRef layout);

/// The layout that the function in the argument `function` makes; nullopt if
/// the plan lacks the argument.
std::optional<NamedLayout> getPreparedLayout(const Arguments &arguments,
                                             StringRef function);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_PREPAREFUNCTIONS_H
