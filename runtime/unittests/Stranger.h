//===- Stranger.h - Somebody who connects to a job --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_STRANGER_H
#define TPRT_UNITTESTS_STRANGER_H

#include "comm/Messages.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

namespace tprt::test {

/// A connection that does what a test wants, as somebody in the network may.
class Stranger {
public:
  explicit Stranger(uint16_t port, const char *host = "127.0.0.1")
      : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host, &address.sin_addr);
    timeval limit = {60, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    isConnected = ::connect(socket, reinterpret_cast<sockaddr *>(&address),
                            sizeof(address)) == 0;
  }
  Stranger(Stranger &&other) noexcept
      : isConnected(other.isConnected),
        socket(std::exchange(other.socket, -1)) {}
  ~Stranger() { close(); }

  void close() {
    if (socket >= 0)
      ::close(std::exchange(socket, -1));
  }
  void send(std::string_view bytes) {
    ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Fewer where the other end closes.
  std::string receive(size_t bytes) {
    std::string text(bytes, 0);
    ssize_t count = ::recv(socket, text.data(), bytes, MSG_WAITALL);
    text.resize(std::max<ssize_t>(count, 0));
    return text;
  }
  /// Becomes a rank. What rank 0 answers.
  std::string introduce(uint32_t rank, uint32_t worldSize,
                        const std::string &token) {
    hello = {rank, worldSize, drawNonce()};
    Challenge challenge =
        Challenge::decode(receive(Challenge::numBytes)).value();
    hello.proof = prove(token, false, challenge.nonce, hello);
    send(hello.encode());
    return receive(numVerdictBytes);
  }

  bool isConnected;
  Hello hello;

private:
  int socket;
};

} // namespace tprt::test

#endif // TPRT_UNITTESTS_STRANGER_H
