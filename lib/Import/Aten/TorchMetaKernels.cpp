//===- TorchMetaKernels.cpp - Shapes that LibTorch can't infer ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchMetaKernels.h"
#include <ATen/ops/empty.h>
#include <torch/library.h>

using Losses = std::tuple<at::Tensor, at::Tensor>;

/// The losses of `numInputs` and `numTargets` sequences, and what only the
/// gradient reads.
static Losses makeLosses(const at::Tensor &logProbs, const at::Tensor &targets,
                         int64_t numInputs, int64_t numTargets, int64_t blank) {
  TORCH_CHECK(logProbs.dim() == 3,
              "expected log_probs (frames, batch, classes)");
  int64_t batch = logProbs.size(1);
  TORCH_CHECK(numInputs == batch && numTargets == batch, "expected ", batch,
              " input_lengths and target_lengths, found ", numInputs, " and ",
              numTargets);
  TORCH_CHECK(
      targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == batch),
      "expected targets (", batch, ", length), or all of them in a row");
  TORCH_CHECK(0 <= blank && blank < logProbs.size(2),
              "expected a blank from 0 to ", logProbs.size(2) - 1, ", found ",
              blank);
  return {at::empty({batch}, logProbs.options()),
          at::empty({batch, logProbs.size(0)}, logProbs.options())};
}

static Losses ctcLossOfLists(const at::Tensor &logProbs,
                             const at::Tensor &targets,
                             at::IntArrayRef inputLengths,
                             at::IntArrayRef targetLengths, int64_t blank,
                             bool) {
  return makeLosses(logProbs, targets, inputLengths.size(),
                    targetLengths.size(), blank);
}

static Losses ctcLossOfTensors(const at::Tensor &logProbs,
                               const at::Tensor &targets,
                               const at::Tensor &inputLengths,
                               const at::Tensor &targetLengths, int64_t blank,
                               bool) {
  return makeLosses(logProbs, targets, inputLengths.numel(),
                    targetLengths.numel(), blank);
}

void mlir::tp::addMetaKernels() {
  static const bool areAdded = [] {
    static torch::Library library(torch::Library::IMPL, "aten",
                                  c10::DispatchKey::Meta, __FILE__, __LINE__);
    library.impl("_ctc_loss", TORCH_FN(ctcLossOfLists));
    library.impl("_ctc_loss.Tensor", TORCH_FN(ctcLossOfTensors));
    return true;
  }();
  (void)areAdded;
}
