//===- HostBackend.cpp - `local` on the host -----------------------------===//

#include "Backend.h"

using namespace tprt;

const int test::numRounds = 2000;

std::vector<std::unique_ptr<Communicator>>
test::makeCommunicators(const Manifest &manifest,
                        const CommunicatorOptions &options) {
  return makeLocalCommunicators(manifest, options);
}

int64_t test::runCollective(Communicator &communicator, int64_t id,
                            const std::byte *src, int64_t, std::byte *dst,
                            int64_t) {
  return communicator.run(id, src, dst);
}
