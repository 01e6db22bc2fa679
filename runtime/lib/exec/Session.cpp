//===- Session.cpp - Execution of programs on their ranks -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Session.h"

#include "cuda/CudaDevice.h"
#include "exec/GatherBlocks.h"
#include "exec/OutputsOfRank.h"
#include "exec/RankThreads.h"
#include "exec/Replicas.h"
#include "exec/ShardedTensors.h"
#include "support/Cores.h"
#include "support/Patience.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>

using namespace tprt;

namespace {

/// What a session keeps of a program that has run.
struct ProgramState {
  struct Rank {
    std::vector<void *> parameters, outputs;        ///< as the code takes them
    std::vector<std::shared_ptr<std::byte>> memory; ///< of the outputs
    std::vector<CollectiveCount> counts; ///< of the last call of the code
  };

  ShardedTensors inputs;
  std::vector<Rank> ranks;
  /// On a device: whether everything that a run needs is loaded, allocated and
  /// connected; and a captured run of all ranks of this process.
  bool isWarm = false;
  std::shared_ptr<void> captured = {};
};

} // namespace

static std::shared_ptr<Device> makeDevice(const Artifact &artifact,
                                          const CudaOptions &options,
                                          const GemmOptions &gemm,
                                          bool mayMeasure) {
  if (!artifact.getManifest().isForCuda)
    return std::make_shared<HostDevice>();
  std::shared_ptr<Device> device =
      cuda::makeDevice(artifact.getDeviceCodes(), options, gemm, mayMeasure);
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
  ShardedTensors parameters = {};
  std::vector<std::shared_ptr<std::byte>> arenas = {}; ///< by rank
  std::unique_ptr<RankThreads> threads = {}; ///< made by the first run
  std::map<const Program *, ProgramState> states = {};
  std::map<int64_t, FlightRecorder> flights = {}; ///< by rank, if wanted
  // Of the current run.
  const Program *program = nullptr;
  ProgramState *state = nullptr;
  std::string communication = {};      ///< the communicator's description
  std::vector<Event *> announced = {}; ///< by the ranks, while they capture
  std::shared_ptr<ConstantOperands> constants = {}; ///< of all ranks
  std::shared_ptr<const GemmChoices> gemms =
      std::make_shared<GemmChoices>(); ///< of all ranks

  const Manifest &getManifest() const { return artifact->getManifest(); }
  bool hostsAll() const {
    return static_cast<int64_t>(ranks.size()) == getManifest().worldSize;
  }
  void setProgram(const Program &chosen);
  void makeTeam();
  void runTeam(const RankThreads::Work &work);
  void dropTeam();
  std::string writeFlights(const std::string &failure);
  void nameConstants();
  void runProgram(tprt_rank &rank);
  void capture(tprt_rank &rank);
  std::chrono::steady_clock::duration runStep(tprt_rank &rank);
  DeviceStream::Poll getPoll(tprt_rank &rank) const;
  void runRank(tprt_rank &rank, const RunOptions &options, RunResult &result);
  void gatherOutputs(RunResult &result);
  void keepBlocks(RunResult &result);
};

/// Makes `chosen` the program of the next run.
void Session::Impl::setProgram(const Program &chosen) {
  const Manifest &manifest = getManifest();
  program = &chosen;
  auto [entry, isNew] = states.try_emplace(program);
  state = &entry->second;
  if (isNew) {
    state->inputs =
        ShardedTensors(chosen.inputs, manifest.worldSize, ranks, device);
    state->ranks.resize(manifest.worldSize);
    for (int64_t rank : ranks) {
      auto &[parameters, outputs, memory, counts] = state->ranks[rank];
      parameters.resize(chosen.parameters.size());
      for (const TensorInfo &output : chosen.outputs) {
        memory.push_back(device->allocate(output.getShardBytes(rank)));
        outputs.push_back(memory.back().get());
      }
    }
  }
  // A first run may replace memory that other programs' captured runs use.
  if (!state->isWarm)
    for (auto &[other, stateOfOther] : states)
      stateOfOther.captured.reset();
  // New values of parameters may be elsewhere.
  for (int64_t rank : ranks)
    for (size_t i = 0; i < chosen.parameters.size(); ++i)
      state->ranks[rank].parameters[i] =
          parameters.getPointers(rank)[chosen.parameters[i]];
}

