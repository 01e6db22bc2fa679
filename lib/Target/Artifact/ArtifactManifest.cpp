//===- ArtifactManifest.cpp - The manifest of an artifact -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ArtifactManifest.h"
#include "ObjectFile.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tprt/abi.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::tp;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static std::string number(StringRef name, size_t i) {
  return i == 0 ? name.str() : (name + "_" + llvm::Twine(i)).str();
}

std::string tp::getEntryName(size_t program, size_t cpu,
                             const Targets &targets) {
  return number(TPRT_ENTRY_SYMBOL, program * targets.machines.size() + cpu);
}

std::string tp::getDeviceCodeName(size_t program) {
  return number(TPRT_DEVICE_CODE_SYMBOL, program);
}

static llvm::json::Object describeCPU(const llvm::TargetMachine &machine) {
  llvm::json::Array features;
  for (std::string &feature : getNeededFeatures(machine))
    features.push_back(std::move(feature));
  return llvm::json::Object{{"cpu", machine.getTargetCPU()},
                            {"features", std::move(features)}};
}

static llvm::json::Object describeTarget(const Targets &targets) {
  const auto &[architectures, machines] = targets;
  llvm::json::Object target = describeCPU(*machines.front());
  target["triple"] = machines.front()->getTargetTriple().str();
  llvm::json::Array variants;
  for (const auto &machine : llvm::drop_begin(machines))
    variants.push_back(describeCPU(*machine));
  if (!variants.empty())
    target["variants"] = std::move(variants);
  if (!architectures.empty()) {
    target["device"] = "cuda";
    target["architectures"] = llvm::json::Array(architectures);
  }
  return target;
}

//===----------------------------------------------------------------------===//
// What programs must agree on
//===----------------------------------------------------------------------===//

/// "2x64xf32", of a TENSOR.
static std::string describeType(DictionaryAttr tensor) {
  std::string text;
  for (int64_t size : tensor.getAs<DenseI64ArrayAttr>("shape").asArrayRef())
    text += std::to_string(size) + "x";
  return text + tensor.getAs<StringAttr>("dtype").str();
}

/// "(Shard(0), Replicate)".
static std::string describePlacements(DictionaryAttr tensor) {
  auto placements =
      tensor.getAs<ArrayAttr>("placements").getAsRange<StringAttr>();
  return "(" +
         llvm::join(llvm::map_range(placements,
                                    [](StringAttr text) { return text.str(); }),
                    ", ") +
         ")";
}

/// "(dp = 2, tp = 4) of 'mesh'".
static std::string describeMesh(DictionaryAttr manifest) {
  auto mesh = manifest.getAs<DictionaryAttr>("mesh");
  std::string text;
  for (auto axis : mesh.getAs<ArrayAttr>("axes").getAsRange<DictionaryAttr>())
    text += (text.empty() ? "" : ", ") + axis.getAs<StringAttr>("name").str() +
            " = " + std::to_string(axis.getAs<IntegerAttr>("size").getInt());
  return "(" + text + ") of '" + mesh.getAs<StringAttr>("name").str() + "'";
}

/// The names and types of a program's inputs, by name.
static std::map<std::string, std::string> getInputs(DictionaryAttr manifest) {
  std::map<std::string, std::string> inputs;
  for (auto input :
       manifest.getAs<ArrayAttr>("inputs").getAsRange<DictionaryAttr>())
    inputs[input.getAs<StringAttr>("name").str()] = describeType(input);
  return inputs;
}

static llvm::Error checkPair(const ProgramManifest &one,
                             const ProgramManifest &other) {
  if (one.name == other.name)
    return makeError("two programs have the name '" + one.name + "'");
  if (one.manifest.get("mesh") != other.manifest.get("mesh"))
    return makeError("program '" + other.name + "' is for the mesh " +
                     describeMesh(other.manifest) + ", '" + one.name +
                     "' for " + describeMesh(one.manifest) +
                     "; the programs of an artifact have one mesh");
  if (getInputs(one.manifest) == getInputs(other.manifest))
    return makeError("programs '" + one.name + "' and '" + other.name +
                     "' take inputs of the same names, types and shapes, so a "
                     "run can't choose between them by its inputs");
  return llvm::Error::success();
}

namespace {
/// A parameter, and the programs that it is known from.
struct SharedParameter {
  DictionaryAttr tensor;
  StringRef program;        ///< the first one that has it
  StringRef updatedBy = {}; ///< the first one that updates it, if any
};
} // namespace

/// How a program that updates the parameter, or only reads it, lets it begin.
static std::string describeInit(DictionaryAttr tensor) {
  auto init = tensor.getAs<FloatAttr>("init");
  return init ? "begins as " + llvm::to_string(init.getValueAsDouble())
              : std::string("begins as the weights say");
}

