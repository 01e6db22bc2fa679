//===- ParameterPatterns.h - what patterns of parameters mean ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_PARAMETERPATTERNS_H
#define TP_LIB_TRAINING_PARAMETERPATTERNS_H

#include "tp/Training/TrainingFile.h"

namespace mlir::tp {

/// Whether one of `patterns` matches `fqn` or a module that contains it.
bool matchesAny(ArrayRef<std::string> patterns, StringRef fqn);

/// Emits an error at each pattern of `config` that matches none of the model's
/// `modules` or `parameters`, depending on its kind.
LogicalResult checkPatterns(const TrainingConfig &config,
                            ArrayRef<std::string> modules,
                            ArrayRef<StringAttr> parameters);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_PARAMETERPATTERNS_H
