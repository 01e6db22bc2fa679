//===- TorchExportImporter.cpp - the importer of torch.export -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExportArchive.h"
#include "ExportOps.h"
#include "ExportRunner.h"
#include "Import/Aten/TorchArchive.h"
#include "SymbolicShapes.h"
#include "tp/Dialect/TP/TP.h"
#include "llvm/ADT/StringExtras.h"
#include <ATen/core/grad_mode.h>
#include <numeric>

using namespace mlir;
using namespace mlir::tp;
namespace cl = llvm::cl;

namespace {
/// Imports archives that `torch.export.save` wrote.
class TorchExportImporter final : public Importer {
public:
  explicit TorchExportImporter(cl::OptionCategory &category)
      : category(category) {}

  StringRef getFormat() const override { return "torch.export"; }
  llvm::SmallVector<const cl::Option *> getOptions() const override {
    const cl::Option &option = states; // a list's & gives its values
    return {&option};
  }
  bool recognizes(StringRef path) const override {
    return isArchive(path, ArchiveFormat::TorchExport);
  }
  llvm::Expected<ImportedModel> run(MLIRContext *context, StringRef path,
                                    llvm::ArrayRef<InputSpec> inputs,
                                    const ForwardSignatures &signatures,
                                    llvm::raw_ostream &notes) const override;
  void printOps(llvm::raw_ostream &os) const override { printAtenOps(os); }

private:
  cl::OptionCategory &category;
  cl::list<std::string> states{
      "state", cl::value_desc("FQN,..."), cl::CommaSeparated,
      cl::desc("Buffers that the model only reads, that its state_dict "
               "doesn't have, and that other programs of the artifact write: "
               "parameters that keep their value, instead of constants"),
      cl::cat(category)};
};
} // namespace

/// Constants that PyTorch makes of values in the code; others are attributes of
/// modules.
static bool isLifted(const ExportInput &input) {
  return input.kind == ExportInput::Constant &&
         StringRef(input.name).contains("lifted_tensor");
}

/// The values that the program writes in place, themselves or a view of them.
static llvm::DenseSet<ValueId> findWritten(const ExportedProgram &program) {
  std::vector<ValueId> bases(program.values.size());
  std::iota(bases.begin(), bases.end(), 0);
  llvm::DenseSet<ValueId> written;
  for (const ExportStep &step : program.steps) {
    const c10::FunctionSchema *schema = nameOp(step).schema;
    if (!schema)
      continue;
    for (const ExportArgument &given : step.arguments) {
      auto index = schema->argumentIndexWithName(given.name);
      if (!index || given.operands.size() != 1 || !given.operands[0].value)
        continue;
      const c10::AliasInfo *alias = schema->arguments()[*index].alias_info();
      if (!alias)
        continue;
      ValueId base = bases[*given.operands[0].value];
      if (alias->isWrite())
        written.insert(base);
      for (auto &ids : step.results)
        for (ValueId id : ids)
          bases[id] = base;
    }
  }
  return written;
}

/// Binds the tensors that the program has itself. A constant that PyTorch has
/// lifted is state of the model if it is the memory of a buffer, as that of a
/// cache which isn't a module, or if the program writes it.
static void bindData(const ExportedProgram &program, ExportArchive &archive,
                     ModelBuilder &builder, ExportRunner &runner) {
  llvm::DenseSet<ValueId> written = findWritten(program);
  llvm::DenseMap<const void *, const ExportInput *> buffers; // by storage
  auto keyOf = [](const at::Tensor &data) {
    return data.storage().unsafeGetStorageImpl();
  };
  for (const ExportInput &input : program.inputs)
    if (input.kind == ExportInput::Buffer)
      if (at::Tensor data = archive.getTensor(input.name); data.numel() > 0)
        buffers.try_emplace(keyOf(data), &input);
  for (const ExportInput &input : program.inputs) {
    if (input.isArgument())
      continue;
    at::Tensor data = archive.getTensor(input.name);
    const ExportInput *buffer =
        isLifted(input) ? buffers.lookup(keyOf(data)) : nullptr;
    // What has no values can't be a constant.
    bool isState = buffer || written.contains(input.value) || data.is_meta();
    if (data.is_meta() && data.is_complex()) {
      builder.ops.problem(ImportProblem::UnsupportedOp, "",
                          "'" + llvm::Twine(input.name) +
                              "' is complex and has no values, because the "
                              "model was built on the meta device; build it "
                              "on the CPU");
      continue;
    }
    // A complex buffer is a constant of pairs of reals.
    if ((isLifted(input) && !isState) ||
        (data.is_complex() && !data.requires_grad())) {
      runner.bind(input.value, data);
      continue;
    }
    if (buffer && DataKey(data) != DataKey(archive.getTensor(buffer->name))) {
      builder.ops.problem(ImportProblem::UnsupportedOp, "",
                          "the program uses a view of the memory of buffer '" +
                              llvm::Twine(buffer->name) +
                              "', made before the export; make it in forward");
      continue;
    }
    if (buffer) {
      runner.bindParameter(*buffer, input.value, data);
      continue;
    }
    if (data.is_meta() && !input.isSaved)
      builder.note() << "'" << input.name
                     << "' has no values, because the model was built on the "
                        "meta device, and a state_dict doesn't have it: a run "
                        "needs weights that have it too\n";
    builder.table.reserveName(input.name);
    if (convertType(builder.b.getContext(), data.scalar_type()))
      runner.bindParameter(input, input.value, data);
    else
      builder.ops.problem(ImportProblem::UnsupportedOp, "",
                          llvm::Twine("element type ") +
                              c10::toString(data.scalar_type()) + " of '" +
                              input.name + "'");
  }
}

