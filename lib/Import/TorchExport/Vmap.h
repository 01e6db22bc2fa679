//===- Vmap.h - torch.vmap in exported programs -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that was exported with strict=True has the ops of a function that
// torch.vmap maps, and ops that add and remove the mapped dimensions (torch.
// _functorch.predispatch). Version 4 of transformers makes its masks so.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_TORCHEXPORT_VMAP_H
#define TP_LIB_IMPORT_TORCHEXPORT_VMAP_H

#include "ExportedProgram.h"
#include "Import/Aten/TorchOps.h"

namespace mlir::tp {

/// Runs the ops between the entry to torch.vmap and its exit. The tensors of
/// such an op are without the mapped dimensions; those that run have them in
/// front, one for each level of nesting that maps the tensor.
class Vmap {
public:
  explicit Vmap(OpRunner &ops) : ops(ops) {}

  /// Whether the op belongs to torch.vmap or takes a mapped tensor.
  bool concerns(const ExportStep &step) const;

  /// How many mapped dimensions the value has in front of its own.
  size_t countLevels(ValueId id) const { return mapped.lookup(id).size(); }

  /// The results of such an op; none if they are unknown because of a problem.
  OpRunner::Results run(const ExportStep &step,
                        std::vector<c10::IValue> inputs);

private:
  /// The levels that map a tensor, outermost first.
  using Levels = llvm::SmallVector<int64_t, 4>;

  Levels getLevels(const ExportArgument &argument, size_t i) const;
  std::optional<at::Tensor> call(StringRef target, const ExportStep &step,
                                 std::vector<c10::IValue> inputs);
  OpRunner::Results add(const ExportStep &step,
                        llvm::ArrayRef<c10::IValue> inputs);
  OpRunner::Results remove(const ExportStep &step,
                           llvm::ArrayRef<c10::IValue> inputs);
  bool promote(const ExportStep &step, std::vector<c10::IValue> &inputs);
  std::optional<Levels> align(const ExportStep &step, size_t first,
                              int64_t rank, std::vector<c10::IValue> &inputs);

  OpRunner &ops;
  llvm::DenseMap<ValueId, Levels> mapped;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_VMAP_H
