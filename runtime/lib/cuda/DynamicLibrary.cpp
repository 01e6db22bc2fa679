//===- DynamicLibrary.cpp - Shared libraries loaded at run time -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/DynamicLibrary.h"

#include "cuda/LibraryFolders.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <mutex>

using namespace tprt;
using namespace tprt::cuda;

namespace {

/// The paths of all loaded libraries.
struct LoadedFiles {
  std::mutex mutex;
  std::vector<std::string> paths;

  static LoadedFiles &get() {
    static LoadedFiles files;
    return files;
  }
};

} // namespace

static void *open(const std::string &path) {
  return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Loads what a library loads itself later, if the linker doesn't find it.
static void loadCompanions(const std::vector<std::string_view> &companions) {
  for (std::string_view companion : companions) {
    std::string name(companion);
    if (open(name))
      continue;
    for (const std::string &folder : findLibraryFolders()) {
      std::vector<std::string> paths = expand(folder, name);
      if (std::any_of(paths.begin(), paths.end(), open))
        break;
    }
  }
}

/// Loads the library, unless there is no such file. Sets `problem`, unless it
/// is already set, if that fails.
bool Library::loadFrom(const std::string &path, std::string &problem) {
  handle = open(path);
  if (!handle && problem.empty())
    problem = ::dlerror();
  return handle;
}

void Library::load() {
  std::string problem;
  for (std::string_view name : info.files)
    // The first file is the newest, so its problem is the most useful.
    if (loadFrom(std::string(name), problem))
      return;
  // A file that the linker finds is the one that was meant.
  std::vector<std::string> folders;
  if (problem.find(std::strerror(ENOENT)) != std::string::npos)
    folders = findLibraryFolders();
  for (const std::string &folder : folders)
    for (std::string_view name : info.files)
      for (const std::string &path : expand(folder, std::string(name))) {
        std::string problemHere;
        if (loadFrom(path, problemHere))
          return;
        problem += "; " + problemHere;
      }
  if (!folders.empty())
    problem += "; not found in " + quotedList(folders, 5);
  throw inputError("cannot load " + std::string(info.name) + " (" +
                   info.needed.toString() + " or newer): " + problem);
}

Library::Library(LibraryInfo info) : info(std::move(info)) {
  load();
  loadCompanions(this->info.companions);
  link_map *map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
    file = map->l_name;
  LoadedFiles &loaded = LoadedFiles::get();
  std::lock_guard<std::mutex> lock(loaded.mutex);
  if (std::find(loaded.paths.begin(), loaded.paths.end(), file) ==
      loaded.paths.end())
    loaded.paths.push_back(file);
}

std::vector<std::string> cuda::getLoadedLibraries() {
  LoadedFiles &loaded = LoadedFiles::get();
  std::lock_guard<std::mutex> lock(loaded.mutex);
  return loaded.paths;
}

void *Library::lookUp(const char *symbol) const {
  return ::dlsym(handle, symbol);
}

std::string Library::sayWhichFile() const {
  return " (the file is '" + file + "')";
}

void *Library::findSymbol(const char *symbol) const {
  if (void *address = lookUp(symbol))
    return address;
  throw inputError(std::string(info.name) + " has no function '" + symbol +
                   "': version " + info.needed.toString() +
                   " or newer is needed" + sayWhichFile());
}

void Library::checkVersion(Version found) const {
  if (found < info.needed)
    throw inputError(std::string(info.name) + " has version " +
                     found.toString() + ", version " + info.needed.toString() +
                     " or newer is needed" + sayWhichFile());
}
