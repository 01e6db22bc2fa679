//===- Dataset.h - Examples and the order they are taken in -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_DATASET_H
#define TPRT_DATASET_H

#include "tprt/Npy.h"
#include "tprt/Session.h"

namespace tprt {

/// The order of an epoch: a permutation of 0 … count-1 that is a pure function
/// of seed and epoch. Each element can be computed by itself, so training
/// resumes anywhere without replaying earlier steps.
///
/// A Feistel network of four rounds permutes the numbers below the next even
/// power of two. A number outside the range is permuted again until it falls
/// inside.
class TPRT_API EpochOrder {
public:
  EpochOrder(int64_t count, uint64_t seed, int64_t epoch);

  /// The example at position `index` of the epoch.
  int64_t operator[](int64_t index) const;

private:
  static constexpr int numRounds = 4;
  uint64_t count;
  uint64_t keys[numRounds];
  int halfBits;
};

/// How the integers of a raw token file are stored, little-endian.
enum class TokenType { U16, U32, I32, I64 };
TPRT_API std::optional<TokenType> parseTokenType(std::string_view name);

/// Examples for a program's inputs: each input has one row per example, along
/// its dimension 0. The files are mapped; batches are copied when they are
/// taken.
class TPRT_API Dataset {
public:
  /// One array for each input in `names`, all with as many examples. Elements
  /// may have the input's type, or one that converts to it exactly: narrower
  /// integers for i64 and i32, narrower floats for f32 and f64. f32 is also
  /// rounded to bf16, like other inputs. Throws an input error that says which
  /// array doesn't fit, and what would.
  static Dataset fromArrays(const Manifest &manifest,
                            const std::map<std::string, std::string> &paths);

  /// Windows of a raw token file for a program whose inputs `ids` and `target`
  /// are (B, T): window j has tokens jT … jT+T-1, and its target is the same
  /// window shifted by one token. The rest of the file is ignored.
  static Dataset fromTokens(const Manifest &manifest, const std::string &path,
                            TokenType type, const std::string &ids,
                            const std::string &target);

  int64_t getNumExamples() const { return numExamples; }
  /// B: examples in one step's batch, over all ranks.
  int64_t getBatchSize() const { return batchSize; }
  /// Whether batches contain the input of this name.
  bool hasInput(std::string_view name) const;
  /// Tokens of an example, if examples are windows of a token file.
  std::optional<int64_t> getTokensPerExample() const { return windowSize; }

  /// The batch of the B examples from `position` on, counted over all epochs.
  /// The last examples of an epoch that don't fill a batch share one with the
  /// first examples of the next. Epochs are shuffled by `seed`; without it,
  /// examples come in the order of the files.
  TensorMap getBatch(int64_t position, std::optional<uint64_t> seed) const;
  /// The same for a process that hosts `ranks` of the program: only rows in
  /// these ranks' shards are read; the others are undefined.
  TensorMap getBatch(int64_t position, std::optional<uint64_t> seed,
                     const Manifest &manifest,
                     const std::vector<int64_t> &ranks) const;

private:
  /// Where one input's rows come from.
  struct Source {
    TensorInfo input;
    std::shared_ptr<const std::byte> data;
    int64_t stride;   ///< bytes from an example's row to the next one's
    int64_t elements; ///< of a row
    /// Converts a row's elements; they needn't be aligned at `src`.
    std::function<void(const std::byte *src, std::byte *dst, int64_t elements)>
        convert;
  };

  void setBatchSize(const std::string &what);
  /// `needsRow(input, i)` says whether to read row i of the batch.
  TensorMap readBatch(
      int64_t position, std::optional<uint64_t> seed,
      const std::function<bool(const std::string &, int64_t)> &needsRow) const;

  std::vector<Source> sources;
  int64_t numExamples = 0;
  int64_t batchSize = 0;
  std::optional<int64_t> windowSize;
};

} // namespace tprt

#endif // TPRT_DATASET_H
