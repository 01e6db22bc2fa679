//===- LoneRank.h - A rank that communicates with nobody --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_LONERANK_H
#define TPRT_UNITTESTS_LONERANK_H

#include "exec/Rank.h"

namespace tprt::test {

/// What the functions of the ABI take where they compute.
class LoneRank {
  struct NoCommunicator : Communicator {
    int64_t getRank() const override { return 0; }
    int64_t run(int64_t, const std::byte *, std::byte *) override { return 0; }
    void barrier() override {}
    void abort(const std::string &) override {}
    void finish() override {}
  };
  NoCommunicator communicator;
  Manifest manifest;

public:
  tprt_rank rank{manifest, communicator};
};

} // namespace tprt::test

#endif // TPRT_UNITTESTS_LONERANK_H