/// Says how the sizes of inputs and outputs depend on the program's symbols, if
/// an input has any.
static void setSymbolicShapes(func::FuncOp function,
                              const ExportedProgram &program,
                              const ExportShapes &shapes,
                              llvm::ArrayRef<size_t> outputs) {
  Builder b(function.getContext());
  auto print = [&](llvm::ArrayRef<SymbolicSize> shape) {
    llvm::SmallVector<std::string> texts = printShape(shape, program, shapes);
    return b.getStrArrayAttr(llvm::to_vector_of<StringRef>(texts));
  };
  llvm::SmallVector<ArrayAttr> inputs;
  for (const ExportInput &input : program.inputs)
    if (input.kind == ExportInput::Tensor)
      inputs.push_back(print(input.tensor.shape));
  auto isNumber = [](StringAttr text) {
    return llvm::all_of(text.getValue(), llvm::isDigit);
  };
  if (llvm::all_of(inputs, [&](ArrayAttr shape) {
        return llvm::all_of(shape.getAsRange<StringAttr>(), isNumber);
      }))
    return;
  for (auto [i, shape] : llvm::enumerate(inputs))
    function.setArgAttr(i, kSymbolicShapeAttr, shape);
  for (auto [i, output] : llvm::enumerate(outputs))
    if (ArrayAttr shape = print(program.outputShapes[output]);
        static_cast<int64_t>(shape.size()) ==
        cast<RankedTensorType>(function.getResultTypes()[i]).getRank())
      function.setResultAttr(i, kSymbolicShapeAttr, shape);
}

static llvm::Expected<ImportedModel>
importProgram(ModelBuilder &builder, const ExportedProgram &program,
              ExportArchive &archive, llvm::ArrayRef<InputSpec> inputs,
              const ForwardSignatures &signatures) {
  llvm::SmallVector<ForwardArgument> arguments;
  for (const ExportInput &input : program.inputs)
    if (input.kind == ExportInput::Tensor)
      arguments.push_back({input.name, /*isOptional=*/true});
  auto matched = builder.matchInputs(arguments, inputs);
  if (!matched)
    return matched.takeError();
  llvm::SmallVector<const InputSpec *> given;
  size_t next = 0;
  for (const ExportInput &input : program.inputs)
    given.push_back(input.kind == ExportInput::Tensor ? (*matched)[next++]
                                                      : nullptr);
  auto shapes = bindShapes(program, given);
  if (!shapes)
    return builder.error(llvm::toString(shapes.takeError()));
  for (const std::string &name : program.writtenInputs)
    builder.noteWrittenInput(name);

  at::NoGradGuard noGrad;
  ExportRunner runner(program, builder, signatures);
  for (auto [input, spec, shape] :
       llvm::zip_equal(program.inputs, given, *shapes)) {
    if (input.kind == ExportInput::Number)
      runner.bind(input.value, shape.front());
    if (input.kind != ExportInput::Tensor)
      continue;
    Type element = convertType(builder.b.getContext(), input.tensor.type);
    if (!element)
      return builder.error("input '" + input.name + "' has element type " +
                           c10::toString(input.tensor.type) +
                           ", expected f32, f64, f16, bf16, i64, i32, i16, "
                           "i8, ui8 or i1");
    runner.bind(input.value,
                builder.addInput(spec ? spec->name : input.name,
                                 RankedTensorType::get(shape, element)));
  }
  bindData(program, archive, builder, runner);
  auto model = builder.finish(runner.run());
  if (model)
    setSymbolicShapes(*model->module->getOps<func::FuncOp>().begin(), program,
                      *shapes, runner.getTensorOutputs());
  return model;
}

llvm::Expected<ImportedModel> TorchExportImporter::run(
    MLIRContext *context, StringRef path, llvm::ArrayRef<InputSpec> inputs,
    const ForwardSignatures &signatures, llvm::raw_ostream &notes) const {
  auto format = identifyArchive(path);
  if (!format)
    return format.takeError();
  if (llvm::Error error = checkRecords(path))
    return std::move(error);
  // No exception may leave, because the callers are compiled without
  // exceptions.
  std::unique_ptr<ExportArchive> archive;
  ExportedProgram program;
  try {
    archive = std::make_unique<ExportArchive>(path);
    program = archive->readProgram();
  } catch (const std::exception &exception) {
    return makeLoadError(path, describeException(exception));
  }
  ModelBuilder builder(context, path, notes);
  builder.states.assign(states.begin(), states.end());
  try {
    return importProgram(builder, program, *archive, inputs, signatures);
  } catch (const std::exception &exception) {
    return builder.error(describeException(exception));
  }
}

namespace mlir::tp {
std::unique_ptr<Importer>
createTorchExportImporter(llvm::cl::OptionCategory &category) {
  return std::make_unique<TorchExportImporter>(category);
}
} // namespace mlir::tp
