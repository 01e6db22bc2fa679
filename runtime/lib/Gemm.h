//===- Gemm.h - Batched matrix products --------------------------*- C++
//-*-===//

#ifndef TPRT_LIB_GEMM_H
#define TPRT_LIB_GEMM_H

#include "tprt/abi.h"

#include <memory>

namespace tprt {

/// Memory of one rank that products reuse: f32 blocks of half-precision
/// operands. Grows to what the largest needs.
class GemmScratch {
public:
  /// At least `count` elements, contents undefined.
  float *getFloats(int64_t count);

private:
  std::unique_ptr<float[]> floats;
  int64_t capacity = 0;
};

/// See tprt_gemm. Throws an execution error when the arguments are out of
/// range.
void gemm(const tprt_gemm_args &args, const void *a, const void *b, void *c,
          const void *bias, GemmScratch &scratch);

/// How many threads the BLAS uses within one call, process-wide.
void setBlasThreads(int count);

} // namespace tprt

#endif // TPRT_LIB_GEMM_H
