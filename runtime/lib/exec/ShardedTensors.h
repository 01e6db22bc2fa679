//===- ShardedTensors.h - The ranks' blocks of tensors ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_SHARDEDTENSORS_H
#define TPRT_LIB_EXEC_SHARDEDTENSORS_H

#include "device/Device.h"
#include "tprt/Manifest.h"

namespace tprt {

/// Of `ranks`, those whose blocks together are what all of them have: replicas
/// hold the same bits, and one of each is enough.
std::vector<int64_t> chooseSources(const TensorInfo &info,
                                   const std::vector<int64_t> &ranks);

/// The local blocks of a list of tensors, of the ranks of this process. Ranks
/// with the same block share its memory, which may be that of the whole tensor
/// where a device shares the host's memory. Blocks of updated parameters are
/// each rank's own. These, and blocks on other devices, stay where they are
/// when a new value is set.
class ShardedTensors {
public:
  ShardedTensors() = default;
  /// `infos` outlives this; `ranks` are those of this process, ascending. Every
  /// tensor is still to be set or filled.
  ShardedTensors(const std::vector<TensorInfo> &infos, int64_t worldSize,
                 std::vector<int64_t> ranks, std::shared_ptr<Device> device);

  /// Cuts `tensor`, which has the shape of tensor `index`, and its dtype, or
  /// f32 for bf16.
  void set(size_t index, const Tensor &tensor);
  /// Sets every element of tensor `index`.
  void fill(size_t index, double value);

  /// What a program gets: the addresses of a rank's blocks, in the order of the
  /// list. It writes to those of updated parameters only.
  void *const *getPointers(int64_t rank) const { return pointers[rank].data(); }

  /// The whole value of tensor `index`, a copy; nothing where the blocks of
  /// this process don't cover it.
  std::optional<Tensor> gather(size_t index) const;

  /// What `rank`, one of this process's, has of tensor `index`, a copy.
  Tensor getBlock(size_t index, int64_t rank) const;

  /// Bytes that were copied because they couldn't be used in place.
  int64_t getCopiedBytes() const { return copiedBytes; }

private:
  template <typename SetBlock>
  void setBlocks(size_t index, SetBlock setBlock);
  void place(size_t index, int64_t rank, const Tensor &tensor);
  void hold(size_t index, int64_t rank, std::shared_ptr<const std::byte> data);
  std::byte *getOwnBlock(size_t index, int64_t rank);
  int64_t getFirstSharer(const TensorInfo &info, int64_t rank) const;

  const std::vector<TensorInfo> *infos = nullptr;
  std::vector<int64_t> ranks;
  std::shared_ptr<Device> device;
  std::vector<std::vector<void *>> pointers; // [rank][tensor]
  std::vector<std::vector<std::shared_ptr<const std::byte>>>
      memory; // [tensor][rank]
  int64_t copiedBytes = 0;
};

} // namespace tprt

#endif // TPRT_LIB_EXEC_SHARDEDTENSORS_H
