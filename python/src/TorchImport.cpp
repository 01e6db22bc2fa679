//===- TorchImport.cpp - The importers, with LibTorch ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module of its own, because it needs the LibTorch of a PyTorch that this
// process has loaded. It has its own MLIR context, and gives programs to
// _native as bytecode.
//
//===----------------------------------------------------------------------===//

#include "../../tools/tp-import/ImportTool.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Import/Importer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace nb = nanobind;
using namespace mlir;

/// They are made once, because their options are global, and never destroyed,
/// because LLVM's globals may go first.
static const std::vector<std::unique_ptr<tp::Importer>> &getImporters() {
  static auto *importers = [] {
    static auto *category = new llvm::cl::OptionCategory("importers");
    return new auto(tp::createImporters(*category));
  }();
  return *importers;
}

/// The element type of a safetensors file as DLPack has it.
static nb::dlpack::dtype getType(const tp::WeightTensor &weight) {
  using Code = nb::dlpack::dtype_code;
  llvm::StringRef name = weight.dtype;
  Code code = name == "BF16"          ? Code::Bfloat
              : name == "BOOL"        ? Code::Bool
              : name.starts_with("F") ? Code::Float
              : name.starts_with("U") ? Code::UInt
                                      : Code::Int;
  return {static_cast<uint8_t>(code),
          static_cast<uint8_t>(8 * weight.elementBytes), 1};
}

namespace {
/// A program, before Python's objects are made of it.
struct Result {
  std::string bytecode, notes;
  std::vector<tp::WeightTensor> weights;
};
} // namespace

static llvm::Error importFile(const std::string &path,
                              const std::vector<std::string> &inputTexts,
                              const std::string &signature, Result &result) {
  MLIRContext context;
  std::vector<tp::InputSpec> inputs;
  for (const std::string &text : inputTexts) {
    auto input = tp::parseInputSpec(&context, text);
    if (!input)
      return input.takeError();
    inputs.push_back(std::move(*input));
  }
  tp::ForwardSignatures signatures;
  if (!signature.empty()) {
    auto given = tp::readForwardSignatures(signature);
    if (!given)
      return given.takeError();
    signatures = std::move(*given);
  }
  llvm::raw_string_ostream notes(result.notes), os(result.bytecode);
  auto model = tp::chooseImporter(getImporters(), path)
                   .run(&context, path, inputs, signatures, notes);
  if (!model)
    return model.takeError();
  if (failed(writeBytecodeToFile(*model->module, os)))
    return llvm::createStringError("the program has no bytecode");
  result.weights = std::move(model->weights);
  return llvm::Error::success();
}

/// The weight as an object of the DLPack protocol, which keeps its memory alive.
static nb::object makeArray(const tp::WeightTensor &weight) {
  auto held = std::make_unique<std::shared_ptr<const char>>();
  {
    nb::gil_scoped_release unlocked;
    *held = weight.load();
  }
  const char *data = held->get();
  nb::capsule owner(held.release(), [](void *pointer) noexcept {
    delete static_cast<std::shared_ptr<const char> *>(pointer);
  });
  std::vector<size_t> shape(weight.shape.begin(), weight.shape.end());
  return nb::cast(nb::ndarray<nb::array_api>(
      const_cast<char *>(data), shape.size(), shape.data(), owner, nullptr,
      getType(weight), nb::device::cpu::value));
}

namespace {
/// A file without a name, which has the bytes of an archive.
class UnnamedFile {
public:
  explicit UnnamedFile(const nb::bytes &bytes)
      : descriptor(memfd_create("tp-mlir", MFD_CLOEXEC)) {
    nb::gil_scoped_release unlocked;
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/false);
    if (descriptor >= 0)
      os << llvm::StringRef(bytes.c_str(), bytes.size());
    os.flush();
    isWritten = !os.has_error();
    os.clear_error();
  }
  ~UnnamedFile() {
    if (descriptor >= 0)
      close(descriptor);
  }
  UnnamedFile(const UnnamedFile &) = delete;

  std::string getPath() const {
    if (!isWritten)
      throw std::bad_alloc();
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  int descriptor;
  bool isWritten = false;
};
} // namespace

/// Imports the archive at a path (a `str`) or of `bytes`, which messages call
/// `name`. Returns the program's bytecode and notes, its weights but those of
/// the names `without`, and the names of all.
static nb::tuple readArchive(nb::handle archive, const std::string &name,
                             const std::vector<std::string> &inputs,
                             const std::string &signature, bool withWeights,
                             const std::set<std::string> &without) {
  std::optional<UnnamedFile> unnamed;
  if (nb::isinstance<nb::bytes>(archive))
    unnamed.emplace(nb::borrow<nb::bytes>(archive));
  std::string path =
      unnamed ? unnamed->getPath() : nb::cast<std::string>(archive);
  Result result;
  std::string problem;
  {
    nb::gil_scoped_release unlocked;
    if (llvm::Error error = importFile(path, inputs, signature, result))
      problem = llvm::toString(std::move(error));
  }
  for (std::string *text : {&problem, &result.notes})
    *text = llvm::join(llvm::split(*text, "'" + path + "'"), "'" + name + "'");
  if (!problem.empty())
    throw nb::value_error(problem.c_str());
  nb::dict weights;
  std::vector<std::string> names;
  for (const tp::WeightTensor &weight : result.weights) {
    names.push_back(weight.name);
    if (withWeights && !without.contains(weight.name))
      weights[weight.name.c_str()] = makeArray(weight);
  }
  return nb::make_tuple(
      nb::bytes(result.bytecode.data(), result.bytecode.size()), result.notes,
      weights, names);
}

/// Runs tp-import with its arguments, the first one its name.
static int runTool(std::vector<std::string> arguments) {
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  return runImportTool(arguments.size(), argv.data());
}

/// _torch_import_2_13, for PyTorch 2.13.
#define TP_MODULE_OF(version) _torch_import_##version
#define TP_MODULE(version) TP_MODULE_OF(version)

NB_MODULE(TP_MODULE(TP_TORCH_VERSION), module) {
  using namespace nb::literals;
  module.doc() = "The importers, which need the LibTorch of this process.";
  module.def("run_tool", &runTool, "arguments"_a);
  module.def("read", &readArchive, "archive"_a, "name"_a, "inputs"_a,
             "signature"_a, "weights"_a, "without"_a);
}
