//===- Session.cpp - Running a program on its ranks ----------------------===//

#include "tprt/Session.h"

#include "Rank.h"
#include "tprt/Npy.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

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

static void storeOne(Dtype dtype, std::byte *element) {
  auto store = [&](auto value) { std::memcpy(element, &value, sizeof(value)); };
  switch (dtype) {
  case Dtype::F32:
    return store(1.0f);
  case Dtype::F64:
    return store(1.0);
  case Dtype::F16:
    return store(static_cast<Half>(1));
  case Dtype::BF16:
    return store(BFloat16::round(1));
  case Dtype::I64:
    return store(int64_t(1));
  case Dtype::I32:
    return store(int32_t(1));
  case Dtype::I1:
    return store(uint8_t(1));
  }
}

namespace {

/// The local blocks of a list of tensors. Ranks with the same block share its
/// memory.
class ShardedTensors {
public:
  ShardedTensors() = default;
  ShardedTensors(const std::vector<TensorInfo> &infos, const TensorMap &tensors,
                 int64_t worldSize)
      : pointers(worldSize) {
    for (const TensorInfo &info : infos)
      add(info, adaptToDtype(tensors.at(info.name), info.dtype));
  }

  const void *const *getPointers(int64_t rank) const {
    return pointers[rank].data();
  }
  int64_t getCopiedBytes() const { return copiedBytes; }

private:
  void add(const TensorInfo &info, const Tensor &tensor) {
    for (size_t rank = 0; rank < pointers.size(); ++rank) {
      const Block &block = info.shards[rank];
      if (isNeutral(info, rank)) {
        pointers[rank].push_back(fill(info, rank));
        continue;
      }
      size_t same = 0; // an earlier rank with this block
      while (same < rank &&
             (isNeutral(info, same) || !(info.shards[same] == block)))
        ++same;
      pointers[rank].push_back(same < rank ? pointers[same].back()
                                           : place(tensor, block));
    }
  }

  static bool isNeutral(const TensorInfo &info, int64_t rank) {
    return std::binary_search(info.neutralRanks.begin(),
                              info.neutralRanks.end(), rank);
  }

  /// A block of neutral elements.
  const std::byte *fill(const TensorInfo &info, int64_t rank) {
    int64_t bytes = info.getShardBytes(rank), width = byteWidth(info.dtype);
    std::shared_ptr<std::byte> block = allocateAligned(bytes);
    std::memset(block.get(), 0, bytes);
    if (info.neutralElement == 1)
      for (int64_t at = 0; at < bytes; at += width)
        storeOne(info.dtype, block.get() + at);
    copiedBytes += bytes;
    memory.push_back(block);
    return block.get();
  }

  /// The block's elements: in place where that is dense and aligned, else a
  /// copy.
  const std::byte *place(const Tensor &tensor, const Block &block) {
    int64_t width = byteWidth(tensor.dtype);
    if (std::optional<int64_t> offset = contiguousOffset(tensor.shape, block)) {
      const std::byte *data = tensor.data.get() + *offset * width;
      if (reinterpret_cast<uintptr_t>(data) % blockAlignment == 0) {
        memory.push_back(tensor.data);
        return data;
      }
    }
    int64_t bytes = numElements(block.getShape()) * width;
    std::shared_ptr<std::byte> copy = allocateAligned(bytes);
    readBlock(tensor.shape, block, width, tensor.data.get(), copy.get());
    copiedBytes += bytes;
    memory.push_back(copy);
    return copy.get();
  }

  std::vector<std::vector<const void *>> pointers; // [rank][tensor]
  std::vector<std::shared_ptr<const std::byte>> memory;
  int64_t copiedBytes = 0;
};

/// What a rank writes to: its outputs' local blocks and its arena.
struct RankMemory {
  std::vector<std::shared_ptr<std::byte>> outputs;
  std::vector<void *> outputPointers;
  std::shared_ptr<std::byte> arena;
};

/// One call of Session::run: the ranks' threads and what they report.
struct Execution {
  const Artifact &artifact;
  const ShardedTensors &inputs;
  const ShardedTensors &parameters;
  std::vector<RankMemory> &memory;
  const RunOptions &options;
  RunResult &result;

  // The failure that came first; ranks that only left because of it don't
  // count.
  std::mutex failureMutex;
  std::string failure;

  void runRank(Communicator &communicator, bool keepsTime);
  void runOnce(tprt_rank &rank);
  void noteFailure(const std::string &message) {
    std::lock_guard<std::mutex> lock(failureMutex);
    if (failure.empty())
      failure = message;
  }
};

} // namespace

