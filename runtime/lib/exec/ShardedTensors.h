//===- ShardedTensors.h - The ranks' blocks of tensors ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_SHARDEDTENSORS_H
#define TPRT_LIB_EXEC_SHARDEDTENSORS_H

#include "device/Device.h"
#include "tprt/Manifest.h"

#include <functional>

namespace tprt {

/// Chooses a subset of `ranks` whose shards together cover the shards of all of
/// them. Replicas hold the same bits, so one of each is enough.
std::vector<int64_t> chooseSources(const TensorInfo &info,
                                   const std::vector<int64_t> &ranks);

/// The shards of a list of tensors that the ranks of this process hold. Ranks
/// with equal shards share their memory. If the device shares the host's
/// memory, a shard may lie in the global tensor's memory. A shard that can't lie
/// there, of a tensor that programs use only as a right operand, isn't copied:
/// its address only names it. Each rank has its own shards of updated
/// parameters. Those, and all shards on other devices, keep their addresses when
/// a new value is set.
class ShardedTensors {
public:
  ShardedTensors() = default;
  /// `infos` must outlive this object. `ranks` are those of this process,
  /// ascending. Every tensor must then be set or filled.
  ShardedTensors(const std::vector<TensorInfo> &infos, int64_t worldSize,
                 std::vector<int64_t> ranks, std::shared_ptr<Device> device);

  /// Shards `tensor` as tensor `index`. It has that tensor's shape and its
  /// dtype, or f32 for bf16.
  void set(size_t index, const Tensor &tensor);
  /// The same for `rank` alone, of which `block` is the shard.
  void setBlock(size_t index, int64_t rank, const Tensor &block);
  /// Sets every element of tensor `index`.
  void fill(size_t index, double value);

  /// The addresses of a rank's shards, in the order of the list, as they are
  /// passed to a program. It writes only to those of updated parameters.
  void *const *getPointers(int64_t rank) const { return pointers[rank].data(); }

  /// A function that reads the shard of tensor `index` on `rank` anew; null if
  /// the shard is where its address says.
  std::function<std::shared_ptr<const std::byte>()>
  getReader(size_t index, int64_t rank) const;

  /// A copy of the global value of tensor `index`; nullopt if the shards of
  /// this process don't cover it.
  std::optional<Tensor> gather(size_t index) const;

  /// A copy of the shard of tensor `index` on `rank`, a rank of this process.
  Tensor getBlock(size_t index, int64_t rank) const;

  /// Bytes that were copied because they couldn't be used in place.
  int64_t getCopiedBytes() const { return copiedBytes; }

private:
  template <typename SetBlock>
  void setBlocks(size_t index, SetBlock setBlock);
  /// A part of a tensor, which is a rank's shard.
  struct Part {
    Tensor tensor;
    Block block;
  };
  void place(size_t index, int64_t rank, const Part &part);
  void hold(size_t index, int64_t rank, std::shared_ptr<const std::byte> data);
  std::shared_ptr<const std::byte> getContents(size_t index,
                                               int64_t rank) const;
  std::byte *getOwnBlock(size_t index, int64_t rank);
  int64_t getFirstSharer(const TensorInfo &info, int64_t rank) const;

  const std::vector<TensorInfo> *infos = nullptr;
  std::vector<int64_t> ranks;
  std::shared_ptr<Device> device;
  std::vector<std::vector<void *>> pointers; // [rank][tensor]
  std::vector<std::vector<std::shared_ptr<const std::byte>>>
      memory; // [tensor][rank]
  /// Where shards are that weren't copied, by the shard's address.
  std::map<const void *, Part> uncopied;
  int64_t copiedBytes = 0;
};

} // namespace tprt

#endif // TPRT_LIB_EXEC_SHARDEDTENSORS_H
