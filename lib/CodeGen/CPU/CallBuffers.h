//===- CallBuffers.h - Where the buffers of calls are -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call of a function with tprt::kRepeatedAttr passes no addresses. It passes
// constant numbers that say where each buffer is, so that a program takes few
// instructions for a call, however many buffers that has. Three numbers describe
// a buffer: a table of addresses, the place in it, and the bytes behind that
// address.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_CPU_CALLBUFFERS_H
#define TP_LIB_CODEGEN_CPU_CALLBUFFERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp {

/// The tables of addresses, by number.
enum class AddressTable {
  Inputs,
  Parameters,
  Outputs,
  Own, ///< the arena and others; filled by the program
};
constexpr int64_t kNumAddressTables = 4;
constexpr int64_t kNumbersPerBuffer = 3;

class CallBuffers {
public:
  /// Sets the program whose calls follow. If it has any, adds an argument for
  /// the tables, and fills its own one.
  void setProgram(OpBuilder &b, func::FuncOp program, Value arena);

  /// The numbers that describe the buffers of `call`, and then the arena.
  SmallVector<int64_t> describe(tprt::CallOp call) const;

  /// The address of the tables' addresses.
  Value getTables() const { return tables; }

  /// Erases the arguments of the program that only calls used, and lets the
  /// others tell their places.
  void eraseUnusedArguments(func::FuncOp program) const;

private:
  struct Place {
    AddressTable table;
    int64_t index;
  };
  void fillOwnTable(OpBuilder &b, func::FuncOp program);

  Value tables;                  ///< null if the program has no calls
  DenseMap<Value, Place> places; ///< of buffers that aren't views of others
  SetVector<Value> own;          ///< those of the program's own table
  bool hasArena = false;
};

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_CPU_CALLBUFFERS_H
