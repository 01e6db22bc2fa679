//===- Session.cpp - Execution of a program on its ranks ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Session.h"

#include "cuda/CudaDevice.h"
#include "exec/RankThreads.h"
#include "exec/ShardedTensors.h"
#include "support/Cores.h"
#include "support/Patience.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>

using namespace tprt;

std::string tprt::checkTensors(const std::vector<TensorInfo> &wanted,
                               const TensorMap &given, std::string_view kind,
                               bool allowUnused, bool convertsFloats) {
  std::string problems;
  auto report = [&](const std::string &text) {
    problems += (problems.empty() ? "" : "\n") + text;
  };
  // A few problems of each kind are enough to understand it.
  constexpr size_t maxReports = 8;
  auto reportAll = [&](const std::vector<std::string> &texts,
                       const std::string &more) {
    for (size_t i = 0; i < std::min(texts.size(), maxReports); ++i)
      report(texts[i]);
    if (texts.size() > maxReports)
      report("and " + std::to_string(texts.size() - maxReports) + " more " +
             more);
  };
  std::vector<std::string> missing, wrong, unknown;
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
      missing.push_back("missing " + quotedKind + " '" + info.name +
                        "' of type " + info.getTypeString() +
                        didYouMean(info.name, unused));
      continue;
    }
    const Tensor &tensor = found->second;
    bool sameDtype =
        tensor.dtype == info.dtype ||
        (info.dtype == Dtype::BF16 && tensor.dtype == Dtype::F32) ||
        (convertsFloats && isFloat(tensor.dtype) && isFloat(info.dtype));
    if (!sameDtype || tensor.shape != info.shape)
      wrong.push_back(quotedKind + " '" + info.name + "' has type " +
                      tensor.getTypeString() + ", expected " +
                      info.getTypeString());
  }
  if (!allowUnused)
    for (const std::string &name : unused)
      unknown.push_back("unknown " + quotedKind + " '" + name + "'" +
                        (wantedNames.empty()
                             ? ", the program takes none"
                             : ", expected " + quotedList(wantedNames, 8)) +
                        didYouMean(name, wantedNames));
  if (missing.size() > maxReports &&
      missing.size() + unknown.size() == wanted.size() + given.size())
    report("none of the program's " + std::to_string(wanted.size()) + " " +
           quotedKind + "s is there: these are another program's");
  reportAll(wrong, "have another type");
  reportAll(missing, "are missing");
  reportAll(unknown, "are unknown");
  return problems;
}

namespace {

/// The memory that a rank writes to: its shards of the outputs and its arena.
struct RankMemory {
  std::vector<std::shared_ptr<std::byte>> outputs;
  std::vector<void *> outputPointers;
  std::shared_ptr<std::byte> arena;
};

} // namespace

static std::shared_ptr<Device> makeDevice(const Artifact &artifact,
                                          const CudaOptions &options) {
  if (!artifact.getManifest().isForCuda)
    return std::make_shared<HostDevice>();
  std::shared_ptr<Device> device =
      cuda::makeDevice(*artifact.getDeviceCode(), options);
  for (const OpInfo &op : artifact.getManifest().ops)
    if (op.kind == "gemm")
      cuda::checkProducts();
  return device;
}

struct Session::Impl {
  std::shared_ptr<const Artifact> artifact;
  SessionOptions options;
  std::shared_ptr<Device> device = nullptr;
  std::vector<int64_t> ranks = {}; ///< of this process
  ShardedTensors inputs = {}, parameters = {};
  std::vector<RankMemory> memory = {};
  std::unique_ptr<RankThreads> threads = {}; ///< made by the first run
  /// On a device: whether everything that a run needs is loaded, allocated and
  /// connected; and a captured run of all ranks of this process.
  bool isWarm = false;
  std::shared_ptr<void> captured = {};
  std::string communication = {};      ///< the communicator's description
  std::vector<Event *> announced = {}; ///< by the ranks, while they capture
  std::atomic<int64_t> packedWeightBytes{0};
  std::shared_ptr<const GemmChoices> gemms =
      std::make_shared<GemmChoices>(); ///< of all ranks

  const Manifest &getManifest() const { return artifact->getManifest(); }
  void allocate();
  void makeTeam();
  void nameConstants();
  void runProgram(tprt_rank &rank);
  void capture(tprt_rank &rank);
  std::chrono::steady_clock::duration runStep(tprt_rank &rank);
  DeviceStream::Poll getPoll(tprt_rank &rank) const;
  void runRank(tprt_rank &rank, const RunOptions &options, RunResult &result);
  void gatherOutputs(RunResult &result);
  void keepBlocks(RunResult &result);
};

