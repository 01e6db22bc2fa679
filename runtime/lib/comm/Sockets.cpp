//===- Sockets.cpp - Sockets that nothing waits in forever ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/Sockets.h"

#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace tprt;

Socket::Socket(int descriptor) : descriptor(descriptor) {
  if (descriptor >= 0)
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

Socket::~Socket() {
  if (descriptor >= 0)
    ::close(descriptor);
}

/// Whether the call may be made again later.
static bool isTemporary(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR ||
         error == ENOBUFS || error == ENOMEM;
}

ptrdiff_t Socket::read(void *data, size_t bytes) const {
  ssize_t count = ::recv(descriptor, data, bytes, MSG_DONTWAIT);
  if (count < 0)
    return isTemporary(errno) ? -1 : 0;
  return count;
}

ptrdiff_t Socket::write(std::string_view bytes) const {
  ssize_t count = ::send(descriptor, bytes.data(), bytes.size(),
                         MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0)
    return isTemporary(errno) ? 0 : -1;
  return count;
}

void tprt::setOptions(const Socket &connection) {
  auto set = [&](int level, int option, int value) {
    ::setsockopt(connection.get(), level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10); // seconds
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

void tprt::waitForEvents(std::vector<pollfd> &entries) {
  if (::poll(entries.data(), entries.size(), lookInterval.count()) < 0)
    for (pollfd &entry : entries) // after a signal, report no events
      entry.revents = 0;
}
