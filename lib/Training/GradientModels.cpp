//===- GradientModels.cpp - Gradients of tp ops ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before partitioning, these ops are the identity; propagation decides how
// their gradients are placed.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/GradientOpInterface.h"
#include "tp/Training/Passes.h"

using namespace mlir;
using namespace mlir::tp;

namespace {
template <typename OpT>
struct IdentityGradient
    : GradientOpInterface::ExternalModel<IdentityGradient<OpT>, OpT> {
  void buildGradient(Operation *, GradientBuilder &b) const {
    b.setGradient(0, b.getGradient());
  }
};
} // namespace

void tp::registerGradientModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, TPDialect *) {
    RedistributeOp::attachInterface<IdentityGradient<RedistributeOp>>(*context);
    DistributeOp::attachInterface<IdentityGradient<DistributeOp>>(*context);
    ConstraintOp::attachInterface<IdentityGradient<ConstraintOp>>(*context);
    PropagationBarrierOp::attachInterface<
        IdentityGradient<PropagationBarrierOp>>(*context);
  });
}
