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

/// The text of the file at `path`, or of standard input for "-". The error says
/// why, without the path. FIFOs and devices, which could wait or never end, are
/// errors. What this process has open already, such as /dev/stdin or the
/// /dev/fd/63 of a shell's `<(command)`, is read to its end. A file that is
/// neither text nor MLIR bytecode is an error that says what the file is. So is
/// text that isn't UTF-8 or has control characters, since diagnostics show
/// lines as they are.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readInput(StringRef path);

/// A character that a terminal takes for a command.
struct ControlCharacter {
  size_t offset; ///< where it begins in the text
  unsigned code; ///< its code point
};

/// The first such character of a text. Tabs and ends of lines are none.
std::optional<ControlCharacter> findControlCharacter(StringRef text);

/// `text` for a terminal: such characters become escapes ("\\x1B").
std::string escapeControlCharacters(StringRef text);

/// The error of readInput() for a FIFO or a device, without reading the file.
llvm::Error checkInput(StringRef path);

/// Reports that the file `what` ("plan") at `path` can't be read, and why. The
/// error's location is the path only if no file is there, because a diagnostic
/// handler opens the file to show a line.
InFlightDiagnostic emitInputError(MLIRContext *context, StringRef path,
                                  StringRef what, llvm::Error error);

} // namespace mlir::tp

#endif // TP_SUPPORT_INPUTFILE_H
