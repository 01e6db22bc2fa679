//===- MessagesFuzzer.cpp - Any bytes from another process of a job -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first byte says how many bytes arrive at once, and how long the text of a
// message may be.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"

#include "comm/Messages.h"

#include <algorithm>
#include <cstring>

using namespace tprt;

static void readMessages(std::string_view bytes, size_t atOnce,
                         uint64_t limit) {
  bool isAwaited = false; // every other look finds nothing
  MessageReader reader([&](void *data, size_t wanted) -> ptrdiff_t {
    isAwaited = !isAwaited;
    if (isAwaited)
      return -1;
    size_t count = std::min({wanted, atOnce, bytes.size()});
    std::memcpy(data, bytes.data(), count);
    bytes.remove_prefix(count);
    return count;
  });
  using Progress = MessageReader::Progress;
  for (;;) {
    Progress progress;
    while ((progress = reader.readHead()) == Progress::Waits)
      ;
    if (progress == Progress::Ended)
      return;
    while ((progress = reader.readText(limit)) == Progress::Waits)
      ;
    if (progress == Progress::Ended)
      return;
    if (reader.take().text.size() > limit)
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes = fuzz::asText(data, size);
  if (bytes.empty())
    return 0;
  unsigned char first = bytes[0];
  bytes.remove_prefix(1);
  try {
    readMessages(bytes, 1 + first % 16, uint64_t(1) << (first / 16));
  } catch (const Error &error) {
    if (error.getKind() != ErrorKind::Execution)
      std::abort();
  }
  if (auto challenge = Challenge::decode(bytes.substr(0, Challenge::numBytes)))
    if (challenge->encode() != bytes.substr(0, Challenge::numBytes))
      std::abort();
  if (auto hello = Hello::decode(bytes.substr(0, Hello::numBytes)))
    if (hello->encode() != bytes.substr(0, Hello::numBytes))
      std::abort();
  return 0;
}
