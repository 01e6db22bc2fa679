//===- CudaOptions.h - Options of CUDA devices ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_CUDAOPTIONS_H
#define TPRT_CUDAOPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace tprt {

/// What computes attention on a CUDA device.
enum class AttentionLibrary {
  Auto,  ///< the fastest that has the case; see docs/Runtime.md
  CuDnn, ///< only cuDNN; a case that it doesn't have is an error
  Own,   ///< the runtime's own kernels
};

/// What computes attention of one form.
struct AttentionUse {
  std::string op;      ///< "attention" or "attention_gradient"
  std::string form;    ///< "bf16, 24 heads, 64 rows, 64 columns, depth 32, …"
  std::string library; ///< "cuDNN 9.19.0", or "own"
  std::string reason;  ///< why it isn't cuDNN
  int64_t calls = 0;   ///< within a run

  bool operator==(const AttentionUse &) const = default;
};

/// What computes products of one form.
struct GemmUse {
  /// "bf16, 4096 x 14336 x 4096 (m x n x k), A by rows of 4096, …".
  std::string form;
  std::string library; ///< "cuBLASLt 13.1.0", or "own"
  /// "fused" (by the library's kernel), "own" (by another kernel of the
  /// runtime), or "none".
  std::string epilogue;
  /// The position of the chosen algorithm in cuBLASLt's list, and the length of
  /// the list; 0 for an own kernel.
  int64_t algorithm = 0, numAlgorithms = 0;
  /// The measured times in seconds of the chosen algorithm and of the first
  /// one; 0 if they weren't measured.
  double seconds = 0, firstSeconds = 0;
  int64_t calls = 0; ///< within a run

  bool operator==(const GemmUse &) const = default;
};

/// The products of a stream, and where the choices are kept.
struct GemmUses {
  std::vector<GemmUse> products;
  std::string file, note; ///< see GemmChoices
};

/// For programs that compute on a CUDA device.
struct CudaOptions {
  int device = 0;    ///< which one, as the driver counts
  bool tf32 = false; ///< products of f32 may round their operands to TF32
  /// Captures the second run and replays it from then on. Recorded runs aren't
  /// replayed.
  bool graphs = true;
  AttentionLibrary attention = AttentionLibrary::Auto;
};

} // namespace tprt

#endif // TPRT_CUDAOPTIONS_H
