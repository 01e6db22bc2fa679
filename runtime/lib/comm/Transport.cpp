//===- Transport.cpp - Ranks that are processes on the host ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each collective is one exchange of bytes between the members of a group, an
// all-reduce of more than two members is two: each member reduces one chunk,
// and sends it to the others.
//
//===----------------------------------------------------------------------===//

#include "tprt/Transport.h"

#include "comm/Boxes.h"
#include "device/Stream.h"
#include "support/Division.h"

#include <algorithm>
#include <numeric>

using namespace tprt;

Transport::~Transport() = default;

namespace {

using Sizes = std::vector<int64_t>;

/// How this rank runs one collective. Members are numbered by their ranks.
struct Plan {
  std::optional<size_t> group; ///< nullopt: the rank is in none
  int64_t self = 0;            ///< this rank's member
  std::vector<size_t> order;   ///< members by position
  Boxes boxes;
  Sizes sentBytes, receivedBytes; ///< of the boxes, by member
  /// The boxes lie in the operand, or the result, as in staging memory.
  bool sendsOperand = false, receivesResult = false;
  int64_t countedBytes = 0; ///< received from others, docs/Artifact.md
};

class TransportCommunicator final : public Communicator {
public:
  TransportCommunicator(const Manifest &manifest,
                        std::shared_ptr<Transport> transport);

  int64_t getRank() const override { return transport->getRank(); }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override;
  void agree(const std::string &what, const std::string &value) override {
    agreeByExchange(what, value);
  }
  std::vector<std::string> exchange(const std::string &mine,
                                    size_t limit) override;
  void barrier() override { exchangeSizes(inBarrier); }
  void abort(const std::string &reason) override;
  void finish() override {}

private:
  Plan makePlan(const Collective &collective);
  size_t getOrAddGroup(const std::vector<int64_t> &members);
  void allToAll(size_t group, const std::byte *sent, const Sizes &sentBytes,
                std::byte *received, const Sizes &receivedBytes);
  Sizes exchangeSizes(int64_t mine);
  void moveBoxes(const Collective &collective, const Plan &plan,
                 const std::byte *src, std::byte *dst);
  void allReduce(const Collective &collective, const Plan &plan,
                 const std::byte *src, std::byte *dst);

  /// What a rank gives as its size when it is in barrier().
  static constexpr int64_t inBarrier = -1;

  const Manifest &manifest;
  std::shared_ptr<Transport> transport;
  std::vector<std::vector<int64_t>> groups;
  std::vector<Plan> plans; ///< by collective
  HostStream stream;
  std::string failure; ///< the reason of abort()
};

} // namespace

/// Whether the boxes follow each other in the other tensor of their copies, the
/// operand or the result, as they do in staging memory.
static bool areDense(const std::vector<Box> &boxes, int64_t width,
                     bool areSent) {
  return std::all_of(boxes.begin(), boxes.end(), [&](const Box &box) {
    bool isDense = true;
    box.strided.forEachRun([&](int64_t a, int64_t b, int64_t length) {
      isDense &= (areSent ? a : b) * width == box.offset &&
                 length * width == box.bytes;
    });
    return isDense;
  });
}

static Sizes addUp(const std::vector<Box> &boxes, size_t numMembers) {
  Sizes bytes(numMembers);
  for (const Box &box : boxes)
    bytes[box.peer] += box.bytes;
  return bytes;
}

TransportCommunicator::TransportCommunicator(
    const Manifest &manifest, std::shared_ptr<Transport> transport)
    : manifest(manifest), transport(std::move(transport)) {
  std::vector<int64_t> everyone(manifest.worldSize);
  std::iota(everyone.begin(), everyone.end(), 0);
  groups.push_back(everyone);
  for (const Collective &collective : manifest.collectives)
    plans.push_back(makePlan(collective));
  this->transport->connect(groups);
}

size_t
TransportCommunicator::getOrAddGroup(const std::vector<int64_t> &members) {
  auto found = std::find(groups.begin(), groups.end(), members);
  if (found == groups.end())
    found = groups.insert(found, members);
  return found - groups.begin();
}

