//===- RuntimeABI.h - The runtime's C ABI in MLIR ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derives types and constants from the declarations of the runtime's abi.h, so
// that generated code follows them.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_CPU_RUNTIMEABI_H
#define TP_LIB_CODEGEN_CPU_RUNTIMEABI_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tprt/abi.h"
#include <cstring>

namespace mlir::tp {

/// A function of abi.h: its name, and its type in C.
template <typename Type>
struct RuntimeFunction {
  StringRef name;
};
#define TPRT_FUNCTION(NAME)                                                    \
  ::mlir::tp::RuntimeFunction<decltype(NAME)> { #NAME }

/// The type in MLIR of a C type: an integer, a pointer or void.
template <typename T>
Type getRuntimeType(Builder &b) {
  if constexpr (std::is_void_v<T>) {
    return LLVM::LLVMVoidType::get(b.getContext());
  } else if constexpr (std::is_pointer_v<T>) {
    return LLVM::LLVMPointerType::get(b.getContext());
  } else {
    static_assert(std::is_integral_v<T>);
    return b.getIntegerType(8 * sizeof(T));
  }
}

/// The type in MLIR of a pointer to a C function.
template <typename Result, typename... Parameters>
LLVM::LLVMFunctionType getRuntimeType(Builder &b, Result (*)(Parameters...)) {
  return LLVM::LLVMFunctionType::get(getRuntimeType<Result>(b),
                                     {getRuntimeType<Parameters>(b)...});
}

/// The bytes of a structure of abi.h from `offset` on, as integers.
template <typename Integer, typename Struct>
SmallVector<Integer> getIntegers(const Struct &structure, size_t offset = 0) {
  static_assert(std::is_trivially_copyable_v<Struct> &&
                sizeof(Struct) % sizeof(Integer) == 0);
  SmallVector<Integer> integers((sizeof(Struct) - offset) / sizeof(Integer));
  std::memcpy(integers.data(),
              reinterpret_cast<const char *>(&structure) + offset,
              sizeof(Struct) - offset);
  return integers;
}

/// The structure that a call of a library gets for an op on buffers.
tprt_gemm_args getRuntimeArguments(tprt::GemmOp op);
tprt_attention_args getRuntimeArguments(tprt::AttentionOp op);
tprt_attention_gradient_args getRuntimeArguments(tprt::AttentionGradientOp op);
tprt_attention_block_args getRuntimeArguments(tprt::AttentionBlockOp op);
tprt_attention_block_gradient_args
getRuntimeArguments(tprt::AttentionBlockGradientOp op);
tprt_convolution_args getRuntimeArguments(tprt::ConvolutionOp op);
tprt_grouped_gemm_args getRuntimeArguments(tprt::GroupedGemmOp op);
tprt_sort_args getRuntimeArguments(tprt::SortOp op);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_CPU_RUNTIMEABI_H
