//===- Messages.cpp - Messages between the processes of a job -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/Messages.h"

#include "support/Checksum.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>

using namespace tprt;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static bool hasText(MessageKind kind) {
  return kind == MessageKind::Data || kind == MessageKind::Abort ||
         kind == MessageKind::Refuse;
}

/// The first byte if a checksum follows.
static char toSealed(MessageKind kind) {
  return static_cast<char>(std::tolower(static_cast<char>(kind)));
}

std::string tprt::encodeHead(MessageKind kind, uint64_t size,
                             std::optional<uint32_t> crc) {
  if (!hasText(kind))
    return std::string(1, static_cast<char>(kind));
  std::string head(1, crc ? toSealed(kind) : static_cast<char>(kind));
  head.append(reinterpret_cast<const char *>(&size), sizeof(size));
  if (crc)
    head.append(reinterpret_cast<const char *>(&*crc), sizeof(*crc));
  return head;
}

static std::optional<MessageKind> toKind(char byte) {
  for (MessageKind kind :
       {MessageKind::Data, MessageKind::Abort, MessageKind::Refuse,
        MessageKind::Leave, MessageKind::Alive})
    if (byte == static_cast<char>(kind) ||
        (hasText(kind) && byte == toSealed(kind)))
      return kind;
  return std::nullopt;
}

MessageReader::Progress MessageReader::readHead() {
  constexpr size_t plain = 1 + sizeof(size);
  while (!kind) {
    std::optional<MessageKind> found;
    size_t wanted = 1;
    bool isSealed = false;
    if (numHead > 0) {
      found = toKind(head[0]);
      if (!found)
        throw executionError("the bytes that arrive aren't a message");
      isSealed = head[0] != static_cast<char>(*found);
      if (hasText(*found))
        wanted = isSealed ? head.size() : plain;
    }
    if (numHead < wanted) {
      ptrdiff_t count = source(head.data() + numHead, wanted - numHead);
      if (count <= 0)
        return count < 0 ? Progress::Waits : Progress::Ended;
      numHead += count;
      continue;
    }
    if (hasText(*found))
      std::memcpy(&size, head.data() + 1, sizeof(size));
    if (isSealed)
      std::memcpy(&crc.emplace(), head.data() + plain, sizeof(*crc));
    kind = found;
  }
  return Progress::Complete;
}

MessageReader::Progress MessageReader::readText(uint64_t limit) {
  constexpr uint64_t slice = 1 << 20;
  if (size > limit)
    throw executionError("a message has " + std::to_string(size) +
                         " bytes where at most " + std::to_string(limit) +
                         " are expected");
  while (numText < size) {
    text.resize(numText + std::min(size - numText, slice));
    ptrdiff_t count = source(text.data() + numText, text.size() - numText);
    if (count <= 0)
      return count < 0 ? Progress::Waits : Progress::Ended;
    numText += count;
  }
  text.resize(numText);
  if (crc && updateCrc(0, text.data(), text.size()) != *crc)
    throw executionError("a message of " + std::to_string(size) +
                         " bytes arrives with another CRC-32 than it was sent "
                         "with");
  return Progress::Complete;
}

Message MessageReader::take() {
  Message message{*kind, std::move(text)};
  text.clear();
  kind.reset();
  crc.reset();
  numHead = numText = size = 0;
  return message;
}

//===----------------------------------------------------------------------===//
// Handshakes
//===----------------------------------------------------------------------===//

// The last byte is the version of the protocol.
static constexpr std::string_view magic("tprtjob\1", 8);

/// Copies the next value from `bytes` and removes it.
template <typename T>
static void readNext(std::string_view &bytes, T &value) {
  std::memcpy(&value, bytes.data(), sizeof(value));
  bytes.remove_prefix(sizeof(value));
}

template <typename T>
static void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

/// Whether `bytes` may be decoded. If so, removes the magic.
static bool removeMagic(std::string_view &bytes, size_t numBytes) {
  if (bytes.size() != numBytes || !bytes.starts_with(magic))
    return false;
  bytes.remove_prefix(magic.size());
  return true;
}

std::string Challenge::encode() const {
  std::string bytes(magic);
  append(bytes, nonce);
  return bytes;
}

std::optional<Challenge> Challenge::decode(std::string_view bytes) {
  Challenge challenge;
  if (!removeMagic(bytes, numBytes))
    return std::nullopt;
  readNext(bytes, challenge.nonce);
  return challenge;
}

std::string Hello::encode() const {
  std::string bytes(magic);
  append(bytes, rank);
  append(bytes, worldSize);
  append(bytes, nonce);
  append(bytes, proof);
  return bytes;
}

std::optional<Hello> Hello::decode(std::string_view bytes) {
  Hello hello;
  if (!removeMagic(bytes, numBytes))
    return std::nullopt;
  readNext(bytes, hello.rank);
  readNext(bytes, hello.worldSize);
  readNext(bytes, hello.nonce);
  readNext(bytes, hello.proof);
  return hello;
}

Proof tprt::prove(const std::string &token, bool isHost, const Nonce &challenge,
                  const Hello &hello) {
  std::string said(isHost ? "rank 0" : "rank n");
  append(said, challenge);
  append(said, hello.nonce);
  append(said, hello.rank);
  append(said, hello.worldSize);
  hmac_sha256_ctx context;
  ::hmac_sha256_set_key(&context, token.size(),
                        reinterpret_cast<const uint8_t *>(token.data()));
  ::hmac_sha256_update(&context, said.size(),
                       reinterpret_cast<const uint8_t *>(said.data()));
  Proof proof;
  ::hmac_sha256_digest(&context, proof.size(),
                       reinterpret_cast<uint8_t *>(proof.data()));
  return proof;
}

bool tprt::isEqual(const Proof &a, const Proof &b) {
  return ::memeql_sec(a.data(), b.data(), a.size()) != 0;
}

Nonce tprt::drawNonce() {
  Nonce nonce;
  if (::getentropy(nonce.data(), nonce.size()) != 0)
    throw executionError(std::string("cannot draw random numbers: ") +
                         std::strerror(errno));
  return nonce;
}
