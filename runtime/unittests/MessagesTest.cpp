//===- MessagesTest.cpp - Messages between processes of a job -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/Messages.h"
#include "TestUtils.h"
#include "support/Checksum.h"

#include <random>

using namespace tprt;
using namespace tprt::test;
using Progress = MessageReader::Progress;

namespace {

/// Hands out bytes in pieces of random sizes, with pauses.
class Pieces {
public:
  Pieces(std::string bytes, unsigned seed)
      : bytes(std::move(bytes)), random(seed) {}

  ptrdiff_t read(void *data, size_t count) {
    if (random() % 3 == 0)
      return -1;
    count = std::min({count, bytes.size() - at, size_t(1 + random() % 7)});
    std::memcpy(data, bytes.data() + at, count);
    at += count;
    return count;
  }
  size_t getNumRead() const { return at; }

private:
  std::string bytes;
  size_t at = 0;
  std::mt19937 random;
};

MessageReader makeReader(Pieces &pieces) {
  return MessageReader(
      [&](void *data, size_t bytes) { return pieces.read(data, bytes); });
}

template <typename Step>
Progress finish(Step step) {
  for (;;)
    if (Progress progress = step(); progress != Progress::Waits)
      return progress;
}

} // namespace

TEST(Messages, ComeInAnyPieces) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::string first(seed, 'x');
    Pieces pieces(encodeHead(MessageKind::Alive, 0) +
                      encodeHead(MessageKind::Data, first.size()) + first +
                      encodeHead(MessageKind::Abort, 3) + "why" +
                      encodeHead(MessageKind::Refuse, 2) + "no" +
                      encodeHead(MessageKind::Leave, 0) + "rest",
                  seed);
    MessageReader reader = makeReader(pieces);
    auto next = [&](MessageKind kind) {
      EXPECT_EQ(finish([&] { return reader.readHead(); }), Progress::Complete);
      EXPECT_EQ(reader.getKind(), kind);
      EXPECT_EQ(finish([&] { return reader.readText(100); }),
                Progress::Complete);
      return reader.take().text;
    };
    EXPECT_EQ(next(MessageKind::Alive), "");
    EXPECT_EQ(next(MessageKind::Data), first);
    EXPECT_EQ(next(MessageKind::Abort), "why");
    EXPECT_EQ(next(MessageKind::Refuse), "no");
    EXPECT_EQ(next(MessageKind::Leave), "");
    // What follows is left where it is.
    EXPECT_EQ(pieces.getNumRead(), 1 + 9 + first.size() + 9 + 3 + 9 + 2 + 1);
  }
}

/// Texts with checksums, and those without, come from the same connection.
TEST(Messages, AreChecked) {
  auto seal = [](MessageKind kind, const std::string &text) {
    return encodeHead(kind, text.size(),
                      updateCrc(0, text.data(), text.size())) +
           text;
  };
  std::string data = seal(MessageKind::Data, "hello");
  EXPECT_EQ(data.size(), 13u + 5);
  for (unsigned seed = 0; seed < 20; ++seed) {
    Pieces pieces(data + seal(MessageKind::Data, "") +
                      encodeHead(MessageKind::Data, 2) + "me" +
                      seal(MessageKind::Abort, "why") +
                      encodeHead(MessageKind::Leave, 0),
                  seed);
    MessageReader reader = makeReader(pieces);
    for (const char *text : {"hello", "", "me", "why", ""}) {
      EXPECT_EQ(finish([&] { return reader.readHead(); }), Progress::Complete);
      EXPECT_EQ(finish([&] { return reader.readText(5); }), Progress::Complete);
      EXPECT_EQ(reader.take().text, text);
    }
  }
  // Of the size, some changes leave a message that isn't complete.
  for (size_t bit = 0; bit < 8 * data.size(); ++bit) {
    std::string other = data;
    other[bit / 8] ^= 1 << bit % 8;
    Pieces pieces(other, bit);
    MessageReader reader = makeReader(pieces);
    try {
      if (finish([&] { return reader.readHead(); }) == Progress::Complete &&
          finish([&] { return reader.readText(100); }) == Progress::Complete &&
          bit >= 8) // without its mark, a checksum belongs to the text
        ADD_FAILURE() << bit;
      EXPECT_LT(bit, 9 * 8u);
    } catch (const Error &error) {
      if (bit >= 9 * 8)
        EXPECT_STREQ(error.what(), "a message of 5 bytes arrives with another "
                                   "CRC-32 than it was sent with");
    }
  }
}

/// At whatever byte a message ends, that is noticed.
TEST(Messages, EndEarly) {
  std::string whole = encodeHead(MessageKind::Data, 5) + "hello";
  for (size_t size = 0; size < whole.size(); ++size) {
    Pieces pieces(whole.substr(0, size), size);
    MessageReader reader = makeReader(pieces);
    Progress head = finish([&] { return reader.readHead(); });
    EXPECT_EQ(head, size < 9 ? Progress::Ended : Progress::Complete);
    if (head == Progress::Complete)
      EXPECT_EQ(finish([&] { return reader.readText(5); }), Progress::Ended);
  }
}

TEST(Messages, OtherBytesAreRefused) {
  for (int byte = 0; byte < 256; ++byte) {
    if (std::strchr("DARLHdar", byte) && byte)
      continue;
    Pieces pieces(std::string(1, static_cast<char>(byte)), 1);
    MessageReader reader = makeReader(pieces);
    EXPECT_EQ(errorOf([&] { finish([&] { return reader.readHead(); }); }),
              "the bytes that arrive aren't a message");
  }
}

/// A claimed size takes no memory.
TEST(Messages, TakeMemoryAsTheyArrive) {
  for (uint64_t size : {uint64_t(11), uint64_t(1) << 33, ~uint64_t(0)}) {
    Pieces pieces(encodeHead(MessageKind::Data, size) + "hello", 1);
    MessageReader reader = makeReader(pieces);
    ASSERT_EQ(finish([&] { return reader.readHead(); }), Progress::Complete);
    EXPECT_EQ(errorOf([&] { reader.readText(10); }),
              "a message has " + std::to_string(size) +
                  " bytes where at most 10 are expected");
    // Where it is allowed, memory follows what is there.
    EXPECT_EQ(finish([&] { return reader.readText(size); }), Progress::Ended);
  }
}

TEST(Handshake, DecodesWhatItEncodes) {
  Hello hello{3, 4, drawNonce()};
  std::string token(32, 't');
  Challenge challenge{drawNonce()};
  hello.proof = prove(token, false, challenge.nonce, hello);
  std::string bytes = hello.encode();
  ASSERT_EQ(bytes.size(), Hello::numBytes);
  ASSERT_EQ(challenge.encode().size(), Challenge::numBytes);
  EXPECT_EQ(Challenge::decode(challenge.encode())->nonce, challenge.nonce);
  std::optional<Hello> decoded = Hello::decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(
      isEqual(decoded->proof, prove(token, false, challenge.nonce, *decoded)));
  EXPECT_FALSE(
      isEqual(decoded->proof, prove(token, true, challenge.nonce, *decoded)));
  // No byte can be another one.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] ^= 1;
    std::optional<Hello> forged = Hello::decode(other);
    EXPECT_FALSE(
        forged &&
        isEqual(forged->proof, prove(token, false, challenge.nonce, *forged)))
        << i;
  }
  // Nor is it one for another challenge.
  EXPECT_FALSE(
      isEqual(decoded->proof, prove(token, false, drawNonce(), *decoded)));
}
