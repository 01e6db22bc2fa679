//===- Session.cpp - Running a program on its ranks ----------------------===//

#include "tprt/Session.h"

#include "Cores.h"
#include "ShardedTensors.h"
#include "Team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <set>

using namespace tprt;

std::string tprt::checkTensors(const std::vector<TensorInfo> &wanted,
                               const TensorMap &given, std::string_view kind,
                               bool allowUnused) {
  std::string problems;
  auto report = [&](const std::string &text) {
    problems += (problems.empty() ? "" : "\n") + text;
  };
  std::vector<std::string> wantedNames, unused;
  std::set<std::string> wantedSet;
  for (const TensorInfo &info : wanted) {
    wantedNames.push_back(info.name);
    wantedSet.insert(info.name);
  }
  for (const auto &[name, tensor] : given)
    if (!wantedSet.contains(name))
      unused.push_back(name);

  std::string quotedKind(kind);
  for (const TensorInfo &info : wanted) {
    auto found = given.find(info.name);
    if (found == given.end()) {
      if (info.init)
        continue;
      report("missing " + quotedKind + " '" + info.name + "' of type " +
             info.getTypeString() + didYouMean(info.name, unused));
      continue;
    }
    const Tensor &tensor = found->second;
    bool sameDtype = tensor.dtype == info.dtype ||
                     (info.dtype == Dtype::BF16 && tensor.dtype == Dtype::F32);
    if (!sameDtype || tensor.shape != info.shape)
      report(quotedKind + " '" + info.name + "' has type " +
             tensor.getTypeString() + ", expected " + info.getTypeString());
  }
  if (!allowUnused)
    for (const std::string &name : unused)
      report("unknown " + quotedKind + " '" + name + "'" +
             (wantedNames.empty()
                  ? ", the program takes none"
                  : ", expected " + quotedList(wantedNames, 8)) +
             didYouMean(name, wantedNames));
  return problems;
}

namespace {

/// What a rank writes to: its outputs' local blocks and its arena.
struct RankMemory {
  std::vector<std::shared_ptr<std::byte>> outputs;
  std::vector<void *> outputPointers;
  std::shared_ptr<std::byte> arena;
};

} // namespace

/// One call of a rank's program.
static void runOnce(tprt_rank &rank, const Artifact &artifact,
                    const ShardedTensors &inputs,
                    const ShardedTensors &parameters,
                    const RankMemory &memory) {
  int64_t id = rank.communicator.getRank();
  std::fill(rank.counts.begin(), rank.counts.end(), CollectiveCount());
  rank.lastCollective = -1;
  int32_t status = artifact.getEntry()(
      &rank, id, inputs.getPointers(id), parameters.getPointers(id),
      memory.outputPointers.data(), memory.arena.get());
  if (status == TPRT_OK && rank.error.empty())
    return;
  if (rank.isAborted)
    throw AbortedError(rank.error);
  throw executionError(rank.error.empty() ? "the program returned status " +
                                                std::to_string(status)
                                          : rank.error);
}

struct Session::Impl {
  std::shared_ptr<const Artifact> artifact;
  SessionOptions options;
  ShardedTensors parameters;
  std::vector<RankMemory> memory;
  std::unique_ptr<Team> team; ///< made by the first run
  std::atomic<int64_t> packedWeightBytes{0};

  const Manifest &getManifest() const { return artifact->getManifest(); }
  std::vector<int64_t> getHostedRanks() const;
  void allocate();
  void makeTeam();
  void nameConstants();
  void runRank(tprt_rank &rank, const ShardedTensors &inputs,
               const RunOptions &options, RunResult &result);
  void gatherOutputs(const std::vector<int64_t> &ranks, RunResult &result);
  void keepBlocks(const std::vector<int64_t> &ranks, RunResult &result);
};

