//===- DataFileServer.h - The server for plans and the like -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_LSP_SERVER_DATAFILESERVER_H
#define TP_TOOLS_LSP_SERVER_DATAFILESERVER_H

#include "llvm/Support/LSP/Transport.h"

/// Serves plans, training files and machines: reports what their readers
/// report, and completes keys and values. Returns the exit code.
int serveDataFiles(llvm::lsp::JSONStreamStyle style, bool isPretty);

#endif // TP_TOOLS_LSP_SERVER_DATAFILESERVER_H
