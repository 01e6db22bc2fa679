//===- Rendezvous.cpp - Where processes meet -----------------------------===//
//
// Rank 0 listens, the others connect and say who they are. A message is a byte
// that says what it is and, unless its sender leaves, 8 bytes of length and
// that many bytes.
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace tprt;
using Clock = std::chrono::steady_clock;

// What a message begins with.
static constexpr char dataFollow = 'D'; ///< their size and they
static constexpr char aborting = 'A';   ///< the reason's size and it
static constexpr char leaving = 'L';    ///< nothing, ever

static std::string describePlace(const Job &job) {
  return job.address + ":" + std::to_string(job.port);
}

static void setOptions(int socket) {
  int yes = 1; // messages are small, and waited for
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/// Writes all; false when the other end is gone.
static bool writeAll(int socket, const void *data, size_t bytes) {
  auto *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    at += written;
    bytes -= written;
  }
  return true;
}

/// Reads all; false when the other end is gone.
static bool readAll(int socket, void *data, size_t bytes) {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t count = ::recv(socket, at, bytes, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    at += count;
    bytes -= count;
  }
  return true;
}

/// Whether there is something to read within `timeout` (zero: forever).
static bool waitFor(int socket, std::chrono::milliseconds timeout) {
  pollfd entry = {socket, POLLIN, 0};
  int result;
  do
    result = ::poll(&entry, 1, timeout.count() > 0 ? timeout.count() : -1);
  while (result < 0 && errno == EINTR);
  return result > 0;
}

Rendezvous::Rendezvous(const Job &job, std::chrono::milliseconds timeout)
    : rank(job.rank), worldSize(job.worldSize), timeout(timeout),
      sockets(job.worldSize, -1) {
  if (worldSize == 1)
    return;
  if (rank == 0)
    listen(job);
  else
    connect(job);
}

// Who leaves for an error just closes, which the others notice.
Rendezvous::~Rendezvous() {
  bool isDone = std::uncaught_exceptions() == 0;
  for (int socket : sockets) {
    if (socket < 0)
      continue;
    if (isDone)
      writeAll(socket, &leaving, 1);
    ::close(socket);
  }
}

void Rendezvous::listen(const Job &job) {
  int listener = job.listener;
  if (listener < 0) {
    listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1, no = 0;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(job.port);
    if (::bind(listener, reinterpret_cast<sockaddr *>(&address),
               sizeof(address)) != 0 ||
        ::listen(listener, SOMAXCONN) != 0) {
      int error = errno;
      ::close(listener);
      throw executionError("rank 0 can't listen on port " +
                           std::to_string(job.port) + ": " +
                           std::strerror(error));
    }
  }
  Clock::time_point start = Clock::now();
  for (int64_t missing = worldSize - 1; missing > 0; --missing) {
    auto left = timeout - std::chrono::duration_cast<std::chrono::milliseconds>(
                              Clock::now() - start);
    bool isLate = timeout.count() > 0 && left.count() <= 0;
    if (isLate || !waitFor(listener, timeout.count() > 0 ? left : timeout)) {
      ::close(listener);
      throw executionError(
          std::to_string(missing) + " of " + std::to_string(worldSize) +
          " ranks haven't connected to rank 0 at " + describePlace(job));
    }
    int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int64_t peer = -1;
    bool isKnown = socket >= 0 && readAll(socket, &peer, sizeof(peer)) &&
                   peer > 0 && peer < worldSize && sockets[peer] < 0;
    if (!isKnown) {
      ::close(socket);
      ::close(listener);
      throw executionError("something else than the job's ranks connects to " +
                           describePlace(job) + ", or one of them twice");
    }
    setOptions(socket);
    sockets[peer] = socket;
  }
  ::close(listener);
}

