//===- AttentionCase.h - Attention on a device and on the host --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_CUDA_ATTENTIONCASE_H
#define TPRT_UNITTESTS_CUDA_ATTENTIONCASE_H

#include "LoneRank.h"
#include "TestUtils.h"
#include "cuda/CudaDevice.h"

#include <random>

namespace tprt::test {

/// Two sequences, whose heads share keys in groups.
struct AttentionCase {
  Dtype dtype = Dtype::BF16;
  int64_t rows = 9, columns = 16, depth = 8, width = 16;
  bool causal = false;
  int32_t mask = TPRT_NO_MASK;
  bool maskPerRow = true, maskPerHead = false;
  /// Rows are hidden by the lowest number, not by -inf: they see all alike.
  bool hidesByNumbers = false;
  int64_t keyHeads = 2, group = 2;
  bool isHeadMajor =
      false; ///< a head's rows lie side by side, else a row's heads

  tprt_attention_gradient_args makeArgs() const;
};

/// An operand on the host and on the device.
class AttentionOperand {
public:
  AttentionOperand(Device &device, Dtype dtype, int64_t count,
                   std::mt19937 &generator);

  /// Makes a mask hide every third row whole, and some elements of the others,
  /// by adding `lowest`. Rows begin behind `offset` elements.
  void hideRows(Device &device, int64_t columns, int64_t offset, float lowest);

  /// What the device has, beside what the host has.
  void expectNear(Device &device, double tolerance, const char *what) const;

  std::shared_ptr<std::byte> host, data;

private:
  Dtype dtype;
  int64_t count;
};

/// The same call on the host and on a device.
class AttentionRunner {
public:
  explicit AttentionRunner(AttentionLibrary library = AttentionLibrary::Auto)
      : device(cuda::makeDevice({&code}, {.attention = library})) {}

  void checkForward(const AttentionCase &c);
  void checkGradient(const AttentionCase &c);

  /// What is asked of the device; operands of the next check begin `offset`
  /// elements behind an aligned address.
  int64_t offset = 0;
  tprt_device_code code = {};
  std::shared_ptr<Device> device;
  LoneRank host;

  DeviceStream &getStream() { return *device->getStream(0); }
  /// Of the last check.
  AttentionUse getUse() { return getStream().getAttentionUses().at(0); }
};

} // namespace tprt::test

#endif // TPRT_UNITTESTS_CUDA_ATTENTIONCASE_H
