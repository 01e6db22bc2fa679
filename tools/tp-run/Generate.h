//===- Generate.h - tp-run --generate ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_GENERATE_H
#define TP_TOOLS_TP_RUN_GENERATE_H

#include "CommandLine.h"

namespace CLI {
class App;
}

void declareGenerationOptions(CLI::App &app, GenerationArguments &arguments);

/// Generates tokens; throws tprt::Error and UsageError.
ExitCode generate(const Options &options);

#endif // TP_TOOLS_TP_RUN_GENERATE_H