void Session::Impl::allocate() {
  const Manifest &manifest = getManifest();
  memory.resize(manifest.worldSize);
  announced.resize(manifest.worldSize);
  for (int64_t rank : ranks) {
    for (const TensorInfo &output : manifest.outputs) {
      memory[rank].outputs.push_back(
          device->allocate(output.getShardBytes(rank)));
      memory[rank].outputPointers.push_back(memory[rank].outputs.back().get());
    }
  }
}

void Session::Impl::makeTeam() {
  threads = std::make_unique<RankThreads>(getManifest(), options, *device);
  std::vector<int64_t> hosted = threads->getRanks();
  std::sort(hosted.begin(), hosted.end());
  if (hosted != ranks) {
    threads.reset();
    throw executionError("the backend runs other ranks in this process than "
                         "SessionOptions::ranks says");
  }
  for (const std::unique_ptr<Communicator> &communicator :
       threads->getCommunicators()) {
    std::shared_ptr<std::byte> &arena = memory[communicator->getRank()].arena;
    int64_t bytes = getManifest().arenaBytes;
    if (!arena)
      arena = communicator->allocate(bytes);
    if (!arena)
      arena = device->allocate(bytes);
  }
  nameConstants();
}

/// The number of threads within a rank: the ranks share the cores evenly.
static int countThreadsOfRank(const Manifest &manifest) {
  int64_t numCores = getUsableCores().size();
  return std::max<int64_t>(numCores / manifest.worldSize, 1);
}

/// Tells the ranks which of their shards keep their values from now on.
void Session::Impl::nameConstants() {
  threads->run([&](tprt_rank &rank) {
    if (rank.stream)
      return;
    int64_t id = rank.communicator.getRank();
    std::vector<std::span<const std::byte>> constants;
    const std::vector<TensorInfo> &infos = getManifest().parameters;
    for (size_t i = 0; i < infos.size(); ++i)
      if (!infos[i].isUpdated)
        constants.emplace_back(
            static_cast<const std::byte *>(parameters.getPointers(id)[i]),
            infos[i].getShardBytes(id));
    rank.gemm.setConstants(std::move(constants), options.maxPackedWeightBytes);
    rank.gemm.setThreads(countThreadsOfRank(getManifest()),
                         getManifest().worldSize);
    bool isChosen = gemms->library || !gemms->products.empty();
    rank.gemm.setChoices(isChosen ? gemms : nullptr);
  });
}

/// One call of a rank's program.
void Session::Impl::runProgram(tprt_rank &rank) {
  int64_t id = rank.communicator.getRank();
  std::fill(rank.counts.begin(), rank.counts.end(), CollectiveCount());
  rank.isUnderWay.assign(rank.isUnderWay.size(), false);
  rank.lastCollective = -1;
  if (rank.stream)
    rank.stream->beginRun();
  int32_t status = artifact->getEntry()(
      &rank, id, inputs.getPointers(id), parameters.getPointers(id),
      memory[id].outputPointers.data(), memory[id].arena.get());
  if (status == TPRT_OK && rank.error.empty()) {
    auto left = std::find(rank.isUnderWay.begin(), rank.isUnderWay.end(), true);
    if (left != rank.isUnderWay.end()) {
      int64_t id = left - rank.isUnderWay.begin();
      throw executionError("the program hasn't waited for " +
                           describe(getManifest().collectives[id], id));
    }
    if (rank.stream)
      rank.stream->endRun();
    return;
  }
  if (rank.isAborted)
    throw AbortedError(rank.error);
  throw executionError(rank.error.empty() ? "the program returned status " +
                                                std::to_string(status)
                                          : rank.error);
}

/// Captures one run of all ranks of this process together, into `captured`. The
/// first rank's stream is captured; the others' streams join it at the start,
/// and it waits for them at the end.
void Session::Impl::capture(tprt_rank &rank) {
  int64_t id = rank.communicator.getRank();
  bool isFirst = id == ranks.front();
  DeviceStream &stream = *rank.stream;
  auto meet = [&](auto announce, auto use) {
    announce();
    rank.communicator.barrier();
    use();
    rank.communicator.barrier();
  };
  meet(
      [&] {
        if (!isFirst)
          return;
        stream.beginCapture();
        announced[id] = stream.announce();
      },
      [&] {
        if (!isFirst)
          stream.waitFor(announced[ranks.front()]);
      });
  runProgram(rank);
  meet([&] { announced[id] = stream.announce(); },
       [&] {
         if (!isFirst)
           return;
         for (int64_t other : ranks)
           if (other != id)
             stream.waitFor(announced[other]);
         captured = stream.endCapture();
       });
}

