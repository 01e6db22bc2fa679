//===- CallNumbers.h - In what calls of a function differ -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function with tprt::kRepeatedAttr takes a table of numbers as its last
// argument: the offsets of its buffers, the indices of its marks, the ids of its
// collectives, and the numbers of the texts of its index checks, which name the
// modules.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_CPU_CALLNUMBERS_H
#define TP_LIB_CODEGEN_CPU_CALLNUMBERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

class CallNumbers {
public:
  /// Adds marks and collectives to the tables of the module's functions, which
  /// hold offsets so far. Fails if a call lists other numbers than its function
  /// needs.
  LogicalResult extendTables(ModuleOp module);

  /// The numbers of the table that `call` passes.
  SmallVector<int64_t> getNumbers(tprt::CallOp call);

  /// Sets the function that the following numbers are for.
  void setFunction(func::FuncOp function);

  /// A mark's index, or a collective's id: a constant in a program; in a
  /// function that is called, an entry of its table.
  Value getMark(OpBuilder &b, Location loc, int64_t index);
  Value getCollective(OpBuilder &b, Location loc, int64_t id);
  /// The number of the text of an index check; null in a program, where the
  /// text is that of the op.
  Value getText(OpBuilder &b, tprt::CheckIndexOp check);
  Value getSite(OpBuilder &b, tprt::SiteOp site);

  /// The texts that tables and sites refer to, by number.
  ArrayRef<std::string> getTexts() const { return texts; }

private:
  /// An index check of a function: the position of its op in the origins of a
  /// call, and what its text says behind the FQN.
  struct Check {
    int64_t position;
    std::string rest;
  };
  /// How many numbers of each kind a table has, in this order.
  struct Counts {
    int64_t offsets = 0, marks = 0, collectives = 0, texts = 0;
  };
  void addCheck(func::FuncOp function, Operation *check, StringRef what);
  int64_t getText(tprt::CallOp call, const Check &check);
  int64_t getText(StringRef text);
  Value getText(OpBuilder &b, Operation *check);
  LogicalResult check(tprt::CallOp call);
  static MemRefType getTableType(Builder &b, const Counts &counts);
  Value getNumber(OpBuilder &b, Location loc, int64_t number, int64_t first);

  DenseMap<StringAttr, Counts> countsOf; ///< by the function's name
  DenseMap<StringAttr, std::vector<Check>> checksOf;
  DenseMap<Operation *, int64_t> places; ///< of checks and sites in a function
  std::vector<std::string> texts;
  llvm::StringMap<int64_t> textNumbers;
  Value table; ///< of the function; null in a program
  Counts counts;
};

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_CPU_CALLNUMBERS_H
