//===- TorchDivision.cpp - Quotients of integers --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchDivision.h"
#include "llvm/ADT/STLExtras.h"
#include <ATen/core/Tensor.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <limits>

/// Whether a quotient of integer tensors, rounded to zero, may overflow, as
/// that of the smallest integer and -1 does.
static bool mayOverflowQuotient(const at::Tensor &dividend,
                                const at::Tensor &divisor) {
  at::ScalarType type = at::result_type(dividend, divisor);
  if (type != at::kLong && type != at::kInt)
    return false;
  int64_t least = type == at::kLong ? std::numeric_limits<int64_t>::min()
                                    : std::numeric_limits<int32_t>::min();
  return dividend.eq(least).any().item<bool>() &&
         divisor.eq(-1).any().item<bool>();
}

std::string mlir::tp::checkDivision(llvm::StringRef kind,
                                    llvm::ArrayRef<c10::IValue> inputs) {
  if (kind.starts_with("div") && inputs.size() == 3 && inputs[0].isTensor() &&
      inputs[2].isString() && inputs[2].toStringRef() == "trunc" &&
      mayOverflowQuotient(inputs[0].toTensor(),
                          inputs[1].isTensor()
                              ? inputs[1].toTensor()
                              : at::scalar_tensor(inputs[1].toScalar())))
    return "a quotient of the smallest integer and -1 has too many bits";
  if (!llvm::is_contained({"floordiv", "remainder", "divmod", "gcd",
                           "__round_to_zero_floordiv"},
                          kind) ||
      inputs.size() != 2 || !inputs[0].isInt() || !inputs[1].isInt())
    return "";
  int64_t dividend = inputs[0].toInt(), divisor = inputs[1].toInt();
  bool isGcd = kind == "gcd";
  if (divisor == 0 && !isGcd)
    return "division of " + std::to_string(dividend) + " by 0";
  if (llvm::is_contained({dividend, divisor},
                         std::numeric_limits<int64_t>::min()) &&
      (divisor == -1 || (isGcd && dividend == -1)))
    return "the quotient of " + std::to_string(dividend) + " and " +
           std::to_string(divisor) + " has more than 64 bits";
  return "";
}
