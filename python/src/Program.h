//===- Program.h - Programs in MLIR -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PYTHON_PROGRAM_H
#define TP_PYTHON_PROGRAM_H

#include "Errors.h"
#include "mlir/IR/OwningOpRef.h"
#include "tp/Embedding/Programs.h"
#include "tprt/TensorMap.h"
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

namespace mlir::tp::python {

/// A context, which one thread at a time uses.
struct Context {
  static std::shared_ptr<Context> make();

  mlir::MLIRContext context;
  std::mutex mutex;
  int process; ///< that has made it

private:
  Context();
};

/// The values of options, by name.
using Options = std::map<std::string, std::variant<bool, int64_t, std::string>>;
/// The texts of files in memory, by name.
using Files = std::map<std::string, std::string_view>;

/// A module with the weights that were imported with it. Functions may be
/// called by several threads, and without the GIL.
class Program {
public:
  Program(std::shared_ptr<Context> context,
          mlir::OwningOpRef<mlir::ModuleOp> module)
      : context(std::move(context)), module(std::move(module)) {}
  ~Program();

  /// Throws a CompileError.
  static std::unique_ptr<Program> parse(std::string_view source,
                                        const std::string &name);

  std::string print(bool withLocations) const;
  std::string writeBytecode() const;
  std::unique_ptr<Program> clone() const;
  /// Throws a CompileError, as do the others.
  std::unique_ptr<Program> parallelize(const Options &options,
                                       const Files &files) const;
  /// Returns those of `outputs` that were written. If passes fail, the program
  /// isn't changed.
  std::map<std::string, std::string>
  runPipeline(const std::string &pipeline, const Files &files,
              const std::vector<std::string> &outputs);
  std::string getReport() const;

  struct Named {
    std::string name;
    const Program *program;
  };
  /// Returns the warnings.
  static std::vector<Message> compile(const std::vector<Named> &programs,
                                      const mlir::tp::CompileOptions &options,
                                      const std::string &path);

  std::shared_ptr<const tprt::TensorMap> weights =
      std::make_shared<tprt::TensorMap>();
  std::vector<std::string> weightNames; ///< of the imported model
  std::string notes;
  std::vector<Message> messages; ///< without errors

private:
  std::unique_ptr<Program> makeCopy() const;
  /// Runs `work` on this program's module, with its context locked. Throws a
  /// CompileError if it fails; otherwise returns the messages.
  std::vector<Message>
  withModule(const std::function<bool(mlir::ModuleOp)> &work) const;

  std::shared_ptr<Context> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace mlir::tp::python

#endif // TP_PYTHON_PROGRAM_H
