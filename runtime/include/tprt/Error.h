//===- Error.h - The runtime's exceptions -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inside the runtime, errors are exceptions. They never cross the C ABI, and
// the library never exits. Messages follow LLVM's rules: lower case, no final
// period, names in '…', found and required value.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_ERROR_H
#define TPRT_ERROR_H

#include "tprt/abi.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tprt {

/// The cause of an error: a file or argument from the caller, or the execution
/// of a program.
enum class ErrorKind { Input, Execution };

class TPRT_API Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string &message)
      : std::runtime_error(message), kind(kind) {}
  ErrorKind getKind() const { return kind; }

private:
  ErrorKind kind;
};

inline Error inputError(const std::string &message) {
  return Error(ErrorKind::Input, message);
}
inline Error executionError(const std::string &message) {
  return Error(ErrorKind::Execution, message);
}

/// The name among `known` closest to `name` by edit distance, or "" when none
/// is close (more than a third of the characters differ).
TPRT_API std::string nearestName(std::string_view name,
                                 const std::vector<std::string> &known);

/// " (did you mean 'x'?)", or "" when no name is close.
TPRT_API std::string didYouMean(std::string_view name,
                                const std::vector<std::string> &known);

/// "'a', 'b', 'c'": names as diagnostics quote them, with "… (n more)" after
/// `limit` names.
TPRT_API std::string quotedList(const std::vector<std::string> &names,
                                size_t limit = 20);

/// Makes `text`, which may quote files and other processes, safe for a
/// terminal. Control characters except newlines become \xNN. A line of more
/// than `maxLine` bytes loses its middle, and a text of more than `maxLines`
/// lines loses its end.
TPRT_API std::string makePrintable(std::string_view text, size_t maxLine = 2000,
                                   size_t maxLines = 200);

} // namespace tprt

#endif // TPRT_ERROR_H
