//===- Connection.cpp - A process and the others of its job ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Connection.h"

#include "comm/Rendezvous.h"
#include "exec/GatherBlocks.h"
#include "tprt/Backend.h"

using namespace tprt;

struct Connection::Impl {
  std::shared_ptr<void> membership; ///< from Backend::join; outlives the others
  Rendezvous rendezvous;
};

Connection::Connection(const Job &job, std::chrono::milliseconds timeout)
    : impl(new Impl{nullptr, Rendezvous(job, timeout)}) {}

Connection::Connection(const Backend &backend, Job job,
                       std::chrono::milliseconds timeout) {
  std::shared_ptr<void> membership;
  if (backend.join) {
    if (std::string missing = backend.explainMissing(); !missing.empty())
      throw inputError(missing);
    membership = backend.join(job, timeout);
  }
  impl.reset(new Impl{std::move(membership), Rendezvous(job, timeout)});
}

Connection::~Connection() = default;

Rendezvous &Connection::getRendezvous() { return impl->rendezvous; }

std::vector<std::string> Connection::exchange(const std::string &mine,
                                              size_t limit) {
  return impl->rendezvous.exchange(mine, limit);
}

std::vector<std::string> Connection::gather(const std::string &mine,
                                            size_t limit) {
  return impl->rendezvous.gather(mine, limit);
}

std::string Connection::broadcast(const std::string &mine, size_t limit) {
  return impl->rendezvous.broadcast(mine, limit);
}

void Connection::abort(const std::string &reason, ErrorKind kind) noexcept {
  impl->rendezvous.abort(reason, kind);
}

bool Connection::waitForRankZero(std::chrono::milliseconds limit) noexcept {
  return impl->rendezvous.waitForRankZero(limit);
}

void Connection::waitForOthers(std::chrono::milliseconds limit) noexcept {
  impl->rendezvous.waitForOthers(limit);
}

static const TensorInfo &getParameter(const Manifest &manifest,
                                      const std::string &name) {
  for (const TensorInfo &info : manifest.parameters)
    if (info.name == name)
      return info;
  throw inputError("the program has no parameter '" + name + "'");
}

/// This rank's contribution to a parameter.
static std::string packBlock(const Session &session, const TensorInfo &info,
                             int64_t rank) {
  if (!contributes(info, rank))
    return "";
  Tensor block = session.getParameterBlock(info.name, rank);
  return {reinterpret_cast<const char *>(block.data.get()),
          static_cast<size_t>(block.getNumBytes())};
}

void Connection::withParameters(const Session &session,
                                const UseParameters &work) {
  Rendezvous &rendezvous = impl->rendezvous;
  const Manifest &manifest = session.getManifest();
  int64_t rank = rendezvous.getJob().rank;
  size_t maxName = 0;
  for (const TensorInfo &info : manifest.parameters)
    maxName = std::max(maxName, info.name.size());
  if (rank > 0) { // until the name is empty
    for (std::string name; !(name = rendezvous.broadcast("", maxName)).empty();)
      rendezvous.gather(packBlock(session, getParameter(manifest, name), rank),
                        /*limit=*/0);
    return;
  }
  std::mutex mutex;
  try {
    work([&](const std::string &name) {
      const TensorInfo &info = getParameter(manifest, name);
      std::lock_guard<std::mutex> lock(mutex);
      rendezvous.broadcast(name, maxName);
      return unpackBlocks(info,
                          rendezvous.gather(packBlock(session, info, rank),
                                            getLargestBlock(info)));
    });
  } catch (const std::exception &error) {
    rendezvous.abort("rank 0 failed: " + std::string(error.what()));
    throw;
  }
  rendezvous.broadcast("", maxName);
}