void Session::Impl::makeTeam() {
  bool usesCaller = options.usesCaller && device->sharesHostMemory() &&
                    !gemms->uses(GemmLibrary::OneDnn);
  threads = std::make_unique<RankThreads>(getManifest(), options, *device,
                                          usesCaller);
  std::vector<int64_t> hosted = threads->getRanks();
  std::sort(hosted.begin(), hosted.end());
  if (hosted != ranks) {
    threads.reset();
    throw executionError("the backend runs other ranks in this process than "
                         "SessionOptions::ranks says");
  }
  for (const std::unique_ptr<Communicator> &communicator :
       threads->getCommunicators()) {
    std::shared_ptr<std::byte> &arena = arenas[communicator->getRank()];
    int64_t bytes = getManifest().getArenaBytes();
    if (!arena)
      arena = communicator->allocate(bytes);
    if (!arena)
      arena = device->allocate(bytes);
  }
  nameConstants();
}

/// Calls `work` for each rank of this process, in its thread.
void Session::Impl::runTeam(const RankThreads::Work &work) {
  if (!threads)
    makeTeam();
  try {
    threads->run(work);
  } catch (const Error &error) {
    std::string problem = writeFlights(error.what());
    dropTeam();
    if (problem.empty())
      throw;
    throw executionError(error.what() + problem);
  }
}

/// Returns what goes wrong, for the end of the failure's text.
std::string Session::Impl::writeFlights(const std::string &failure) {
  if (!threads)
    return "";
  std::string problem;
  for (const std::unique_ptr<Communicator> &communicator :
       threads->getCommunicators())
    try {
      if (auto found = flights.find(communicator->getRank());
          found != flights.end())
        found->second.write(options.flightDirectory, getManifest(),
                            *communicator, failure);
    } catch (const std::exception &error) { // the failure matters more
      problem = std::string("; a file of the flight recorder can't be "
                            "written: ") +
                error.what();
    }
  return problem;
}

void Session::Impl::dropTeam() {
  threads.reset();
  for (auto &[each, stateOfEach] : states) {
    stateOfEach.captured.reset();
    stateOfEach.isWarm = false;
  }
  device->dropStreams();
}

/// The number of threads within a rank: the ranks share the cores evenly.
static int countThreadsOfRank(const Manifest &manifest) {
  int64_t numCores = getUsableCores().size();
  return std::max<int64_t>(numCores / manifest.worldSize, 1);
}

