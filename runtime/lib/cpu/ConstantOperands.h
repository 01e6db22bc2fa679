//===- ConstantOperands.h - Operands that keep their values -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_CONSTANTOPERANDS_H
#define TPRT_LIB_CPU_CONSTANTOPERANDS_H

#include "cpu/Tiles.h"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace tprt {

/// Memory that doesn't change.
struct ConstantBlock {
  std::span<const std::byte> bytes;
  /// Null, or returns what the block holds. `bytes` then only name it, and can't
  /// be read.
  std::function<std::shared_ptr<const std::byte>()> read = nullptr;
};

/// The constants of all ranks of a process, and their packed forms, which the
/// ranks share. Several threads may call the functions at a time.
class TPRT_API ConstantOperands {
public:
  /// The packed forms take up to `maxPackedBytes` in all.
  ConstantOperands(std::vector<ConstantBlock> given, int64_t maxPackedBytes);

  bool contain(const void *data) const { return find(data) != blocks.end(); }

  /// A k x n matrix of f32, f16 or bf16, packed for multiplyPacked at the first
  /// call. Null if it isn't constant or there is no room for it.
  template <typename S>
  const S *getPacked(Matrix<const S> b, int64_t k, int64_t n);

  /// Where `data` can be read. A block that only has a name is read at the
  /// first call, and kept.
  const void *getReadable(const void *data);

  int64_t getPackedBytes() const;

private:
  struct Block {
    ConstantBlock given;
    std::once_flag once = {};
    std::shared_ptr<const std::byte> contents = {}; ///< if they have been kept
  };
  struct PackedForm {
    bool hasRoom;
    std::once_flag once = {};
    std::shared_ptr<std::byte> data = {};
  };
  using Key = std::array<int64_t, 5>; ///< address, strides, k, n
  using Blocks = std::map<const std::byte *, Block>;

  Blocks::const_iterator find(const void *data) const;
  PackedForm &getForm(const Key &key, int64_t bytes);

  Blocks blocks; ///< by address
  int64_t maxPackedBytes;
  mutable std::mutex mutex; ///< of the following
  std::map<Key, PackedForm> packed;
  int64_t packedBytes = 0;
};

} // namespace tprt

#endif // TPRT_LIB_CPU_CONSTANTOPERANDS_H
