//===- Launch.cpp - Ranks that are processes -----------------------------===//

#include "Launch.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tprt;

std::optional<Job> findJob(const Options &options, const Manifest &manifest) {
  if (options.communication == "local")
    return std::nullopt;
  std::optional<Job> job = Job::fromEnvironment(::getenv);
  bool isOne = job && job->worldSize > 1 && manifest.isForCuda;
  if (options.communication == "nccl" && !isOne)
    throw inputError(
        manifest.isForCuda
            ? "--comm=nccl: this process isn't one of several that mpirun, "
              "srun, torchrun or 'tp-run -n' has started"
            : "--comm=nccl: the program isn't for CUDA devices");
  return isOne ? job : std::nullopt;
}

/// A socket that listens on a free port of this host.
static int listenLocally(uint16_t &port) {
  int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  if (listener < 0 || ::bind(listener, generic, length) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 ||
      ::getsockname(listener, generic, &length) != 0)
    throw executionError(std::string("no port is free: ") +
                         std::strerror(errno));
  port = ntohs(address.sin_port);
  return listener;
}

/// The ranks of `tp-run -n` that run, else 0, for the signal handler of the
/// process that has started them.
static volatile pid_t ranks[4096];
static volatile std::sig_atomic_t numRanks = 0;

/// Ranks end as they see fit when this process is to end. Those of a terminal's
/// Ctrl-C have got the signal themselves.
static void passSignalsOn() {
  struct sigaction action = {};
  action.sa_sigaction = [](int signal, siginfo_t *info, void *) {
    if (info->si_code != SI_KERNEL)
      for (int i = 0; i < numRanks; ++i)
        if (ranks[i] > 0)
          ::kill(ranks[i], signal);
  };
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

static int toExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : RunFailed;
}

std::optional<int> startProcesses(int64_t processes) {
  uint16_t port = 0;
  int listener = listenLocally(port);
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < processes; ++rank) {
    pid_t child = ::fork();
    if (child < 0) {
      for (pid_t started : children)
        ::kill(started, SIGTERM);
      throw executionError(std::string("cannot start a process: ") +
                           std::strerror(errno));
    }
    if (child > 0) {
      children.push_back(child);
      ranks[rank] = child;
      continue;
    }
    auto set = [](const char *name, const std::string &value) {
      ::setenv(name, value.c_str(), 1);
    };
    set("TP_RANK", std::to_string(rank));
    set("TP_LOCAL_RANK", std::to_string(rank));
    set("TP_WORLD_SIZE", std::to_string(processes));
    set("TP_ADDRESS", "127.0.0.1");
    set("TP_PORT", std::to_string(port));
    if (rank == 0)
      set("TP_LISTENER", std::to_string(listener));
    else
      ::close(listener);
    return std::nullopt;
  }
  ::close(listener);
  numRanks = processes;
  passSignalsOn();

  // Who fails tells the others, which end on their own; unless it couldn't.
  // They end as failed runs, perhaps before the one that says why.
  constexpr unsigned patience = 30; // seconds
  int exitCode = 0;
  for (size_t left = children.size(); left > 0;) {
    int status = 0;
    pid_t child = ::waitpid(-1, &status, exitCode ? WNOHANG : 0);
    if (child < 0 && errno == EINTR)
      continue;
    if (child > 0) {
      --left;
      std::erase(children, child);
      std::replace(std::begin(ranks), std::end(ranks), child, 0);
      int own = toExitCode(status);
      if (exitCode == 0 || (exitCode == RunFailed && own != 0))
        exitCode = own;
      continue;
    }
    static unsigned waited = 0; // in tenths of seconds
    if (++waited == 10 * patience)
      for (pid_t other : children)
        ::kill(other, SIGKILL);
    ::usleep(100'000);
  }
  return exitCode;
}

/// What a rank hands in: its counts, then its blocks in the manifest's order.
static std::string pack(const Manifest &manifest, int64_t rank,
                        const RunResult &result) {
  const std::vector<CollectiveCount> &counts = result.counts[rank];
  std::string bytes(reinterpret_cast<const char *>(counts.data()),
                    counts.size() * sizeof(CollectiveCount));
  for (const TensorInfo &output : manifest.outputs) {
    const Tensor &block = result.blocks[rank].at(output.name);
    bytes.append(reinterpret_cast<const char *>(block.data.get()),
                 block.getNumBytes());
  }
  return bytes;
}

void gatherResult(const Manifest &manifest, const Job &job,
                  Connection &connection, RunResult &result) {
  std::vector<std::string> all =
      connection.exchange(pack(manifest, job.rank, result));
  std::vector<std::shared_ptr<std::byte>> wholes;
  for (const TensorInfo &output : manifest.outputs) {
    Tensor whole{output.dtype, output.shape, nullptr};
    wholes.push_back(allocateAligned(whole.getNumBytes()));
    whole.data = wholes.back();
    result.outputs[output.name] = whole;
  }
  result.blocks.resize(manifest.worldSize);
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    size_t expected = manifest.collectives.size() * sizeof(CollectiveCount);
    for (const TensorInfo &output : manifest.outputs)
      expected += output.getShardBytes(rank);
    if (all[rank].size() != expected)
      throw executionError("rank " + std::to_string(rank) +
                           " has results of another program");
    const char *at = all[rank].data();
    std::vector<CollectiveCount> &counts = result.counts[rank];
    counts.resize(manifest.collectives.size());
    std::memcpy(counts.data(), at, counts.size() * sizeof(CollectiveCount));
    at += counts.size() * sizeof(CollectiveCount);
    for (size_t i = 0; i < manifest.outputs.size(); ++i) {
      const TensorInfo &output = manifest.outputs[i];
      int64_t bytes = output.getShardBytes(rank);
      std::shared_ptr<std::byte> block = allocateAligned(bytes);
      std::memcpy(block.get(), at, bytes);
      at += bytes;
      writeBlock(output.shape, output.shards[rank], byteWidth(output.dtype),
                 block.get(), wholes[i].get());
      result.blocks[rank][output.name] = {
          output.dtype, output.shards[rank].getShape(), block};
    }
  }
}
