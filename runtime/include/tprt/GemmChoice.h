//===- GemmChoice.h - Choice of GEMM implementations ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of f32 are computed by the runtime's own tiles, by OpenBLAS, or, if
// libdnnl is installed, by oneDNN. The fastest one depends on the product and
// the machine: large products are measured when a program is loaded, and the
// choices are kept in a file for the next time. On a CUDA device, cuBLASLt's
// algorithms are measured in the first run, and kept in the same file.
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

/// The version that a library reports; nullopt if it isn't installed.
TPRT_API std::optional<std::string> getVersion(GemmLibrary library);

/// The properties that a choice depends on, for a product of f32 C = A * B,
/// with A m x k and B k x n. Consecutive batches that share B count as rows of
/// one product.
struct Product {
  int64_t m, n, k;
  bool isAByColumns, isBByColumns; ///< column-major in memory
  bool isWeight; ///< B keeps its value: tiles pack it once for all runs

  auto operator<=>(const Product &) const = default;
};

struct GemmChoice {
  Product product;
  GemmLibrary library;
  /// The measured time of one product, which may have been shortened, by
  /// library. Empty if the time for measuring had run out.
  std::map<GemmLibrary, double> seconds;
};

struct GemmOptions {
  /// Computes all products of f32 that it can, except those with vectors. If
  /// none is given, the fastest library by measurement computes each large
  /// product, and tiles compute the others.
  std::optional<GemmLibrary> library;
  /// The file to read and keep choices in. If empty, the artifact's path and
  /// ".gemm.json".
  std::string file;
  /// Time limit, approximately, for measuring products that aren't in the file.
  /// On a CUDA device, one product takes a sixth of it at most, and nothing is
  /// measured if it is 0.
  double maxSeconds = 0.3;
};

/// The choices for a program.
struct GemmChoices {
  std::optional<GemmLibrary> library; ///< for all products, if requested
  std::vector<GemmChoice> products;   ///< with a choice, most work first
  std::string file;                   ///< where they are kept; may be empty
  std::string note;                   ///< problem with the file; may be empty
  std::string instructionSet;         ///< of tiles, as TPRT_MAX_ISA names it

  /// The library for a product; tiles if nothing was chosen.
  TPRT_API GemmLibrary get(const Product &product) const;
  /// Whether there is a product for this library.
  bool uses(GemmLibrary which) const;
};

/// Chooses a library for each large product of `manifest`, on `numThreads`
/// threads. Takes the choice from the file, or else measures. It measures only
/// if the choices can be kept, so that two runs give the same bits, and only if
/// `mayMeasure` is true: several processes must choose alike, so they don't
/// measure. A file that can't be read, or that is for other machines, versions
/// or numbers of threads, isn't an error: `note` says so, and the file is
/// completed or replaced. Throws an input error if `options.library` isn't
/// installed, or if TPRT_MAX_ISA names no instruction set.
TPRT_API GemmChoices chooseGemms(const Manifest &manifest,
                                 const GemmOptions &options, int numThreads,
                                 bool mayMeasure = true);

} // namespace tprt

#endif // TPRT_GEMMCHOICE_H
