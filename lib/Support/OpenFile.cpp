//===- OpenFile.cpp - Paths that are names of open files ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpenFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp;
namespace fs = llvm::sys::fs;

std::optional<int> tp::findDescriptor(StringRef path) {
  llvm::SmallString<256> folder;
  if (fs::real_path(llvm::sys::path::parent_path(path), folder))
    return std::nullopt;
  std::string own = "/proc/" + std::to_string(::getpid()) + "/";
  int descriptor = 0;
  if (!folder.starts_with(own) || !folder.ends_with("/fd") ||
      llvm::sys::path::filename(path).getAsInteger(10, descriptor))
    return std::nullopt;
  return descriptor;
}

std::string tp::resolveLinks(StringRef path) {
  llvm::SmallString<256> target = path;
  for (int depth = 0; depth < 40 && fs::is_symlink_file(target); ++depth) {
    if (findDescriptor(target))
      break;
    char next[PATH_MAX];
    ssize_t length = ::readlink(target.c_str(), next, sizeof(next));
    if (length < 0)
      break;
    StringRef name(next, length);
    if (llvm::sys::path::is_relative(name)) {
      llvm::sys::path::remove_filename(target);
      llvm::sys::path::append(target, name);
    } else {
      target = name;
    }
  }
  return target.str().str();
}
