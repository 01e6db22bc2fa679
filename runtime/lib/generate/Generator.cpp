//===- Generator.cpp - Text from a causal language model ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Generator.h"

#include "device/Device.h"
#include "generate/GeneratingPrograms.h"
#include "generate/Sampling.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

using namespace tprt;

using Prompts = std::vector<std::vector<int64_t>>;

//===----------------------------------------------------------------------===//
// What ranks tell each other
//===----------------------------------------------------------------------===//

namespace {

/// Precedes what a process's ranks exchange.
struct Header {
  uint64_t fingerprint; ///< of what all processes must give alike
  uint64_t stops;       ///< whether this process wants to end
};

/// FNV-1a.
class Fingerprint {
public:
  void add(const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      hash =
          (hash ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001b3;
  }
  template <typename T>
  void add(const T &value) {
    add(&value, sizeof(value));
  }
  void add(const std::vector<int64_t> &values) {
    add(values.size());
    add(values.data(), values.size() * sizeof(int64_t));
  }
  uint64_t get() const { return hash; }

private:
  uint64_t hash = 0xcbf29ce484222325;
};

} // namespace

static uint64_t getFingerprint(const Prompts &prompts,
                               const GenerationOptions &options) {
  Fingerprint fingerprint;
  for (const std::vector<int64_t> &prompt : prompts)
    fingerprint.add(prompt);
  fingerprint.add(options.maxNewTokens);
  fingerprint.add(options.sampling.temperature);
  fingerprint.add(options.sampling.topK);
  fingerprint.add(options.sampling.topP);
  fingerprint.add(options.sampling.seed);
  fingerprint.add(options.endTokens);
  return fingerprint.get();
}

//===----------------------------------------------------------------------===//
// Logits
//===----------------------------------------------------------------------===//

/// Where `index` of a dimension is in a block's dimension; nullopt if another
/// rank has it.
static std::optional<int64_t> findInPieces(const std::vector<Piece> &pieces,
                                           int64_t index) {
  int64_t before = 0;
  for (const Piece &piece : pieces) {
    if (piece.offset <= index && index < piece.offset + piece.size)
      return before + index - piece.offset;
    before += piece.size;
  }
  return std::nullopt;
}

namespace {

/// The logits of one token of each sequence that a rank holds, in f32.
class OwnLogits {
public:
  /// `row` is the token's index among those whose logits the program gives.
  OwnLogits(RankOutputs &outputs, const GeneratingProgram &generating,
            int64_t row);

