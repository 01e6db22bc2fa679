//===- GradientForms.cpp - Forms that only gradients need -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_DROPGRADIENTFORMS
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// Replaces a gather by the index of the largest or the smallest elements.
static void replaceGather(nn::GatherOp gather) {
  auto index = gather.getIndex().getDefiningOp<nn::ArgMaxOp>();
  if (!index || !index.getKeepdim() || index.getDim() != gather.getDim())
    return;
  Value input = gather.getInput();
  auto negative = index.getInput().getDefiningOp<nn::NegOp>();
  bool isSmallest = negative && negative.getInput() == input;
  if (index.getInput() != input && !isSmallest)
    return;
  ImplicitLocOpBuilder b(gather.getLoc(), gather);
  int64_t dim = gather.getDim();
  auto extremum = nn::ReduceOp::create(
      b, isSmallest ? nn::ReduceKind::Min : nn::ReduceKind::Max, input,
      ArrayRef(dim), /*keepdim=*/true);
  extremum->setDiscardableAttrs(gather->getDiscardableAttrDictionary());
  gather.replaceAllUsesWith(extremum.getResult());
  gather.erase();
  if (index.use_empty())
    index.erase();
  if (isSmallest && negative.use_empty())
    negative.erase();
}

void tp::dropGradientForms(Operation *root) {
  root->walk([](nn::StopGradientOp op) {
    op.replaceAllUsesWith(op.getInput());
    op.erase();
  });
  root->walk(replaceGather);
}

namespace {
struct DropGradientForms : tp::impl::DropGradientFormsBase<DropGradientForms> {
  void runOnOperation() override { dropGradientForms(getOperation()); }
};
} // namespace
