//===- Job.cpp - One process among those of a program --------------------===//

#include "tprt/Job.h"

#include "Cuda/NcclCommunicator.h"
#include "Rendezvous.h"
#include "ShardedTensors.h"

#include <charconv>
#include <numeric>

using namespace tprt;

namespace {

/// The variables that a launcher sets.
struct Launcher {
  const char *rank, *worldSize, *localRank;
};

constexpr Launcher launchers[] = {
    {"TP_RANK", "TP_WORLD_SIZE", "TP_LOCAL_RANK"},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"}, // torchrun
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}, // MPICH
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

} // namespace

static int64_t parseVariable(const char *name, const std::string &text,
                             int64_t minimum, int64_t maximum) {
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      value < minimum || value > maximum)
    throw inputError(std::string(name) + " is '" + text + "', expected " +
                     std::to_string(minimum) + " to " +
                     std::to_string(maximum));
  return value;
}

std::optional<Job>
Job::fromEnvironment(const std::function<const char *(const char *)> &get) {
  for (const Launcher &launcher : launchers) {
    const char *rank = get(launcher.rank), *size = get(launcher.worldSize);
    if (!rank || !size)
      continue;
    Job job;
    job.worldSize = parseVariable(launcher.worldSize, size, 1, 4096);
    job.rank = parseVariable(launcher.rank, rank, 0, job.worldSize - 1);
    job.localRank = job.rank;
    if (const char *local = get(launcher.localRank))
      job.localRank =
          parseVariable(launcher.localRank, local, 0, job.worldSize - 1);
    if (const char *address = get("TP_ADDRESS"))
      job.address = address;
    else if (const char *address = get("MASTER_ADDR"))
      job.address = address;
    if (const char *port = get("TP_PORT"))
      job.port = parseVariable("TP_PORT", port, 1, 65535);
    else if (const char *port = get("MASTER_PORT"))
      job.port = parseVariable("MASTER_PORT", port, 1, 65534) + 1;
    if (const char *listener = get("TP_LISTENER"))
      job.listener = parseVariable("TP_LISTENER", listener, 0, 1 << 20);
    return job;
  }
  return std::nullopt;
}

struct Connection::Impl {
  Job job;
  Rendezvous rendezvous;
};

Connection::Connection(const Job &job, std::chrono::milliseconds timeout)
    : impl(new Impl{job, Rendezvous(job, timeout)}) {}

Connection::~Connection() = default;

std::vector<std::string> Connection::exchange(const std::string &mine) {
  return impl->rendezvous.exchange(mine);
}

std::string Connection::broadcast(const std::string &mine) {
  return impl->rendezvous.broadcast(mine);
}

void Connection::abort(const std::string &reason) noexcept {
  impl->rendezvous.abort(reason);
}

/// The ranks of a job whose blocks are needed for the whole.
static std::vector<int64_t> getOwners(const Manifest &manifest,
                                      const TensorInfo &info) {
  std::vector<int64_t> ranks(manifest.worldSize);
  std::iota(ranks.begin(), ranks.end(), 0);
  return chooseSources(info, ranks);
}

static const TensorInfo &getParameter(const Manifest &manifest,
                                      const std::string &name) {
  for (const TensorInfo &info : manifest.parameters)
    if (info.name == name)
      return info;
  throw inputError("the program has no parameter '" + name + "'");
}

/// What this rank hands in for a parameter.
static std::string packBlock(const Session &session, const TensorInfo &info,
                             int64_t rank) {
  std::vector<int64_t> owners = getOwners(session.getManifest(), info);
  if (std::find(owners.begin(), owners.end(), rank) == owners.end())
    return "";
  Tensor block = session.getParameterBlock(info.name, rank);
  return {reinterpret_cast<const char *>(block.data.get()),
          static_cast<size_t>(block.getNumBytes())};
}

static Tensor unpackBlocks(const Manifest &manifest, const TensorInfo &info,
                           const std::vector<std::string> &blocks) {
  Tensor whole{info.dtype, info.shape, nullptr};
  std::shared_ptr<std::byte> data = allocateAligned(whole.getNumBytes());
  for (int64_t rank : getOwners(manifest, info)) {
    if (static_cast<int64_t>(blocks[rank].size()) != info.getShardBytes(rank))
      throw executionError("rank " + std::to_string(rank) + " has " +
                           std::to_string(blocks[rank].size()) + " bytes of '" +
                           info.name + "' where its block has " +
                           std::to_string(info.getShardBytes(rank)) +
                           ": it runs another program");
    writeBlock(info.shape, info.shards[rank], byteWidth(info.dtype),
               reinterpret_cast<const std::byte *>(blocks[rank].data()),
               data.get());
  }
  whole.data = data;
  return whole;
}

void Connection::withParameters(const Session &session,
                                const UseParameters &work) {
  Rendezvous &rendezvous = impl->rendezvous;
  const Manifest &manifest = session.getManifest();
  int64_t rank = impl->job.rank;
  if (rank > 0) { // until there is no further name
    for (std::string name; !(name = rendezvous.broadcast("")).empty();)
      rendezvous.gather(packBlock(session, getParameter(manifest, name), rank));
    return;
  }
  std::mutex mutex;
  try {
    work([&](const std::string &name) {
      const TensorInfo &info = getParameter(manifest, name);
      std::lock_guard<std::mutex> lock(mutex);
      rendezvous.broadcast(name);
      return unpackBlocks(manifest, info,
                          rendezvous.gather(packBlock(session, info, rank)));
    });
  } catch (const std::exception &error) {
    rendezvous.abort("rank 0 failed: " + std::string(error.what()));
    throw;
  }
  rendezvous.broadcast("");
}

CommunicatorFactory Connection::getNccl() {
  return [this](const Manifest &manifest, const CommunicatorOptions &options) {
    std::vector<std::unique_ptr<Communicator>> communicators;
    communicators.push_back(
        cuda::makeNcclCommunicator(manifest, options, impl->job.rank,
                                   impl->job.worldSize, impl->rendezvous));
    return communicators;
  };
}
