//===- OutputsOfRank.h - The outputs of one rank ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_OUTPUTSOFRANK_H
#define TPRT_LIB_EXEC_OUTPUTSOFRANK_H

#include "device/Device.h"
#include "tprt/Communicator.h"
#include "tprt/Session.h"

namespace tprt {

/// The outputs of one rank, in its device's memory.
class OutputsOfRank final : public RankOutputs {
public:
  OutputsOfRank(Device &device, Communicator &communicator,
                const Program &program, const std::vector<void *> &blocks)
      : device(device), communicator(communicator), program(program),
        blocks(blocks) {}

  int64_t getRank() const override { return communicator.getRank(); }
  const std::byte *read(size_t index, int64_t first, int64_t count) override;
  std::vector<std::string> exchange(const std::string &mine,
                                    size_t limit) override {
    return communicator.exchange(mine, limit);
  }
  /// The global outputs, from the blocks of all ranks, which all call it. Of
  /// those in `kept` only this rank's blocks.
  TensorMap gather(const std::set<std::string> &kept);

private:
  Device &device;
  Communicator &communicator;
  const Program &program;
  const std::vector<void *> &blocks;
  std::vector<std::byte> host; ///< what has been read
};

} // namespace tprt

#endif // TPRT_LIB_EXEC_OUTPUTSOFRANK_H
