//===- Gemm.h - Batched matrix products -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_GEMM_H
#define TPRT_LIB_CPU_GEMM_H

#include "cpu/ConstantOperands.h"
#include "cpu/GemmOperands.h"
#include "tprt/GemmChoice.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

namespace tprt {

/// The state that the products of one rank keep between calls.
class TPRT_API GemmState {
public:
  /// Room for at least `count` elements, aligned to 64 bytes, contents
  /// undefined; the next call may reuse it.
  float *getFloats(int64_t count);

  /// Says which memory never changes. Right operands there are packed at their
  /// first use and kept.
  void setConstants(std::shared_ptr<ConstantOperands> value);

  /// A k x n matrix of f32, f16 or bf16, packed for multiplyPacked. Null if it
  /// may change or is too large to keep.
  template <typename S>
  const S *getPacked(Matrix<const S> b, int64_t k, int64_t n);

  /// Sets the library for each product. Null: tiles compute all of them.
  void setChoices(std::shared_ptr<const GemmChoices> value) {
    choices = std::move(value);
  }

  /// The library that computes one f32 product of `args`, with B at `b`.
  GemmLibrary getLibrary(const tprt_gemm_args &args, const void *b) const;

  /// Where `data` can be read, see ConstantOperands.
  const void *getReadable(const void *data) const {
    return constants ? constants->getReadable(data) : data;
  }

  /// How many threads each of `numRanks` ranks may use for a product, attention
  /// or a kernel; 1 to begin with. The results of tiles don't depend on it.
  /// OpenBLAS has a single pool of threads, which several ranks would have to
  /// wait for.
  void setThreads(int64_t count, int64_t numRanks = 1) {
    numThreads = count;
    numOpenBlasThreads = numRanks == 1 ? count : 1;
  }
  int64_t getThreads() const { return numThreads; }
  int64_t getOpenBlasThreads() const { return numOpenBlasThreads; }

  /// The number of threads to distribute `operations` over, in at most
  /// `numParts` parts: as many as may be used and have enough work.
  int64_t countThreads(double operations, int64_t numParts) const;

  /// The state of thread `thread` among those that share this rank's work;
  /// thread 0 uses this object. Must be called once for each thread before they
  /// start.
  GemmState &getHelper(int64_t thread);

private:
  using Key = std::array<int64_t, 5>; ///< address, strides, k, n

  std::shared_ptr<std::byte> floats;
  int64_t capacity = 0;
  std::shared_ptr<ConstantOperands> constants;
  /// What `constants` said; null if it has no packed form.
  std::map<Key, const void *> packed;
  std::shared_ptr<const GemmChoices> choices;
  std::vector<std::unique_ptr<GemmState>> helpers;
  int64_t numThreads = 1, numOpenBlasThreads = 1;
};

/// See tprt_gemm. Throws an execution error when the arguments are out of
/// range.
void gemm(const tprt_gemm_args &args, const GemmOperands &operands,
          GemmState &state);

/// The product that `args` describe. `isWeight` says whether B keeps its value.
Product getProduct(const tprt_gemm_args &args, bool isWeight);

/// Tiles compute products of fewer operations, without measuring.
constexpr double minMeasuredWork = 2e6;

} // namespace tprt

#endif // TPRT_LIB_CPU_GEMM_H