/// The function that checks on the device while a rank waits for it.
DeviceStream::Poll Session::Impl::getPoll(tprt_rank &rank) const {
  return [&](std::chrono::steady_clock::duration waited) {
    rank.communicator.poll();
    std::chrono::milliseconds timeout = options.communicator.timeout;
    if (timeout.count() == 0 || waited <= timeout)
      return;
    throw executionError("no progress on the device for " +
                         formatTimeout(timeout));
  };
}

/// One run of a rank, from its start until its results are complete. Returns
/// the time in which the host only waited for the device.
std::chrono::steady_clock::duration Session::Impl::runStep(tprt_rank &rank) {
  using Clock = std::chrono::steady_clock;
  if (!rank.stream) {
    runProgram(rank);
    return {};
  }
  Clock::duration waited = {};
  auto finish = [&] {
    Clock::time_point start = Clock::now();
    rank.stream->finish(getPoll(rank));
    waited += Clock::now() - start;
  };
  if (!options.cuda.graphs || !isWarm || rank.recorder) {
    runProgram(rank);
  } else {
    if (!captured)
      capture(rank);
    rank.lastCollective = -1; // the failing call could be any of the run's
    // The first rank's stream also replays what the others captured.
    if (rank.communicator.getRank() == ranks.front()) {
      rank.stream->replay(captured.get());
      finish();
      if (ranks.size() == 1)
        return waited;
    }
    rank.communicator.barrier();
  }
  rank.lastCollective = -1;
  finish();
  return waited;
}

void Session::Impl::runRank(tprt_rank &rank, const RunOptions &options,
                            RunResult &result) {
  using Clock = std::chrono::steady_clock;
  int64_t id = rank.communicator.getRank();
  bool keepsTime = id == threads->getRanks().front();
  Recording *recording = options.recording;
  for (int64_t i = 0; i < options.warmup + options.repeat; ++i) {
    // A rank alone in its process replays without asking the others: its
    // collectives wait for the other ranks' collectives, and it polls for
    // failures meanwhile.
    auto meet = [&, meets = ranks.size() > 1 || !captured || recording] {
      if (meets)
        rank.communicator.barrier();
    };
    meet();
    Clock::time_point start = Clock::now();
    bool wasWarm = isWarm;
    if (recording && i >= options.warmup)
      rank.recorder.emplace(recording->ranks[id],
                            recording->numRuns + i - options.warmup,
                            rank.stream);
    Clock::duration waited = runStep(rank);
    if (rank.recorder)
      rank.recorder->endRun();
    meet();
    Clock::duration taken = Clock::now() - start;
    rank.recorder.reset();
    if (keepsTime && i >= options.warmup) {
      result.seconds.push_back(std::chrono::duration<double>(taken).count());
      if (rank.stream)
        result.hostSeconds.push_back(
            std::chrono::duration<double>(taken - waited).count());
    }
    if (wasWarm)
      continue;
    bool isReady =
        !rank.stream || rank.communicator.warmUp(memory[id].arena.get(),
                                                 getManifest().arenaBytes);
    if (keepsTime)
      isWarm = isReady; // the others read it after the next barrier
  }
  result.counts[id] = rank.counts;
  packedWeightBytes += rank.gemm.getPackedBytes();
}

