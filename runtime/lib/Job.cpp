//===- Job.cpp - One process among those of a program --------------------===//

#include "tprt/Job.h"

#include "Cuda/NcclCommunicator.h"
#include "Rendezvous.h"

#include <charconv>

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

CommunicatorFactory Connection::getNccl() {
  return [this](const Manifest &manifest, const CommunicatorOptions &options) {
    std::vector<std::unique_ptr<Communicator>> communicators;
    communicators.push_back(
        cuda::makeNcclCommunicator(manifest, options, impl->job.rank,
                                   impl->job.worldSize, impl->rendezvous));
    return communicators;
  };
}
