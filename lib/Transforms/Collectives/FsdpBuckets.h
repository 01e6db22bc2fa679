//===- FsdpBuckets.h - The parameters that FSDP moves together --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_COLLECTIVES_FSDPBUCKETS_H
#define TP_LIB_TRANSFORMS_COLLECTIVES_FSDPBUCKETS_H

#include "Collectives.h"

namespace mlir::tp::collectives {

/// The groups of a program's parameters (`tp.fsdp_group`).
class FsdpGroups {
public:
  explicit FsdpGroups(func::FuncOp program);

  /// Whose parameter `gather` gathers; null where it is none, or no group's.
  StringAttr ofGathered(Operation *gather) const;
  /// Whose parameter's gradient `reduction` reduces; null where it is no
  /// gradient, or no group's.
  StringAttr ofGradient(Operation *reduction) const;

private:
  /// By the parameter's FQN.
  DenseMap<StringAttr, StringAttr> groups;
};

} // namespace mlir::tp::collectives

#endif // TP_LIB_TRANSFORMS_COLLECTIVES_FSDPBUCKETS_H
