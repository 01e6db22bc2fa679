//===- ImportTool.h - The tool tp-import ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_IMPORTTOOL_H
#define TP_TOOLS_IMPORTTOOL_H

/// What tp-import does, with its exit code; may be called once per process.
int runImportTool(int argc, char **argv);

#endif // TP_TOOLS_IMPORTTOOL_H
