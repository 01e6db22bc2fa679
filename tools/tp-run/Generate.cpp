//===- Generate.cpp - tp-run --generate -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Generate.h"

#include "../Usage.h"
#include "Cache.h"
#include "Communication.h"
#include "tprt/GenerationReport.h"
#include "tprt/Npy.h"
#include "tprt/Tokenizer.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace tprt;

void declareGenerationOptions(CLI::App &app, GenerationArguments &arguments) {
  constexpr const char *group = "Generation";
  GenerationOptions &options = arguments.options;
  SamplingOptions &sampling = options.sampling;
  CLI::Option *generate =
      app.add_flag("--generate", arguments.isWanted,
                   "continue prompts with a causal language model, and print "
                   "the ids of the new tokens; --output takes one path, for a "
                   ".npy array with a row for each sequence")
          ->group(group);
  CLI::Option *prompts =
      app.add_option("--prompt-ids", arguments.prompts,
                     "the tokens of a prompt, or of several of one length: a "
                     ".npy array of integers, with a row for each prompt; once "
                     "for each prompt if they have different lengths")
          ->type_name("PATH")
          ->allow_extra_args(false);
  CLI::Option *tokenizer =
      app.add_option("--tokenizer", arguments.tokenizer,
                     "a tokenizer.json of Hugging Face: print text instead of "
                     "ids")
          ->type_name("PATH");
  CLI::Option *texts = app.add_option("--prompt", arguments.texts,
                                      "a prompt as text; once for each prompt")
                           ->type_name("TEXT")
                           ->allow_extra_args(false)
                           ->needs(tokenizer)
                           ->excludes(prompts);
  CLI::Option *maxNewTokens =
      app.add_option("--max-new-tokens", options.maxNewTokens,
                     "new tokens of each sequence, at most")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 40))
          ->type_name("N")
          ->capture_default_str();
  CLI::Option *temperature =
      app.add_option("--temperature", sampling.temperature,
                     "draw tokens, with logits divided by this; 0: take the "
                     "most likely token")
          ->check(isExactNumber)
          ->type_name("T")
          ->capture_default_str();
  CLI::Option *topK =
      app.add_option("--top-k", sampling.topK,
                     "draw from the K most likely tokens; 0: from all")
          ->check(isExactNumber)
          ->type_name("K")
          ->capture_default_str()
          ->needs(temperature);
  CLI::Option *topP =
      app.add_option("--top-p", sampling.topP,
                     "draw from the most likely tokens whose probabilities add "
                     "up to P; 1: from all")
          ->check(isExactNumber)
          ->type_name("P")
          ->capture_default_str()
          ->needs(temperature);
  CLI::Option *seed =
      app.add_option("--seed", sampling.seed,
                     "the same seed draws the same tokens, on any number of "
                     "ranks")
          ->check(isExactNumber)
          ->check(CLI::NonNegativeNumber)
          ->type_name("S")
          ->capture_default_str()
          ->needs(temperature);
  CLI::Option *ends =
      app.add_option("--eos", options.endTokens, "tokens that end a sequence")
          ->delimiter(',')
          ->check(isExactNumber)
          ->type_name("ID[,ID…]")
          ->allow_extra_args(false);
  CLI::Option *cacheSize =
      app.add_option("--cache-size", arguments.cacheSize,
                     "how many tokens of a sequence the programs' cache holds, "
                     "if the program has no mask that says so and its cache "
                     "isn't like that of transformers")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 40))
          ->type_name("N");
  for (CLI::Option *option : {prompts, tokenizer, texts, maxNewTokens,
                              temperature, topK, topP, seed, ends, cacheSize})
    option->needs(generate)->group(group);
  for (const char *other :
       {"--input", "--blocks", "--expect", "--repeat", "--warmup", "--program",
        "--pad", "--trace", "--profile", "--steps", "--output-weights",
        "--state-in", "--state-out"})
    generate->excludes(app.get_option(other));
}

/// Appends the prompts of a file.
static void readPrompts(const std::string &path,
                        std::vector<std::vector<int64_t>> &prompts) {
  Tensor tensor = readNpy(path);
  bool isInteger = tensor.dtype == Dtype::I64 || tensor.dtype == Dtype::I32;
  if (!isInteger || tensor.shape.empty() || tensor.shape.size() > 2)
    throw inputError("'" + path + "' is " + tensor.getTypeString() +
                     ", expected token ids: i64 or i32 of one dimension, or of "
                     "prompts x tokens");
  int64_t length = tensor.shape.back(), index = 0;
  int64_t count = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  auto load = [&]<typename T>(T) -> int64_t {
    return reinterpret_cast<const T *>(tensor.data.get())[index++];
  };
  for (int64_t b = 0; b < count; ++b)
    for (int64_t &id : prompts.emplace_back(length))
      id = tensor.dtype == Dtype::I64 ? load(int64_t()) : load(int32_t());
}

static std::string join(std::span<const int64_t> tokens) {
  std::string text;
  for (int64_t token : tokens)
    text += (text.empty() ? "" : " ") + std::to_string(token);
  return text;
}

