//===- DynamicLibrary.cpp - Shared libraries loaded at run time -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/DynamicLibrary.h"

#include <dlfcn.h>

using namespace tprt;
using namespace tprt::cuda;

Library::Library(LibraryInfo info) : info(std::move(info)) {
  std::string problem;
  for (std::string_view file : this->info.files) {
    handle = ::dlopen(std::string(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle)
      return;
    // The first file is the newest, so its problem is the most useful.
    if (problem.empty())
      problem = ::dlerror();
  }
  throw inputError(
      "cannot load " + std::string(this->info.name) + ", version " +
      this->info.needed.toString() +
      " or newer, which programs for CUDA devices need: " + problem);
}

void *Library::lookUp(const char *symbol) const {
  return ::dlsym(handle, symbol);
}

void *Library::findSymbol(const char *symbol) const {
  if (void *address = lookUp(symbol))
    return address;
  throw inputError(std::string(info.name) + " has no function '" + symbol +
                   "': version " + info.needed.toString() +
                   " or newer is needed");
}

void Library::checkVersion(Version found) const {
  if (found < info.needed)
    throw inputError(std::string(info.name) + " has version " +
                     found.toString() + ", version " + info.needed.toString() +
                     " or newer is needed");
}
