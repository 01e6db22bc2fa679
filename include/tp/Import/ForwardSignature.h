//===- ForwardSignature.h - the arguments of traced modules -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_IMPORT_FORWARDSIGNATURE_H
#define TP_IMPORT_FORWARDSIGNATURE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::tp {

/// The arguments of a module's `forward`. A trace doesn't record them:
/// torch.jit.trace orders a module's tensor inputs by their first use, and
/// gives them the caller's names.
struct ForwardSignature {
  /// The names of forward's arguments, in order, tensors or not.
  std::vector<std::string> arguments;
  /// For each call of the module, in order: the argument that each tensor
  /// belongs to, in the order of the arguments. A tuple of tensors has one
  /// entry for each tensor.
  std::vector<std::vector<unsigned>> calls;
};

/// By the modules' FQNs.
using ForwardSignatures = std::map<std::string, ForwardSignature>;

/// Reads what tools/tp-import/tp_trace.py writes: a JSON object of
///
///     "layers.0.attention": {"arguments": ["x", "mask", "causal"],
///                            "calls": [["x", "mask"]]}
///
/// for each module that was traced. The error names the file and the problem.
llvm::Expected<ForwardSignatures> readForwardSignatures(llvm::StringRef path);

} // namespace mlir::tp

#endif // TP_IMPORT_FORWARDSIGNATURE_H
