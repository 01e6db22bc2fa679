//===- MemoryFiles.cpp - Files in memory ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/MemoryFiles.h"

using namespace mlir;
using namespace mlir::tp;

static thread_local MemoryFiles *current = nullptr;

MemoryFiles::MemoryFiles() : hidden(current) { current = this; }

MemoryFiles::~MemoryFiles() { current = hidden; }

MemoryFiles *MemoryFiles::getCurrent() { return current; }

std::optional<StringRef> MemoryFiles::getInput(StringRef name) const {
  auto found = inputs.find(name);
  if (found == inputs.end())
    return std::nullopt;
  return found->second;
}

std::optional<StringRef> MemoryFiles::getOutput(StringRef name) const {
  auto found = outputs.find(name);
  if (found == outputs.end() || !found->second)
    return std::nullopt;
  return StringRef(*found->second);
}
