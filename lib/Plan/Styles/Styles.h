//===- Styles.h - the built-in styles ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STYLES_STYLES_H
#define TP_LIB_PLAN_STYLES_STYLES_H

#include "tp/Plan/Style.h"

namespace mlir::tp::plan {

using StyleList = std::vector<std::unique_ptr<Style>>;

/// ColwiseParallel, RowwiseParallel.
void addLinearStyles(StyleList &styles);
std::unique_ptr<Style> createSequenceParallel();
/// PrepareModuleInput, PrepareModuleOutput, PrepareModuleInputOutput.
void addPrepareModuleStyles(StyleList &styles);
/// PairwiseParallel and the SequenceParallel of PyTorch 2.0.
void addPairwiseStyles(StyleList &styles);
/// The strings of Hugging Face's tp_plan.
void addHuggingFaceStyles(StyleList &styles);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_STYLES_H
