//===- Messages.h - What the processes of a job send each other -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is read from a socket is checked here, and nowhere else. Nothing of this
// knows sockets, so that any bytes can be tried.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_MESSAGES_H
#define TPRT_LIB_COMM_MESSAGES_H

#include "tprt/Error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tprt {

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The first byte of a message. Of Data and Abort, 8 bytes of size and the text
/// follow.
enum class MessageKind : char {
  Data = 'D',
  Abort = 'A', ///< the text is the reason
  Leave = 'L', ///< the sender has done its work, and sends nothing more
  Alive = 'H'  ///< the sender works on something that the others wait for
};

struct Message {
  MessageKind kind = MessageKind::Data;
  std::string text;
};

/// The longest reason. Longer ones are cut by their sender.
constexpr uint64_t maxReasonBytes = 4096;

/// What precedes a message's text.
TPRT_API std::string encodeHead(MessageKind kind, uint64_t size);

/// Reads messages from a source of bytes, from which it never takes more than
/// the message that it reads. Memory grows with the bytes that arrive, whatever
/// size a head claims.
class TPRT_API MessageReader {
public:
  /// Copies up to `bytes` bytes to `data`. Returns how many; 0 at the end; -1
  /// where none are there yet.
  using Source = std::function<ptrdiff_t(void *data, size_t bytes)>;

  enum class Progress {
    Complete, ///< what was asked for is here
    Waits,    ///< bytes are missing
    Ended     ///< and won't come
  };

  explicit MessageReader(Source source) : source(std::move(source)) {}

  /// Reads the head of the next message, unless it is here. Throws an execution
  /// error where the bytes are none.
  Progress readHead();
  bool hasHead() const { return kind.has_value(); }
  /// Of the message whose head is here; the size is 0 where no text follows.
  MessageKind getKind() const { return *kind; }
  uint64_t getSize() const { return size; }

  /// Reads the text behind the head. Throws an execution error where it has
  /// more than `limit` bytes.
  Progress readText(uint64_t limit);

  /// The message, when head and text are here. The next one may begin.
  Message take();

private:
  Source source;
  std::array<char, 9> head = {};
  size_t numHead = 0; ///< bytes of it that are here
  std::optional<MessageKind> kind;
  uint64_t size = 0;
  std::string text;
  size_t numText = 0;
};

//===----------------------------------------------------------------------===//
// Handshakes
//===----------------------------------------------------------------------===//

using Nonce = std::array<char, 32>;
using Proof = std::array<char, 32>;

/// What rank 0 sends first.
struct TPRT_API Challenge {
  static constexpr size_t numBytes = 40;
  Nonce nonce = {};

  std::string encode() const;
  /// Nothing where `bytes`, of this number, are something else.
  static std::optional<Challenge> decode(std::string_view bytes);
};

/// What another rank answers.
struct TPRT_API Hello {
  static constexpr size_t numBytes = 80;
  uint32_t rank = 0, worldSize = 0;
  Nonce nonce = {};
  Proof proof = {};

  std::string encode() const;
  static std::optional<Hello> decode(std::string_view bytes);
};

/// What rank 0 says to that, with its own proof where it is Welcome.
enum class Verdict : char {
  Welcome = 'Y',
  OtherToken = 'T',
  OtherWorldSize = 'W',
  NoSuchRank = 'N', ///< the rank isn't one of 1 to the world's size - 1
  RankIsTaken = 'R'
};
constexpr size_t numVerdictBytes = 1 + sizeof(Proof);

/// HMAC-SHA256 by `token`, of everything that both sides have said, for rank 0
/// or for the other side: neither a token nor anything that can be used again
/// is sent.
TPRT_API Proof prove(const std::string &token, bool isRankZero,
                     const Nonce &challenge, const Hello &hello);

/// Takes the same time wherever they differ.
TPRT_API bool isEqual(const Proof &a, const Proof &b);

/// From the system's source of randomness. Throws an execution error.
TPRT_API Nonce drawNonce();

} // namespace tprt

#endif // TPRT_LIB_COMM_MESSAGES_H
