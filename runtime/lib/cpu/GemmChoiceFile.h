//===- GemmChoiceFile.h - Choices for products in a file --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_GEMMCHOICEFILE_H
#define TPRT_LIB_CPU_GEMMCHOICEFILE_H

#include "support/Json.h"

#include <functional>
#include <string>

namespace tprt {

/// A file of the choices that several machines and devices have made.
class GemmChoiceFile {
public:
  /// Reads the file at `path`, if there is one, and calls `parse` for each
  /// choice under `conditions`, which describe all that a choice depends on
  /// besides the product. If the file isn't such a file, or if `parse` throws,
  /// the file counts as empty, and getNote() says why.
  GemmChoiceFile(std::string path, nlohmann::json conditions,
                 const std::function<void(const nlohmann::json &)> &parse);

  /// Problem with the file; empty if there is none.
  const std::string &getNote() const { return note; }
  bool isUsable() const { return usable; }

  /// Whether a file can be written there.
  bool canWrite() const;
  /// Replaces the choices under the conditions, a list. Throws an input error
  /// if the file can't be written.
  void write(nlohmann::json choices) const;

private:
  std::string path;
  nlohmann::json conditions;
  nlohmann::json others = nlohmann::json::array(); ///< of other conditions
  std::string note;
  bool usable = true;
};

} // namespace tprt

#endif // TPRT_LIB_CPU_GEMMCHOICEFILE_H
