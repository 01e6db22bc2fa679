//===- ExchangeCommunicator.cpp - Collectives of processes ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/ExchangeCommunicator.h"

#include "comm/SealedExchanger.h"
#include "support/Division.h"
#include "support/Patience.h"
#include "support/SparseRows.h"
#include "support/Spin.h"

#include <algorithm>
#include <numeric>

using namespace tprt;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What a rank gives as its size when it is in barrier().
static constexpr int64_t inBarrier = -1;
/// The label of exchanges that belong to no collective.
static constexpr int64_t noCollective = -1;

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

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

static std::vector<int64_t> addUp(const std::vector<Box> &boxes,
                                  size_t numMembers) {
  std::vector<int64_t> bytes(numMembers);
  for (const Box &box : boxes)
    bytes[box.peer] += box.bytes;
  return bytes;
}

static std::vector<int64_t> countRows(std::vector<int64_t> bytes,
                                      int64_t rowBytes) {
  for (int64_t &each : bytes)
    each = rowBytes ? each / rowBytes : 0;
  return bytes;
}

static int64_t getSum(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
}

ExchangeCommunicator::ExchangeCommunicator(const Manifest &manifest,
                                           const CommunicatorOptions &options,
                                           std::unique_ptr<Exchanger> exchanger,
                                           std::string description)
    : manifest(manifest), timeout(options.timeout),
      exchanger(options.checksum ? makeSealed(std::move(exchanger),
                                              [this](int64_t label) {
                                                return describeLabel(label);
                                              })
                                 : std::move(exchanger)),
      description(std::move(description)),
      spins(chooseSpins(this->exchanger->getNumLocalRanks())) {
  std::vector<int64_t> everyone(manifest.worldSize);
  std::iota(everyone.begin(), everyone.end(), 0);
  groups.push_back(everyone);
  for (const Collective &collective : manifest.collectives)
    plans.push_back(makePlan(collective));
  this->exchanger->connect(groups);
  this->exchanger->setActivity([this] { return describeWait(); });
}

ExchangeCommunicator::~ExchangeCommunicator() {
  exchanger->setActivity(nullptr);
}

size_t
ExchangeCommunicator::getOrAddGroup(const std::vector<int64_t> &members) {
  auto found = std::find(groups.begin(), groups.end(), members);
  if (found == groups.end())
    found = groups.insert(found, members);
  return found - groups.begin();
}

