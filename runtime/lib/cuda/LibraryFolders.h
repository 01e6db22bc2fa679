//===- LibraryFolders.h - Where NVIDIA's libraries may be -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_LIBRARYFOLDERS_H
#define TPRT_LIB_CUDA_LIBRARYFOLDERS_H

#include "tprt/abi.h"

#include <string>
#include <vector>

namespace tprt::cuda {

/// Existing folders that the dynamic linker may not know, in the order in which
/// libraries are looked up: nvidia/*/lib of Python's wheels, CUDA toolkits, and
/// the folders of drivers in containers. The Pythons are those of $VIRTUAL_ENV,
/// $CONDA_PREFIX, `python3` or else `python` in $PATH, and the user's own
/// packages. No Python is run.
TPRT_API std::vector<std::string> findLibraryFolders();

/// The files that match a pattern of the shell within `folder`, sorted.
std::vector<std::string> expand(const std::string &folder,
                                const std::string &pattern);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_LIBRARYFOLDERS_H
