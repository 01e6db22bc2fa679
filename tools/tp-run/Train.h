//===- Train.h - tp-run --steps ---------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_TRAIN_H
#define TP_TOOLS_TP_RUN_TRAIN_H

#include "CommandLine.h"

namespace CLI {
class App;
}

void declareTrainingOptions(CLI::App &app, TrainingArguments &arguments);

/// Trains; throws tprt::Error and UsageError.
ExitCode train(const Options &options);

#endif // TP_TOOLS_TP_RUN_TRAIN_H
