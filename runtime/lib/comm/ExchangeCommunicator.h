//===- ExchangeCommunicator.h - Collectives of processes --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each collective is one exchange of bytes between the members of a group. An
// all-reduce of more than two members is two: each member reduces one chunk, and
// sends it to the others. Values are packed and reduced here, in group order, so
// each rank gets the same bits as with `local`. Sparse rows take two exchanges:
// which rows aren't zero, and these rows.
//
// A started collective goes on whenever its rank waits for any collective. So
// ranks may wait in different orders: each of them also does its part of the
// collectives that it waits for later.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_EXCHANGECOMMUNICATOR_H
#define TPRT_LIB_COMM_EXCHANGECOMMUNICATOR_H

#include "comm/Boxes.h"
#include "comm/Exchanger.h"
#include "device/Stream.h"
#include "tprt/Communicator.h"

#include <chrono>
#include <optional>

namespace tprt {

class ExchangeCommunicator final : public Communicator {
public:
  /// The manifest must outlive it.
  ExchangeCommunicator(const Manifest &manifest,
                       const CommunicatorOptions &options,
                       std::unique_ptr<Exchanger> exchanger,
                       std::string description);
  ~ExchangeCommunicator() override;

  int64_t getRank() const override { return exchanger->getRank(); }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override;
  void start(int64_t id, const std::byte *src, std::byte *dst) override;
  int64_t wait(int64_t id) override;
  std::string getDescription() const override { return description; }
  void agree(const std::string &what, const std::string &value) override {
    agreeByExchange(what, value);
  }
  std::vector<std::string> exchange(const std::string &mine,
                                    size_t limit) override;
  void barrier() override;
  void abort(const std::string &reason) override;
  void finish() override {}

private:
  using Sizes = std::vector<int64_t>;

  /// How this rank runs one collective. Members are numbered by their ranks.
  struct Plan {
    std::optional<size_t> group; ///< nullopt: the rank is in none
    size_t self = 0;             ///< this rank's member
    std::vector<size_t> order;   ///< members by position
    Boxes boxes;
    Sizes sentBytes, receivedBytes; ///< of the first exchange, by member
    /// The boxes lie in the operand, or the result, as in staging memory.
    bool sendsOperand = false, receivesResult = false;
    /// Of sparse rows: the bytes of a row, else 0; and the number of rows that
    /// are sent to, and received from, each member.
    int64_t rowBytes = 0;
    Sizes sentRows, receivedRows;
    /// Of an all-reduce with two exchanges: the bytes of each member's chunk.
    Sizes chunks, ownChunk;
    /// Received from others, docs/Artifact.md; of sparse rows, the bytes of the
    /// first exchange.
    int64_t countedBytes = 0;
  };

  /// A collective that is under way.
  struct Operation {
    int64_t id = -1; ///< -1: none
    const std::byte *src = nullptr;
    std::byte *dst = nullptr;
    std::byte *received = nullptr;  ///< where the first exchange puts its bytes
    std::optional<size_t> exchange; ///< nullopt: all is done
    /// The exchange is that of reduced chunks, or of rows that aren't zero.
    bool isSecond = false;
    Sizes sentBytes, receivedBytes; ///< of rows that aren't zero
    int64_t countedBytes = 0;       ///< received from others
    HostStream stream;              ///< for its staging memory
  };

  Plan makePlan(const Collective &collective);
  size_t getOrAddGroup(const std::vector<int64_t> &members);
  size_t begin(int64_t id, const std::byte *src, std::byte *dst);
  int64_t end(size_t operation);
  void startMoving(const Plan &plan, Operation &operation);
  void startReducing(const Plan &plan, Operation &operation);
  void startRows(const Plan &plan, Operation &operation);
  void exchangeRows(const Plan &plan, Operation &operation);
  void finishRows(const Plan &plan, Operation &operation);
  void advance(Operation &operation);
  void finishFirst(const Plan &plan, Operation &operation);
  size_t startExchange(const Exchange &exchange);
  template <typename IsOver>
  void await(IsOver isOver);
  void exchangeNow(const std::byte *sent, const Sizes &sentBytes,
                   std::byte *received, const Sizes &receivedBytes);
  Sizes exchangeSizes(int64_t mine);
  std::string describeLabel(int64_t label) const;
  std::string describeWait();

  const Manifest &manifest;
  const std::chrono::milliseconds timeout;
  std::unique_ptr<Exchanger> exchanger;
  const std::string description;
  const uint32_t spins;
  std::vector<std::vector<int64_t>> groups;
  std::vector<Plan> plans;                            ///< by collective
  std::vector<std::unique_ptr<Operation>> operations; ///< some may be unused
  /// What this rank waits for: a collective, or an exchange of all ranks.
  const Operation *awaitedOperation = nullptr;
  std::optional<size_t> awaitedExchange;
  std::string failure; ///< the reason of abort()
};

} // namespace tprt

#endif // TPRT_LIB_COMM_EXCHANGECOMMUNICATOR_H
