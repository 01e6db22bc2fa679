//===- Stream.h - Order of one rank's work ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank's work runs in the order in which it is enqueued. On the host it runs
// immediately; on a device it runs later, and streams wait for each other by
// events.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_DEVICE_STREAM_H
#define TPRT_LIB_DEVICE_STREAM_H

#include "cpu/GemmOperands.h"
#include "support/SparseRows.h"
#include "tprt/Collective.h"
#include "tprt/CudaOptions.h"

#include <chrono>
#include <functional>

namespace tprt {

/// A point in a stream. Lives as long as the stream, but only refers to the
/// current run, until the next one begins.
struct Event;

/// The operations that collectives consist of.
class Stream {
public:
  virtual ~Stream() = default;

  /// Copies a box; see StridedCopy::copy.
  virtual void copy(const StridedCopy &strided, int64_t elementBytes,
                    const std::byte *src, std::byte *dst) = 0;
  /// Copies a box of whole rows of `rowElements` elements, some of which may be
  /// zero. Returns the bytes that a receiver gets: by default all, and one for
  /// each row; see copyRows() of support/SparseRows.h.
  virtual int64_t copyRows(const StridedCopy &strided, int64_t elementBytes,
                           int64_t rowElements, const std::byte *src,
                           std::byte *dst) {
    copy(strided, elementBytes, src, dst);
    return strided.getNumElements() * elementBytes +
           strided.getNumElements() / rowElements;
  }
  /// Copies `bytes` bytes; the ranges don't overlap.
  virtual void copy(void *dst, const void *src, int64_t bytes) = 0;
  /// See reduce() of cpu/Reduce.h.
  virtual void reduce(Reduction reduction, Dtype dtype,
                      const std::vector<const std::byte *> &operands,
                      const std::vector<std::byte *> &dsts, int64_t count) = 0;
  /// Memory for at least `bytes` bytes, contents undefined; the next call may
  /// return the same memory.
  virtual std::byte *getStaging(int64_t bytes) = 0;

  /// The point after all work that is enqueued here, for others to wait for.
  /// Null if all work is already done.
  virtual Event *announce() = 0;
  /// Work that is enqueued after this call runs after `event`, which may belong
  /// to any stream.
  virtual void waitFor(Event *event) = 0;
};

/// A stream on a device, with the functions that programs call; see abi.h.
class DeviceStream : public Stream {
public:
  using Stream::copy;

  /// Says which program, by its index in the artifact, makes the next calls, or
  /// is replayed next. Before the first call it is program 0.
  virtual void setProgram(size_t index) = 0;

  virtual void launch(int32_t kernel, const tprt_launch_args &args,
                      void *const *arguments) = 0;
  virtual void gemm(const tprt_gemm_args &args,
                    const GemmOperands &operands) = 0;
  virtual void attention(const tprt_attention_args &args, const void *query,
                         const void *key, const void *value, const void *mask,
                         void *output) = 0;
  virtual void attentionGradient(const tprt_attention_gradient_args &args,
                                 const void *query, const void *key,
                                 const void *value, const void *mask,
                                 const void *gradient, void *queryGradient,
                                 void *keyGradient, void *valueGradient) = 0;
  /// The uses by form, in the last run that wasn't replayed.
  virtual std::vector<AttentionUse> getAttentionUses() const = 0;
  virtual GemmUses getGemmUses() const = 0;
  virtual void fill(void *dst, uint64_t pattern, int32_t width,
                    int64_t count) = 0;
  virtual tprt_device_error *getErrorRecord() = 0;

  /// The stream for work that runs beside this stream's. Before a run ends,
  /// this stream waits for the work enqueued there.
  virtual Stream &getCommunication() = 0;

  /// Called before the first call of a run, and after its last.
  virtual void beginRun() = 0;
  virtual void endRun() = 0;

  /// Called while the host waits for the device, with the time that it has
  /// waited; may throw to leave.
  using Poll = std::function<void(std::chrono::steady_clock::duration)>;
  /// Waits until all that is enqueued is done. Throws an execution error when a
  /// kernel has reported an index out of range, or the device has failed.
  virtual void finish(const Poll &poll) = 0;

  /// markTime marks a point of `on`, which is this stream or one beside it, and
  /// returns its index since beginTiming. Once all
  /// enqueued work is done, getTime returns the time of a mark, in nanoseconds
  /// of the host's steady clock.
  virtual void beginTiming() = 0;
  virtual int64_t markTime(Stream &on) = 0;
  virtual int64_t getTime(int64_t mark) = 0;

  /// Between these two calls, work is captured instead of run. This applies to
  /// this stream and to streams that wait for an event that is announced here.
  /// This stream must wait for those streams before endCapture.
  virtual void beginCapture() = 0;
  virtual std::shared_ptr<void> endCapture() = 0;
  /// Enqueues the captured work.
  virtual void replay(void *captured) = 0;
};

/// The stream of a rank whose memory is the host's. All work is done
/// immediately.
class HostStream final : public Stream {
public:
  using Stream::copy;
  void copy(const StridedCopy &strided, int64_t elementBytes,
            const std::byte *src, std::byte *dst) override {
    strided.copy(elementBytes, src, dst);
  }
  int64_t copyRows(const StridedCopy &strided, int64_t elementBytes,
                   int64_t rowElements, const std::byte *src,
                   std::byte *dst) override {
    return tprt::copyRows(strided, elementBytes, rowElements, src, dst);
  }
  void copy(void *dst, const void *src, int64_t bytes) override {
    std::memcpy(dst, src, bytes);
  }
  void reduce(Reduction reduction, Dtype dtype,
              const std::vector<const std::byte *> &operands,
              const std::vector<std::byte *> &dsts, int64_t count) override;
  std::byte *getStaging(int64_t bytes) override;
  Event *announce() override { return nullptr; }
  void waitFor(Event *) override {}

private:
  std::shared_ptr<std::byte> staging;
  int64_t stagingBytes = 0;
};

} // namespace tprt

#endif // TPRT_LIB_DEVICE_STREAM_H
