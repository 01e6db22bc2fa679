//===- Messages.h - Diagnostics as values -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PYTHON_MESSAGES_H
#define TP_PYTHON_MESSAGES_H

#include "mlir/IR/Diagnostics.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp::python {

/// A diagnostic that doesn't depend on its context.
struct Message {
  struct Place {
    std::string file;
    unsigned line = 0, column = 0;
  };

  explicit Message(mlir::Diagnostic &diagnostic);

  /// "location: severity: text", and a line for each note.
  std::string format() const;

  const char *severity; ///< "error", "warning", "remark", "note"
  std::string location;
  std::optional<Place> place; ///< if the location is in a file
  std::string text;
  std::vector<Message> notes;
};

/// Collects the diagnostics of a context while it lives. One at a time.
class MessageCollector {
public:
  explicit MessageCollector(mlir::MLIRContext &context);

  std::vector<Message> take() { return std::move(messages); }

private:
  std::vector<Message> messages;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mlir::tp::python

#endif // TP_PYTHON_MESSAGES_H
