//===- ResourceLimits.h - Reports of exhausted resources --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_RESOURCELIMITS_H
#define TP_TOOLS_RESOURCELIMITS_H

#include "llvm/Support/ErrorHandling.h"
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <unistd.h>

/// From now on, the tool `name` (a literal) ends with a message and exit code 1
/// when memory runs out, and a write fails if the file would exceed the maximum
/// size (`ulimit -f`). LLVM's own handlers would abort. When memory runs out,
/// temporary files of outputs are left behind. Call this after InitLLVM.
inline void reportResourceLimits(const char *name) {
  llvm::install_bad_alloc_error_handler(
      [](void *name, const char *, bool) {
        for (const char *text :
             {static_cast<const char *>(name), ": error: out of memory\n"})
          (void)!::write(STDERR_FILENO, text, std::strlen(text));
        ::_exit(1);
      },
      const_cast<char *>(name));
  std::signal(SIGXFSZ, SIG_IGN);
}

#endif // TP_TOOLS_RESOURCELIMITS_H
