//===- NextCommand.h - The command that comes next --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_NEXTCOMMAND_H
#define TP_TOOLS_NEXTCOMMAND_H

#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

/// Whether a shell takes `word` as it is.
inline bool isPlainWord(const std::string &word) {
  static const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "-_./=+:,@%";
  return !word.empty() && word.find_first_not_of(plain) == std::string::npos;
}

/// Prints "next: …", a command that goes on with the files that the tool has
/// written, to the error output. Prints nothing if `isQuiet`, if nobody would
/// read it, or if a word has characters that may not be printed.
inline void suggestNext(const std::vector<std::string> &words, bool isQuiet) {
  if (isQuiet || !::isatty(STDERR_FILENO))
    return;
  std::string command;
  for (const std::string &word : words) {
    for (unsigned char c : word)
      if (c < ' ' || c >= 0x7F)
        return;
    std::string quoted = word;
    if (!isPlainWord(word)) {
      quoted = "'";
      for (char c : word)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
      quoted += "'";
    }
    command += " " + quoted;
  }
  std::fprintf(stderr, "next:%s\n", command.c_str());
}

#endif // TP_TOOLS_NEXTCOMMAND_H
