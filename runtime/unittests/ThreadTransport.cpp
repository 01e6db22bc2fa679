//===- ThreadTransport.cpp - A transport between threads ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadTransport.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

using namespace tprt;

namespace {

/// The messages that are under way.
struct Mail {
  using Path = std::tuple<std::vector<int64_t>, int64_t, int64_t>;

  std::mutex mutex;
  std::condition_variable changed;
  /// By group, sender and receiver.
  std::map<Path, std::deque<std::vector<std::byte>>> messages;
  std::string failure;
  test::ChangeMessage change; ///< null: none
};

class ThreadTransport final : public Transport {
public:
  ThreadTransport(std::shared_ptr<Mail> mail, int64_t rank, int64_t worldSize)
      : mail(std::move(mail)), rank(rank), worldSize(worldSize) {}

  int64_t getRank() const override { return rank; }
  int64_t getWorldSize() const override { return worldSize; }
  void connect(const std::vector<std::vector<int64_t>> &all) override {
    groups = all;
  }
  void allToAll(size_t group, const std::byte *sent,
                const std::vector<int64_t> &sentBytes, std::byte *received,
                const std::vector<int64_t> &receivedBytes) override;
  void abort(const std::string &reason) override {
    std::lock_guard lock(mail->mutex);
    mail->failure = reason;
    mail->changed.notify_all();
  }

private:
  std::shared_ptr<Mail> mail;
  const int64_t rank, worldSize;
  std::vector<std::vector<int64_t>> groups;
};

} // namespace

void ThreadTransport::allToAll(size_t group, const std::byte *sent,
                               const std::vector<int64_t> &sentBytes,
                               std::byte *received,
                               const std::vector<int64_t> &receivedBytes) {
  const std::vector<int64_t> &members = groups.at(group);
  std::unique_lock lock(mail->mutex);
  for (size_t i = 0; i < members.size(); ++i) {
    std::vector<std::byte> message(sent, sent + sentBytes[i]);
    if (mail->change && members[i] != rank)
      mail->change(rank, members[i], message);
    mail->messages[{members, rank, members[i]}].push_back(std::move(message));
    sent += sentBytes[i];
  }
  mail->changed.notify_all();
  for (size_t i = 0; i < members.size(); ++i) {
    auto &queue = mail->messages[{members, members[i], rank}];
    mail->changed.wait(
        lock, [&] { return !queue.empty() || !mail->failure.empty(); });
    if (queue.empty())
      throw AbortedError(mail->failure);
    if (static_cast<int64_t>(queue.front().size()) != receivedBytes[i])
      throw executionError("a message has another size");
    received = std::copy(queue.front().begin(), queue.front().end(), received);
    queue.pop_front();
  }
}

std::vector<std::shared_ptr<Transport>>
test::makeThreadTransports(int64_t worldSize, ChangeMessage change) {
  auto mail = std::make_shared<Mail>();
  mail->change = std::move(change);
  std::vector<std::shared_ptr<Transport>> transports;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    transports.push_back(
        std::make_shared<ThreadTransport>(mail, rank, worldSize));
  return transports;
}

const Backend &test::getTransportBackend() {
  static const Backend backend = {
      .name = "transport",
      .description = "each has a transport between threads",
      .needsProcesses = false,
      .explainMissing = [] { return std::string(); },
      .makeCommunicators =
          [](const Manifest &manifest, const CommunicatorOptions &options,
             Rendezvous *) {
            std::vector<std::unique_ptr<Communicator>> all;
            for (const auto &transport :
                 makeThreadTransports(manifest.worldSize))
              all.push_back(
                  std::move(makeFactory(transport)(manifest, options).front()));
            return all;
          }};
  return backend;
}