/// The ranks whose blocks this process has at their newest values: all of them
/// while nothing has run.
std::vector<int64_t> Session::Impl::getHostedRanks() const {
  if (team)
    return team->getRanks();
  std::vector<int64_t> all(getManifest().worldSize);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Session::Impl::allocate() {
  const Manifest &manifest = getManifest();
  memory.resize(manifest.worldSize);
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    memory[rank].arena = allocateAligned(manifest.arenaBytes);
    for (const TensorInfo &output : manifest.outputs) {
      memory[rank].outputs.push_back(
          allocateAligned(output.getShardBytes(rank)));
      memory[rank].outputPointers.push_back(memory[rank].outputs.back().get());
    }
  }
}

void Session::Impl::makeTeam() {
  team = std::make_unique<Team>(getManifest(), options);
  nameConstants();
}

/// Tells the ranks which blocks keep their values from now on.
void Session::Impl::nameConstants() {
  team->run([&](tprt_rank &rank) {
    int64_t id = rank.communicator.getRank();
    std::vector<std::span<const std::byte>> constants;
    const std::vector<TensorInfo> &infos = getManifest().parameters;
    for (size_t i = 0; i < infos.size(); ++i)
      if (!infos[i].isUpdated)
        constants.emplace_back(
            static_cast<const std::byte *>(parameters.getPointers(id)[i]),
            infos[i].getShardBytes(id));
    rank.gemm.setConstants(std::move(constants), options.maxPackedWeightBytes);
  });
}

void Session::Impl::runRank(tprt_rank &rank, const ShardedTensors &inputs,
                            const RunOptions &options, RunResult &result) {
  using Clock = std::chrono::steady_clock;
  int64_t id = rank.communicator.getRank();
  bool keepsTime = id == team->getRanks().front();
  Recording *recording = options.recording;
  for (int64_t i = 0; i < options.warmup + options.repeat; ++i) {
    rank.communicator.barrier();
    Clock::time_point start = Clock::now();
    if (recording && i >= options.warmup)
      rank.recorder.emplace(recording->ranks[id],
                            recording->numRuns + i - options.warmup);
    runOnce(rank, *artifact, inputs, parameters, memory[id]);
    if (rank.recorder)
      rank.recorder->endRun();
    rank.communicator.barrier();
    rank.recorder.reset();
    if (keepsTime && i >= options.warmup)
      result.seconds.push_back(
          std::chrono::duration<double>(Clock::now() - start).count());
  }
  result.counts[id] = rank.counts;
  packedWeightBytes += rank.gemm.getPackedBytes();
}

void Session::Impl::gatherOutputs(const std::vector<int64_t> &ranks,
                                  RunResult &result) {
  const Manifest &manifest = getManifest();
  for (size_t i = 0; i < manifest.outputs.size(); ++i) {
    const TensorInfo &info = manifest.outputs[i];
    Tensor tensor{info.dtype, info.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(tensor.getNumBytes());
    for (int64_t rank : ranks)
      writeBlock(info.shape, info.shards[rank], byteWidth(info.dtype),
                 memory[rank].outputs[i].get(), data.get());
    tensor.data = data;
    result.outputs[info.name] = tensor;
  }
}

void Session::Impl::keepBlocks(const std::vector<int64_t> &ranks,
                               RunResult &result) {
  const Manifest &manifest = getManifest();
  result.blocks.resize(manifest.worldSize);
  for (int64_t rank : ranks)
    for (size_t i = 0; i < manifest.outputs.size(); ++i) {
      const TensorInfo &info = manifest.outputs[i];
      int64_t bytes = info.getShardBytes(rank);
      std::shared_ptr<std::byte> data = allocateAligned(bytes);
      std::memcpy(data.get(), memory[rank].outputs[i].get(), bytes);
      result.blocks[rank][info.name] = {info.dtype,
                                        info.shards[rank].getShape(), data};
    }
}

Session::Session(std::shared_ptr<const Artifact> artifact,
                 const TensorMap &weights, SessionOptions options)
    : impl(new Impl{std::move(artifact), std::move(options), {}, {}, {}, {}}) {
  const Manifest &manifest = impl->getManifest();
  std::string problems = checkTensors(manifest.parameters, weights, "weight",
                                      /*allowUnused=*/true);
  if (!problems.empty())
    throw inputError(problems);
  impl->parameters = ShardedTensors(manifest.parameters, manifest.worldSize);
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const TensorInfo &info = manifest.parameters[i];
    if (auto found = weights.find(info.name); found != weights.end())
      impl->parameters.set(i, found->second);
    else
      impl->parameters.fill(i, *info.init);
  }
  impl->allocate();
}

