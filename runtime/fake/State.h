//===- State.h - The fake device --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_STATE_H
#define TPRT_FAKE_STATE_H

#include "Work.h"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>

#define EXPORT extern "C" __attribute__((visibility("default"))) CUresult

// The driver's types are its own to define.
namespace tprt::cuda {

struct CUgraph_st {
  struct Node {
    fake::Work work;
    std::set<size_t> needs; ///< earlier nodes
  };
  std::vector<Node> nodes;
  // While it is captured.
  bool isBusy = false;    ///< a call adds to it
  bool isInvalid = false; ///< by a call that isn't allowed
};

struct CUgraphExec_st {
  std::shared_ptr<CUgraph_st> graph;
};

struct CUstream_st {
  size_t id = 0;
  std::deque<fake::Work> queue;
  uint64_t numEnqueued = 0, numDone = 0;
  bool isRunning = false;
  // While the stream is captured: the graph, and the nodes that the next node
  // needs.
  std::shared_ptr<CUgraph_st> graph;
  std::set<size_t> needs;
  bool isOrigin = false;
};

struct CUevent_st {
  bool isTimed = false;
  // Where the event was recorded last: a point of a stream, or of a graph.
  CUstream stream = nullptr;
  uint64_t position = 0;
  std::shared_ptr<CUgraph_st> graph;
  std::set<size_t> needs;
  std::chrono::steady_clock::time_point time;
};

struct CUctx_st {};

} // namespace tprt::cuda

namespace tprt::fake {

/// Further results of the driver.
enum : cuda::CUresult {
  INVALID_VALUE = 1,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_OUT_OF_RESOURCES = 701,
  CONTEXT_IS_DESTROYED = 709,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_MERGE = 902,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
};

struct Fault {
  size_t skip;
  int32_t status;
};

struct Device {
  Settings settings;
  std::vector<std::string> calls;
  std::multimap<std::string, Fault> faults;
  bool kernelsFail = false, kernelsHang = false;
  /// Whether anything ever failed or hung, or was told to.
  bool everFailed = false;
  int64_t numRetained = 0; ///< of the primary context
  int64_t numLives = 0;    ///< how often it was made
  std::set<void *> live;
  cuda::CUresult failure = cuda::CUDA_SUCCESS;
  std::map<uintptr_t, size_t> allocations;
  std::map<void *, size_t> pinned;
  size_t allocated = 0, maxPinned = 0;
  size_t numStreams = 0;
  size_t numQueries = 0;
  std::chrono::nanoseconds addedTime{0}; ///< to that of the host's clock
  std::set<cuda::CUstream> streams;
  std::set<cuda::CUgraphExec> executables;
  cuda::CUctx_st context;
};

Device &getDevice();

/// Begins a function of the driver that enqueues work: notes the call and
/// checks the state.
cuda::CUresult enter(const std::string &function,
                     const std::string &details = "");

/// Begins a function of the driver that frees something: it needs a context,
/// too.
cuda::CUresult beginFree(const std::string &function);

/// Runs a stream's work up to a position. Returns false if it can't go on yet.
bool advance(cuda::CUstream stream, uint64_t position);

} // namespace tprt::fake

#endif // TPRT_FAKE_STATE_H
