//===- Styles.h - The built-in styles ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STYLES_STYLES_H
#define TP_LIB_PLAN_STYLES_STYLES_H

#include "tp/Plan/Style.h"

namespace mlir::tp::plan {

using StyleList = std::vector<std::unique_ptr<Style>>;

/// Lists the families of styles, in the order in which messages name them. The
/// file of each one defines a function that adds its styles to a list, such as
/// addLinearStyles.
#define TP_STYLE_FAMILIES(X)                                                   \
  X(Linear)                                                                    \
  X(Sequence)                                                                  \
  X(PrepareModule)                                                             \
  X(Pairwise)                                                                  \
  X(HuggingFace)

#define TP_DECLARE_STYLES(Family) void add##Family##Styles(StyleList &styles);
TP_STYLE_FAMILIES(TP_DECLARE_STYLES)
#undef TP_DECLARE_STYLES

/// Why a style of transformers isn't supported; empty for all other names.
StringRef explainUnsupported(StringRef style);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_STYLES_H