  const std::vector<LogitsPart> &getParts() const { return parts; }

private:
  std::vector<float> values;
  std::vector<LogitsPart> parts;
};

} // namespace

OwnLogits::OwnLogits(RankOutputs &outputs, const GeneratingProgram &generating,
                     int64_t row) {
  const TensorInfo &info = generating.program->outputs[generating.logits];
  const Block &block = info.shards[outputs.getRank()];
  Shape shape = block.getShape();
  bool hasTokens = shape.size() == 3;
  std::optional<int64_t> ownRow = 0;
  if (hasTokens)
    ownRow = findInPieces(block.dims[1], row);
  if (!ownRow || numElements(shape) == 0)
    return;
  int64_t numRows = hasTokens ? shape[1] : 1;
  int64_t width = shape.back(), numSequences = shape[0];
  // Not moved from here on, since the parts point there.
  values.resize(numSequences * width);
  int64_t local = 0;
  for (const Piece &sequences : block.dims[0])
    for (int64_t i = 0; i < sequences.size; ++i, ++local) {
      float *dst = values.data() + local * width;
      const std::byte *src = outputs.read(
          generating.logits, (local * numRows + *ownRow) * width, width);
      if (info.dtype == Dtype::F32)
        std::memcpy(dst, src, width * sizeof(float));
      else
        convertToF32(info.dtype, src, dst, width);
      for (const Piece &tokens : block.dims.back()) {
        size_t size = tokens.size;
        parts.push_back({sequences.offset + i, tokens.offset, {dst, size}});
        dst += size;
      }
    }
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {

/// One call of generate().
class Text {
public:
  Text(Session &session, const GeneratingPrograms &found,
       const GeneratorOptions &names, const Prompts &prompts,
       const GenerationOptions &options);

  Generation generate();

private:
  using Clock = std::chrono::steady_clock;

  void readPrompts();
  const GeneratingProgram &chooseProgram() const;
  void run(const GeneratingProgram &generating, int64_t count, bool chooses);
  TensorMap makeInputs(const GeneratingProgram &generating,
                       int64_t count) const;
  void choose(RankOutputs &outputs, const GeneratingProgram &generating,
              int64_t row);
  Exchange makeExchange(RankOutputs &outputs, size_t limit);
  void append();
  bool isOver() const;

  Session &session;
  const GeneratingPrograms &found;
  const GeneratorOptions &names;
  const GenerationOptions &options;
  const uint64_t fingerprint;
  const bool hostsAll; ///< whether this process hosts all ranks

  /// All tokens of each sequence, padded at the beginning.
  Prompts tokens;
  std::vector<int64_t> numPads; ///< at the beginning of each sequence
  std::vector<bool> hasEnded;
  int64_t numRead = 0; ///< of `tokens`: those that are in the cache
  int64_t numSteps = 0;
  bool wantsStop = false;
  // Written by the thread of this process's first rank.
  std::vector<int64_t> chosen; ///< the next token of each sequence
  bool isStopped = false;      ///< by any process

  Generation result;
};

} // namespace

Text::Text(Session &session, const GeneratingPrograms &found,
           const GeneratorOptions &names, const Prompts &prompts,
           const GenerationOptions &options)
    : session(session), found(found), names(names), options(options),
      fingerprint(getFingerprint(prompts, options)),
      hostsAll(static_cast<int64_t>(session.getRanks().size()) ==
               session.getManifest().worldSize),
      hasEnded(prompts.size()) {
  size_t longest = 0;
  for (const std::vector<int64_t> &prompt : prompts)
    longest = std::max(longest, prompt.size());
  for (const std::vector<int64_t> &prompt : prompts) {
    numPads.push_back(longest - prompt.size());
    // The mask hides this token, so it may be any.
    std::vector<int64_t> &padded = tokens.emplace_back(numPads.back(), 0);
    padded.insert(padded.end(), prompt.begin(), prompt.end());
  }
  result.tokens.resize(prompts.size());
}

/// The program for the next tokens of the prompts.
const GeneratingProgram &Text::chooseProgram() const {
  int64_t numLeft = tokens[0].size() - numRead;
  const GeneratingProgram *largest = nullptr;
  for (const GeneratingProgram &each : found.programs) {
    bool fits =
        each.length == numLeft || (each.length > numLeft && found.canPad &&
                                   (each.hasEveryToken || each.takesIndex) &&
                                   numRead + each.length <= found.cacheSize);
    if (fits)
      return each;
    if (each.length < numLeft)
      largest = &each;
  }
  return *largest; // at least the one of length 1
}

void Text::readPrompts() {
  int64_t length = tokens[0].size();
  while (numRead < length) {
    const GeneratingProgram &generating = chooseProgram();
    int64_t count = std::min(generating.length, length - numRead);
    run(generating, count, /*chooses=*/numRead + count == length);
  }
}

/// The inputs for `count` tokens, and any others behind them.
TensorMap Text::makeInputs(const GeneratingProgram &generating,
                           int64_t count) const {
  int64_t length = generating.length, batch = found.batchSize;
  auto allocate = [](Dtype dtype, Shape shape) {
    int64_t bytes = numElements(shape) * byteWidth(dtype);
    std::shared_ptr<std::byte> data = allocateAligned(bytes);
    return std::pair(Tensor{dtype, std::move(shape), data}, data.get());
  };
  TensorMap inputs;
  auto makeIntegers = [&](const std::string &name, const Shape &shape) {
    auto [tensor, data] = allocate(Dtype::I64, shape);
    inputs[name] = tensor;
    return reinterpret_cast<int64_t *>(data);
  };
  int64_t *ids = makeIntegers(names.ids, {batch, length});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < length; ++i)
      *ids++ = i < count ? tokens[b][numRead + i] : 0;
  int64_t *positions = makeIntegers(names.cachePositions, {length});
  std::iota(positions, positions + length, numRead);
  if (generating.takesIndex)
    *makeIntegers(names.index, {1}) = count - 1;
  if (found.hasPositionIds) {
    int64_t *places = makeIntegers(names.positionIds, {batch, length});
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < length; ++i)
        *places++ = std::max<int64_t>(numRead + i - numPads[b], 0);
  }
  if (found.mask) {
    Dtype dtype = *found.mask;
    int64_t width = byteWidth(dtype);
    auto [tensor, data] = allocate(dtype, {batch, found.cacheSize});
    fillElements(dtype, 0, data, numElements(tensor.shape));
    for (int64_t b = 0; b < batch; ++b)
      if (int64_t size = numRead + count - numPads[b]; size > 0)
        fillElements(dtype, 1,
                     data + (b * found.cacheSize + numPads[b]) * width, size);
    inputs[names.mask] = tensor;
  }
  return inputs;
}

