//===- InputFile.h - Files that are read ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_INPUTFILE_H
#define TP_SUPPORT_INPUTFILE_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>

namespace mlir::tp {

/// Reads the file at `path`, or standard input for "-". The error says why the
/// file can't be read, without its path. FIFOs and devices are errors, because
/// reading them could block or never end. A file that this process already has
/// open, such as /dev/stdin or the /dev/fd/63 of a shell's `<(command)`, is
/// read to its end. A file that is neither text nor MLIR bytecode is an error
/// that says what the file is. So is text that isn't UTF-8 or has control
/// characters, because diagnostics print lines verbatim. See MemoryFiles.h for
/// inputs in memory.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readInput(StringRef path);

/// A character that a terminal interprets as a command.
struct ControlCharacter {
  size_t offset; ///< where it begins in the text
  unsigned code; ///< its code point
};

/// The first such character of a text. Tabs and ends of lines don't count.
std::optional<ControlCharacter> findControlCharacter(StringRef text);

/// `text` with such characters replaced by escapes ("\\x1B"), for a terminal.
std::string escapeControlCharacters(StringRef text);

/// Returns the error that readInput() returns for a FIFO or a device, without
/// reading the file.
llvm::Error checkInput(StringRef path);

/// Reports that the file `what` ("plan") at `path` can't be read, and why. The
/// error's location is the path only if no file is there, because a diagnostic
/// handler opens the file to show a line.
InFlightDiagnostic emitInputError(MLIRContext *context, StringRef path,
                                  StringRef what, llvm::Error error);

} // namespace mlir::tp

#endif // TP_SUPPORT_INPUTFILE_H
