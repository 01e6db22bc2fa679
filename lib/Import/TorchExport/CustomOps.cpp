//===- CustomOps.cpp - ops of other libraries -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CustomOps.h"
#include <ATen/ops/empty.h>
#include <torch/library.h>

/// See transformers/integrations/moe.py.
static at::Tensor groupedMm(const at::Tensor &input, const at::Tensor &weight,
                            const at::Tensor &offs) {
  TORCH_CHECK(input.dim() == 2 && weight.dim() == 3 && offs.dim() == 1 &&
                  input.size(1) == weight.size(1) &&
                  offs.size(0) == weight.size(0),
              "expected an input (m, k), a weight (e, k, n) and offs (e)");
  return at::empty({input.size(0), weight.size(2)}, input.options());
}

bool mlir::tp::declareCustomOps(llvm::StringRef library) {
  if (library != "transformers")
    return false;
  static const bool isDeclared = [] {
    static torch::Library ops(torch::Library::FRAGMENT, "transformers",
                              std::nullopt, __FILE__, __LINE__);
    ops.def("grouped_mm_fallback(Tensor input, Tensor weight, Tensor "
            "offs) -> Tensor");
    ops.impl("grouped_mm_fallback",
             torch::dispatch(c10::DispatchKey::Meta, TORCH_FN(groupedMm)));
    return true;
  }();
  return isDeclared;
}
