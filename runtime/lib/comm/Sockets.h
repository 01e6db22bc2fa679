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

/// A socket that is closed by its destructor. None of its calls block.
class Socket {
public:
  Socket() = default;
  /// Takes ownership of `descriptor`.
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
  /// Gives up ownership.
  int release() { return std::exchange(descriptor, -1); }

  /// Copies available bytes. Returns how many; 0 at the end or if the
  /// connection is broken; -1 if none are available yet.
  ptrdiff_t read(void *data, size_t bytes) const;
  /// Returns how many bytes it has accepted; 0 if it accepts none now; -1 if
  /// the connection is broken.
  ptrdiff_t write(std::string_view bytes) const;

private:
  int descriptor = -1;
};

/// Sets options of a connection so that small messages aren't delayed and a
/// host that is gone is noticed.
void setOptions(const Socket &connection);

/// How often a waiting thread checks for other events.
constexpr std::chrono::milliseconds lookInterval(50);

/// Waits for an event on one of them, for lookInterval at most.
void waitForEvents(std::vector<pollfd> &entries);

} // namespace tprt

#endif // TPRT_LIB_COMM_SOCKETS_H