/// The tokens as rows of one length: a sequence that has ended repeats its last
/// token.
static Tensor makeRows(const std::vector<std::vector<int64_t>> &sequences) {
  int64_t length = 0, count = sequences.size();
  for (const std::vector<int64_t> &tokens : sequences)
    length = std::max<int64_t>(length, tokens.size());
  Tensor rows{Dtype::I64, {count, length}, nullptr};
  std::shared_ptr<std::byte> data = allocateAligned(rows.getNumBytes());
  auto *dst = reinterpret_cast<int64_t *>(data.get());
  for (const std::vector<int64_t> &tokens : sequences)
    for (int64_t i = 0; i < length; ++i)
      *dst++ = tokens[std::min<size_t>(i, tokens.size() - 1)];
  rows.data = data;
  return rows;
}

namespace {

/// Prints the tokens of a single sequence as they come, or their text.
class TokenStream {
public:
  TokenStream(bool isWanted, const Tokenizer *tokenizer) : isWanted(isWanted) {
    if (tokenizer)
      text.emplace(*tokenizer);
  }
  ~TokenStream() { // also before an error
    if (hasBegun)
      std::cout << (text ? text->finish() : "") << '\n' << std::flush;
  }
  /// Returns whether anybody reads what is printed.
  bool print(std::span<const int64_t> tokens) {
    if (!isWanted || tokens.size() != 1)
      return true;
    bool isFirst = !std::exchange(hasBegun, true);
    if (text)
      std::cout << text->push(tokens[0]) << std::flush;
    else
      std::cout << (isFirst ? "" : " ") << tokens[0] << std::flush;
    return std::cout.good();
  }

private:
  const bool isWanted;
  bool hasBegun = false;
  std::optional<TextStream> text;
};

} // namespace

/// A tokenizer of more tokens belongs to another model. One of fewer may be
/// right, because models often have a rounded vocabulary.
static std::unique_ptr<Tokenizer> loadTokenizer(const std::string &path,
                                                const Manifest &manifest) {
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(path);
  int64_t own = tokenizer->getVocabularySize();
  if (int64_t known = getVocabularySize(manifest); own > known)
    throw inputError("'" + path + "' has " + std::to_string(own) +
                     " tokens, but the model knows " + std::to_string(known) +
                     ": it is the tokenizer of another model");
  return tokenizer;
}

static ExitCode generateOnRank(const Options &options,
                               const std::shared_ptr<const Artifact> &artifact,
                               const Communication &communication) {
  const auto &[backend, job, connection] = communication;
  const GenerationArguments &arguments = options.generation;
  const Manifest &manifest = artifact->getManifest();
  const bool isFirst = !job || job->rank == 0; // prints and writes
  std::unique_ptr<Tokenizer> tokenizer;
  if (!arguments.tokenizer.empty())
    tokenizer = loadTokenizer(arguments.tokenizer, manifest);
  std::vector<std::vector<int64_t>> prompts;
  for (const std::string &path : arguments.prompts)
    readPrompts(path, prompts);
  for (const std::string &text : arguments.texts)
    prompts.push_back(tokenizer->encode(text));
  auto outputs = parseAssignments(options.outputs, "--output", "output",
                                  {"tokens"}, /*checkNames=*/true);
  std::vector<std::string> paths;
  for (const auto &[name, path] : outputs)
    paths.push_back(path);
  addOutput(options.json, paths);
  if (isFirst) {
    checkAreNoInputs(options, paths);
    checkOutputs(paths);
  }
  GeneratorOptions generatorOptions;
  generatorOptions.cacheSize = arguments.cacheSize;
  checkGeneration(manifest, generatorOptions, prompts, arguments.options);

  SessionOptions sessionOptions = getSessionOptions(options, communication);
  sessionOptions.gemm.file = getGemmFile(artifact->getPath(), !options.noCache);
  Session session(artifact, readProgramWeights(options, manifest),
                  sessionOptions);
  if (isFirst)
    noteGemmChoices(session);
  Generator generator(session, generatorOptions);
  const bool prints = isFirst && &getTextStream(options) == &std::cout;
  Generation generation;
  {
    TokenStream stream(prints, tokenizer.get());
    GenerationOptions generationOptions = arguments.options;
    generationOptions.onTokens = [&](std::span<const int64_t> tokens) {
      return stream.print(tokens);
    };
    generation = generator.generate(prompts, generationOptions);
  }
  if (!isFirst)
    return Success;
  std::vector<std::string> texts;
  for (const std::vector<int64_t> &tokens : generation.tokens)
    if (tokenizer)
      texts.push_back(tokenizer->decode(tokens));
  if (prints && prompts.size() > 1)
    for (size_t i = 0; i < prompts.size(); ++i)
      std::cout << (tokenizer ? "== " + std::to_string(i) + "\n" + texts[i]
                              : join(generation.tokens[i]))
                << "\n";
  std::vector<OutputFile> files;
  for (const auto &[name, path] : outputs)
    writeNpy(files.emplace_back(path), makeRows(generation.tokens));
  if (!options.json.empty())
    files.emplace_back(options.json)
        .write(makeGenerationReport(options.program, session, generator,
                                    generation, prompts, texts));
  commit(files);
  std::cerr << "tp-run: " << describe(generation, prompts) << "\n";
  return Success;
}

ExitCode generate(const Options &options) {
  if (options.generation.prompts.empty() && options.generation.texts.empty())
    throw UsageError("--generate: give the prompt, --prompt-ids PATH, or "
                     "--tokenizer PATH --prompt TEXT");
  std::shared_ptr<const Artifact> artifact = loadProgram(options);
  return withCommunication(options, artifact->getManifest(),
                           [&](const Communication &communication) {
                             return generateOnRank(options, artifact,
                                                   communication);
                           });
}
