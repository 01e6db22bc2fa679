//===- Handshake.cpp - Connections between the processes of a job ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A host, such as rank 0, listens at its address, and nowhere else. It sends a
// challenge on each new connection; a rank answers with a hello, and the host
// with a verdict (Messages.h). Each proves to the other that it has the job's
// token. The token itself is never sent.
//
// Until then the host doesn't trust a connection: it has `handshakeTime` to
// send its 80 bytes, and if more than `maxGuests` connections are pending, the
// oldest one is dropped. A dropped connection has no other effect; the job's
// ranks try again.
//
//===----------------------------------------------------------------------===//

#include "comm/Handshake.h"

#include "comm/Messages.h"
#include "support/Patience.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <map>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

using namespace tprt;
using std::chrono::milliseconds;

static constexpr milliseconds handshakeTime(10'000);
static constexpr size_t maxGuests = 128;

static std::string getName(int64_t rank) {
  return "rank " + std::to_string(rank);
}

std::string tprt::describePlace(const Job &job) {
  return job.address + ":" + std::to_string(job.port);
}

std::optional<std::string> tprt::describeEnd(const Job &job, int64_t rank) {
  Fate fate = job.getFate ? job.getFate(rank) : Fate();
  if (fate.kind != Fate::Failed && fate.kind != Fate::Killed)
    return std::nullopt;
  return "rank " + std::to_string(rank) + " " + fate.description;
}

std::string tprt::describeLoss(const Job &job, int64_t rank) {
  Patience patience(milliseconds(1'000));
  std::optional<std::string> end;
  while (!(end = describeEnd(job, rank)) && job.getFate && !patience.isOver())
    std::this_thread::sleep_for(milliseconds(10));
  return end.value_or("rank " + std::to_string(rank) + " has left");
}

/// Throws if another rank has ended. Reports a killed rank first, since the
/// others may have ended because of it.
static void checkFates(const Job &job) {
  std::optional<std::string> found;
  for (int64_t rank = 0; job.getFate && rank < job.worldSize; ++rank) {
    if (rank == job.rank)
      continue;
    std::optional<std::string> end = describeEnd(job, rank);
    if (end && (!found || job.getFate(rank).kind == Fate::Killed))
      found = end;
  }
  if (found)
    throw executionError(*found);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

static bool isLoopback(const sockaddr *address) {
  if (address->sa_family == AF_INET) {
    auto *v4 = reinterpret_cast<const sockaddr_in *>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family != AF_INET6)
    return false;
  const in6_addr &v6 =
      reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

static std::string toString(const sockaddr *address, socklen_t length) {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(address, length, host, sizeof(host), nullptr, 0,
                NI_NUMERICHOST);
  return host;
}

/// The addresses at which rank `host` listens. If processes of other hosts can
/// connect, a token is needed to recognize the job's ranks.
static Addresses resolve(const Job &job, int64_t host) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int error = ::getaddrinfo(job.address.c_str(),
                            std::to_string(job.port).c_str(), &hints, &found);
  if (error != 0)
    throw executionError("cannot find " + getName(host) + " at '" +
                         job.address + "': " + ::gai_strerror(error));
  Addresses owner(found, ::freeaddrinfo);
  for (addrinfo *place = found; place; place = place->ai_next)
    if (job.token.empty() && !isLoopback(place->ai_addr))
      throw inputError(
          "the ranks meet at " + describePlace(job) + " (" +
          toString(place->ai_addr, place->ai_addrlen) +
          "), where other hosts can connect too: give the ranks a secret of "
          "at least " +
          std::to_string(minTokenBytes) +
          " characters, the same for all of a job, in TP_TOKEN, or in a file "
          "of mode 0600 that TP_TOKEN_FILE names");
  return owner;
}

static Socket makeListener(const Job &job) {
  if (job.listener >= 0)
    return Socket(job.listener);
  Addresses places = resolve(job, job.rank);
  int error = 0;
  for (addrinfo *place = places.get(); place; place = place->ai_next) {
    Socket listener(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!listener) {
      error = errno;
      continue;
    }
    int yes = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(listener.get(), place->ai_addr, place->ai_addrlen) == 0 &&
        ::listen(listener.get(), SOMAXCONN) == 0)
      return listener;
    error = errno;
  }
  std::string name = getName(job.rank);
  throw executionError(name + " can't listen at " + describePlace(job) + " (" +
                       toString(places->ai_addr, places->ai_addrlen) +
                       "): " + std::strerror(error) +
                       (error == EADDRNOTAVAIL
                            ? ", it must be an address of " + name + "'s host"
                            : ""));
}

void Job::listenAtFreePort() {
  port = 0;
  Socket bound = makeListener(*this);
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  if (::getsockname(bound.get(), generic, &length) != 0)
    throw executionError(std::string("no port is free: ") +
                         std::strerror(errno));
  // In IPv6 addresses, the port is at the same place.
  port = ntohs(reinterpret_cast<sockaddr_in *>(&address)->sin_port);
  listener = ::fcntl(bound.get(), F_DUPFD_CLOEXEC, 0);
}

//===----------------------------------------------------------------------===//
// A host
//===----------------------------------------------------------------------===//

namespace {

/// A new connection, which may be from one of the ranks.
struct Guest {
  Socket socket;
  Challenge challenge;
  Patience patience{handshakeTime};
  std::string bytes = {}; ///< received so far
};

class Host {
public:
  Host(const Job &job, milliseconds timeout, const std::function<void()> &look)
      : job(job), patience(timeout), look(look), listener(makeListener(job)),
        ranks(job.worldSize) {}

  std::vector<Socket> run();
  void sendAway(const std::string &reason);

private:
  int64_t countMissing() const;
  std::string describeMissing() const;
  void checkRanks(const std::vector<pollfd> &entries);
  void accept();
  bool goOn(Guest &guest);
  bool judge(Guest &guest, const Hello &hello);
  void drop(const std::string &why) { ++dropped[why]; }

  const Job &job;
  Patience patience;
  const std::function<void()> &look;
  Socket listener;
  std::vector<Socket> ranks;
  std::deque<Guest> guests;
  std::map<std::string, int64_t> dropped; ///< counts by reason
};

} // namespace

int64_t Host::countMissing() const {
  return std::count_if(ranks.begin() + job.rank + 1, ranks.end(),
                       [](const Socket &socket) { return !socket; });
}

/// "1 of 3 ranks haven't connected to rank 0 at 127.0.0.1:29555 (rank 2)".
std::string Host::describeMissing() const {
  constexpr int64_t maxNamed = 8;
  int64_t missing = countMissing(), named = 0;
  std::string names;
  for (int64_t rank = job.rank + 1; rank < job.worldSize && named < maxNamed;
       ++rank)
    if (!ranks[rank])
      names += (named++ ? ", rank " : "rank ") + std::to_string(rank);
  std::string text =
      std::to_string(missing) + " of " + std::to_string(job.worldSize) +
      " ranks haven't connected to " + getName(job.rank) + " at " +
      describePlace(job) + " (" + names + (missing > named ? ", …" : "") + ")";
  for (const auto &[why, count] : dropped)
    text += "; " + std::to_string(count) +
            (count == 1 ? " other connection " : " other connections ") + why;
  return text;
}

/// The reason that a rank gave before it ended; empty if it gave none.
static std::string readReason(const Socket &rank) {
  using Progress = MessageReader::Progress;
  MessageReader reader(
      [&](void *data, size_t bytes) { return rank.read(data, bytes); });
  try {
    while (reader.readHead() == Progress::Complete) {
      if (reader.readText(maxReasonBytes) != Progress::Complete)
        break;
      Message message = reader.take();
      if (message.kind == MessageKind::Abort ||
          message.kind == MessageKind::Refuse)
        return makePrintable(message.text);
    }
  } catch (const Error &) { // not a message of ours
  }
  return {};
}

/// Throws if one of the ranks has ended.
void Host::checkRanks(const std::vector<pollfd> &entries) {
  checkFates(job);
  for (int64_t rank = job.rank + 1; rank < job.worldSize; ++rank)
    for (const pollfd &entry : entries)
      if (ranks[rank] && entry.fd == ranks[rank].get() && entry.revents) {
        std::string reason = readReason(ranks[rank]);
        throw executionError(reason.empty() ? describeLoss(job, rank) : reason);
      }
}

void Host::accept() {
  for (size_t i = 0; i < maxGuests; ++i) {
    Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int error = errno;
    bool isFull = !socket && (error == EMFILE || error == ENFILE);
    if (socket ? guests.size() == maxGuests : isFull && !guests.empty()) {
      drop("were dropped to make room for others");
      guests.pop_front();
    } else if (!socket && (isFull || error == EBADF || error == EINVAL ||
                           error == ENOTSOCK)) {
      throw executionError(getName(job.rank) + " can't accept connections: " +
                           std::strerror(error));
    }
    if (!socket && isFull)
      continue;
    if (!socket) // no connection, or one that is already closed
      return;
    setOptions(socket);
    Challenge challenge{drawNonce()};
    std::string bytes = challenge.encode();
    if (socket.write(bytes) == static_cast<ptrdiff_t>(bytes.size()))
      guests.push_back({std::move(socket), challenge});
  }
}

/// Answers a hello. Returns whether it is from one of the ranks, whose
/// connection is then kept.
bool Host::judge(Guest &guest, const Hello &hello) {
  Verdict verdict = Verdict::Welcome;
  if (!isEqual(hello.proof, prove(job.token, /*isHost=*/false,
                                  guest.challenge.nonce, hello)))
    verdict = Verdict::OtherToken;
  else if (hello.worldSize != job.worldSize)
    verdict = Verdict::OtherWorldSize;
  else if (hello.rank <= job.rank || hello.rank >= job.worldSize)
    verdict = Verdict::NoSuchRank;
  else if (ranks[hello.rank])
    verdict = Verdict::RankIsTaken;
  std::string answer(1, static_cast<char>(verdict));
  if (verdict == Verdict::Welcome) {
    Proof proof =
        prove(job.token, /*isHost=*/true, guest.challenge.nonce, hello);
    answer.append(proof.data(), proof.size());
  } else {
    answer.resize(numVerdictBytes);
    drop(verdict == Verdict::OtherToken       ? "had another token"
         : verdict == Verdict::OtherWorldSize ? "had another number of ranks"
         : verdict == Verdict::NoSuchRank
             ? "gave a rank that the job doesn't have"
             : "gave a rank that is already connected");
  }
  bool isSent =
      guest.socket.write(answer) == static_cast<ptrdiff_t>(answer.size());
  if (verdict == Verdict::Welcome && isSent)
    ranks[hello.rank] = std::move(guest.socket);
  return verdict == Verdict::Welcome && isSent;
}

/// Reads from a guest. Returns whether its hello is still pending.
bool Host::goOn(Guest &guest) {
  char bytes[Hello::numBytes];
  ptrdiff_t count =
      guest.socket.read(bytes, Hello::numBytes - guest.bytes.size());
  if (count > 0)
    guest.bytes.append(bytes, count);
  if (guest.bytes.size() == Hello::numBytes) {
    if (std::optional<Hello> hello = Hello::decode(guest.bytes))
      judge(guest, *hello);
    else
      drop("didn't send a rank's greeting");
    return false;
  }
  if (count == 0)
    drop("closed the connection");
  else if (guest.patience.isOver())
    drop("said nothing");
  else
    return true;
  return false;
}

std::vector<Socket> Host::run() {
  while (countMissing() > 0) {
    if (patience.isOver())
      throw executionError(describeMissing());
    std::vector<pollfd> entries = {{listener.get(), POLLIN, 0}};
    for (const Guest &guest : guests)
      entries.push_back({guest.socket.get(), POLLIN, 0});
    for (const Socket &rank : ranks)
      if (rank)
        entries.push_back({rank.get(), POLLRDHUP, 0});
    waitForEvents(entries);
    look();
    checkRanks(entries);
    accept();
    std::erase_if(guests, [&](Guest &guest) { return !goOn(guest); });
  }
  return std::move(ranks);
}

/// Tells the connected ranks why the job can't start.
void Host::sendAway(const std::string &reason) {
  std::string text = reason.substr(0, maxReasonBytes);
  for (const Socket &rank : ranks)
    if (rank)
      rank.write(encodeHead(MessageKind::Abort, text.size()) + text);
}

std::vector<Socket> tprt::admitRanks(const Job &job, milliseconds timeout,
                                     const std::function<void()> &look) {
  Host host(job, timeout, look);
  try {
    return host.run();
  } catch (const Error &error) {
    host.sendAway(error.what());
    throw;
  }
}

//===----------------------------------------------------------------------===//
// The ranks above it
//===----------------------------------------------------------------------===//

namespace {

class Joiner {
public:
  Joiner(const Job &job, int64_t host, milliseconds timeout,
         const std::function<void()> &lookAtOthers)
      : job(job), host(host), patience(timeout), lookAtOthers(lookAtOthers) {}

  Socket run();

private:
  [[noreturn]] void giveUp() const;
  void look(const Socket &socket, short events);
  bool read(const Socket &socket, std::string &bytes);
  bool connect(const Socket &socket, const addrinfo &place);
  bool introduce(const Socket &socket);
  bool converse(const Socket &socket);

  const Job &job;
  const int64_t host;
  Patience patience;
  const std::function<void()> &lookAtOthers;
  std::string problem; ///< of the last attempt
};

} // namespace

void Joiner::giveUp() const {
  throw executionError(getName(job.rank) + " can't connect to " +
                       getName(host) + " at " + describePlace(job) + ": " +
                       problem);
}

/// Waits a moment for an event on the socket. Throws when waiting is pointless.
void Joiner::look(const Socket &socket, short events) {
  checkFates(job);
  lookAtOthers();
  if (patience.isOver())
    giveUp();
  std::vector<pollfd> entries = {{socket.get(), events, 0}};
  waitForEvents(entries);
}

/// Reads bytes until `bytes` is full.
bool Joiner::read(const Socket &socket, std::string &bytes) {
  for (size_t at = 0; at < bytes.size();) {
    ptrdiff_t count = socket.read(bytes.data() + at, bytes.size() - at);
    if (count == 0)
      return false;
    if (count > 0)
      at += count;
    else
      look(socket, POLLIN);
  }
  return true;
}

bool Joiner::connect(const Socket &socket, const addrinfo &place) {
  if (!socket) {
    problem = std::strerror(errno);
    return false;
  }
  int error = 0;
  if (::connect(socket.get(), place.ai_addr, place.ai_addrlen) != 0)
    error = errno;
  Patience own(handshakeTime);
  while (error == EINPROGRESS || error == EINTR) {
    look(socket, POLLOUT);
    pollfd entry = {socket.get(), POLLOUT, 0};
    if (::poll(&entry, 1, 0) > 0) {
      socklen_t length = sizeof(error);
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    } else if (own.isOver()) {
      error = ETIMEDOUT;
    }
  }
  if (error != 0)
    problem = std::strerror(error);
  return error == 0;
}

/// Returns false if a process other than the host's listens there. That may
/// still come later.
bool Joiner::introduce(const Socket &socket) {
  const std::string stranger =
      "the process that listens there isn't " + getName(host) + " of this job";
  // An earlier attempt that got an answer is more informative.
  if (problem != stranger)
    problem = "it doesn't answer";
  if (converse(socket))
    return true;
  problem = stranger;
  return false;
}

bool Joiner::converse(const Socket &socket) {
  std::string bytes(Challenge::numBytes, 0);
  if (!read(socket, bytes))
    return false;
  std::optional<Challenge> challenge = Challenge::decode(bytes);
  if (!challenge)
    return false;
  Hello hello{static_cast<uint32_t>(job.rank),
              static_cast<uint32_t>(job.worldSize), drawNonce()};
  hello.proof = prove(job.token, /*isHost=*/false, challenge->nonce, hello);
  std::string said = hello.encode();
  if (socket.write(said) != static_cast<ptrdiff_t>(said.size()))
    return false;
  bytes.resize(numVerdictBytes);
  if (!read(socket, bytes))
    return false;
  switch (static_cast<Verdict>(bytes[0])) {
  case Verdict::OtherToken:
    problem = "it has another token";
    giveUp();
  case Verdict::OtherWorldSize:
    problem = getName(host) + "'s job has another number of ranks than " +
              std::to_string(job.worldSize);
    giveUp();
  case Verdict::NoSuchRank:
  case Verdict::RankIsTaken:
    problem = "another process has connected as " + getName(job.rank);
    giveUp();
  case Verdict::Welcome:
    break;
  default:
    return false;
  }
  Proof proof;
  std::memcpy(proof.data(), bytes.data() + 1, proof.size());
  return isEqual(proof,
                 prove(job.token, /*isHost=*/true, challenge->nonce, hello));
}

Socket Joiner::run() {
  Addresses places = resolve(job, host);
  for (;;) { // the host may listen later
    for (addrinfo *place = places.get(); place; place = place->ai_next) {
      Socket socket(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!connect(socket, *place))
        continue;
      setOptions(socket);
      if (introduce(socket))
        return socket;
    }
    look(Socket(), 0);
  }
}

Socket tprt::joinRank(const Job &job, int64_t host, milliseconds timeout,
                      const std::function<void()> &look) {
  return Joiner(job, host, timeout, look).run();
}
