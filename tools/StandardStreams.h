//===- StandardStreams.h - Checked standard streams -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_STANDARDSTREAMS_H
#define TP_TOOLS_STANDARDSTREAMS_H

#include "tprt/Error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>

/// Call this at the start of main(). A standard stream that the caller has
/// closed stays unusable; otherwise the next opened file would get its number
/// and receive its text. If a reader has left, or a file would exceed the
/// maximum size, a write fails instead of ending the process.
inline void reserveStandardStreams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0)
      ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Throws an input error if printed text is lost.
inline void closeStandardOutput() {
  errno = 0;
  std::cout.flush();
  bool isLost = std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout;
  if (isLost)
    throw tprt::inputError(
        std::string("cannot write to standard output") +
        (errno ? std::string(": ") + std::strerror(errno) : std::string()));
}

/// Ends the process, after its files are written, without the destructors of
/// its libraries. OpenBLAS's destructor waits for its threads, and a thread
/// that got no memory at its start never ends.
[[noreturn]] inline void leave(int exitCode) {
  std::fflush(stdout);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  std::exit(exitCode); // LeakSanitizer needs a regular exit
#endif
#endif
  std::_Exit(exitCode);
}

#endif // TP_TOOLS_STANDARDSTREAMS_H
