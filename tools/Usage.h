//===- Usage.h - Suggestions for misspelt options ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_USAGE_H
#define TP_TOOLS_USAGE_H

#include "tprt/Error.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

/// " (did you mean '--weights'?)" for each unknown option that has a similar
/// known one. Called when `app` couldn't parse its arguments.
inline std::string suggestOptions(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  std::string text;
  for (const std::string &argument : app.remaining(/*recurse=*/false))
    if (argument.starts_with("--"))
      text += tprt::didYouMean(argument.substr(0, argument.find('=')), names);
  for (const CLI::App *subcommand : app.get_subcommands())
    text += suggestOptions(*subcommand);
  return text;
}

/// Rejects options with an empty value, for instance from an unset shell
/// variable. No option accepts an empty value.
inline void refuseEmptyValues(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    for (const std::string &value : option->results())
      if (value.empty())
        throw CLI::ValidationError(option->get_name(), "the value is empty");
  for (const CLI::App *subcommand : app.get_subcommands())
    refuseEmptyValues(*subcommand);
}

/// Rejects numbers that CLI11 would silently turn into the largest one or NaN.
inline const CLI::Validator isExactNumber(
    [](std::string &text) -> std::string {
      if (!std::isfinite(std::strtod(text.c_str(), nullptr)))
        return "a finite number is expected, not " + text;
      errno = 0;
      std::strtoull(text.c_str(), nullptr, 0);
      if (errno == ERANGE && text.find_first_of(".eE") == text.npos)
        return "a number below 2^64 is expected, not " + text;
      return "";
    },
    "");

/// Rejects the name that stands for the standard output.
inline const CLI::Validator isDirectoryName(
    [](std::string &text) -> std::string {
      return text == "-" ? "'-' is the standard output, where a directory is "
                           "needed; './-' names one"
                         : "";
    },
    "");

#endif // TP_TOOLS_USAGE_H
