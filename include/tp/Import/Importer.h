//===- Importer.h - models of one format to MLIR ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_IMPORT_IMPORTER_H
#define TP_IMPORT_IMPORTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tp/Import/ForwardSignature.h"
#include "tp/Import/InputSpec.h"
#include "tp/Import/SafetensorsWriter.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <vector>

namespace mlir::tp {

/// A model as MLIR, and the tensors that its `nn.parameter` ops name.
struct ImportedModel {
  OwningOpRef<ModuleOp> module;
  std::vector<WeightTensor> weights;
};

/// Imports the models of one format. Options that only this format has are
/// members of the importer, as those of a pass are.
class Importer {
public:
  virtual ~Importer();

  /// The format's name, for the help: "TorchScript".
  virtual llvm::StringRef getFormat() const = 0;

  /// The options that only this format has.
  virtual llvm::SmallVector<const llvm::cl::Option *> getOptions() const {
    return {};
  }

  /// Whether the file's contents or name are of this format.
  virtual bool recognizes(llvm::StringRef path) const = 0;

  /// Imports the model at `path`, specialized to the given inputs. The result
  /// is a module with one function `main`, whose body is the root `nn.module`.
  /// Shapes are static, and everything that depends on shapes alone is folded.
  ///
  /// Inputs are matched to `forward`'s arguments by name. If no name matches,
  /// they are matched by position, with a note on `notes`. `signatures` say
  /// what the arguments of modules are where the file doesn't.
  ///
  /// The error is one text for the user: the file is of another format, inputs
  /// or shapes don't fit, or a list of everything in the model that isn't
  /// supported. Loads the nn, func and tp dialects.
  virtual llvm::Expected<ImportedModel> run(MLIRContext *context,
                                            llvm::StringRef path,
                                            llvm::ArrayRef<InputSpec> inputs,
                                            const ForwardSignatures &signatures,
                                            llvm::raw_ostream &notes) const = 0;

  /// Prints the ops that can be imported and, for each, how every argument of
  /// its overloads is treated: honored (or refused with a reason), reflected
  /// in the result's type, without effect on values, or accepted only at its
  /// default.
  virtual void printOps(llvm::raw_ostream &os) const = 0;
};

/// Makes every importer, each with its own options in `category` of the command
/// line. They must outlive its parsing.
std::vector<std::unique_ptr<Importer>>
createImporters(llvm::cl::OptionCategory &category);

/// The importer that recognizes the file, else the first one, whose error then
/// says what the file looks like.
const Importer &
chooseImporter(llvm::ArrayRef<std::unique_ptr<Importer>> importers,
               llvm::StringRef path);

} // namespace mlir::tp

#endif // TP_IMPORT_IMPORTER_H
