//===- Job.cpp - One process among those of a program ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Job.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

static constexpr size_t maxTokenBytes = 4096;

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

/// The token in a file that nobody else can read or replace.
static std::string readToken(const std::string &path) {
  std::string name = "TP_TOKEN_FILE: '" + path + "'";
  auto check = [&](bool isRight, const std::string &problem) {
    if (!isRight)
      throw inputError(name + " " + problem);
  };
  // O_NONBLOCK, because opening a pipe would wait for a writer.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  check(file >= 0, std::string("can't be opened: ") + std::strerror(errno));
  char bytes[maxTokenBytes + 2];
  struct stat status = {};
  ::fstat(file, &status);
  ssize_t count = ::read(file, bytes, sizeof(bytes));
  ::close(file);
  check(S_ISREG(status.st_mode), "is not a regular file");
  check(status.st_uid == ::geteuid(), "belongs to another user");
  check((status.st_mode & (S_IRWXG | S_IRWXO)) == 0,
        "may be read or written by others; mode 0600 is right");
  check(count >= 0, "can't be read");
  std::string token(bytes, count);
  if (token.ends_with('\n'))
    token.pop_back();
  return token;
}

/// The job's token, or empty if there is none. Messages never contain it.
static std::string
getToken(const std::function<const char *(const char *)> &get) {
  const char *token = get("TP_TOKEN"), *path = get("TP_TOKEN_FILE");
  if (!token && !path)
    return "";
  if (token && path)
    throw inputError("TP_TOKEN and TP_TOKEN_FILE are both set; set only one");
  std::string secret = token ? token : readToken(path);
  if (secret.size() < minTokenBytes || secret.size() > maxTokenBytes)
    throw inputError(std::string(token ? "TP_TOKEN" : "TP_TOKEN_FILE") +
                     ": the token has " + std::to_string(secret.size()) +
                     " bytes, expected " + std::to_string(minTokenBytes) +
                     " to " + std::to_string(maxTokenBytes));
  return secret;
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
    job.token = getToken(get);
    return job;
  }
  return std::nullopt;
}