/// Tells the ranks which of their shards keep their values from now on.
void Session::Impl::nameConstants() {
  std::vector<ConstantBlock> blocks;
  const std::vector<TensorInfo> &infos = getManifest().parameters;
  for (int64_t id : ranks)
    for (size_t i = 0; i < infos.size() && device->sharesHostMemory(); ++i)
      if (!infos[i].isUpdated)
        blocks.push_back(
            {{static_cast<const std::byte *>(parameters.getPointers(id)[i]),
              static_cast<size_t>(infos[i].getShardBytes(id))},
             parameters.getReader(i, id)});
  constants = std::make_shared<ConstantOperands>(std::move(blocks),
                                                 options.maxPackedWeightBytes);
  threads->run([&](tprt_rank &rank) {
    if (rank.stream)
      return;
    rank.gemm.setConstants(constants);
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
  if (rank.flight)
    rank.flight->beginRun();
  rank.isUnderWay.assign(rank.isUnderWay.size(), false);
  rank.lastCollective = -1;
  if (rank.stream)
    rank.stream->beginRun();
  ProgramState::Rank &own = state->ranks[id];
  tpx_main_fn entry =
      artifact->getEntry(program - getManifest().programs.data());
  int32_t status =
      entry(&rank, id, state->inputs.getPointers(id), own.parameters.data(),
            own.outputs.data(), arenas[id].get());
  if (status == TPRT_OK && rank.error.empty()) {
    auto left = std::find(rank.isUnderWay.begin(), rank.isUnderWay.end(), true);
    if (left != rank.isUnderWay.end()) {
      int64_t id = left - rank.isUnderWay.begin();
      throw executionError("the program hasn't waited for " +
                           describeCollective(getManifest(), id));
    }
    if (rank.stream)
      rank.stream->endRun();
    own.counts = rank.counts;
    return;
  }
  if (rank.isAborted)
    throw AbortedError(rank.error);
  throw executionError(rank.error.empty() ? "the program returned status " +
                                                std::to_string(status)
                                          : rank.error);
}

/// Captures one run of all ranks of this process together. The first rank's
/// stream is captured; the others' streams join it at the start, and it waits
/// for them at the end.
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
         state->captured = stream.endCapture();
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
  if (!options.cuda.graphs || !state->isWarm || rank.recorder) {
    runProgram(rank);
  } else {
    if (!state->captured)
      capture(rank);
    rank.lastCollective = -1; // the failing call could be any of the run's
    // The first rank's stream also replays what the others captured.
    if (rank.communicator.getRank() == ranks.front()) {
      rank.stream->replay(state->captured.get());
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
  const Manifest &manifest = getManifest();
  rank.program = program;
  if (auto found = flights.find(id); found != flights.end())
    rank.flight = &found->second;
  if (rank.stream)
    rank.stream->setProgram(program - manifest.programs.data());
  if (manifest.programs.size() > 1)
    rank.communicator.agree("the program", program->name);
  if (!options.agreement.empty())
    rank.communicator.agreeOnAll(options.agreement);
  for (int64_t i = 0; i < options.warmup + options.repeat; ++i) {
    // A rank alone in its process replays without asking the others: its
    // collectives wait for the other ranks' collectives, and it polls for
    // failures meanwhile.
    auto meet = [&, meets = ranks.size() > 1 || !state->captured || recording] {
      if (meets)
        rank.communicator.barrier();
    };
    meet();
    Clock::time_point start = Clock::now();
    bool wasWarm = state->isWarm;
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
        !rank.stream ||
        rank.communicator.warmUp(arenas[id].get(), manifest.getArenaBytes());
    if (keepsTime)
      state->isWarm = isReady; // the others read it after the next barrier
  }
  OutputsOfRank outputs(*device, rank.communicator, *program,
                        state->ranks[id].outputs);
  if (options.useOutputs)
    options.useOutputs(outputs);
  else if (options.gathersOutputs && !hostsAll())
    if (TensorMap whole = outputs.gather(options.blockOutputs);
        id == ranks.front())
      result.outputs = std::move(whole);
  result.counts[id] = state->ranks[id].counts;
}

void Session::Impl::gatherOutputs(RunResult &result) {
  for (size_t i = 0; i < program->outputs.size(); ++i) {
    const TensorInfo &info = program->outputs[i];
    Tensor tensor{info.dtype, info.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(tensor.getNumBytes());
    for (int64_t rank : ranks)
      device->read(state->ranks[rank].memory[i].get(), info.dtype, info.shape,
                   info.shards[rank], data.get());
    tensor.data = data;
    result.outputs[info.name] = tensor;
  }
}

void Session::Impl::keepBlocks(RunResult &result) {
  result.blocks.resize(getManifest().worldSize);
  for (int64_t rank : ranks)
    for (size_t i = 0; i < program->outputs.size(); ++i) {
      const TensorInfo &info = program->outputs[i];
      Shape shape = info.shards[rank].getShape();
      std::shared_ptr<std::byte> data =
          allocateAligned(info.getShardBytes(rank));
      device->read(state->ranks[rank].memory[i].get(), info.dtype, shape,
                   makeBox(Shape(shape.size()), shape), data.get());
      result.blocks[rank][info.name] = {info.dtype, shape, data};
    }
}

Session::Session(std::shared_ptr<const Artifact> artifact,
                 const TensorMap &weights, SessionOptions options,
                 const TensorMap &blocks)
    : impl(new Impl{std::move(artifact), std::move(options)}) {
  const Manifest &manifest = impl->getManifest();
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
  std::string problems =
      checkParameters(manifest.parameters, weights, blocks, impl->ranks,
                      "weight", /*allowUnused=*/true);
  if (!problems.empty())
    throw inputError(problems);
  impl->artifact->loadCode(); // all arguments have been checked by now
  GemmOptions gemm = impl->options.gemm;
  if (gemm.file.empty())
    gemm.file = impl->artifact->getPath() + ".gemm.json";
  impl->device =
      makeDevice(*impl->artifact, impl->options.cuda, gemm, impl->hostsAll());
  impl->parameters = ShardedTensors(manifest.parameters, manifest.worldSize,
                                    impl->ranks, impl->device);
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const TensorInfo &info = manifest.parameters[i];
    if (auto block = blocks.find(info.name); block != blocks.end())
      impl->parameters.setBlock(i, impl->ranks.front(), block->second);
    else if (auto found = weights.find(info.name); found != weights.end())
      impl->parameters.set(i, found->second);
    else
      impl->parameters.fill(i, *info.init);
  }
  if (const std::string &directory = impl->options.flightDirectory;
      !directory.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(directory, problem);
    if (problem)
      throw inputError("cannot create the directory of the flight recorder, '" +
                       directory + "': " + problem.message());
    for (int64_t rank : impl->ranks)
      impl->flights[rank];
  }
  impl->arenas.resize(manifest.worldSize);
  impl->announced.resize(manifest.worldSize);
  if (!impl->device->sharesHostMemory())
    return;
  impl->gemms = std::make_shared<GemmChoices>(chooseGemms(
      manifest, gemm, countThreadsOfRank(manifest), impl->hostsAll()));
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
  RunResult result;
  result.choice = chooseProgram(manifest, inputs, options.query);
  if (!options.blockOutputs.empty() &&
      (impl->ranks.size() != 1 || result.choice.isPadded))
    throw inputError("only the rank of a process that runs one rank returns "
                     "blocks, and none of a run with padded inputs");
  const Program &program = *result.choice.program;
  TensorMap padded = padInputs(result.choice, inputs, options.query);
  impl->setProgram(program);
  for (size_t i = 0; i < program.inputs.size(); ++i)
    impl->state->inputs.set(i, padded.at(program.inputs[i].name));

  result.counts.resize(manifest.worldSize);
  if (options.recording)
    options.recording->ranks.resize(manifest.worldSize);
  impl->runTeam([&](tprt_rank &rank) { impl->runRank(rank, options, result); });
  if (options.recording)
    options.recording->numRuns += options.repeat;
  impl->communication =
      impl->threads->getCommunicators().front()->getDescription();
  if (!options.useOutputs) {
    if (!options.gathersOutputs || impl->hostsAll())
      impl->gatherOutputs(result);
    result.outputs = cutOutputs(result.choice, std::move(result.outputs));
  }
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

Tensor Session::gatherParameter(const std::string &name) {
  size_t index = getIndex(getManifest().parameters, name);
  const TensorInfo &info = getManifest().parameters[index];
  bool isReplicated = info.neutralRanks.empty() &&
                      std::all_of(info.shards.begin(), info.shards.end(),
                                  [&](const Block &shard) {
                                    return shard.getShape() == info.shape;
                                  });
  if (impl->hostsAll() || isReplicated)
    return getParameter(name);
  Tensor whole;
  impl->runTeam([&](tprt_rank &rank) {
    int64_t id = rank.communicator.getRank();
    Tensor block = impl->parameters.getBlock(index, id);
    Tensor gathered = gatherBlocks(
        rank.communicator, info,
        {block.data.get(), static_cast<size_t>(block.getNumBytes())});
    if (id == impl->ranks.front())
      whole = gathered;
  });
  return whole;
}

const std::vector<int64_t> &Session::getRanks() const { return impl->ranks; }

Tensor Session::getParameterBlock(const std::string &name, int64_t rank) const {
  return impl->parameters.getBlock(getIndex(getManifest().parameters, name),
                                   rank);
}

void Session::setParameters(const TensorMap &values, const TensorMap &blocks) {
  const std::vector<TensorInfo> &parameters = getManifest().parameters;
  std::vector<TensorInfo> wanted;
  for (const TensorMap *given : {&values, &blocks})
    for (const auto &[name, value] : *given)
      wanted.push_back(parameters[getIndex(parameters, name)]);
  std::string problems =
      checkParameters(wanted, values, blocks, impl->ranks, "parameter",
                      /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems);
  for (const auto &[name, value] : values)
    impl->parameters.set(getIndex(parameters, name), value);
  for (const auto &[name, block] : blocks)
    impl->parameters.setBlock(getIndex(parameters, name), impl->ranks.front(),
                              block);
  if (impl->threads)
    impl->nameConstants();
}

std::string Session::findDivergence() {
  std::string found;
  impl->runTeam([&](tprt_rank &rank) {
    std::string own = tprt::findDivergence(getManifest(), impl->parameters,
                                           rank.communicator);
    if (rank.communicator.getRank() == impl->ranks.front())
      found = own;
  });
  return found;
}

std::string Session::recordFailure(const std::string &failure) {
  return impl->writeFlights(failure);
}

void Session::resetState() {
  const std::vector<TensorInfo> &parameters = getManifest().parameters;
  for (const TensorInfo &info : parameters)
    if (info.isUpdated && !info.init)
      throw inputError("parameter '" + info.name +
                       "' is updated and has no initial value, so the state "
                       "can't be reset");
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].isUpdated)
      impl->parameters.fill(i, *parameters[i].init);
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
  return impl->constants ? impl->constants->getPackedBytes() : 0;
}

GemmUses Session::getGemmUses() const {
  DeviceStream *stream = impl->device->getStream(impl->ranks.front());
  return stream ? stream->getGemmUses() : GemmUses();
}

std::vector<AttentionUse> Session::getAttentionUses() const {
  DeviceStream *stream = impl->device->getStream(impl->ranks.front());
  return stream ? stream->getAttentionUses() : std::vector<AttentionUse>();
}