/// Runs a program on the next `count` tokens of each sequence. If it `chooses`,
/// the last one's logits give the next token.
void Text::run(const GeneratingProgram &generating, int64_t count,
               bool chooses) {
  RunOptions runOptions;
  runOptions.query.program = generating.program->name;
  runOptions.useOutputs = [&](RankOutputs &outputs) {
    if (chooses)
      choose(outputs, generating,
             /*row=*/generating.hasEveryToken ? count - 1 : 0);
  };
  session.run(makeInputs(generating, count), runOptions);
  numRead += count;
}

/// Gives ranks this process's wishes with each message.
Exchange Text::makeExchange(RankOutputs &outputs, size_t limit) {
  return [this, &outputs, limit](const std::string &mine) {
    Header header{fingerprint, wantsStop};
    std::vector<std::string> all = outputs.exchange(
        std::string(reinterpret_cast<const char *>(&header), sizeof(header)) +
            mine,
        sizeof(header) + limit);
    bool stops = false;
    for (std::string &text : all) {
      if (text.size() >= sizeof(header))
        std::memcpy(&header, text.data(), sizeof(header));
      if (text.size() < sizeof(header) || header.fingerprint != fingerprint)
        throw executionError("the ranks don't agree on the prompts, or on the "
                             "options of generation");
      text.erase(0, sizeof(header));
      stops |= header.stops != 0;
    }
    if (outputs.getRank() == session.getRanks().front())
      isStopped |= stops;
    return all;
  };
}

/// What each rank does when its run is complete.
void Text::choose(RankOutputs &outputs, const GeneratingProgram &generating,
                  int64_t row) {
  const TensorInfo &logits = generating.program->outputs[generating.logits];
  int64_t rank = outputs.getRank(), vocabularySize = logits.shape.back();
  // Of ranks with the same logits, the first reads them.
  auto reader = std::find(logits.shards.begin(), logits.shards.end(),
                          logits.shards[rank]);
  std::optional<OwnLogits> own;
  if (reader - logits.shards.begin() == rank)
    own.emplace(outputs, generating, row);
  std::vector<int64_t> next =
      chooseTokens(own ? own->getParts() : std::vector<LogitsPart>(),
                   found.batchSize, vocabularySize, numSteps, options.sampling,
                   makeExchange(outputs, getMaxExchangedBytes(found.batchSize,
                                                              vocabularySize)));
  if (rank == session.getRanks().front())
    chosen = std::move(next);
}

/// Appends the chosen tokens.
void Text::append() {
  const std::vector<int64_t> &ends = options.endTokens;
  for (size_t b = 0; b < tokens.size(); ++b) {
    if (hasEnded[b])
      chosen[b] = tokens[b].back();
    else
      result.tokens[b].push_back(chosen[b]);
    hasEnded[b] = std::find(ends.begin(), ends.end(), chosen[b]) != ends.end();
    tokens[b].push_back(chosen[b]);
  }
  ++numSteps;
  if (options.onTokens && !wantsStop)
    wantsStop = !options.onTokens(chosen);
}

bool Text::isOver() const {
  return numSteps == options.maxNewTokens || isStopped ||
         (wantsStop && hostsAll) ||
         std::all_of(hasEnded.begin(), hasEnded.end(),
                     [](bool ended) { return ended; });
}

