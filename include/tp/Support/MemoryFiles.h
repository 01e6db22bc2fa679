//===- MemoryFiles.h - Files in memory --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_MEMORYFILES_H
#define TP_SUPPORT_MEMORYFILES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string>

namespace mlir::tp {

/// Files for a program that calls passes and has their inputs in memory. While
/// an object of this class lives, readInput() and writeFile() in its thread use
/// its files instead of the system's files of the same names. Passes on modules
/// run in the thread that runs the pass manager, and only they use files.
///
/// Objects of one thread are destroyed in the reverse order of their creation.
/// The last one hides the others.
class MemoryFiles {
public:
  MemoryFiles();
  ~MemoryFiles();
  MemoryFiles(const MemoryFiles &) = delete;

  /// A file to be read. The text isn't copied.
  void addInput(StringRef name, StringRef text) { inputs[name] = text; }
  /// A file that may be written.
  void addOutput(StringRef name) { outputs[name]; }

  /// The text of an input; nullopt if there is none of this name.
  std::optional<StringRef> getInput(StringRef name) const;
  bool isOutput(StringRef name) const { return outputs.contains(name); }
  void setOutput(StringRef name, std::string text) {
    outputs[name] = std::move(text);
  }
  /// What was written to an output; nullopt if nothing was.
  std::optional<StringRef> getOutput(StringRef name) const;

  /// The files that the current thread uses; null if there are none.
  static MemoryFiles *getCurrent();

private:
  MemoryFiles *hidden;
  llvm::StringMap<StringRef> inputs;
  llvm::StringMap<std::optional<std::string>> outputs;
};

} // namespace mlir::tp

#endif // TP_SUPPORT_MEMORYFILES_H
