//===- EventFile.cpp - Scalars of a training for TensorBoard --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EventFile.h"

#include "CommandLine.h"
#include "tprt/File.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#ifdef TP_TENSORBOARD
#include "tensorboard/compat/proto/event.pb.h"
#endif

using namespace tprt;

void EventFile::checkDirectory(const std::string &directory) {
#ifndef TP_TENSORBOARD
  throw UsageError("--tensorboard: this tp-run was built without protobuf, "
                   "which writes the event files; --metrics and --html show "
                   "the same numbers");
#endif
  if (std::filesystem::exists(directory) &&
      !std::filesystem::is_directory(directory))
    throw inputError("--tensorboard: '" + directory + "' isn't a directory");
}

#ifdef TP_TENSORBOARD

using tensorboard::Event;

/// CRC-32C (Castagnoli), by RFC 3720, of each byte.
static constexpr auto kCrcOfByte = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ (sum & 1 ? 0x82f63b78 : 0);
    table[byte] = sum;
  }
  return table;
}();

static constexpr uint32_t getCrc(std::string_view data) {
  uint32_t sum = 0xffffffff;
  for (char byte : data)
    sum = (sum >> 8) ^ kCrcOfByte[(sum ^ uint8_t(byte)) & 0xff];
  return ~sum;
}
static_assert(getCrc("123456789") == 0xe3069283); // the RFC's check value

/// The checksum of a record's part. It is masked, so that the sum of data that
/// contain sums is still a good one.
static uint32_t getMaskedCrc(std::string_view data) {
  uint32_t sum = getCrc(data);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8;
}

/// A little-endian number.
template <typename Number>
static std::string toBytes(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Number); ++i)
    bytes += char(uint8_t(number >> (8 * i)));
  return bytes;
}

static double getWallTime() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// A name that TensorBoard reads ("tfevents"), in whose order files are read.
static std::string makeName() {
  using namespace std::chrono;
  auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch())
                 .count();
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  std::array<char, 40> time;
  std::snprintf(time.data(), time.size(), "%010lld.%06lld",
                static_cast<long long>(now / 1000000),
                static_cast<long long>(now % 1000000));
  return std::string("events.out.tfevents.") + time.data() + "." + host.data() +
         "." + std::to_string(::getpid());
}

EventFile::EventFile(const std::string &directory, int64_t step) {
  NewDirectory made(directory);
  path = (std::filesystem::path(directory) / makeName()).string();
  descriptor = openToWrite(path, O_CREAT | O_EXCL | O_APPEND, path);
  try {
    Event version;
    version.set_wall_time(getWallTime());
    version.set_file_version("brain.Event:2");
    version.mutable_source_metadata()->set_writer("tp-run");
    append(version.SerializeAsString());
    Event start;
    start.set_wall_time(getWallTime());
    start.set_step(step + 1);
    start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    append(start.SerializeAsString());
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

EventFile::~EventFile() { ::close(descriptor); }

void EventFile::write(const StepReport &report,
                      std::optional<int64_t> tokensPerExample) {
  Event event;
  event.set_wall_time(getWallTime());
  event.set_step(report.step);
  auto add = [&](const char *tag, double value) {
    auto *scalar = event.mutable_summary()->add_value();
    scalar->set_tag(tag);
    scalar->set_simple_value(static_cast<float>(value));
  };
  add("loss", report.loss);
  if (report.learningRate)
    add("learning_rate", *report.learningRate);
  if (report.gradNorm)
    add("gradient_norm", *report.gradNorm);
  add(tokensPerExample ? "tokens_per_second" : "examples_per_second",
      report.numExamples * tokensPerExample.value_or(1) / report.seconds);
  append(event.SerializeAsString());
}

void EventFile::append(const std::string &data) {
  std::string length = toBytes<uint64_t>(data.size());
  std::string record = length + toBytes(getMaskedCrc(length)) + data +
                       toBytes(getMaskedCrc(data));
  // Usually one call, so that a reader finds whole records.
  for (std::string_view rest = record; !rest.empty();) {
    ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno != EINTR)
      throw writeError(path, errno);
    rest.remove_prefix(std::max<ssize_t>(written, 0));
  }
}

#else

// checkDirectory() comes first, and throws.
EventFile::EventFile(const std::string &directory, int64_t) {
  checkDirectory(directory);
}
EventFile::~EventFile() = default;
void EventFile::write(const StepReport &, std::optional<int64_t>) {}
void EventFile::append(const std::string &) {}

#endif