Generation Text::generate() {
  auto getSeconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  Clock::time_point start = Clock::now();
  session.resetState();
  readPrompts();
  result.prefillSeconds = getSeconds(start);
  append();
  while (!isOver()) {
    start = Clock::now();
    run(found.programs.front(), /*count=*/1, /*chooses=*/true);
    result.tokenSeconds.push_back(getSeconds(start));
    append();
  }
  result.wasStopped = wantsStop || isStopped;
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// The generator
//===----------------------------------------------------------------------===//

struct Generator::Impl {
  Session &session;
  GeneratorOptions options;
  GeneratingPrograms found;
};

Generator::Generator(Session &session, const GeneratorOptions &options)
    : impl(new Impl{session, options,
                    findGeneratingPrograms(session.getManifest(), options)}) {}

Generator::~Generator() = default;

int64_t Generator::getBatchSize() const { return impl->found.batchSize; }
int64_t Generator::getCacheSize() const { return impl->found.cacheSize; }
int64_t Generator::getVocabularySize() const {
  return impl->found.vocabularySize;
}

static std::string count(int64_t number, const std::string &what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

static void checkArguments(const GeneratingPrograms &found,
                           const GeneratorOptions &names,
                           const Prompts &prompts,
                           const GenerationOptions &options) {
  checkSampling(options.sampling);
  if (options.maxNewTokens < 1)
    throw inputError("found " + count(options.maxNewTokens, "new token") +
                     ", expected at least one");
  if (static_cast<int64_t>(prompts.size()) != found.batchSize)
    throw inputError("the programs generate " +
                     count(found.batchSize, "sequence") + " at a time, found " +
                     count(prompts.size(), "prompt"));
  auto checkToken = [&](int64_t token, const std::string &place) {
    if (token < 0 || token >= found.vocabularySize)
      throw inputError(place + " is " + std::to_string(token) +
                       ", expected an id of the vocabulary, 0 to " +
                       std::to_string(found.vocabularySize - 1));
  };
  for (int64_t token : options.endTokens)
    checkToken(token, "an end token");
  int64_t longest = 0;
  for (size_t b = 0; b < prompts.size(); ++b) {
    std::string name = "prompt " + std::to_string(b);
    if (prompts[b].empty())
      throw inputError(name + " is empty, expected at least one token");
    for (size_t i = 0; i < prompts[b].size(); ++i)
      checkToken(prompts[b][i], "token " + std::to_string(i) + " of " + name);
    longest = std::max<int64_t>(longest, prompts[b].size());
    if (prompts[b].size() != prompts[0].size() &&
        !(found.mask && found.hasPositionIds))
      throw inputError(
          "prompts 0 and " + std::to_string(b) + " have " +
          std::to_string(prompts[0].size()) + " and " +
          count(prompts[b].size(), "token") +
          "; prompts of different lengths are padded at the beginning, which "
          "needs programs with the inputs '" +
          names.mask + "' and '" + names.positionIds + "'");
  }
  // The last token isn't read again.
  if (options.maxNewTokens > found.cacheSize - longest + 1)
    throw inputError(
        (longest > found.cacheSize
             ? "a prompt of " + count(longest, "token") + " doesn't fit"
             : "a prompt of " + count(longest, "token") + " and " +
                   count(options.maxNewTokens, "new one") + " don't fit") +
        " in the cache, which has " + std::to_string(found.cacheSize) + " (" +
        found.cacheSource + ")");
}

Generation Generator::generate(const Prompts &prompts,
                               const GenerationOptions &options) {
  checkArguments(impl->found, impl->options, prompts, options);
  return Text(impl->session, impl->found, impl->options, prompts, options)
      .generate();
}

int64_t tprt::getVocabularySize(const Manifest &manifest,
                                const GeneratorOptions &options) {
  return findGeneratingPrograms(manifest, options).vocabularySize;
}

void tprt::checkGeneration(const Manifest &manifest,
                           const GeneratorOptions &names,
                           const Prompts &prompts,
                           const GenerationOptions &options) {
  checkArguments(findGeneratingPrograms(manifest, names), names, prompts,
                 options);
}