Plan TransportCommunicator::makePlan(const Collective &collective) {
  Plan plan;
  int64_t rank = getRank(), width = byteWidth(collective.dtype);
  for (const std::vector<int64_t> &group : collective.groups) {
    std::vector<int64_t> members = group;
    std::sort(members.begin(), members.end());
    auto getMember = [&](int64_t each) {
      return std::find(members.begin(), members.end(), each) - members.begin();
    };
    size_t index = getOrAddGroup(members); // the same in all processes
    size_t self = getMember(rank);
    if (self == members.size())
      continue;
    plan.self = self;
    plan.group = index;
    for (int64_t each : group)
      plan.order.push_back(getMember(each));
    plan.countedBytes = getReceivedBytes(collective, rank);
    if (collective.kind == CollectiveKind::AllReduce)
      continue; // the other groups are for other ranks
    plan.boxes = makeBoxes(collective, rank, members);
    plan.sentBytes = addUp(plan.boxes.sent, members.size());
    plan.receivedBytes = addUp(plan.boxes.received, members.size());
    plan.sendsOperand = areDense(plan.boxes.sent, width, /*areSent=*/true);
    plan.receivesResult =
        !collective.isReduction() &&
        areDense(plan.boxes.received, width, /*areSent=*/false);
  }
  return plan;
}

void TransportCommunicator::allToAll(size_t group, const std::byte *sent,
                                     const Sizes &sentBytes,
                                     std::byte *received,
                                     const Sizes &receivedBytes) {
  if (!failure.empty())
    throw AbortedError(failure);
  transport->allToAll(group, sent, sentBytes, received, receivedBytes);
}

/// All kinds but all_reduce.
void TransportCommunicator::moveBoxes(const Collective &collective,
                                      const Plan &plan, const std::byte *src,
                                      std::byte *dst) {
  int64_t width = byteWidth(collective.dtype);
  const Boxes &boxes = plan.boxes;
  std::byte *staging = stream.getStaging(boxes.sentBytes + boxes.receivedBytes);
  const std::byte *sent = plan.sendsOperand ? src : staging;
  bool isDirect = plan.receivesResult && !(plan.sendsOperand && src == dst);
  std::byte *received = isDirect ? dst : staging + boxes.sentBytes;
  if (!plan.sendsOperand)
    for (const Box &box : boxes.sent)
      stream.copy(box.strided, width, src, staging + box.offset);
  allToAll(*plan.group, sent, plan.sentBytes, received, plan.receivedBytes);
  if (isDirect || boxes.received.empty())
    return;
  if (!collective.isReduction()) {
    for (const Box &box : boxes.received)
      stream.copy(box.strided, width, received + box.offset, dst);
    return;
  }
  std::vector<const std::byte *> operands;
  for (size_t member : plan.order)
    operands.push_back(received + boxes.received[member].offset);
  stream.reduce(collective.reduction, collective.dtype, operands, {dst},
                boxes.received.front().bytes / width);
}

void TransportCommunicator::allReduce(const Collective &collective,
                                      const Plan &plan, const std::byte *src,
                                      std::byte *dst) {
  int64_t width = byteWidth(collective.dtype), n = plan.order.size();
  int64_t total = numElements(collective.resultShapes[getRank()]) * width;
  if (total == 0)
    return;
  if (n == 2) { // in one exchange, of the same number of bytes
    Sizes bytes(2, total);
    bytes[plan.self] = 0;
    std::byte *other = stream.getStaging(total);
    allToAll(*plan.group, src, bytes, other, bytes);
    std::vector<const std::byte *> operands;
    for (size_t member : plan.order)
      operands.push_back(member == static_cast<size_t>(plan.self) ? src
                                                                  : other);
    return stream.reduce(collective.reduction, collective.dtype, operands,
                         {dst}, total / width);
  }
  int64_t chunk = divideCeil(total / width, n) * width;
  Sizes chunks(n);
  for (int64_t member = 0; member < n; ++member)
    chunks[member] = std::clamp<int64_t>(total - member * chunk, 0, chunk);
  int64_t own = chunks[plan.self];
  std::byte *received = stream.getStaging(2 * n * own);
  allToAll(*plan.group, src, chunks, received, Sizes(n, own));
  std::byte *reduced = received + n * own;
  std::vector<const std::byte *> operands;
  for (size_t member : plan.order)
    operands.push_back(received + member * own);
  std::vector<std::byte *> copies; // one for each member
  for (int64_t member = 0; member < n; ++member)
    copies.push_back(reduced + member * own);
  stream.reduce(collective.reduction, collective.dtype, operands, copies,
                own / width);
  allToAll(*plan.group, reduced, Sizes(n, own), dst, chunks);
}

