//===- SymbolicSize.h - Sizes in the symbols of a model ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model that was exported with dynamic sizes knows them as expressions of
// symbols. A program has a number for each symbol; the expressions say which
// sizes change with which.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_SYMBOLICSIZE_H
#define TPRT_SYMBOLICSIZE_H

#include "tprt/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tprt {

/// The size of a dimension: factor * symbol + offset, a number, or any other
/// expression.
struct SymbolicSize {
  std::string text; ///< "2*s0+1"
  /// Whether the members below say what the text does.
  bool isLinear = false;
  std::string symbol; ///< empty for a number
  int64_t factor = 0; ///< positive if there is a symbol
  int64_t offset = 0;

  /// Reads "16", "s0", "2*s0", "s0-1" and "2*s0+1" as linear.
  TPRT_API static SymbolicSize parse(std::string text);

  /// The size where the symbol has this value; nullopt if it is negative or too
  /// large, or if the size isn't linear.
  TPRT_API std::optional<int64_t> evaluate(int64_t symbolValue) const;
  /// The non-negative value of the symbol for which this is `size`; nullopt if
  /// there is none.
  TPRT_API std::optional<int64_t> solve(int64_t size) const;
};

} // namespace tprt

#endif // TPRT_SYMBOLICSIZE_H
