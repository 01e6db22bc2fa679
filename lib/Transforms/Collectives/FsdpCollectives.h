//===- FsdpCollectives.h - Collectives of FSDP parameter groups -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_COLLECTIVES_FSDPCOLLECTIVES_H
#define TP_LIB_TRANSFORMS_COLLECTIVES_FSDPCOLLECTIVES_H

#include "Collectives.h"

namespace mlir::tp::collectives {

/// The groups of a program's parameters (`tp.fsdp_group`).
class FsdpParameterGroups {
public:
  explicit FsdpParameterGroups(func::FuncOp program);

  /// The group whose parameter `gather` gathers; null if it gathers no
  /// parameter of a group.
  StringAttr ofGathered(Operation *gather) const;
  /// The group whose parameter's gradient `reduction` reduces; null if it
  /// reduces no such gradient.
  StringAttr ofGradient(Operation *reduction) const;

private:
  /// The groups by the parameter's FQN.
  DenseMap<StringAttr, StringAttr> groups;
};

} // namespace mlir::tp::collectives

#endif // TP_LIB_TRANSFORMS_COLLECTIVES_FSDPCOLLECTIVES_H
