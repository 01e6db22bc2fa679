//===- Messages.cpp - Diagnostics as values -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Messages.h"
#include "tp/Embedding/Programs.h"

using namespace mlir::tp::python;

static const char *getName(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Note:
    return "note";
  case mlir::DiagnosticSeverity::Warning:
    return "warning";
  case mlir::DiagnosticSeverity::Error:
    return "error";
  case mlir::DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("all severities are listed");
}

Message::Message(mlir::Diagnostic &diagnostic)
    : severity(getName(diagnostic.getSeverity())),
      location(mlir::tp::toString(diagnostic.getLocation())),
      text(diagnostic.str()) {
  if (auto file =
          diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
    place = {file.getFilename().str(), file.getLine(), file.getColumn()};
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    notes.emplace_back(note);
}

std::string Message::format() const {
  std::string all = severity + (": " + text);
  if (place)
    all.insert(0, location + ": ");
  for (const Message &note : notes)
    all += "\n" + note.format();
  return all;
}

MessageCollector::MessageCollector(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        messages.emplace_back(diagnostic);
      }) {}
