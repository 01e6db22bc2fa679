//===- GemmChoice.h - What computes which matrix product --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of f32 are computed by the runtime's own tiles, by OpenBLAS, or by
// oneDNN, where libdnnl is installed. Which of them is fastest depends on the
// product and the machine: large ones are measured when a program is loaded,
// and what was chosen is kept in a file, for the next time.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_GEMMCHOICE_H
#define TPRT_GEMMCHOICE_H

#include "tprt/Manifest.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tprt {

enum class GemmLibrary { Tiles, OpenBlas, OneDnn };

/// "tiles", "openblas", "onednn".
TPRT_API std::string_view toString(GemmLibrary library);
TPRT_API std::optional<GemmLibrary> parseGemmLibrary(std::string_view name);

/// The version of a library as it says; none where it isn't installed.
TPRT_API std::optional<std::string> getVersion(GemmLibrary library);

/// What tells products of f32 apart: C = A * B, A m x k, B k x n. Consecutive
/// batches that share B are rows of one product.
struct Product {
  int64_t m, n, k;
  bool isAByColumns, isBByColumns; ///< how they lie in memory
  bool isWeight; ///< B keeps its value: tiles pack it once for all runs

  auto operator<=>(const Product &) const = default;
};

struct GemmChoice {
  Product product;
  GemmLibrary library;
  /// Of one product on at most some thousand rows, by library; empty where the
  /// time for measuring was up.
  std::map<GemmLibrary, double> seconds;
};

struct GemmOptions {
  /// Computes all products of f32 that it can, vectors excepted; none: of large
  /// products whichever measures better, tiles for the others.
  std::optional<GemmLibrary> library;
  /// Where choices are read and kept; empty: the artifact's path and
  /// ".gemm.json".
  std::string file;
  /// Measuring products that the file doesn't know ends after about this long.
  double maxSeconds = 0.3;
};

/// What was chosen for a program.
struct GemmChoices {
  std::optional<GemmLibrary> library; ///< of all, as asked for
  std::vector<GemmChoice> products;   ///< that were chosen for; most work first
  std::string file;                   ///< that they are kept in; may be empty
  std::string note; ///< what is wrong with the file; empty: nothing

  /// Tiles where nothing was chosen.
  TPRT_API GemmLibrary get(const Product &product) const;
};

/// Chooses for the large products of `manifest`, on `numThreads` threads each,
/// from the file, else by measuring. Where choices can't be kept there are
/// none, so that two runs give the same bits; nor where `mayMeasure` is false,
/// as in one of several processes, which have to choose alike. A file that
/// can't be read, or is of other machines, versions or numbers of threads, is
/// no error: `note` says so, and it is completed or replaced. Throws an input
/// error where `options.library` isn't installed.
TPRT_API GemmChoices chooseGemms(const Manifest &manifest,
                                 const GemmOptions &options, int numThreads,
                                 bool mayMeasure = true);

} // namespace tprt

#endif // TPRT_GEMMCHOICE_H
