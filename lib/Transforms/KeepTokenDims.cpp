//===- KeepTokenDims.cpp - Losses of unflattened tokens -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models and losses flatten the tokens of a batch: logits (b, s, c) become
// (b * s, c). If mesh dimensions split both the batch and the sequence, no
// placement describes the flat dimension. So the loss takes (b, c, s) instead.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

void tp::keepTokenDims(ModuleOp model) {
  model.walk([](nn::CrossEntropyOp loss) {
    auto logits = loss.getInput().getDefiningOp<nn::ReshapeOp>();
    auto target = loss.getTarget().getDefiningOp<nn::ReshapeOp>();
    if (!logits || !target || loss.getReduction() == nn::LossReduction::None)
      return;
    auto from = logits.getInput().getType(), to = logits.getType();
    if (from.getRank() != 3 || to.getRank() != 2 ||
        from.getShape().back() != to.getShape().back() ||
        target.getInput().getType().getShape() != from.getShape().drop_back())
      return;
    ImplicitLocOpBuilder b(loss.getLoc(), loss);
    Operation *moved = nn::TransposeOp::create(b, logits.getInput(),
                                               ArrayRef<int64_t>{0, 2, 1});
    if (Attribute fqn = logits->getAttr(kFqnAttr))
      moved->setAttr(kFqnAttr, fqn);
    loss.getInputMutable().assign(moved->getResult(0));
    loss.getTargetMutable().assign(target.getInput());
  });
}
