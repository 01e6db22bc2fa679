//===- GeneratingPrograms.cpp - The programs that generate ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "generate/GeneratingPrograms.h"

#include <algorithm>

using namespace tprt;

static const TensorInfo *find(const std::vector<TensorInfo> &tensors,
                              const std::string &name) {
  for (const TensorInfo &info : tensors)
    if (info.name == name)
      return &info;
  return nullptr;
}

namespace {

/// A program as far as it is known to generate. `problem` says why it doesn't.
struct Examined {
  const Program &program;
  const GeneratorOptions &options;
  GeneratingProgram found = {&program, 0, 0, true, false};
  int64_t batchSize = 0, vocabularySize = 0;
  std::string problem = {};

  Examined(const Program &program, const GeneratorOptions &options)
      : program(program), options(options) {
    examineTokens() && examineOptionalInputs() && examineLogits();
  }

private:
  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }
  bool failType(const std::string &kind, const TensorInfo &info,
                const std::string &expected) {
    return fail(kind + " '" + info.name + "' is " + info.getTypeString() +
                ", expected " + expected);
  }
  bool examineTokens();
  bool examineOptionalInputs();
  bool examineLogits();
};

} // namespace

bool Examined::examineTokens() {
  const TensorInfo *ids = find(program.inputs, options.ids);
  const TensorInfo *positions = find(program.inputs, options.cachePositions);
  for (const auto &[input, name] :
       {std::pair(ids, options.ids),
        std::pair(positions, options.cachePositions)})
    if (!input)
      return fail("it has no input '" + name + "'");
  if (ids->dtype != Dtype::I64 || ids->shape.size() != 2 ||
      numElements(ids->shape) == 0)
    return failType("input", *ids, "i64 of batch x length");
  batchSize = ids->shape[0];
  found.length = ids->shape[1];
  if (positions->dtype != Dtype::I64 || positions->shape != Shape{found.length})
    return failType("input", *positions,
                    typeString(Dtype::I64, {found.length}));
  return true;
}

bool Examined::examineOptionalInputs() {
  for (const TensorInfo &input : program.inputs) {
    if (input.name == options.ids || input.name == options.cachePositions)
      continue;
    if (input.name == options.positionIds) {
      Shape shape = {batchSize, found.length};
      if (input.dtype != Dtype::I64 || input.shape != shape)
        return failType("input", input, typeString(Dtype::I64, shape));
    } else if (input.name == options.mask) {
      if (input.shape.size() != 2 || input.shape[0] != batchSize)
        return failType("input", input,
                        std::to_string(batchSize) +
                            " x size of the cache, 1 for tokens that may be "
                            "seen");
    } else if (input.name == options.index) {
      if (input.dtype != Dtype::I64 || input.shape != Shape{1})
        return failType("input", input, typeString(Dtype::I64, {1}));
      found.takesIndex = true;
    } else {
      return fail("nothing is known about its input '" + input.name + "'");
    }
  }
  return true;
}

bool Examined::examineLogits() {
  const std::vector<TensorInfo> &outputs = program.outputs;
  const TensorInfo *logits =
      outputs.size() == 1 ? &outputs[0] : find(outputs, options.logits);
  if (!logits)
    return fail("of its " + std::to_string(outputs.size()) +
                " outputs none is called '" + options.logits + "'");
  found.logits = logits - outputs.data();
  bool hasTokens = logits->shape.size() == 3;
  int64_t numTokens = found.takesIndex ? 1 : found.length;
  found.hasEveryToken = hasTokens && !found.takesIndex;
  Shape batch = {batchSize};
  if (hasTokens)
    batch.push_back(numTokens);
  bool isNarrow = logits->dtype == Dtype::F32 || logits->dtype == Dtype::F16 ||
                  logits->dtype == Dtype::BF16;
  if (!isNarrow || logits->shape.size() != batch.size() + 1 ||
      !std::equal(batch.begin(), batch.end(), logits->shape.begin()) ||
      logits->shape.back() == 0)
    return failType("output", *logits,
                    "f32, f16 or bf16 of " + std::to_string(batchSize) + " x " +
                        std::to_string(numTokens) + " x vocabulary, or " +
                        std::to_string(batchSize) + " x vocabulary");
  vocabularySize = logits->shape.back();
  return true;
}

/// What the programs of an artifact must have in common, for the error that
/// names two which differ.
static std::string describeForm(const Examined &examined,
                                const GeneratorOptions &options) {
  std::string text = "a batch of " + std::to_string(examined.batchSize) +
                     ", a vocabulary of " +
                     std::to_string(examined.vocabularySize);
  const std::vector<TensorInfo> &inputs = examined.program.inputs;
  text += find(inputs, options.positionIds) ? ", '" : ", no '";
  text += options.positionIds + "'";
  const TensorInfo *mask = find(inputs, options.mask);
  return text +
         (mask ? " and a '" + options.mask + "' of " + mask->getTypeString()
               : " and no '" + options.mask + "'");
}

