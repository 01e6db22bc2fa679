//===- AtenTable.cpp - which ops there are, and their arguments -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::tp;

AtenTable mlir::tp::makeAtenTable() {
  AtenTable table;
  addElementwiseOps(table);
  addContractionOps(table);
  addConvolutionOps(table);
  addNormalizationOps(table);
  addPoolingOps(table);
  addResizeOps(table);
  addActivationOps(table);
  addReductionOps(table);
  addShapeOps(table);
  addIndexOps(table);
  addSortOps(table);
  addScatterOps(table);
  addGroupedOps(table);
  addStridedOps(table);
  addLossOps(table);
  addTransformerOps(table);
  addTrigonometryOps(table);
  addSpecialOps(table);
  addBesselOps(table);
  addScanOps(table);
  addLinearSolverOps(table);
  addCtcOps(table);
  addArithmeticOps(table);
  addBitwiseOps(table);
  addDiagonalOps(table);
  addNormOps(table);
  addGridOps(table);
  addBagOps(table);
  addComplexOps(table);
  addFourierOps(table);
  return table;
}

bool AtenOp::isIn(StringRef list, StringRef name) {
  return llvm::is_contained(llvm::split(list, ' '), name);
}

StringRef mlir::tp::explainNoEffect(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("device", "the artifact says where it runs")
      .Cases({"layout", "memory_format", "pin_memory"},
             "where elements lie in memory is the compiler's choice")
      .Cases({"non_blocking", "copy"}, "values are never overwritten")
      .Cases({"cudnn_enable", "cudnn_enabled", "benchmark", "deterministic",
              "allow_tf32"},
             "it chooses a kernel")
      .Case("momentum", "statistics change in training mode alone")
      .Case("path", "the order of contractions")
      .Case("assume_unique", "repeated elements are allowed")
      .Case("compute_mode", "it chooses among formulas")
      .Case("generator", "no number is drawn")
      .Cases({"sparse", "sparse_grad"}, "how the gradient is stored")
      .Case("sorted", "the results are always sorted")
      .Case("stable", "equal elements keep their order")
      .Case("unsafe", "indices are always checked")
      .Case("output_size", "the repeats say it")
      .Case("implicit", "it only records how the op was called")
      .Case("check_errors", "the result of a singular matrix isn't finite")
      .Case("embed_dim", "the weights' shapes say it")
      .Case("average_attn_weights",
            "it concerns need_weights=True, which is refused")
      .Case("mask_type", "it describes a mask, which is refused")
      .Default("");
}

void mlir::tp::printAtenOps(raw_ostream &os) {
  AtenTable table = makeAtenTable();
  std::vector<StringRef> names(table.keys().begin(), table.keys().end());
  llvm::sort(names);
  for (StringRef name : names) {
    const AtenOp &op = table[name];
    os << (name.contains("::") ? "" : "aten::") << name << "\n";
    auto print = [&](StringRef title, StringRef list) {
      if (list.empty())
        return;
      os << "  " << title << ": ";
      llvm::interleaveComma(llvm::split(list, ' '), os, [&](StringRef name) {
        os << name;
        if (StringRef reason = explainNoEffect(name);
            AtenOp::isIn(op.noEffect, name))
          os << " (" << reason << ")";
      });
      os << "\n";
    };
    print("read", op.reads);
    print("in the result's type", op.inType);
    print("without effect", op.noEffect);
    print("must be the default", op.refuses);
  }
}