void Session::Impl::gatherOutputs(RunResult &result) {
  const Manifest &manifest = getManifest();
  for (size_t i = 0; i < manifest.outputs.size(); ++i) {
    const TensorInfo &info = manifest.outputs[i];
    Tensor tensor{info.dtype, info.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(tensor.getNumBytes());
    for (int64_t rank : ranks)
      device->read(memory[rank].outputs[i].get(), info.dtype, info.shape,
                   info.shards[rank], data.get());
    tensor.data = data;
    result.outputs[info.name] = tensor;
  }
}

void Session::Impl::keepBlocks(RunResult &result) {
  const Manifest &manifest = getManifest();
  result.blocks.resize(manifest.worldSize);
  for (int64_t rank : ranks)
    for (size_t i = 0; i < manifest.outputs.size(); ++i) {
      const TensorInfo &info = manifest.outputs[i];
      Shape shape = info.shards[rank].getShape();
      std::shared_ptr<std::byte> data =
          allocateAligned(info.getShardBytes(rank));
      device->read(memory[rank].outputs[i].get(), info.dtype, shape,
                   makeBox(Shape(shape.size()), shape), data.get());
      result.blocks[rank][info.name] = {info.dtype, shape, data};
    }
}

Session::Session(std::shared_ptr<const Artifact> artifact,
                 const TensorMap &weights, SessionOptions options)
    : impl(new Impl{std::move(artifact), std::move(options)}) {
  const Manifest &manifest = impl->getManifest();
  std::string problems =
      checkTensors(manifest.parameters, weights, "weight", /*allowUnused=*/true,
                   /*convertsFloats=*/true);
  if (!problems.empty())
    throw inputError(problems);
  impl->ranks = impl->options.ranks;
  for (int64_t rank : impl->ranks)
    if (rank < 0 || rank >= manifest.worldSize)
      throw inputError("there is no rank " + std::to_string(rank) +
                       ": the program has " +
                       std::to_string(manifest.worldSize) + " ranks");
  if (impl->ranks.empty()) {
    impl->ranks.resize(manifest.worldSize);
    std::iota(impl->ranks.begin(), impl->ranks.end(), 0);
  }
  impl->artifact->loadCode(); // all arguments have been checked by now
  impl->device = makeDevice(*impl->artifact, impl->options.cuda);
  impl->inputs = ShardedTensors(manifest.inputs, manifest.worldSize,
                                impl->ranks, impl->device);
  impl->parameters = ShardedTensors(manifest.parameters, manifest.worldSize,
                                    impl->ranks, impl->device);
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const TensorInfo &info = manifest.parameters[i];
    if (auto found = weights.find(info.name); found != weights.end())
      impl->parameters.set(i, found->second);
    else
      impl->parameters.fill(i, *info.init);
  }
  impl->allocate();
  if (!impl->device->sharesHostMemory())
    return;
  GemmOptions gemm = impl->options.gemm;
  if (gemm.file.empty())
    gemm.file = impl->artifact->getPath() + ".gemm.json";
  int numThreads = countThreadsOfRank(manifest);
  impl->gemms = std::make_shared<GemmChoices>(chooseGemms(
      manifest, gemm, numThreads,
      static_cast<int64_t>(impl->ranks.size()) == manifest.worldSize));
}

Session::~Session() = default;

/// Throws an input error if no parameter has this name.
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

const std::string &Session::getBackend() const { return impl->options.backend; }

const std::string &Session::getCommunication() const {
  return impl->communication;
}

RunResult Session::run(const TensorMap &inputs, const RunOptions &options) {
  const Manifest &manifest = getManifest();
  std::string problems =
      checkTensors(manifest.inputs, inputs, "input", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems);
  for (size_t i = 0; i < manifest.inputs.size(); ++i)
    impl->inputs.set(i, inputs.at(manifest.inputs[i].name));

  RunResult result;
  result.counts.resize(manifest.worldSize);
  if (!impl->threads)
    impl->makeTeam();
  impl->packedWeightBytes = 0;
  if (options.recording)
    options.recording->ranks.resize(manifest.worldSize);
  try {
    impl->threads->run(
        [&](tprt_rank &rank) { impl->runRank(rank, options, result); });
  } catch (const Error &) {
    impl->threads.reset();
    impl->captured.reset();
    impl->isWarm = false;
    impl->device->dropStreams();
    throw;
  }
  if (options.recording)
    options.recording->numRuns += options.repeat;
  impl->communication =
      impl->threads->getCommunicators().front()->getDescription();
  impl->gatherOutputs(result);
  if (options.keepBlocks)
    impl->keepBlocks(result);
  return result;
}

Tensor Session::getParameter(const std::string &name) const {
  const std::vector<TensorInfo> &parameters = getManifest().parameters;
  size_t index = getIndex(parameters, name);
  if (std::optional<Tensor> value = impl->parameters.gather(index))
    return *value;
  throw executionError("the ranks of this process hold only a part of "
                       "parameter '" +
                       name + "'");
}

const std::vector<int64_t> &Session::getRanks() const { return impl->ranks; }

Tensor Session::getParameterBlock(const std::string &name, int64_t rank) const {
  return impl->parameters.getBlock(getIndex(getManifest().parameters, name),
                                   rank);
}

void Session::setParameters(const TensorMap &values) {
  const std::vector<TensorInfo> &parameters = getManifest().parameters;
  std::vector<TensorInfo> wanted;
  for (const auto &[name, value] : values)
    wanted.push_back(parameters[getIndex(parameters, name)]);
  std::string problems =
      checkTensors(wanted, values, "parameter", /*allowUnused=*/false,
                   /*convertsFloats=*/true);
  if (!problems.empty())
    throw inputError(problems);
  for (const auto &[name, value] : values)
    impl->parameters.set(getIndex(parameters, name), value);
  if (impl->threads)
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

const GemmChoices &Session::getGemmChoices() const { return *impl->gemms; }

int64_t Session::getPackedWeightBytes() const {
  return impl->packedWeightBytes;
}

std::vector<AttentionUse> Session::getAttentionUses() const {
  DeviceStream *stream = impl->device->getStream(impl->ranks.front());
  return stream ? stream->getAttentionUses() : std::vector<AttentionUse>();
}
