//===- ModelWeights.h - The weights of a program from a model's files -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder of Hugging Face holds a model that a program may be a part of, or
// that has the program's model as its part. So its names may have one prefix
// more or less (transformers' base_model_prefix), it may have further weights,
// and it stores tied word embeddings once, under either name.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_MODELWEIGHTS_H
#define TPRT_MODELWEIGHTS_H

#include "tprt/Session.h"

namespace tprt {

struct ModelWeightsOptions {
  /// Drops surplus weights of a file without a note. Those of a directory are
  /// always dropped.
  bool allowUnused = false;
  /// As in readWeights().
  bool mayLeadOutside = false;
};

struct ModelWeights {
  /// By the names of the program. A surplus weight keeps its own name, for
  /// checkTensors() to report. Those that the files lack are left out.
  TensorMap tensors;
  /// Sentences about names that differ, surplus weights of a directory, and
  /// conversions.
  std::vector<std::string> notes;
};

/// Reads what readWeights() reads at `path`, and finds each of `parameters` in
/// it:
///
/// 1. under its own name, or
/// 2. under its own name with a prefix `P.` in front, or without the prefix
///    `P.` that it begins with. There must be one such prefix that finds the
///    most of the parameters that 1 doesn't find. If all parameters begin with
///    `P.`, none is found by 1, and all of them with a prefix `Q.` instead, it
///    is `Q.`. Or
/// 3. if a single parameter is left, as the only other tensor of the same shape
///    (vocab_size, n), in a directory whose config.json has `vocab_size` and
///    `"tie_word_embeddings": true`.
///
/// `LayerNorm.gamma`, `LayerNorm.beta` and `embed_out.weight` of the files are
/// `LayerNorm.weight`, `LayerNorm.bias` and `lm_head.weight` to a program that
/// lacks these names, as to transformers.
///
/// Throws an input error like readWeights(), if several prefixes find equally
/// many, and if a weight has a type that programs don't compute with.
TPRT_API ModelWeights readModelWeights(
    const std::string &path, const std::vector<TensorInfo> &parameters,
    const ModelWeightsOptions &options = {});

} // namespace tprt

#endif // TPRT_MODELWEIGHTS_H
