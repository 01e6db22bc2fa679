//===- OutOfMemory.h - The end of a tool without memory ---------*- C++ -*-===//

#ifndef TP_TOOLS_OUTOFMEMORY_H
#define TP_TOOLS_OUTOFMEMORY_H

#include "llvm/Support/ErrorHandling.h"
#include <cstring>
#include <initializer_list>
#include <unistd.h>

/// Ends the tool `name`, a literal, with a message and exit code 1 where there
/// is no memory: LLVM's own handler would abort. Files that are being written
/// aside stay there, under their temporary names.
inline void reportOutOfMemory(const char *name) {
  llvm::install_bad_alloc_error_handler(
      [](void *name, const char *, bool) {
        for (const char *text :
             {static_cast<const char *>(name), ": error: out of memory\n"})
          (void)!::write(STDERR_FILENO, text, std::strlen(text));
        ::_exit(1);
      },
      const_cast<char *>(name));
}

#endif // TP_TOOLS_OUTOFMEMORY_H
