//===- CudaStream.h - One rank's stream on a CUDA device --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CUDASTREAM_H
#define TPRT_LIB_CUDA_CUDASTREAM_H

#include "cuda/Context.h"
#include "cuda/CudaAttention.h"
#include "cuda/CudaGemm.h"
#include "cuda/OwnKernels.h"

#include <deque>

namespace tprt::cuda {

/// The kernels of a program.
struct ProgramKernels {
  ProgramKernels(const ContextPtr &context, const tprt_device_code &code);

  const tprt_device_code &code;
  std::vector<Kernel *> kernels; ///< by tprt_device_code::kernels

private:
  std::unique_ptr<Module> module; ///< null if there are no kernels
};

/// The common state of a device's streams.
struct DeviceState {
  DeviceState(ContextPtr context,
              const std::vector<const tprt_device_code *> &codes,
              const CudaOptions &options, const GemmOptions &gemm,
              bool mayMeasure);

  const ContextPtr context;
  const CudaOptions options;
  std::vector<ProgramKernels> programs;
  Kernels own;
  GemmAlgorithms algorithms;

  /// Held by each call that enqueues. While a run is captured, only one of
  /// them goes on at a time: the ranks' threads all add to one graph, which the
  /// driver doesn't lock. At other times it holds nothing.
  std::unique_lock<std::recursive_mutex> lockCapture() {
    using Lock = std::unique_lock<std::recursive_mutex>;
    return isCapturing ? Lock(captureMutex) : Lock();
  }
  /// Set while no other thread enqueues.
  std::atomic<bool> isCapturing{false};

private:
  std::recursive_mutex captureMutex; ///< operations use each other
};

/// A run that was captured from streams that wait for each other.
class Graph {
public:
  Graph(ContextPtr context, CUgraph graph);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  CUgraphExec get() const { return executable; }

private:
  ContextPtr context;
  CUgraphExec executable = nullptr;
};

class CudaStream final : public DeviceStream {
public:
  using Stream::copy;

  explicit CudaStream(std::shared_ptr<DeviceState> state);
  ~CudaStream() override;

  void copy(const StridedCopy &strided, int64_t elementBytes,
            const std::byte *src, std::byte *dst) override;
  void copy(void *dst, const void *src, int64_t bytes) override;
  void reduce(Reduction reduction, Dtype dtype,
              const std::vector<const std::byte *> &operands,
              const std::vector<std::byte *> &dsts, int64_t count) override;
  std::byte *getStaging(int64_t bytes) override;
  Event *announce() override;
  void waitFor(Event *event) override;

  void setProgram(size_t index) override { program = &state->programs[index]; }
  void launch(int32_t kernel, const tprt_launch_args &args,
              void *const *arguments) override;
  void gemm(const tprt_gemm_args &args, const GemmOperands &operands) override;
  void attention(const tprt_attention_args &args, const void *query,
                 const void *key, const void *value, const void *mask,
                 void *output) override;
  void attentionGradient(const tprt_attention_gradient_args &args,
                         const void *query, const void *key, const void *value,
                         const void *mask, const void *gradient,
                         void *queryGradient, void *keyGradient,
                         void *valueGradient) override;
  std::vector<AttentionUse> getAttentionUses() const override {
    return attentions.getUses();
  }
  GemmUses getGemmUses() const override;
  void fill(void *dst, uint64_t pattern, int32_t width, int64_t count) override;
  tprt_device_error *getErrorRecord() override;
  CudaStream &getCommunication() override { return getCommunication(0); }
  /// The stream number `index` of those that run beside this one. Created at
  /// the first call. Only the functions of Stream are used on it.
  CudaStream &getCommunication(size_t index);

  void beginRun() override;
  void endRun() override;
  void finish(const Poll &poll) override;

  void beginTiming() override;
  int64_t markTime(Stream &on) override;
  int64_t getTime(int64_t mark) override;

  void beginCapture() override;
  std::shared_ptr<void> endCapture() override;
  void replay(void *graph) override;

  /// The stream, to enqueue something. Enqueues held products first.
  CUstream get();
  const ContextPtr &getContext() const { return state->context; }

private:
  const Driver &getDriver() const { return getContext()->getDriver(); }
  /// Whether kernels of the program that runs check indices.
  bool reportsErrors() const { return program->code.num_sites > 0; }
  /// Called when all enqueued work is done.
  void dropOutgrown();
  /// Throws an execution error if a kernel has reported an index.
  void reportIndex() const;

  std::shared_ptr<DeviceState> state;
  const ProgramKernels *program; ///< that runs
  std::shared_ptr<CUstream_st> stream;
  std::shared_ptr<std::byte> errorRecord; ///< on the device
  std::shared_ptr<std::byte> reported;    ///< its copy on the host
  /// Events by their order of announcement within a run, so that a captured run
  /// always uses the same ones.
  std::deque<std::shared_ptr<CUevent_st>> events;
  size_t numAnnounced = 0;
  std::deque<std::shared_ptr<CUevent_st>> marks; ///< timed; the first is start
  size_t numMarks = 0;
  int64_t startTime = 0; ///< of the first mark, on the host's clock
  GrowingMemory staging;
  bool isCaptured = false; ///< since beginCapture
  Gemm products;
  std::vector<std::unique_ptr<CudaStream>> communication;
  Attention attentions;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CUDASTREAM_H