Session::~Session() = default;

/// Throws an input error where no parameter has this name.
static size_t getIndex(const std::vector<TensorInfo> &parameters,
                       const std::string &name) {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name)
      return i;
  std::vector<std::string> names;
  for (const TensorInfo &info : parameters)
    names.push_back(info.name);
  throw inputError("the program has no parameter '" + name + "'" +
                   didYouMean(name, names));
}

const Manifest &Session::getManifest() const { return impl->getManifest(); }

RunResult Session::run(const TensorMap &inputs, const RunOptions &options) {
  const Manifest &manifest = getManifest();
  std::string problems =
      checkTensors(manifest.inputs, inputs, "input", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems);
  ShardedTensors shardedInputs(manifest.inputs, manifest.worldSize);
  for (size_t i = 0; i < manifest.inputs.size(); ++i)
    shardedInputs.set(i, inputs.at(manifest.inputs[i].name));

  // Threads within a product serve a single rank, but would only stand in the
  // way of several.
  setGemmThreads(manifest.worldSize == 1 ? getUsableCores().size() : 1);
  RunResult result;
  result.counts.resize(manifest.worldSize);
  if (!impl->team)
    impl->makeTeam();
  impl->packedWeightBytes = 0;
  if (options.recording)
    options.recording->ranks.resize(manifest.worldSize);
  try {
    impl->team->run([&](tprt_rank &rank) {
      impl->runRank(rank, shardedInputs, options, result);
    });
  } catch (const Error &) {
    impl->team.reset();
    throw;
  }
  if (options.recording)
    options.recording->numRuns += options.repeat;
  const std::vector<int64_t> &ranks = impl->team->getRanks();
  impl->gatherOutputs(ranks, result);
  if (options.keepBlocks)
    impl->keepBlocks(ranks, result);
  return result;
}

Tensor Session::getParameter(const std::string &name) const {
  const std::vector<TensorInfo> &parameters = getManifest().parameters;
  size_t index = getIndex(parameters, name);
  if (std::optional<Tensor> value =
          impl->parameters.gather(index, impl->getHostedRanks()))
    return *value;
  throw executionError("the ranks of this process hold only a part of "
                       "parameter '" +
                       name + "'");
}

void Session::setParameters(const TensorMap &values) {
  const std::vector<TensorInfo> &parameters = getManifest().parameters;
  std::vector<TensorInfo> wanted;
  for (const auto &[name, value] : values)
    wanted.push_back(parameters[getIndex(parameters, name)]);
  std::string problems =
      checkTensors(wanted, values, "parameter", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems);
  for (const auto &[name, value] : values)
    impl->parameters.set(getIndex(parameters, name), value);
  if (impl->team)
    impl->nameConstants();
}

std::vector<int64_t> Session::getWeightBytesByRank() const {
  const Manifest &manifest = getManifest();
  std::vector<int64_t> bytes(manifest.worldSize);
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
    for (const TensorInfo &parameter : manifest.parameters)
      bytes[rank] += parameter.getShardBytes(rank);
  return bytes;
}

int64_t Session::getCopiedWeightBytes() const {
  return impl->parameters.getCopiedBytes();
}

int64_t Session::getPackedWeightBytes() const {
  return impl->packedWeightBytes;
}
