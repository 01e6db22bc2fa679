//===- Styles.h - the built-in styles ---------------------------*- C++ -*-===//

#ifndef TP_LIB_PLAN_STYLES_STYLES_H
#define TP_LIB_PLAN_STYLES_STYLES_H

#include "tp/Plan/Style.h"

namespace mlir::tp::plan {

std::unique_ptr<Style> createColwiseParallel();
std::unique_ptr<Style> createRowwiseParallel();
std::unique_ptr<Style> createSequenceParallel();
std::unique_ptr<Style> createPrepareModuleInput();
std::unique_ptr<Style> createPrepareModuleOutput();
std::unique_ptr<Style> createPrepareModuleInputOutput();

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_STYLES_H
