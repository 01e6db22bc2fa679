//===- Cache.h - Programs compiled on the way --------------------*- C++
//-*-===//

#ifndef TP_RUN_CACHE_H
#define TP_RUN_CACHE_H

#include "tprt/Artifact.h"

#include <memory>
#include <string>

/// Loads the program at `path`: an artifact as it is; anything else is taken
/// for IR and compiled by the tp-compile beside this executable, or in PATH.
/// What was compiled is kept under $TP_CACHE_DIR, else $XDG_CACHE_HOME/tp-mlir,
/// else
/// ~/.cache/tp-mlir, by the contents of the file and the identity of
/// tp-compile, unless `useCache` is false. Throws tprt::Error.
std::shared_ptr<const tprt::Artifact> loadProgram(const std::string &path,
                                                  bool useCache);

/// Where what was chosen for the products of the artifact at `path` is kept:
/// empty, which is beside it, if that can be written or has a file already;
/// else a file in the cache, if there may be one.
std::string getGemmFile(const std::string &path, bool useCache);

#endif // TP_RUN_CACHE_H
