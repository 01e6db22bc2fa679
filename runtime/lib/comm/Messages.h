//===- Messages.h - Messages between the processes of a job -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All bytes read from a socket are checked here, and nowhere else. This code
// doesn't know sockets, so that tests can feed it any bytes.
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

/// The first byte of a message. For Data, Abort and Refuse, an 8-byte size and
/// the text follow. If the byte is a small letter, the text's CRC-32 is between
/// them, in 4 bytes.
enum class MessageKind : char {
  Data = 'D',
  Abort = 'A',  ///< the text is the reason
  Refuse = 'R', ///< the same, and the cause is the sender's input
  Leave = 'L',  ///< the sender has done its work, and sends nothing more
  Alive = 'H'   ///< the sender is working on something that the others wait for
};

struct Message {
  MessageKind kind = MessageKind::Data;
  std::string text;
};

/// The longest reason. Longer ones are cut by their sender.
constexpr uint64_t maxReasonBytes = 4096;

/// The bytes that precede a message's text.
TPRT_API std::string encodeHead(MessageKind kind, uint64_t size,
                                std::optional<uint32_t> crc = std::nullopt);

/// Reads messages from a source of bytes, from which it never takes more than
/// the message that it reads. Memory grows with the bytes that arrive,
/// regardless of the size that a head claims.
class TPRT_API MessageReader {
public:
  /// Copies up to `bytes` bytes to `data`. Returns how many; 0 at the end; -1
  /// if none are available yet.
  using Source = std::function<ptrdiff_t(void *data, size_t bytes)>;

  enum class Progress {
    Complete, ///< the requested part is here
    Waits,    ///< bytes are missing
    Ended     ///< bytes are missing and won't come
  };

  explicit MessageReader(Source source) : source(std::move(source)) {}

  /// Reads the head of the next message, unless it has already been read.
  /// Throws an execution error if the bytes aren't a head.
  Progress readHead();
  bool hasHead() const { return kind.has_value(); }
  /// The kind and size of the message whose head has been read. The size is 0
  /// if no text follows.
  MessageKind getKind() const { return *kind; }
  uint64_t getSize() const { return size; }

  /// Reads the text behind the head. Throws an execution error if it has more
  /// than `limit` bytes, or another checksum than the head says.
  Progress readText(uint64_t limit);

  /// Returns the message once head and text have been read. The next message
  /// may then begin.
  Message take();

private:
  Source source;
  std::array<char, 13> head = {};
  size_t numHead = 0; ///< bytes of it received so far
  std::optional<MessageKind> kind;
  uint64_t size = 0;
  std::optional<uint32_t> crc;
  std::string text;
  size_t numText = 0;
};

//===----------------------------------------------------------------------===//
// Handshakes
//===----------------------------------------------------------------------===//

using Nonce = std::array<char, 32>;
using Proof = std::array<char, 32>;

/// The first message, of the host that ranks connect to, such as rank 0.
struct TPRT_API Challenge {
  static constexpr size_t numBytes = 40;
  Nonce nonce = {};

  std::string encode() const;
  /// Returns nullopt if `bytes` aren't a challenge.
  static std::optional<Challenge> decode(std::string_view bytes);
};

/// A rank's answer to the challenge.
struct TPRT_API Hello {
  static constexpr size_t numBytes = 80;
  uint32_t rank = 0, worldSize = 0;
  Nonce nonce = {};
  Proof proof = {};

  std::string encode() const;
  static std::optional<Hello> decode(std::string_view bytes);
};

/// The host's answer to a hello. Its own proof follows if it is Welcome.
enum class Verdict : char {
  Welcome = 'Y',
  OtherToken = 'T',
  OtherWorldSize = 'W',
  NoSuchRank = 'N', ///< the rank isn't above the host's, or not in the world
  RankIsTaken = 'R'
};
constexpr size_t numVerdictBytes = 1 + sizeof(Proof);

/// HMAC-SHA256 with the key `token`, over everything that both sides have sent,
/// for the host or for the other side. Neither the token nor anything reusable
/// is sent.
TPRT_API Proof prove(const std::string &token, bool isHost,
                     const Nonce &challenge, const Hello &hello);

/// Takes the same time no matter where they differ.
TPRT_API bool isEqual(const Proof &a, const Proof &b);

/// Draws from the system's source of randomness. Throws an execution error if
/// that fails.
TPRT_API Nonce drawNonce();

} // namespace tprt

#endif // TPRT_LIB_COMM_MESSAGES_H
