//===- YamlReader.h - YAML and JSON with places -----------------*- C++ -*-===//

#ifndef TP_LIB_PLAN_YAMLREADER_H
#define TP_LIB_PLAN_YAMLREADER_H

#include "tp/Plan/PlanFile.h"
#include <optional>

namespace mlir::tp::plan {

/// The value that `text`, YAML or JSON, holds; nothing when it is malformed,
/// which was reported at its line and column of the file `path`.
std::optional<PlanValue> readYaml(StringRef text, StringRef path,
                                  MLIRContext *context);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_YAMLREADER_H
