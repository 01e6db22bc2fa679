//===- MpiBackend.cpp - The entry of `mpi` in the table -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This process is one rank of MPI_COMM_WORLD. MPI moves all data of collectives.
// Over it, the ranks also agree where they meet: results, parameters and
// failures take the connections of the job.
//
//===----------------------------------------------------------------------===//

#include "comm/ExchangeCommunicator.h"
#include "comm/Messages.h"
#include "comm/mpi/MpiExchanger.h"
#include "support/Patience.h"
#include "tprt/Backend.h"

#include <unistd.h>

namespace tprt::backends {

using mpi::Mpi;
using std::chrono::milliseconds;

namespace {

/// Where the ranks meet.
struct Place {
  uint16_t port;
  char address[256];
  Nonce token;
};

} // namespace

/// Rank 0 listens at a free port, at its loopback address if all ranks are on
/// its host.
static Place choosePlace(const Mpi &mpi, Job &job) {
  Place place = {};
  if (mpi.getNumLocalRanks() < mpi.getWorldSize() &&
      job.address == Job().address) {
    char host[sizeof(place.address)] = "";
    ::gethostname(host, sizeof(host) - 1);
    job.address = host;
  }
  place.token = drawNonce();
  job.token.assign(place.token.begin(), place.token.end());
  job.listenAtFreePort();
  place.port = job.port;
  job.address.copy(place.address, sizeof(place.address) - 1);
  return place;
}

/// Gives rank 0's value to all ranks.
static void broadcast(const std::shared_ptr<Mpi> &mpi, Place &place,
                      milliseconds timeout) {
  const mpi::Plugin &plugin = mpi->getPlugin();
  constexpr int tag = 0;
  Patience patience(timeout);
  int first = mpi->getRank() == 0 ? 1 : 0;
  int last = mpi->getRank() == 0 ? mpi->getWorldSize() - 1 : 0;
  for (int other = first; other <= last; ++other) {
    mpi::Handle request = 0;
    mpi->check(mpi->getRank() == 0
                   ? plugin.send(mpi->getWorld(), &place, sizeof(place), other,
                                 tag, &request)
                   : plugin.receive(mpi->getWorld(), &place, sizeof(place),
                                    other, tag, &request),
               "MPI_Isend or MPI_Irecv");
    for (int isDone = 0, bytes = 0; !isDone;) {
      mpi->check(plugin.test(&request, &isDone, &bytes), "MPI_Test");
      if (patience.isOver())
        throw executionError("no progress for " + formatTimeout(timeout) +
                             ": rank " + std::to_string(mpi->getRank()) +
                             " waits for rank " + std::to_string(other));
      if (!isDone)
        ::usleep(100);
    }
  }
}

static std::shared_ptr<void> join(Job &job, milliseconds timeout) {
  std::shared_ptr<Mpi> mpi = Mpi::start(timeout);
  if (mpi->getRank() != job.rank || mpi->getWorldSize() != job.worldSize)
    throw inputError(
        mpi->getVersion() + " says that this process is rank " +
        std::to_string(mpi->getRank()) + " of " +
        std::to_string(mpi->getWorldSize()) +
        ", its launcher's variables that it is rank " +
        std::to_string(job.rank) + " of " + std::to_string(job.worldSize) +
        ": another implementation of MPI, or another launcher, has set them");
  Place place = {};
  if (job.rank == 0)
    place = choosePlace(*mpi, job);
  broadcast(mpi, place, timeout);
  job.address = place.address;
  job.port = place.port;
  job.token.assign(place.token.begin(), place.token.end());
  return mpi;
}

static std::vector<std::unique_ptr<Communicator>>
makeCommunicators(const Manifest &manifest, const CommunicatorOptions &options,
                  Rendezvous *rendezvous) {
  std::shared_ptr<Mpi> mpi = Mpi::get();
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(std::make_unique<ExchangeCommunicator>(
      manifest, options, std::make_unique<mpi::MpiExchanger>(mpi, *rendezvous),
      mpi->getVersion()));
  return communicators;
}

const Backend &mpi() {
  static const Backend backend = {
      .name = "mpi",
      .description = "each is a process that a launcher of MPI has started",
      .needsProcesses = true,
      .programs = Backend::OfHost,
      .hasChecksums = true,
      .launchers = "mpirun, mpiexec or srun",
      .isLaunched = Mpi::isLaunched,
      .explainMissing = Mpi::explainMissing,
      .join = join,
      .makeCommunicators = makeCommunicators};
  return backend;
}

} // namespace tprt::backends
