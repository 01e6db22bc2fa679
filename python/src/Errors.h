//===- Errors.h - The package's exceptions ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C++ code throws these classes, or tprt::Error. Errors.cpp maps them to the
// Python classes of the same names.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PYTHON_ERRORS_H
#define TP_PYTHON_ERRORS_H

#include "Messages.h"
#include <map>
#include <nanobind/nanobind.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace mlir::tp::python {

/// Reported by the compiler. The text consists of the errors among `messages`.
struct CompileError : std::runtime_error {
  explicit CompileError(std::vector<Message> messages,
                        std::map<std::string, std::string> outputs = {});

  std::vector<Message> messages;
  /// What passes had written before the failure, by file.
  std::map<std::string, std::string> outputs;
};

/// A wrong argument.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// For calls in a process other than the one that made an object: the threads
/// of the compiler and of the ranks don't survive a fork.
void checkProcess(int owner, const char *what);

/// Whether it is an AbortedError, which transports raise if another rank has
/// failed.
bool isAborted(const nanobind::python_error &error);

void bindErrors(nanobind::module_ &module);

} // namespace mlir::tp::python

#endif // TP_PYTHON_ERRORS_H
