//===- Device.h - Devices of ranks ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_DEVICE_DEVICE_H
#define TPRT_LIB_DEVICE_DEVICE_H

#include "device/Stream.h"

namespace tprt {

/// The memory that a program's pointers point to, for all ranks of this
/// process, and the functions to fill and read it.
class Device {
public:
  virtual ~Device() = default;

  /// Whether programs can read the host's memory.
  virtual bool sharesHostMemory() const = 0;

  /// Uninitialized memory, aligned as programs expect it. Throws an execution
  /// error when memory runs out.
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes) = 0;

  /// Writes `block` of `tensor`, which is on the host, to the dense block at
  /// `dst`. `dtype` is the tensor's, or bf16 if that is f32.
  virtual void write(const Tensor &tensor, const Block &block, Dtype dtype,
                     std::byte *dst) = 0;
  /// Sets `count` elements at `dst`.
  virtual void fill(Dtype dtype, double value, std::byte *dst,
                    int64_t count) = 0;
  /// Copies the dense block at `src` to `block` of the host's tensor of shape
  /// `shape` at `dst`.
  virtual void read(const std::byte *src, Dtype dtype, const Shape &shape,
                    const Block &block, std::byte *dst) = 0;

  /// The stream of a rank of this process; null on the host, where programs
  /// call functions.
  virtual DeviceStream *getStream(int64_t rank) = 0;
  /// Drops the streams after a failure in the middle of a run.
  virtual void dropStreams() = 0;
};

/// The host itself.
class HostDevice final : public Device {
public:
  bool sharesHostMemory() const override { return true; }
  std::shared_ptr<std::byte> allocate(int64_t bytes) override {
    return allocateAligned(bytes);
  }
  void write(const Tensor &tensor, const Block &block, Dtype dtype,
             std::byte *dst) override;
  void fill(Dtype dtype, double value, std::byte *dst, int64_t count) override;
  void read(const std::byte *src, Dtype dtype, const Shape &shape,
            const Block &block, std::byte *dst) override {
    writeBlock(shape, block, byteWidth(dtype), src, dst);
  }
  DeviceStream *getStream(int64_t) override { return nullptr; }
  void dropStreams() override {}
};

/// Writes `value` to `count` elements at `data`, in the host's memory.
void fillElements(Dtype dtype, double value, std::byte *data, int64_t count);

} // namespace tprt

#endif // TPRT_LIB_DEVICE_DEVICE_H