ExchangeCommunicator::Plan
ExchangeCommunicator::makePlan(const Collective &collective) {
  Plan plan;
  int64_t rank = getRank(), width = byteWidth(collective.dtype);
  for (const std::vector<int64_t> &group : collective.groups) {
    std::vector<int64_t> members = group;
    std::sort(members.begin(), members.end());
    auto getMember = [&](int64_t each) -> size_t {
      return std::find(members.begin(), members.end(), each) - members.begin();
    };
    size_t index = getOrAddGroup(members); // the same in all processes
    size_t self = getMember(rank), n = members.size();
    if (self == n)
      continue; // this group is for other ranks
    plan.self = self;
    plan.group = index;
    for (int64_t each : group)
      plan.order.push_back(getMember(each));
    plan.countedBytes = getReceivedBytes(collective, rank);
    if (collective.kind != CollectiveKind::AllReduce) {
      plan.boxes = makeBoxes(collective, rank, members);
      plan.sentBytes = addUp(plan.boxes.sent, n);
      plan.receivedBytes = addUp(plan.boxes.received, n);
      if (collective.hasSparseRows) {
        plan.rowBytes = collective.getRowElements() * width;
        plan.sentRows = countRows(plan.sentBytes, plan.rowBytes);
        plan.receivedRows = countRows(plan.receivedBytes, plan.rowBytes);
        plan.countedBytes = getSum(plan.receivedRows) - plan.receivedRows[self];
        continue;
      }
      plan.sendsOperand = areDense(plan.boxes.sent, width, /*areSent=*/true);
      plan.receivesResult =
          !collective.isReduction() &&
          areDense(plan.boxes.received, width, /*areSent=*/false);
      continue;
    }
    int64_t total = numElements(collective.resultShapes[rank]) * width;
    if (n == 2) { // in one exchange, of the same number of bytes
      plan.sentBytes.assign(n, total);
      plan.sentBytes[self] = 0;
      plan.receivedBytes = plan.sentBytes;
      continue;
    }
    int64_t count = n, chunk = divideCeil(total / width, count) * width;
    for (int64_t member = 0; member < count; ++member)
      plan.chunks.push_back(
          std::clamp<int64_t>(total - member * chunk, 0, chunk));
    plan.ownChunk.assign(n, plan.chunks[self]);
    plan.sentBytes = plan.chunks;
    plan.receivedBytes = plan.ownChunk;
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// All kinds but all_reduce, without sparse rows.
void ExchangeCommunicator::startMoving(const Plan &plan, Operation &operation) {
  int64_t width = byteWidth(manifest.collectives[operation.id].dtype);
  const Boxes &boxes = plan.boxes;
  std::byte *staging =
      operation.stream.getStaging(boxes.sentBytes + boxes.receivedBytes);
  const std::byte *sent = plan.sendsOperand ? operation.src : staging;
  bool isDirect = plan.receivesResult &&
                  !(plan.sendsOperand && operation.src == operation.dst);
  operation.received = isDirect ? operation.dst : staging + boxes.sentBytes;
  if (!plan.sendsOperand)
    for (const Box &box : boxes.sent)
      operation.stream.copy(box.strided, width, operation.src,
                            staging + box.offset);
  operation.exchange =
      startExchange({*plan.group, operation.id, sent, plan.sentBytes,
                     operation.received, plan.receivedBytes});
}

void ExchangeCommunicator::startReducing(const Plan &plan,
                                         Operation &operation) {
  // Of two exchanges, the chunks that are received, then as many that are
  // reduced.
  int64_t bytes = std::accumulate(plan.receivedBytes.begin(),
                                  plan.receivedBytes.end(), int64_t(0));
  operation.received =
      operation.stream.getStaging(plan.chunks.empty() ? bytes : 2 * bytes);
  operation.exchange =
      startExchange({*plan.group, operation.id, operation.src, plan.sentBytes,
                     operation.received, plan.receivedBytes});
}

// In staging memory, sent rows are followed by received ones, and these by the
// bytes that say which rows aren't zero, the sent ones first. All are in the
// order of boxes.

/// Says which rows aren't zero.
void ExchangeCommunicator::startRows(const Plan &plan, Operation &operation) {
  const Collective &collective = manifest.collectives[operation.id];
  int64_t width = byteWidth(collective.dtype);
  const Boxes &boxes = plan.boxes;
  std::byte *rows = operation.stream.getStaging(
      boxes.sentBytes + boxes.receivedBytes + getSum(plan.sentRows) +
      getSum(plan.receivedRows));
  operation.received = rows + boxes.sentBytes;
  std::byte *flags = operation.received + boxes.receivedBytes, *flag = flags;
  operation.sentBytes.assign(plan.sentRows.size(), 0);
  for (const Box &box : boxes.sent)
    forEachRow(box.strided, collective.getRowElements(),
               [&](int64_t from, int64_t) {
                 const std::byte *row = operation.src + from * width;
                 bool isSent = !isZero(row, plan.rowBytes);
                 *flag++ = std::byte(isSent);
                 if (!isSent)
                   return;
                 std::memcpy(rows, row, plan.rowBytes);
                 rows += plan.rowBytes;
                 operation.sentBytes[box.peer] += plan.rowBytes;
               });
  operation.exchange = startExchange({*plan.group, operation.id, flags,
                                      plan.sentRows, flag, plan.receivedRows});
}

/// Knows which rows are zero, and exchanges the others.
void ExchangeCommunicator::exchangeRows(const Plan &plan,
                                        Operation &operation) {
  const Boxes &boxes = plan.boxes;
  const std::byte *flag =
      operation.received + boxes.receivedBytes + getSum(plan.sentRows);
  operation.receivedBytes.clear();
  for (int64_t count : plan.receivedRows) {
    operation.receivedBytes.push_back(
        std::count(flag, flag + count, std::byte(1)) * plan.rowBytes);
    flag += count;
  }
  operation.countedBytes +=
      getSum(operation.receivedBytes) - operation.receivedBytes[plan.self];
  operation.isSecond = true;
  operation.exchange = startExchange(
      {*plan.group, operation.id, operation.received - boxes.sentBytes,
       operation.sentBytes, operation.received, operation.receivedBytes});
}

void ExchangeCommunicator::finishRows(const Plan &plan, Operation &operation) {
  const Collective &collective = manifest.collectives[operation.id];
  int64_t width = byteWidth(collective.dtype);
  const Boxes &boxes = plan.boxes;
  const std::byte *row = operation.received;
  const std::byte *flag = row + boxes.receivedBytes + getSum(plan.sentRows);
  for (const Box &box : boxes.received)
    forEachRow(box.strided, collective.getRowElements(),
               [&](int64_t, int64_t to) {
                 std::byte *dst = operation.dst + to * width;
                 if (*flag++ == std::byte(0)) {
                   std::memset(dst, 0, plan.rowBytes);
                   return;
                 }
                 std::memcpy(dst, row, plan.rowBytes);
                 row += plan.rowBytes;
               });
}

/// Uses what the first exchange has received. Starts the second one, if there
/// is one.
void ExchangeCommunicator::finishFirst(const Plan &plan, Operation &operation) {
  const Collective &collective = manifest.collectives[operation.id];
  int64_t width = byteWidth(collective.dtype);
  std::byte *received = operation.received;
  const std::vector<Box> &boxes = plan.boxes.received;
  auto reduce = [&](const std::vector<std::byte *> &dsts, int64_t bytes,
                    auto getOperand) {
    std::vector<const std::byte *> operands;
    for (size_t member : plan.order)
      operands.push_back(getOperand(member));
    operation.stream.reduce(collective.reduction, collective.dtype, operands,
                            dsts, bytes / width);
  };
  if (collective.kind != CollectiveKind::AllReduce) {
    if (received == operation.dst || boxes.empty())
      return;
    if (collective.isReduction())
      return reduce({operation.dst}, boxes.front().bytes, [&](size_t member) {
        return received + boxes[member].offset;
      });
    for (const Box &box : boxes)
      operation.stream.copy(box.strided, width, received + box.offset,
                            operation.dst);
    return;
  }
  if (plan.chunks.empty()) // of two members
    return reduce({operation.dst}, plan.receivedBytes[1 - plan.self],
                  [&](size_t member) {
                    return member == plan.self ? operation.src : received;
                  });
  int64_t n = plan.chunks.size(), own = plan.chunks[plan.self];
  std::byte *reduced = received + n * own;
  std::vector<std::byte *> copies; // one for each member
  for (int64_t member = 0; member < n; ++member)
    copies.push_back(reduced + member * own);
  reduce(copies, own, [&](size_t member) { return received + member * own; });
  operation.isSecond = true;
  operation.exchange =
      startExchange({*plan.group, operation.id, reduced, plan.ownChunk,
                     operation.dst, plan.chunks});
}

size_t ExchangeCommunicator::begin(int64_t id, const std::byte *src,
                                   std::byte *dst) {
  const Plan &plan = plans[id];
  if (!failure.empty())
    throw AbortedError(failure);
  if (!plan.group)
    throw executionError("rank " + std::to_string(getRank()) +
                         " is in no group of " +
                         describeCollective(manifest, id));
  auto unused = std::find_if(operations.begin(), operations.end(),
                             [](const auto &each) { return each->id < 0; });
  if (unused == operations.end())
    unused = operations.insert(unused, std::make_unique<Operation>());
  Operation &operation = **unused;
  operation.id = id;
  operation.src = src;
  operation.dst = dst;
  operation.isSecond = false;
  operation.countedBytes = plan.countedBytes;
  if (manifest.collectives[id].kind == CollectiveKind::AllReduce)
    startReducing(plan, operation);
  else if (plan.rowBytes)
    startRows(plan, operation);
  else
    startMoving(plan, operation);
  advance(operation);
  return unused - operations.begin();
}

/// Goes on as far as it goes without waiting.
void ExchangeCommunicator::advance(Operation &operation) {
  while (operation.exchange && exchanger->test(*operation.exchange)) {
    operation.exchange.reset();
    const Plan &plan = plans[operation.id];
    if (plan.rowBytes)
      operation.isSecond ? finishRows(plan, operation)
                         : exchangeRows(plan, operation);
    else if (!operation.isSecond)
      finishFirst(plan, operation);
  }
}

int64_t ExchangeCommunicator::end(size_t index) {
  Operation &operation = *operations[index];
  awaitedOperation = &operation;
  await([&] {
    for (const std::unique_ptr<Operation> &each : operations)
      advance(*each);
    return !operation.exchange;
  });
  awaitedOperation = nullptr;
  operation.id = -1;
  return operation.countedBytes;
}

int64_t ExchangeCommunicator::run(int64_t id, const std::byte *src,
                                  std::byte *dst) {
  return end(begin(id, src, dst));
}

void ExchangeCommunicator::start(int64_t id, const std::byte *src,
                                 std::byte *dst) {
  begin(id, src, dst);
}

int64_t ExchangeCommunicator::wait(int64_t id) {
  auto started = std::find_if(operations.begin(), operations.end(),
                              [&](const auto &each) { return each->id == id; });
  return end(started - operations.begin());
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

size_t ExchangeCommunicator::startExchange(const Exchange &exchange) {
  if (!failure.empty())
    throw AbortedError(failure);
  return exchanger->start(exchange);
}

/// Calls isOver() until it returns true.
template <typename IsOver>
void ExchangeCommunicator::await(IsOver isOver) {
  constexpr milliseconds lookTime(20); // between looks at the other ranks
  constexpr microseconds firstSleep(10), longestSleep(500);
  if (!failure.empty())
    throw AbortedError(failure);
  if (spin(spins, isOver))
    return;
  Patience patience(timeout);
  Patience::Clock::time_point nextLook = Patience::Clock::now();
  for (microseconds sleep = firstSleep; !isOver();) {
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, longestSleep);
    if (Patience::Clock::now() < nextLook)
      continue;
    exchanger->poll();
    if (patience.isOver()) {
      std::string stopped = exchanger->describeStopped();
      abort("no progress for " + formatTimeout(timeout) + ": " +
            describeWait() + (stopped.empty() ? "" : "; " + stopped));
      throw AbortedError(failure);
    }
    nextLook = Patience::Clock::now() + lookTime;
  }
}

/// What exchanges of this label belong to.
std::string ExchangeCommunicator::describeLabel(int64_t label) const {
  return label == noCollective ? "an exchange of all ranks between runs"
                               : describeCollective(manifest, label);
}

/// "rank 0 waits in collective 3 (…) for ranks 1 and 2"; empty if it doesn't
/// wait.
std::string ExchangeCommunicator::describeWait() {
  std::optional<size_t> exchange = awaitedExchange;
  std::string text = "rank " + std::to_string(getRank()) + " waits ";
  if (awaitedOperation) {
    exchange = awaitedOperation->exchange;
    text += "in " + describeCollective(manifest, awaitedOperation->id) + " ";
  }
  if (!exchange)
    return "";
  std::vector<int64_t> ranks = exchanger->getAwaited(*exchange);
  text += ranks.size() == 1 ? "for rank " : "for ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0                  ? ""
             : i + 1 == ranks.size() ? " and "
                                     : ", ") +
            std::to_string(ranks[i]);
  return text;
}

//===----------------------------------------------------------------------===//
// Between runs
//===----------------------------------------------------------------------===//

/// Exchanges bytes with all ranks.
void ExchangeCommunicator::exchangeNow(const std::byte *sent,
                                       const Sizes &sentBytes,
                                       std::byte *received,
                                       const Sizes &receivedBytes) {
  size_t number = startExchange(
      {/*group=*/0, noCollective, sent, sentBytes, received, receivedBytes});
  awaitedExchange = number;
  await([&] { return exchanger->test(number); });
  awaitedExchange.reset();
}

/// Exchanges a number with all ranks. Throws if some are in barrier() and
/// others in exchange(), whose programs are different ones.
std::vector<int64_t> ExchangeCommunicator::exchangeSizes(int64_t mine) {
  size_t n = groups.front().size();
  Sizes sent(n, mine), received(n), bytes(n, sizeof(int64_t));
  exchangeNow(reinterpret_cast<const std::byte *>(sent.data()), bytes,
              reinterpret_cast<std::byte *>(received.data()), bytes);
  for (size_t rank = 0; rank < n; ++rank)
    if ((received[rank] == inBarrier) != (mine == inBarrier))
      throw executionError("the ranks' programs don't match: rank " +
                           std::to_string(getRank()) + " and rank " +
                           std::to_string(rank) + " make different calls");
  return received;
}

void ExchangeCommunicator::barrier() { exchangeSizes(inBarrier); }

std::vector<std::string> ExchangeCommunicator::exchange(const std::string &mine,
                                                        size_t limit) {
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
  exchangeNow(reinterpret_cast<const std::byte *>(sent.data()),
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

void ExchangeCommunicator::abort(const std::string &reason) {
  if (!failure.empty())
    return;
  failure = reason;
  exchanger->abort(reason);
}