int64_t TransportCommunicator::run(int64_t id, const std::byte *src,
                                   std::byte *dst) {
  const Collective &collective = manifest.collectives[id];
  const Plan &plan = plans[id];
  if (!plan.group)
    throw executionError("rank " + std::to_string(getRank()) +
                         " is in no group of " +
                         describeCollective(manifest, id));
  if (collective.kind == CollectiveKind::AllReduce)
    allReduce(collective, plan, src, dst);
  else
    moveBoxes(collective, plan, src, dst);
  return plan.countedBytes;
}

/// Exchanges a number with all ranks. Throws if some are in barrier() and
/// others in exchange(), whose programs are different ones.
Sizes TransportCommunicator::exchangeSizes(int64_t mine) {
  size_t n = groups.front().size();
  Sizes sent(n, mine), received(n), bytes(n, sizeof(int64_t));
  allToAll(/*group=*/0, reinterpret_cast<const std::byte *>(sent.data()), bytes,
           reinterpret_cast<std::byte *>(received.data()), bytes);
  for (size_t rank = 0; rank < n; ++rank)
    if ((received[rank] == inBarrier) != (mine == inBarrier))
      throw executionError("the ranks' programs don't match: rank " +
                           std::to_string(getRank()) + " and rank " +
                           std::to_string(rank) + " make different calls");
  return received;
}

std::vector<std::string>
TransportCommunicator::exchange(const std::string &mine, size_t limit) {
  size_t n = groups.front().size();
  Sizes sizes = exchangeSizes(mine.size());
  for (size_t rank = 0; rank < n; ++rank)
    if (sizes[rank] < 0 || static_cast<size_t>(sizes[rank]) > limit)
      throw executionError("rank " + std::to_string(rank) + " gives " +
                           std::to_string(sizes[rank]) +
                           " bytes where at most " + std::to_string(limit) +
                           " are expected: it runs another program");
  std::string sent;
  for (size_t rank = 0; rank < n; ++rank)
    sent += mine;
  std::string received(std::accumulate(sizes.begin(), sizes.end(), size_t(0)),
                       '\0');
  allToAll(/*group=*/0, reinterpret_cast<const std::byte *>(sent.data()),
           Sizes(n, mine.size()),
           reinterpret_cast<std::byte *>(received.data()), sizes);
  std::vector<std::string> all;
  size_t offset = 0;
  for (int64_t size : sizes) {
    all.push_back(received.substr(offset, size));
    offset += size;
  }
  return all;
}

void TransportCommunicator::abort(const std::string &reason) {
  if (!failure.empty())
    return;
  failure = reason;
  transport->abort(reason);
}

CommunicatorFactory tprt::makeFactory(std::shared_ptr<Transport> transport) {
  return [transport = std::move(transport)](const Manifest &manifest,
                                            const CommunicatorOptions &) {
    if (manifest.isForCuda)
      throw inputError("the program is for CUDA devices, and its ranks "
                       "exchange data of the host's memory");
    if (transport->getWorldSize() != manifest.worldSize)
      throw inputError("the program has " + std::to_string(manifest.worldSize) +
                       " ranks, but there are " +
                       std::to_string(transport->getWorldSize()) +
                       " processes");
    std::vector<std::unique_ptr<Communicator>> hosted;
    hosted.push_back(
        std::make_unique<TransportCommunicator>(manifest, transport));
    return hosted;
  };
}
