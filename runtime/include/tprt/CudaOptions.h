//===- CudaOptions.h - Options of CUDA devices ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_CUDAOPTIONS_H
#define TPRT_CUDAOPTIONS_H

#include <cstdint>
#include <string>

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