/// Adds what a program says about a parameter that others share.
static llvm::Error join(SharedParameter &shared, DictionaryAttr tensor,
                        StringRef program) {
  if (shared.tensor == tensor)
    return llvm::Error::success();
  std::string name = tensor.getAs<StringAttr>("name").str();
  std::string mine = describeType(tensor), its = describeType(shared.tensor);
  if (mine != its)
    return makeError("parameter '" + name + "' is " + mine + " in program '" +
                     program + "', " + its + " in '" + shared.program +
                     "'; programs share the parameters of one name");
  for (StringRef key : {"placements", "shards", "neutral"})
    if (tensor.get(key) != shared.tensor.get(key)) {
      std::string placements = describePlacements(shared.tensor);
      return makeError("parameter '" + name + "' is " +
                       describePlacements(tensor) + " in program '" + program +
                       "', " + placements + " in '" + shared.program +
                       "'; each rank holds one block of it, so place it in "
                       "the plan of both: '" +
                       name + ": [" +
                       StringRef(placements).drop_front().drop_back() + "]'");
    }
  bool isUpdated = tensor.contains("updated");
  if (tensor.get("init") != shared.tensor.get("init"))
    return makeError(
        "parameter '" + name + "' " + describeInit(tensor) + " in program '" +
        program + "', and " + describeInit(shared.tensor) + " in '" +
        shared.program + "'; programs share its value from the beginning" +
        (isUpdated == shared.tensor.contains("updated")
             ? ""
             : ". A program that only reads it must assign it, too: the value "
               "that it has, with the same 'init'"));
  if (isUpdated && shared.updatedBy.empty()) {
    shared.tensor = tensor;
    shared.updatedBy = program;
  }
  return llvm::Error::success();
}

/// Fails if a program has a buffer as a constant that another one updates.
static llvm::Error
checkConstants(const ProgramManifest &program,
               const llvm::MapVector<StringAttr, SharedParameter> &parameters) {
  auto constants = program.manifest.getAs<ArrayAttr>("constants");
  if (!constants)
    return llvm::Error::success();
  for (auto fqn : constants.getAsRange<StringAttr>()) {
    const auto *shared = parameters.find(fqn);
    if (shared != parameters.end() && !shared->second.updatedBy.empty())
      return makeError("buffer '" + fqn.getValue() +
                       "' is a constant in program '" + program.name +
                       "', and is updated in '" + shared->second.updatedBy +
                       "'; import the model of '" + program.name +
                       "' with --state=" + fqn.getValue());
  }
  return llvm::Error::success();
}

/// What a program has beside its parameters; `indices` are those of the
/// parameters in the artifact's list.
static void writeProgram(llvm::json::OStream &os, const Targets &targets,
                         const ProgramManifest &program, size_t number,
                         ArrayRef<size_t> indices) {
  auto writeEntry = [&](StringRef key) {
    os.attributeBegin(key);
    writeJSON(os, program.manifest.get(key));
    os.attributeEnd();
  };
  os.object([&] {
    writeEntry("arena_bytes");
    writeEntry("collectives");
    if (!targets.architectures.empty())
      os.attribute("device_code", getDeviceCodeName(number));
    os.attributeArray("entries", [&] {
      for (size_t cpu = 0; cpu < targets.machines.size(); ++cpu)
        os.value(getEntryName(number, cpu, targets));
    });
    writeEntry("inputs");
    os.attribute("name", program.name);
    writeEntry("ops");
    writeEntry("outputs");
    os.attributeArray("parameters", [&] {
      for (size_t index : indices)
        os.value(index);
    });
    writeEntry("right_operands");
  });
}

llvm::Expected<std::string>
tp::writeManifest(ArrayRef<ProgramManifest> programs, const Targets &targets) {
  llvm::MapVector<StringAttr, SharedParameter> parameters;
  SmallVector<SmallVector<size_t>> indices(programs.size());
  for (auto [i, program] : llvm::enumerate(programs)) {
    const auto &[name, manifest] = program;
    for (const ProgramManifest &other : programs.take_front(i))
      if (llvm::Error error = checkPair(other, program))
        return std::move(error);
    for (auto tensor :
         manifest.getAs<ArrayAttr>("parameters").getAsRange<DictionaryAttr>()) {
      auto fqn = tensor.getAs<StringAttr>("name");
      auto [entry, isNew] = parameters.insert({fqn, {tensor, name}});
      SharedParameter &shared = entry->second;
      if (isNew && tensor.contains("updated"))
        shared.updatedBy = name;
      if (llvm::Error error = join(shared, tensor, name))
        return std::move(error);
      indices[i].push_back(entry - parameters.begin());
    }
  }
  for (const ProgramManifest &program : programs)
    if (llvm::Error error = checkConstants(program, parameters))
      return std::move(error);

  // Keys come in the order of the alphabet.
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream os(stream);
  DictionaryAttr first = programs.front().manifest;
  os.object([&] {
    os.attributeBegin("mesh");
    writeJSON(os, first.get("mesh"));
    os.attributeEnd();
    os.attributeArray("parameters", [&] {
      for (auto &[fqn, parameter] : parameters)
        writeJSON(os, parameter.tensor);
    });
    os.attribute("producer", "tp-mlir " TP_VERSION);
    os.attributeArray("programs", [&] {
      for (auto [i, program] : llvm::enumerate(programs))
        writeProgram(os, targets, program, i, indices[i]);
    });
    os.attribute("schema", TPRT_MANIFEST_SCHEMA);
    os.attribute("target", describeTarget(targets));
    os.attributeBegin("world_size");
    writeJSON(os, first.get("world_size"));
    os.attributeEnd();
  });
  return text;
}