void Execution::runOnce(tprt_rank &rank) {
  int64_t id = rank.communicator.getRank();
  std::fill(rank.counts.begin(), rank.counts.end(), CollectiveCount());
  rank.lastCollective = -1;
  int32_t status = artifact.getEntry()(
      &rank, id, inputs.getPointers(id), parameters.getPointers(id),
      memory[id].outputPointers.data(), memory[id].arena.get());
  if (status == TPRT_OK)
    return;
  if (rank.isAborted)
    throw AbortedError(rank.error);
  throw executionError(rank.error.empty() ? "the program returned status " +
                                                std::to_string(status)
                                          : rank.error);
}

/// "rank 1 failed after collective 4 (all_reduce of 'mlp.down')".
static std::string describeFailure(const tprt_rank &rank) {
  std::string text =
      "rank " + std::to_string(rank.communicator.getRank()) + " failed";
  if (rank.lastCollective >= 0)
    text += (rank.isInCollective ? " in " : " after ") +
            describe(rank.manifest.collectives[rank.lastCollective],
                     rank.lastCollective);
  return text;
}

void Execution::runRank(Communicator &communicator, bool keepsTime) {
  int64_t id = communicator.getRank();
  tprt_rank rank(artifact.getManifest(), communicator);
  try {
    using Clock = std::chrono::steady_clock;
    for (int64_t i = 0; i < options.warmup + options.repeat; ++i) {
      communicator.barrier();
      Clock::time_point start = Clock::now();
      runOnce(rank);
      communicator.barrier();
      if (keepsTime && i >= options.warmup)
        result.seconds.push_back(
            std::chrono::duration<double>(Clock::now() - start).count());
    }
    result.counts[id] = rank.counts;
  } catch (const AbortedError &error) {
    noteFailure(error.what());
  } catch (const std::exception &error) {
    std::string message = describeFailure(rank) + ": " + error.what();
    noteFailure(message);
    communicator.abort(message);
  }
  communicator.finish();
}

struct Session::Impl {
  std::shared_ptr<const Artifact> artifact;
  SessionOptions options;
  ShardedTensors parameters;
  std::vector<RankMemory> memory;

  const Manifest &getManifest() const { return artifact->getManifest(); }
  void allocate();
  void gatherOutputs(const std::vector<int64_t> &ranks, RunResult &result);
  void keepBlocks(const std::vector<int64_t> &ranks, RunResult &result);
};

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
    : impl(new Impl{std::move(artifact), std::move(options), {}, {}}) {
  const Manifest &manifest = impl->getManifest();
  std::string problems = checkTensors(manifest.parameters, weights, "weight",
                                      /*allowUnused=*/true);
  if (!problems.empty())
    throw inputError(problems);
  impl->parameters =
      ShardedTensors(manifest.parameters, weights, manifest.worldSize);
  impl->allocate();
}

Session::~Session() = default;

const Manifest &Session::getManifest() const { return impl->getManifest(); }

RunResult Session::run(const TensorMap &inputs, const RunOptions &options) {
  const Manifest &manifest = getManifest();
  std::string problems =
      checkTensors(manifest.inputs, inputs, "input", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems);
  ShardedTensors shardedInputs(manifest.inputs, inputs, manifest.worldSize);

  // The BLAS has one pool of threads per process: it serves a single rank, but
  // would only stand in the way of several.
  setBlasThreads(manifest.worldSize == 1 ? std::thread::hardware_concurrency()
                                         : 1);
  RunResult result;
  result.counts.resize(manifest.worldSize);
  Execution execution{*impl->artifact,
                      shardedInputs,
                      impl->parameters,
                      impl->memory,
                      options,
                      result,
                      {},
                      {}};
  std::vector<std::unique_ptr<Communicator>> communicators =
      impl->options.makeCommunicators(manifest, impl->options.communicator);
  std::vector<int64_t> ranks;
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Communicator> &communicator : communicators) {
    bool keepsTime = ranks.empty();
    ranks.push_back(communicator->getRank());
    threads.emplace_back([&execution, &communicator, keepsTime] {
      execution.runRank(*communicator, keepsTime);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  if (!execution.failure.empty())
    throw executionError(execution.failure);
  impl->gatherOutputs(ranks, result);
  if (options.keepBlocks)
    impl->keepBlocks(ranks, result);
  return result;
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
