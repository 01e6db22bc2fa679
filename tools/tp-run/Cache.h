//===- Cache.h - Programs compiled on the way -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_CACHE_H
#define TP_TOOLS_TP_RUN_CACHE_H

#include "CommandLine.h"

#include "tprt/Artifact.h"

#include <memory>
#include <string>

/// Loads the program of the options, unless it is already loaded. An artifact
/// is loaded directly. Any other file is assumed to be IR and compiled by the
/// tp-compile beside this executable, or in PATH. Unless --no-cache is given,
/// the compiled program is kept under $TP_CACHE_DIR, else
/// $XDG_CACHE_HOME/tp-mlir, else ~/.cache/tp-mlir, keyed by the contents of the
/// file and the identity of tp-compile. Throws tprt::Error.
std::shared_ptr<const tprt::Artifact> loadProgram(const Options &options);

/// The file that keeps the choices for the products of the artifact at `path`.
/// Empty, which means beside the artifact, if that directory can be written or
/// already has such a file; else a file in the cache, if caching is possible.
std::string getGemmFile(const std::string &path, bool useCache);

#endif // TP_TOOLS_TP_RUN_CACHE_H
