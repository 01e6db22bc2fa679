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
  /// besides the product. If `parse` throws, the file has none of these choices;
  /// if it isn't such a file, it has none at all. getNote() says why.
  GemmChoiceFile(std::string path, nlohmann::json conditions,
                 const std::function<void(const nlohmann::json &)> &parse);

  /// Problem with the file; empty if there is none.
  const std::string &getNote() const { return note; }
  /// Whether what was parsed holds.
  bool isUsable() const { return usable; }

  /// Why nothing may be measured, for a note: choices couldn't be kept, or the
  /// process isn't alone. Empty if it may.
  std::string findObstacle(bool mayMeasure) const;
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
