//===- MpiExchanger.h - Bytes between processes by MPI ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_MPI_MPIEXCHANGER_H
#define TPRT_LIB_COMM_MPI_MPIEXCHANGER_H

#include "comm/Exchanger.h"
#include "comm/Rendezvous.h"
#include "comm/mpi/Mpi.h"

namespace tprt::mpi {

/// Sends to each member of a group, and receives from it, by MPI_Isend and
/// MPI_Irecv. So it is known which ranks an exchange waits for, blocks may be
/// larger than 2 GiB, and groups need no communicators of their own. The
/// rendezvous tells ranks of each other's failures.
class MpiExchanger final : public Exchanger {
public:
  MpiExchanger(std::shared_ptr<Mpi> mpi, Rendezvous &rendezvous)
      : mpi(std::move(mpi)), rendezvous(rendezvous) {}

  int64_t getRank() const override { return mpi->getRank(); }
  int64_t getWorldSize() const override { return mpi->getWorldSize(); }
  int64_t getNumLocalRanks() const override { return mpi->getNumLocalRanks(); }
  void connect(const std::vector<std::vector<int64_t>> &all) override {
    groups = all;
  }
  size_t start(const Exchange &exchange) override;
  bool test(size_t number) override;
  std::vector<int64_t> getAwaited(size_t number) override;
  std::string describeStopped() const override {
    return rendezvous.describeStopped();
  }
  void poll() override;
  void abort(const std::string &reason) override;
  void setActivity(std::function<std::string()> describe) override {
    rendezvous.setActivity(std::move(describe));
  }

private:
  /// A message that is under way.
  struct Transfer {
    Handle request;
    int rank;
    int bytes;
    bool isReceived, isDone = false;
  };
  struct Slot {
    bool isUsed = false;
    std::vector<Transfer> transfers;
    size_t numDone = 0; ///< that is known: of the first ones
  };

  void startTransfers(Slot &slot, int rank, int tag, std::byte *data,
                      int64_t bytes, bool isReceived);
  bool testTransfer(Transfer &transfer);
  void giveUp();

  std::shared_ptr<Mpi> mpi;
  Rendezvous &rendezvous;
  std::vector<std::vector<int64_t>> groups;
  std::vector<Slot> slots;
};

} // namespace tprt::mpi

#endif // TPRT_LIB_COMM_MPI_MPIEXCHANGER_H
