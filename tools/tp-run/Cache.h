//===- Cache.h - Programs compiled on the way -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_CACHE_H
#define TP_TOOLS_TP_RUN_CACHE_H

#include "CommandLine.h"

#include "tprt/Artifact.h"

#include <memory>
#include <string>

/// Loads the program of the options, unless it is loaded: an artifact as it is;
/// anything else is taken for IR and compiled by the tp-compile beside this
/// executable, or in PATH. What was compiled is kept under $TP_CACHE_DIR, else
/// $XDG_CACHE_HOME/tp-mlir, else ~/.cache/tp-mlir, by the contents of the file
/// and the identity of tp-compile, unless --no-cache is given. Throws
/// tprt::Error.
std::shared_ptr<const tprt::Artifact> loadProgram(const Options &options);

/// Where what was chosen for the products of the artifact at `path` is kept:
/// empty, which is beside it, if that can be written or has a file already;
/// else a file in the cache, if there may be one.
std::string getGemmFile(const std::string &path, bool useCache);

#endif // TP_TOOLS_TP_RUN_CACHE_H
