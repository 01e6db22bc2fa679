//===- Communication.cpp - How the ranks of a process communicate ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Communication.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

using namespace tprt;

/// Whether the backend's ranks can be what has been started: this process, or
/// those of `tp-run -n`.
static bool isLaunched(const Backend &backend, const Options &options) {
  return !backend.isLaunched || (!options.job && backend.isLaunched());
}

/// The backend whose launcher has started this process; else the first one for
/// threads or for processes that the program fits, unless something that it
/// needs is missing and another one is there. Null: none.
static const Backend *findFitting(const Options &options,
                                  const Manifest &manifest,
                                  bool needsProcesses) {
  const Backend *found = nullptr;
  for (const Backend *backend : getBackends()) {
    if (backend->needsProcesses != needsProcesses || !backend->fits(manifest) ||
        !isLaunched(*backend, options))
      continue;
    if (backend->isLaunched)
      return backend;
    if (!found || !found->explainMissing().empty())
      found = backend;
  }
  return found;
}

std::pair<const Backend &, std::optional<Job>>
chooseBackend(const Options &options, const Manifest &manifest) {
  const Backend *named = findBackend(options.communication); // null: auto
  if (named && !named->needsProcesses && named->fits(manifest))
    return {*named, std::nullopt};
  std::optional<Job> job =
      options.job ? options.job : Job::fromEnvironment(::getenv);
  const Backend *backend = nullptr;
  if (job && !named)
    backend = findFitting(options, manifest, /*needsProcesses=*/true);
  else if (job && named->fits(manifest) && isLaunched(*named, options))
    backend = named;
  if (backend && job->worldSize > 1)
    return {*backend, job};
  if (named && named->fits(manifest))
    throw inputError("--comm=" + options.communication +
                     " needs several processes; start them with " +
                     named->launchers);
  if (named)
    throw inputError("--comm=" + options.communication + ": the program " +
                     (manifest.isForCuda ? "is" : "isn't") +
                     " for CUDA devices");
  return {*findFitting(options, manifest, /*needsProcesses=*/false),
          std::nullopt};
}

void checkChecksums(const Options &options, const Backend &backend) {
  if (!options.checksum || backend.hasChecksums)
    return;
  std::vector<std::string> others;
  for (const Backend *each : getBackends())
    if (each->hasChecksums)
      others.push_back(std::string("--comm=") + each->name);
  throw inputError(std::string("--checksum: with --comm=") + backend.name +
                   " messages carry no checksums, only with " +
                   quotedList(others));
}

void shareCores(const Job &job, Connection &connection) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0)
    return;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  std::string mine = std::string(host) + '\0' +
                     std::string(reinterpret_cast<char *>(&set), sizeof(set));
  std::vector<std::string> all =
      connection.exchange(mine, sizeof(host) + sizeof(set));
  size_t numSharing = std::ranges::count(all, mine);
  size_t position = std::count(all.begin(), all.begin() + job.rank, mine);
  if (numSharing == 1) // a launcher may have bound the ranks to cores
    return;
  std::vector<size_t> cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  size_t perRank = std::max<size_t>(cores.size() / numSharing, 1);
  CPU_ZERO(&set);
  for (size_t i = 0; i < perRank; ++i)
    CPU_SET(cores[(position * perRank + i) % cores.size()], &set);
  ::sched_setaffinity(0, sizeof(set), &set); // not an error if it isn't allowed
}

//===----------------------------------------------------------------------===//
// Messages of ranks that another launcher has started
//===----------------------------------------------------------------------===//

void nameRankInMessages() {
  for (const Backend *backend : getBackends()) {
    if (!backend->isLaunched || !backend->isLaunched())
      continue;
    try {
      std::optional<Job> job = Job::fromEnvironment(::getenv);
      if (job && job->worldSize > 1)
        messagePrefix = "rank " + std::to_string(job->rank) + ": ";
    } catch (const Error &) { // reported when the job is needed
    }
  }
}

void leaveMessagesToRankZero(const Job &job) {
  if (job.getFate) // the launcher is tp-run, and prints each message once
    return;
  if (job.rank == 0)
    messagePrefix = "";
  else
    shouldReport = [](const std::string &kind, const std::string &) {
      return kind == "error";
    };
}

void endJob(const Job &job, Connection &connection,
            const std::exception &error) {
  // As long as `tp-run -n` waits for ranks that end on their own.
  constexpr std::chrono::seconds limit(4);
  bool isTold = dynamic_cast<const AbortedError *>(&error);
  int exitCode = getExitCode(error);
  std::string text = error.what();
  if (!isTold) {
    text = "rank " + std::to_string(job.rank) + " failed: " + text;
    connection.abort(text, exitCode == RunFailed ? ErrorKind::Execution
                                                 : ErrorKind::Input);
  }
  if (job.getFate)
    return;
  if (job.rank == 0) {
    report("error", error.what());
    connection.waitForOthers(limit);
  } else if (!connection.waitForRankZero(limit)) {
    report("error", text);
  }
  throw Reported{exitCode};
}
