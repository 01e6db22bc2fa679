//===- Transport.cpp - Ranks that are processes on the host ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Transport.h"

#include "comm/ExchangeCommunicator.h"

using namespace tprt;

Transport::~Transport() = default;

namespace {

/// Exchanges of a transport are over when they have been started.
class TransportExchanger final : public Exchanger {
public:
  explicit TransportExchanger(std::shared_ptr<Transport> transport)
      : transport(std::move(transport)) {}

  int64_t getRank() const override { return transport->getRank(); }
  int64_t getWorldSize() const override { return transport->getWorldSize(); }
  int64_t getNumLocalRanks() const override { return getWorldSize(); }
  void connect(const std::vector<std::vector<int64_t>> &groups) override {
    transport->connect(groups);
  }
  size_t start(const Exchange &exchange) override {
    transport->allToAll(exchange.group, exchange.sent, exchange.sentBytes,
                        exchange.received, exchange.receivedBytes);
    return 0;
  }
  bool test(size_t) override { return true; }
  std::vector<int64_t> getAwaited(size_t) override { return {}; }
  std::string describeStopped() const override { return ""; }
  void poll() override {}
  void abort(const std::string &reason) override { transport->abort(reason); }
  void setActivity(std::function<std::string()>) override {}

private:
  std::shared_ptr<Transport> transport;
};

} // namespace

CommunicatorFactory tprt::makeFactory(std::shared_ptr<Transport> transport) {
  return [transport = std::move(transport)](
             const Manifest &manifest, const CommunicatorOptions &options) {
    if (manifest.isForCuda)
      throw inputError("the program is for CUDA devices, and its ranks "
                       "exchange data of the host's memory");
    if (transport->getWorldSize() != manifest.worldSize)
      throw inputError("the program has " + std::to_string(manifest.worldSize) +
                       " ranks, but there are " +
                       std::to_string(transport->getWorldSize()) +
                       " processes");
    std::vector<std::unique_ptr<Communicator>> hosted;
    hosted.push_back(std::make_unique<ExchangeCommunicator>(
        manifest, options, std::make_unique<TransportExchanger>(transport),
        /*description=*/""));
    return hosted;
  };
}
