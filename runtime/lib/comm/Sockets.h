//===- Sockets.h - Sockets that nothing waits in forever --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_SOCKETS_H
#define TPRT_LIB_COMM_SOCKETS_H

#include <chrono>
#include <poll.h>
#include <string_view>
#include <utility>
#include <vector>

namespace tprt {

/// A socket that is closed with its owner. None of its calls waits.
class Socket {
public:
  Socket() = default;
  /// Takes it over.
  explicit Socket(int descriptor);
  Socket(Socket &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return descriptor >= 0; }
  int get() const { return descriptor; }

  /// Copies what is there; how many bytes, 0 at the end or where the connection
  /// is broken, -1 where nothing is there yet.
  ptrdiff_t read(void *data, size_t bytes) const;
  /// How many bytes it has taken; 0 where it takes none now, -1 where the
  /// connection is broken.
  ptrdiff_t write(std::string_view bytes) const;

private:
  int descriptor = -1;
};

/// Sets options of a connection: small messages aren't held back, and a host
/// that is gone is noticed.
void setOptions(const Socket &connection);

/// Who waits looks around as often.
constexpr std::chrono::milliseconds lookInterval(50);

/// Waits until something happens to one of them, for lookInterval at most.
void waitForEvents(std::vector<pollfd> &entries);

} // namespace tprt

#endif // TPRT_LIB_COMM_SOCKETS_H
