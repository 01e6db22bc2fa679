//===- DeviceBackend.h - Where a rank's collectives are tested --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_CUDA_DEVICEBACKEND_H
#define TPRT_UNITTESTS_CUDA_DEVICEBACKEND_H

#include <cstdint>

namespace tprt {
class Device;
}

namespace tprt::test {

/// The fake device of a rank, without kernels; each backend has its own.
Device &getDevice(int64_t rank);

} // namespace tprt::test

#endif // TPRT_UNITTESTS_CUDA_DEVICEBACKEND_H
