//===- OutOfMemory.h - The end of a tool without memory ---------*- C++ -*-===//

#ifndef TP_TOOLS_OUTOFMEMORY_H
#define TP_TOOLS_OUTOFMEMORY_H

#include "llvm/Support/ErrorHandling.h"
#include <cstring>
#include <initializer_list>
#include <unistd.h>

/// From now on, the tool `name` (a literal) ends with a message and exit code 1
/// when memory runs out; LLVM's own handler would abort. Temporary files of
/// outputs stay there.
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
