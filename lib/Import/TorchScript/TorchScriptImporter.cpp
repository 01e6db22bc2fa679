//===- TorchScriptImporter.cpp - the importer of TorchScript --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Import/Aten/AtenCall.h"
#include "Import/Aten/TorchArchive.h"
#include "TorchModule.h"
#include <torch/csrc/jit/serialization/import.h>

using namespace mlir;
using namespace mlir::tp;
namespace cl = llvm::cl;

namespace {
/// Imports archives that `torch.jit.save` wrote, of scripted or traced modules.
class TorchScriptImporter final : public Importer {
public:
  explicit TorchScriptImporter(cl::OptionCategory &category)
      : category(category) {}

  StringRef getFormat() const override { return "TorchScript"; }
  llvm::SmallVector<const cl::Option *> getOptions() const override {
    return {&eval};
  }
  bool recognizes(StringRef path) const override {
    return isArchive(path, ArchiveFormat::TorchScript);
  }
  llvm::Expected<ImportedModel> run(MLIRContext *context, StringRef path,
                                    llvm::ArrayRef<InputSpec> inputs,
                                    const ForwardSignatures &signatures,
                                    llvm::raw_ostream &notes) const override;
  void printOps(llvm::raw_ostream &os) const override { printAtenOps(os); }

private:
  cl::OptionCategory &category;
  /// Modules keep the mode in which they were saved, unless this puts them all
  /// in evaluation mode. The mode decides whether a scripted module has
  /// dropout.
  cl::opt<bool> eval{
      "eval",
      cl::desc("Import a scripted model in evaluation mode, even if it was "
               "saved in training mode"),
      cl::cat(category)};
};
} // namespace

llvm::Expected<ImportedModel> TorchScriptImporter::run(
    MLIRContext *context, StringRef path, llvm::ArrayRef<InputSpec> inputs,
    const ForwardSignatures &signatures, llvm::raw_ostream &notes) const {
  auto format = identifyArchive(path);
  if (!format)
    return format.takeError();
  if (llvm::Error error = checkRecords(path))
    return std::move(error);
  std::optional<torch::jit::Module> root;
  try {
    root = torch::jit::load(path.str(), at::kCPU);
    if (eval)
      root->eval();
  } catch (const std::exception &exception) {
    return makeLoadError(path, describeException(exception));
  }
  // No exception may leave, because the callers are compiled without
  // exceptions.
  try {
    return importTorchModule(context, *root, path, inputs, notes, signatures);
  } catch (const std::exception &exception) {
    return llvm::createStringError("cannot import '" + path +
                                   "': " + describeException(exception));
  }
}

namespace mlir::tp {
std::unique_ptr<Importer>
createTorchScriptImporter(cl::OptionCategory &category) {
  return std::make_unique<TorchScriptImporter>(category);
}
} // namespace mlir::tp
