//===- OneDnn.h - Products by oneDNN, where it is installed -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_ONEDNN_H
#define TPRT_LIB_CPU_ONEDNN_H

#include <cstdint>
#include <optional>
#include <string>

namespace tprt {

/// oneDNN 2 or 3, built with OpenMP, as distributions ship it. Looked up by the
/// dynamic linker's rules (libdnnl.so.3, libdnnl.so.2) at the first call of
/// get().
class OneDnn {
public:
  /// Null if it isn't installed.
  static const OneDnn *get();

  const std::string &getVersion() const { return version; }

  /// C = A * B + beta * C of row-major matrices, on `numThreads` threads, like
  /// cblas_sgemm. Throws an execution error with the library's status.
  void multiply(bool isATransposed, bool isBTransposed, int64_t m, int64_t n,
                int64_t k, const float *a, int64_t leadingA, const float *b,
                int64_t leadingB, float beta, float *c, int64_t leadingC,
                int numThreads) const;

private:
  OneDnn() = default;
  static std::optional<OneDnn> load();

  /// dnnl_sgemm, whose dnnl_dim_t is int64_t and whose status is an enum.
  int (*sgemm)(char, char, int64_t, int64_t, int64_t, float, const float *,
               int64_t, const float *, int64_t, float, float *,
               int64_t) = nullptr;
  void (*setThreads)(int) = nullptr; ///< omp_set_num_threads
  std::string version;
};

} // namespace tprt

#endif // TPRT_LIB_CPU_ONEDNN_H
