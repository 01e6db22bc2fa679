//===- TorchMetaKernels.cpp - Shapes that LibTorch can't infer ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchMetaKernels.h"
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>
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

static at::Tensor &whereOut(const at::Tensor &condition, const at::Tensor &self,
                            const at::Tensor &other, at::Tensor &out) {
  (void)at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_const_input(condition)
      .add_const_input(self)
      .add_const_input(other)
      .build();
  return out;
}

static at::Tensor where(const at::Tensor &condition, const at::Tensor &self,
                        const at::Tensor &other) {
  at::Tensor out = at::empty({0}, self.options().device(at::kMeta).dtype(
                                      at::result_type(self, other)));
  return whereOut(condition, self, other, out);
}

static at::Tensor indexSelect(const at::Tensor &self, int64_t dim,
                              const at::Tensor &index) {
  TORCH_CHECK_INDEX(index.dim() <= 1,
                    "index_select(): Index is supposed to be a vector");
  dim = at::maybe_wrap_dim(dim, self.dim());
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() > 0)
    sizes[dim] = index.numel();
  return at::empty(sizes, self.options());
}

static std::tuple<at::Tensor, at::Tensor, at::Tensor>
layerNorm(const at::Tensor &input, at::IntArrayRef normalizedShape,
          const std::optional<at::Tensor> &weight,
          const std::optional<at::Tensor> &bias, double) {
  auto fits = [&](const std::optional<at::Tensor> &parameter) {
    return !parameter || !parameter->defined() ||
           parameter->sizes() == normalizedShape;
  };
  int64_t rank = input.dim() - static_cast<int64_t>(normalizedShape.size());
  TORCH_CHECK(rank >= 0 && input.sizes().slice(rank) == normalizedShape &&
                  !normalizedShape.empty() && fits(weight) && fits(bias),
              "expected an input that ends in the sizes ", normalizedShape,
              ", and a weight and a bias of these sizes, found ",
              input.sizes());
  std::vector<int64_t> sizes(input.dim(), 1);
  std::copy_n(input.sizes().begin(), rank, sizes.begin());
  at::Tensor mean = at::empty(sizes, input.options());
  return {at::empty(input.sizes(), input.options()), mean,
          at::empty_like(mean)};
}

static at::Tensor likeSelf(const at::Tensor &self) {
  return at::empty_like(self);
}

static at::Tensor truthOfSelf(const at::Tensor &self) {
  return at::empty_like(self, self.options().dtype(at::kBool));
}

void mlir::tp::addMetaKernels() {
  static const bool areAdded = [] {
    static torch::Library library(torch::Library::IMPL, "aten",
                                  c10::DispatchKey::Meta, __FILE__, __LINE__);
    // A process with Python has more meta kernels, in Python.
    auto add = [](const char *name, const char *overload, auto &&kernel) {
      auto op = c10::Dispatcher::singleton().findOp(
          {std::string("aten::") + name, overload});
      if (op && !op->hasKernelForDispatchKey(c10::DispatchKey::Meta))
        library.impl(
            (std::string(name) + (*overload ? "." : "") + overload).c_str(),
            std::forward<decltype(kernel)>(kernel));
    };
    add("_ctc_loss", "", TORCH_FN(ctcLossOfLists));
    add("_ctc_loss", "Tensor", TORCH_FN(ctcLossOfTensors));
    add("where", "self", TORCH_FN(where));
    add("where", "self_out", TORCH_FN(whereOut));
    add("index_select", "", TORCH_FN(indexSelect));
    add("native_layer_norm", "", TORCH_FN(layerNorm));
    add("relu", "", TORCH_FN(likeSelf));
    add("logical_not", "", TORCH_FN(truthOfSelf));
    return true;
  }();
  (void)areAdded;
}
