//===- ConstantOperands.cpp - Operands that keep their values -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/ConstantOperands.h"

#include "tprt/Tensor.h"

using namespace tprt;

ConstantOperands::ConstantOperands(std::vector<ConstantBlock> given,
                                   int64_t maxPackedBytes)
    : maxPackedBytes(maxPackedBytes) {
  // Ranks may share blocks, and a block may begin with another one.
  for (ConstantBlock &block : given)
    if (!block.bytes.empty())
      if (ConstantBlock &known = blocks[block.bytes.data()].given;
          block.bytes.size() > known.bytes.size())
        known = std::move(block);
}

ConstantOperands::Blocks::const_iterator
ConstantOperands::find(const void *data) const {
  auto *byte = static_cast<const std::byte *>(data);
  auto next = blocks.upper_bound(byte);
  if (next == blocks.begin())
    return blocks.end();
  auto found = std::prev(next);
  return byte < found->first + found->second.given.bytes.size() ? found
                                                                : blocks.end();
}

ConstantOperands::PackedForm &ConstantOperands::getForm(const Key &key,
                                                        int64_t bytes) {
  std::lock_guard lock(mutex);
  auto [entry, isNew] = packed.try_emplace(key);
  PackedForm &form = entry->second;
  if (isNew && (form.hasRoom = bytes <= maxPackedBytes - packedBytes))
    packedBytes += bytes;
  return form;
}

template <typename S>
const S *ConstantOperands::getPacked(Matrix<const S> b, int64_t k, int64_t n) {
  auto found = find(b.data);
  if (found == blocks.end())
    return nullptr;
  int64_t bytes = getPackedSize<S>(k, n) * sizeof(S);
  PackedForm &form =
      getForm({reinterpret_cast<intptr_t>(b.data), b.row, b.col, k, n}, bytes);
  if (!form.hasRoom)
    return nullptr;
  std::call_once(form.once, [&] {
    const auto &[begin, block] = *found;
    std::shared_ptr<const std::byte> contents; // until they are packed
    Matrix<const S> source = b;
    if (block.given.read) {
      contents = block.given.read();
      source.data = reinterpret_cast<const S *>(
          contents.get() +
          (reinterpret_cast<const std::byte *>(b.data) - begin));
    }
    std::shared_ptr<std::byte> data = allocateAligned(bytes);
    pack<S>(source, k, n, reinterpret_cast<S *>(data.get()));
    form.data = std::move(data);
  });
  return reinterpret_cast<const S *>(form.data.get());
}

const void *ConstantOperands::getReadable(const void *data) {
  auto found = find(data);
  if (found == blocks.end() || !found->second.given.read)
    return data;
  Block &block = blocks.find(found->first)->second;
  std::call_once(block.once, [&] { block.contents = block.given.read(); });
  return block.contents.get() +
         (static_cast<const std::byte *>(data) - found->first);
}

int64_t ConstantOperands::getPackedBytes() const {
  std::lock_guard lock(mutex);
  return packedBytes;
}

template const float *ConstantOperands::getPacked(Matrix<const float>, int64_t,
                                                  int64_t);
template const Half *ConstantOperands::getPacked(Matrix<const Half>, int64_t,
                                                 int64_t);
template const BFloat16 *ConstantOperands::getPacked(Matrix<const BFloat16>,
                                                     int64_t, int64_t);
