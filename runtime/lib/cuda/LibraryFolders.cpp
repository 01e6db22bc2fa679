//===- LibraryFolders.cpp - Where NVIDIA's libraries may be ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/LibraryFolders.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <glob.h>
#include <sstream>
#include <unistd.h>

using namespace tprt;
using namespace tprt::cuda;
namespace fs = std::filesystem;

std::vector<std::string> cuda::expand(const std::string &folder,
                                      const std::string &pattern) {
  std::string text;
  for (char c : folder) { // is no pattern
    if (std::string_view("*?[\\").find(c) != std::string_view::npos)
      text += '\\';
    text += c;
  }
  glob_t found = {};
  std::vector<std::string> paths;
  if (::glob((text + "/" + pattern).c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

/// An environment variable's absolute path; empty if it is none.
static std::string getFolder(const char *variable) {
  const char *value = std::getenv(variable);
  return value && *value == '/' ? value : "";
}

/// The folders that contain bin/ of the Python that `python3` runs. A link in
/// an environment comes first, then the Python that it leads to.
static std::vector<std::string> findPythonInPath() {
  const char *path = std::getenv("PATH");
  for (const char *name : {"python3", "python"}) {
    std::istringstream entries(path ? path : "");
    for (std::string entry; std::getline(entries, entry, ':');) {
      fs::path program = fs::path(entry) / name;
      if (!program.is_absolute() || ::access(program.c_str(), X_OK) != 0)
        continue;
      std::error_code error;
      fs::path target = fs::canonical(program, error);
      std::vector<std::string> prefixes = {
          program.parent_path().parent_path().string()};
      if (!error)
        prefixes.push_back(target.parent_path().parent_path().string());
      return prefixes;
    }
  }
  return {};
}

std::vector<std::string> cuda::findLibraryFolders() {
  std::vector<std::string> folders;
  auto add = [&](const std::string &folder, const std::string &pattern) {
    if (folder.empty())
      return;
    for (const std::string &path : expand(folder, pattern))
      if (std::find(folders.begin(), folders.end(), path) == folders.end())
        folders.push_back(path);
  };
  std::vector<std::string> prefixes = {getFolder("VIRTUAL_ENV"),
                                       getFolder("CONDA_PREFIX")};
  std::vector<std::string> inPath = findPythonInPath();
  prefixes.insert(prefixes.end(), inPath.begin(), inPath.end());
  if (std::string home = getFolder("HOME"); !home.empty())
    prefixes.push_back(home + "/.local");
  for (const std::string &prefix : prefixes)
    for (const char *packages :
         {"lib/python3*/site-packages", "lib64/python3*/site-packages",
          "local/lib/python3*/dist-packages", "lib/python3*/dist-packages"})
      add(prefix, std::string(packages) + "/nvidia/*/lib");
  add(getFolder("CONDA_PREFIX"), "lib");
  for (const std::string &toolkit :
       {getFolder("CUDA_HOME"), getFolder("CUDA_PATH"),
        std::string("/usr/local/cuda")})
    for (const char *name : {"lib64", "lib"})
      add(toolkit, name);
  add("/usr/local/nvidia", "lib64");
  add("/usr/lib/wsl", "lib");
  return folders;
}