static std::vector<Examined> examineAll(const Manifest &manifest,
                                        const GeneratorOptions &options) {
  std::vector<Examined> generating;
  std::string problems;
  for (const Program &program : manifest.programs) {
    Examined examined(program, options);
    if (examined.problem.empty())
      generating.push_back(examined);
    else
      problems +=
          "\nprogram '" + program.name + "': " + std::move(examined.problem);
  }
  if (generating.empty())
    throw inputError("no program generates text:" + problems);
  std::string form = describeForm(generating[0], options);
  for (const Examined &examined : generating)
    if (std::string other = describeForm(examined, options); other != form)
      throw inputError("program '" + generating[0].program.name + "' has " +
                       form + ", but '" + examined.program.name + "' has " +
                       other);
  return generating;
}

/// Whether the last part of the name begins with one of `prefixes`.
static bool isNamed(const TensorInfo &info,
                    const std::vector<std::string> &prefixes) {
  std::string_view name = info.name;
  name.remove_prefix(name.rfind('.') + 1);
  return std::any_of(
      prefixes.begin(), prefixes.end(),
      [&](const std::string &prefix) { return name.starts_with(prefix); });
}

/// Whether an updated parameter has a place for each token in dimension 2.
static bool isCache(const TensorInfo &info, const GeneratorOptions &options) {
  return isNamed(info, options.caches) && info.shape.size() == 4;
}

/// Finds the size of the cache.
static void measureCache(const Manifest &manifest, const TensorInfo *mask,
                         const GeneratorOptions &options,
                         GeneratingPrograms &found) {
  const int64_t given = options.cacheSize;
  auto use = [&](int64_t size, std::string source) {
    found.cacheSize = size;
    found.cacheSource = std::move(source);
  };
  auto refuse = [&](const std::string &expected) {
    throw inputError("a cache of " + std::to_string(given) +
                     " tokens is given, expected " + expected +
                     std::to_string(found.cacheSize) + " (" +
                     found.cacheSource + ")");
  };
  if (mask) {
    use(mask->shape[1],
        "the size of input '" + mask->name + "', " + mask->getTypeString());
    if (given > 0 && given != found.cacheSize)
      refuse("");
    return;
  }
  bool isKnown = false; // by its name, else by its number of dimensions
  for (const TensorInfo &info : manifest.parameters) {
    if (!info.isUpdated || info.shape.size() != 4)
      continue;
    bool isNamed = isCache(info, options);
    if (std::pair(isNamed, info.shape[2]) <=
        std::pair(isKnown, found.cacheSize))
      continue;
    isKnown = isNamed;
    use(info.shape[2],
        "dimension 2 of '" + info.name + "', " + info.getTypeString());
  }
  if (isKnown && given > found.cacheSize)
    refuse("at most ");
  if (given > 0)
    use(given, "as given");
  if (found.cacheSize == 0)
    throw inputError(
        "the size of the cache can't be told from the artifact, because "
        "programs update no parameter of four dimensions: say how many tokens "
        "of a sequence it holds");
}

GeneratingPrograms
tprt::findGeneratingPrograms(const Manifest &manifest,
                             const GeneratorOptions &options) {
  std::vector<Examined> generating = examineAll(manifest, options);
  const Examined &first = generating.front();
  GeneratingPrograms result = {};
  for (const Examined &examined : generating)
    result.programs.push_back(examined.found);
  std::sort(result.programs.begin(), result.programs.end(),
            [](const GeneratingProgram &a, const GeneratingProgram &b) {
              return a.length < b.length;
            });
  std::string batch = std::to_string(first.batchSize);
  if (result.programs.front().length != 1)
    throw inputError("no program takes one token at a time, which generation "
                     "needs: export the model with '" +
                     options.ids + "' of " + batch + "x1xi64 and '" +
                     options.cachePositions + "' of 1xi64, too");
  for (const GeneratingProgram &each : result.programs)
    if (std::none_of(each.program->parameters.begin(),
                     each.program->parameters.end(), [&](int64_t index) {
                       return manifest.parameters[index].isUpdated;
                     }))
      throw inputError("program '" + each.program->name +
                       "' updates no parameter, so it keeps no cache from "
                       "token to token: export a model that writes its cache "
                       "to buffers");
  for (const TensorInfo &info : manifest.parameters)
    if (info.isUpdated && !info.init)
      throw inputError("parameter '" + info.name +
                       "' is updated and begins as the weights file says, so "
                       "it can't be reset for each text: export the model with "
                       "this buffer registered with persistent=False");
  result.batchSize = first.batchSize;
  result.vocabularySize = options.vocabularySize > 0 ? options.vocabularySize
                                                     : first.vocabularySize;
  const TensorInfo *mask = find(first.program.inputs, options.mask);
  measureCache(manifest, mask, options, result);
  if (mask)
    result.mask = mask->dtype;
  result.hasPositionIds = find(first.program.inputs, options.positionIds);
  result.canPad = std::all_of(
      manifest.parameters.begin(), manifest.parameters.end(),
      [&](const TensorInfo &info) {
        return !info.isUpdated || isNamed(info, options.counters) ||
               (isCache(info, options) && info.shape[2] == result.cacheSize);
      });
  return result;
}
