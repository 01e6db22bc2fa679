//===- HuggingFace.h - the strings of transformers' tp_plan -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STYLES_HUGGINGFACE_H
#define TP_LIB_PLAN_STYLES_HUGGINGFACE_H

#include "mlir/Support/LLVM.h"

namespace mlir::tp::plan {

/// Why a style of transformers isn't supported; empty for all other names.
StringRef explainUnsupported(StringRef style);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_HUGGINGFACE_H