void Rendezvous::connect(const Job &job) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int error = ::getaddrinfo(job.address.c_str(),
                            std::to_string(job.port).c_str(), &hints, &found);
  if (error != 0)
    throw executionError("cannot find rank 0 at '" + job.address +
                         "': " + ::gai_strerror(error));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found,
                                                             ::freeaddrinfo);
  Clock::time_point start = Clock::now();
  for (;;) { // it may listen later
    for (addrinfo *place = found; place; place = place->ai_next) {
      int socket = ::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket >= 0 &&
          ::connect(socket, place->ai_addr, place->ai_addrlen) == 0) {
        setOptions(socket);
        sockets[0] = socket;
        if (!writeAll(socket, &rank, sizeof(rank)))
          fail("rank 0 has left");
        return;
      }
      error = errno;
      if (socket >= 0)
        ::close(socket);
    }
    if (timeout.count() > 0 && Clock::now() - start > timeout)
      throw executionError("rank " + std::to_string(rank) +
                           " can't connect to rank 0 at " + describePlace(job) +
                           ": " + std::strerror(error));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Rendezvous::fail(const std::string &reason) {
  abort(reason);
  throw AbortedError(reason);
}

bool Rendezvous::trySend(int64_t peer, char kind, const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t size = text.size();
  return writeAll(sockets[peer], &kind, 1) &&
         writeAll(sockets[peer], &size, sizeof(size)) &&
         writeAll(sockets[peer], text.data(), size);
}

void Rendezvous::send(int64_t peer, const std::string &text) {
  if (trySend(peer, dataFollow, text))
    return;
  receive(peer, timeout); // throws with the reason, if it has sent one
  fail("rank " + std::to_string(peer) + " has left");
}

std::string Rendezvous::receive(int64_t peer,
                                std::chrono::milliseconds timeout) {
  if (!waitFor(sockets[peer], timeout))
    fail("no progress for " + std::to_string(timeout.count() / 1000) +
         " s: rank " + std::to_string(rank) + " waits for rank " +
         std::to_string(peer));
  char kind = 0;
  uint64_t size = 0;
  std::string text;
  bool isRead = readAll(sockets[peer], &kind, 1) && kind != leaving &&
                readAll(sockets[peer], &size, sizeof(size));
  if (isRead) {
    text.resize(size);
    isRead = readAll(sockets[peer], text.data(), size);
  }
  if (!isRead)
    fail("rank " + std::to_string(peer) + " has left");
  if (kind == aborting)
    fail(text);
  return text;
}

std::vector<std::string> Rendezvous::exchange(const std::string &mine) {
  std::vector<std::string> all(worldSize);
  all[rank] = mine;
  if (rank == 0) {
    for (int64_t peer = 1; peer < worldSize; ++peer)
      all[peer] = receive(peer, timeout);
    for (int64_t peer = 1; peer < worldSize; ++peer)
      for (const std::string &text : all)
        send(peer, text);
    return all;
  }
  send(0, mine);
  for (std::string &text : all)
    text = receive(0, timeout);
  return all;
}

std::vector<std::string> Rendezvous::gather(const std::string &mine) {
  if (rank > 0) {
    send(0, mine);
    return {};
  }
  std::vector<std::string> all(worldSize);
  all[0] = mine;
  for (int64_t peer = 1; peer < worldSize; ++peer)
    all[peer] = receive(peer, timeout);
  return all;
}

std::string Rendezvous::broadcast(const std::string &mine) {
  if (rank > 0)
    return receive(0, std::chrono::milliseconds(0));
  for (int64_t peer = 1; peer < worldSize; ++peer)
    send(peer, mine);
  return mine;
}

void Rendezvous::poll() {
  for (int64_t peer = 0; peer < worldSize; ++peer) {
    if (sockets[peer] < 0)
      continue;
    // Data of those that are done already stay where they are; so does that
    // they have left since: they have enqueued all that others need.
    char kind = 0;
    ssize_t count = ::recv(sockets[peer], &kind, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count == 0 || (count == 1 && kind == aborting))
      receive(peer, timeout); // throws
  }
}

void Rendezvous::abort(const std::string &reason) noexcept {
  for (int64_t peer = 0; peer < worldSize; ++peer)
    if (sockets[peer] >= 0)
      trySend(peer, aborting, reason);
}
