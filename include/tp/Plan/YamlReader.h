//===- YamlReader.h - YAML and JSON with places -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLAN_YAMLREADER_H
#define TP_PLAN_YAMLREADER_H

#include "tp/Plan/PlanFile.h"
#include <optional>

namespace mlir::tp::plan {

/// The value that `text`, YAML or JSON, holds; nothing when it is malformed,
/// which was reported at its line and column of the file `path`. `what` is what
/// errors call the file: "a plan".
std::optional<PlanValue> readYaml(StringRef text, StringRef path,
                                  StringRef what, MLIRContext *context);

} // namespace mlir::tp::plan

#endif // TP_PLAN_YAMLREADER_H
