//===- Rendezvous.cpp - Meeting point of processes ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 listens, and the others connect (Handshake.h). From then on both sides
// send messages (Messages.h): a rank's contributions, a reason to abort, a note
// that a rank has done its work and leaves, and from rank 0, periodically, a
// sign that its process is working. Guarantees:
//
// - Nothing waits forever: a rank that reads or writes checks the others every
//   50 ms. A message must begin within the timeout, and be transferred within
//   the timeout plus one second for each 16 MiB. The only exception is
//   broadcast(), which waits as long as rank 0 shows that it is working.
// - While a rank waits for one rank, it notices failures of any rank: rank 0
//   sees when any connection ends, and the others see when theirs with rank 0
//   does; rank 0 passes on what it learns. If there is a launcher, all ranks
//   also see what it sees (Fate).
// - No rank accepts more data than it expects: each exchange has a limit, and
//   memory grows only with the bytes that arrive.
// - The text of a reason is cut to 4096 bytes, and is printable.
//
//===----------------------------------------------------------------------===//

#include "comm/Rendezvous.h"

#include "comm/Handshake.h"
#include "support/Checksum.h"
#include "tprt/Communicator.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <linux/sockios.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

using namespace tprt;
using std::chrono::milliseconds;

/// How long a leaving rank waits for the others to receive its last messages.
static constexpr milliseconds farewellTime(2'000);
/// How long a rank waits for a reason from a rank that is known to have ended.
static constexpr milliseconds reasonTime(1'000);
/// How often rank 0 shows that it is working.
static milliseconds getLifeInterval(milliseconds timeout) {
  constexpr milliseconds usual(1'000), shortest(10);
  return timeout.count() > 0 ? std::clamp(timeout / 4, shortest, usual) : usual;
}

Rendezvous::Rendezvous(const Job &job, milliseconds timeout)
    : job(job), timeout(timeout), peers(job.worldSize),
      failed(job.worldSize, Patience(reasonTime)) {
  if (job.worldSize == 1)
    return;
  if (job.rank > 0) {
    peers[0] = std::make_unique<Peer>(joinRank(job, /*host=*/0, timeout));
    return;
  }
  std::vector<Socket> ranks = admitRanks(job, timeout);
  for (int64_t rank = 1; rank < job.worldSize; ++rank)
    peers[rank] = std::make_unique<Peer>(std::move(ranks[rank]));
  life = std::thread([this] { showLife(); });
}

std::string Rendezvous::getOwnAddress() const {
  const Peer &peer = *peers[job.rank == 0 ? 1 : 0];
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  char host[NI_MAXHOST];
  if (::getsockname(peer.socket.get(), generic, &length) != 0 ||
      ::getnameinfo(generic, length, host, sizeof(host), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    throw executionError("rank " + std::to_string(job.rank) +
                         " can't find its address");
  return host;
}

/// Whether all written bytes have reached the other host, or never can.
static bool isDelivered(const Socket &socket) {
  int left = 0;
  pollfd entry = {socket.get(), 0, 0};
  return ::ioctl(socket.get(), SIOCOUTQ, &left) != 0 || left == 0 ||
         ::poll(&entry, 1, 0) != 0;
}

// After an error, a rank just closes its connections, which the others notice.
Rendezvous::~Rendezvous() {
  if (life.joinable()) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    changed.notify_all();
    life.join();
  }
  if (std::uncaught_exceptions() == 0)
    for (std::unique_ptr<Peer> &peer : peers)
      if (peer)
        trySend(*peer, MessageKind::Leave, "", farewellTime, [] {});
  // Closing a connection with unread input discards output that hasn't been
  // sent yet, so wait for its delivery.
  Patience patience(farewellTime);
  for (std::unique_ptr<Peer> &peer : peers)
    while (peer && !isDelivered(peer->socket) && !patience.isOver())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Sends one byte to each peer whose buffer has room. A peer that isn't reading
/// doesn't need it.
void Rendezvous::showLife() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, getLifeInterval(timeout),
                           [this] { return isOver; }))
    for (std::unique_ptr<Peer> &peer : peers) {
      if (!peer)
        continue;
      std::unique_lock<std::timed_mutex> sending(peer->sending,
                                                 std::try_to_lock);
      if (sending && !peer->isCut)
        peer->socket.write(encodeHead(MessageKind::Alive, 0));
    }
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Rendezvous::fail(const std::string &reason, ErrorKind kind) {
  abort(reason, kind);
  std::string activity = describeActivity ? describeActivity() : "";
  throw AbortedError(reason + (activity.empty() ? "" : "; " + activity), kind);
}

void Rendezvous::failGone(int64_t other) { fail(describeLoss(job, other)); }

std::string Rendezvous::describeStopped() const {
  std::string text;
  for (int64_t rank = 0; job.getFate && rank < job.worldSize; ++rank)
    if (Fate fate = job.getFate(rank); fate.kind == Fate::Stopped)
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) +
              " " + fate.description;
  return text;
}

void Rendezvous::failLate(int64_t other, const std::string &what) {
  std::string stopped = describeStopped();
  if (describeActivity && describeActivity().find(stopped) != std::string::npos)
    stopped.clear(); // fail() says it
  fail("no progress for " + formatTimeout(timeout) + ": rank " +
       std::to_string(job.rank) + " " + what + " rank " +
       std::to_string(other) + (stopped.empty() ? "" : "; " + stopped));
}

std::string Rendezvous::readReason(int64_t other) {
  Peer &peer = *peers[other];
  Patience patience(reasonTime);
  for (;;) {
    MessageReader::Progress progress = peer.reader.readText(maxReasonBytes);
    if (progress == MessageReader::Progress::Complete)
      return makePrintable(peer.reader.take().text);
    if (progress == MessageReader::Progress::Ended || patience.isOver())
      return "rank " + std::to_string(other) + " has left";
    wait(other, POLLIN);
  }
}

//===----------------------------------------------------------------------===//
// Watching
//===----------------------------------------------------------------------===//

/// Handles messages about a peer's state. A data message is left for receive().
void Rendezvous::watch(int64_t other) {
  using Progress = MessageReader::Progress;
  Peer &peer = *peers[other];
  std::string problem;
  try {
    while (!peer.hasLeft) {
      Progress progress = peer.reader.readHead();
      if (progress == Progress::Waits)
        return;
      if (progress == Progress::Ended)
        failGone(other);
      switch (peer.reader.getKind()) {
      case MessageKind::Data:
        return;
      case MessageKind::Abort:
        peer.knowsWhy = true;
        fail(readReason(other));
      case MessageKind::Refuse:
        peer.knowsWhy = true;
        fail(readReason(other), ErrorKind::Input);
      case MessageKind::Leave:
        peer.hasLeft = true;
        break;
      case MessageKind::Alive:
        ++peer.numAlive;
        break;
      }
      peer.reader.take();
    }
  } catch (const AbortedError &) {
    throw;
  } catch (const Error &error) {
    problem = error.what();
  }
  if (!problem.empty())
    fail("rank " + std::to_string(other) + ": " + problem);
}

/// Checks what the launcher has seen. If a rank has failed, its reason may
/// still be on the way, so this waits a while for it.
void Rendezvous::watchFates() {
  if (!job.getFate)
    return;
  for (int64_t rank = 0; rank < job.worldSize; ++rank) {
    Fate fate = job.getFate(rank);
    bool isLost = fate.kind == Fate::Killed ||
                  (fate.kind == Fate::Failed && failed[rank].isOver());
    if (fate.kind != Fate::Failed)
      failed[rank].renew();
    if (isLost && rank != job.rank)
      fail("rank " + std::to_string(rank) + " " + fate.description);
  }
}

void Rendezvous::watch() {
  for (int64_t other = 0; other < job.worldSize; ++other)
    if (peers[other])
      watch(other);
  watchFates();
}

/// Waits a moment for an event on a peer's connection, or for a message from
/// another peer.
void Rendezvous::wait(int64_t other, short events) {
  std::vector<pollfd> entries = {{peers[other]->socket.get(), events, 0}};
  for (int64_t rank = 0; rank < job.worldSize; ++rank)
    if (rank != other && peers[rank] && !peers[rank]->hasLeft &&
        !peers[rank]->reader.hasHead())
      entries.push_back({peers[rank]->socket.get(), POLLIN, 0});
  waitForEvents(entries);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The time limit of a message: a second for each 16 MiB in addition to the
/// timeout.
static milliseconds getTime(milliseconds timeout, uint64_t size) {
  return timeout.count() > 0
             ? timeout + milliseconds((size >> 24) * uint64_t(1000))
             : timeout;
}

std::string Rendezvous::receive(int64_t other, uint64_t limit,
                                bool whileAlive) {
  Peer &peer = *peers[other];
  Patience patience(timeout);
  bool hasBegun = false;
  for (uint64_t numAlive = peer.numAlive;; wait(other, POLLIN)) {
    watch();
    if (peer.hasLeft)
      fail("rank " + std::to_string(other) + " has left");
    if (peer.reader.hasHead()) {
      MessageReader::Progress progress;
      try {
        progress = peer.reader.readText(limit);
      } catch (const Error &error) {
        fail("rank " + std::to_string(other) + ": " + error.what());
      }
      if (progress == MessageReader::Progress::Complete)
        return peer.reader.take().text;
      if (progress == MessageReader::Progress::Ended)
        failGone(other);
      if (!std::exchange(hasBegun, true))
        patience = Patience(getTime(timeout, peer.reader.getSize()));
    } else if (whileAlive &&
               std::exchange(numAlive, peer.numAlive) != peer.numAlive) {
      patience.renew();
    }
    if (patience.isOver())
      failLate(other, "waits for");
  }
}

Rendezvous::Sent Rendezvous::trySend(Peer &peer, MessageKind kind,
                                     std::string_view text, milliseconds limit,
                                     const std::function<void()> &look) {
  std::unique_lock<std::timed_mutex> lock(peer.sending, farewellTime);
  if (!lock || peer.isCut)
    return Sent::Late;
  std::optional<uint32_t> crc;
  if (job.checksum)
    crc = updateCrc(0, text.data(), text.size());
  std::string head = encodeHead(kind, text.size(), crc);
  Patience patience(getTime(limit, text.size()));
  peer.isCut = true; // unless it is complete
  for (std::string_view rest : {std::string_view(head), text})
    while (!rest.empty()) {
      ptrdiff_t count = peer.socket.write(rest);
      if (count < 0)
        return Sent::Broken;
      rest.remove_prefix(count);
      if (count > 0)
        continue;
      if (patience.isOver())
        return Sent::Late;
      lock.unlock(); // look() may fail and tell all peers
      look();
      lock.lock();
      std::vector<pollfd> entries = {{peer.socket.get(), POLLOUT, 0}};
      waitForEvents(entries);
    }
  peer.isCut = false;
  return Sent::Whole;
}

void Rendezvous::send(int64_t other, const std::string &text) {
  Sent sent = trySend(*peers[other], MessageKind::Data, text, timeout,
                      [this] { watch(); });
  if (sent == Sent::Whole)
    return;
  watch(); // throws with the reason, if there is one
  if (sent == Sent::Late)
    failLate(other, "can't send to");
  fail("rank " + std::to_string(other) + " has left");
}

void Rendezvous::abort(const std::string &reason, ErrorKind kind) noexcept {
  std::string_view text = std::string_view(reason).substr(0, maxReasonBytes);
  MessageKind message =
      kind == ErrorKind::Input ? MessageKind::Refuse : MessageKind::Abort;
  for (std::unique_ptr<Peer> &peer : peers)
    if (peer && !peer->hasLeft &&
        trySend(*peer, message, text, reasonTime, [] {}) == Sent::Whole)
      peer->knowsWhy = true;
}

bool Rendezvous::waitForRankZero(milliseconds limit) noexcept {
  if (!peers[0])
    return false;
  Peer &peer = *peers[0];
  if (peer.knowsWhy) // else rank 0 would believe that all is well
    trySend(peer, MessageKind::Leave, "", reasonTime, [] {});
  Patience patience(limit);
  for (char bytes[512];;) {
    ptrdiff_t count = peer.socket.read(bytes, sizeof(bytes));
    if (count == 0)
      return peer.knowsWhy;
    if (patience.isOver())
      return false;
    std::vector<pollfd> entries = {{peer.socket.get(), POLLIN, 0}};
    if (count < 0)
      waitForEvents(entries);
  }
}

/// Reads and drops what a peer sends. Returns whether it has left, or ended.
bool Rendezvous::hasEnded(Peer &peer) noexcept {
  using Progress = MessageReader::Progress;
  try {
    while (!peer.hasLeft) {
      Progress progress = peer.reader.readHead();
      if (progress == Progress::Complete)
        progress = peer.reader.readText(std::numeric_limits<uint64_t>::max());
      if (progress != Progress::Complete)
        return progress == Progress::Ended;
      peer.hasLeft = peer.reader.take().kind == MessageKind::Leave;
    }
  } catch (const std::exception &) { // nothing that could be understood follows
  }
  return true;
}

void Rendezvous::waitForOthers(milliseconds limit) noexcept {
  Patience patience(limit);
  for (std::unique_ptr<Peer> &peer : peers)
    while (peer && !hasEnded(*peer) && !patience.isOver()) {
      std::vector<pollfd> entries = {{peer->socket.get(), POLLIN, 0}};
      waitForEvents(entries);
    }
}

//===----------------------------------------------------------------------===//
// What ranks do together
//===----------------------------------------------------------------------===//

std::vector<std::string> Rendezvous::exchange(const std::string &mine,
                                              uint64_t limit) {
  std::vector<std::string> all = gather(mine, limit);
  all.resize(job.worldSize);
  for (int64_t peer = 1; peer < job.worldSize && job.rank == 0; ++peer)
    for (const std::string &text : all)
      send(peer, text);
  if (job.rank > 0)
    for (std::string &text : all)
      text = receive(0, limit);
  return all;
}

std::vector<std::string> Rendezvous::gather(const std::string &mine,
                                            uint64_t limit) {
  if (job.rank > 0) {
    send(0, mine);
    return {};
  }
  std::vector<std::string> all(job.worldSize);
  all[0] = mine;
  for (int64_t peer = 1; peer < job.worldSize; ++peer)
    all[peer] = receive(peer, limit);
  return all;
}

std::string Rendezvous::broadcast(const std::string &mine, uint64_t limit) {
  if (job.rank > 0)
    return receive(0, limit, /*whileAlive=*/true);
  for (int64_t peer = 1; peer < job.worldSize; ++peer)
    send(peer, mine);
  return mine;
}

void Rendezvous::poll() { watch(); }
