//===- FakeStreams.cpp - The order of work without a device ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "State.h"

#include <algorithm>
#include <thread>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void fake::addTime(std::chrono::nanoseconds time) {
  getDevice().addedTime += time;
}

/// Makes the capture fail when it ends.
static void invalidate(CUgraph_st &graph, const char *mistake) {
  if (!graph.isInvalid)
    std::fprintf(stderr, "fake device: %s\n", mistake);
  graph.isInvalid = getDevice().everFailed = true;
}

/// Begins a call that adds to a capture. The driver doesn't lock graphs, so
/// other threads may call it meanwhile, but must not add to the same capture.
static void beginAdding(CUgraph_st &graph) {
  if (graph.isBusy)
    invalidate(graph, "two threads add to a capture at the same time");
  graph.isBusy = true;
  getMutex().unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  getMutex().lock();
  graph.isBusy = false;
}

void fake::enqueue(CUstream stream, Work work) {
  if (std::shared_ptr<CUgraph_st> graph = stream->graph)
    beginAdding(*graph);
  if (stream->graph) {
    stream->graph->nodes.push_back({std::move(work), stream->needs});
    stream->needs = {stream->graph->nodes.size() - 1};
    return;
  }
  stream->queue.push_back(std::move(work));
  ++stream->numEnqueued;
}

bool fake::advance(CUstream stream, uint64_t position) {
  if (stream->isRunning)
    return stream->numDone >= position;
  stream->isRunning = true;
  while (stream->numDone < position) {
    if (getDevice().failure == CUDA_SUCCESS && !stream->queue.front()())
      break;
    stream->queue.pop_front();
    ++stream->numDone;
  }
  stream->isRunning = false;
  return stream->numDone >= position;
}

/// Runs a stream's work up to a position. If it can't go on, all other streams
/// do what they can: another rank may wait for them.
static bool advanceAll(CUstream stream, uint64_t position) {
  if (advance(stream, position))
    return true;
  for (CUstream other : getDevice().streams)
    advance(other, other->numEnqueued);
  return stream->numDone >= position;
}

/// Runs the nodes of a graph in an order that its edges allow, as different as
/// possible from the order of their capture.
static Work makeReplay(std::shared_ptr<CUgraph_st> graph) {
  auto isDone = std::make_shared<std::vector<bool>>(graph->nodes.size());
  return [graph, isDone] {
    for (;;) {
      bool hasRun = false, isComplete = true;
      for (size_t i = graph->nodes.size(); i-- > 0;) {
        if ((*isDone)[i])
          continue;
        const CUgraph_st::Node &node = graph->nodes[i];
        bool isReady =
            std::all_of(node.needs.begin(), node.needs.end(),
                        [&](size_t need) { return (*isDone)[need]; });
        if (isReady && node.work()) {
          (*isDone)[i] = true;
          hasRun = true;
          break; // a later one may be ready now
        }
        isComplete = false;
      }
      if (hasRun)
        continue;
      return isComplete;
    }
  };
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

EXPORT cuStreamCreate(CUstream *stream, unsigned) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuStreamCreate"))
    return result;
  *stream = new CUstream_st;
  (*stream)->id = ++getDevice().numStreams;
  getDevice().streams.insert(*stream);
  return CUDA_SUCCESS;
}

EXPORT cuStreamDestroy_v2(CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = beginFree("cuStreamDestroy"))
    return result;
  if (getDevice().streams.erase(stream) == 0)
    return INVALID_HANDLE;
  // Keeps the stream, because events may still need its counts. The list
  // outlives devices that are freed at exit.
  static auto &destroyed = *new std::vector<std::unique_ptr<CUstream_st>>;
  destroyed.emplace_back(stream);
  stream->queue.clear();
  stream->numDone = stream->numEnqueued;
  return CUDA_SUCCESS;
}

EXPORT cuStreamQuery(CUstream stream) {
  {
    Lock lock(getMutex());
    ++getDevice().numQueries;
    if (stream->graph) {
      invalidate(*stream->graph, "a captured stream is queried");
      return CAPTURE_UNSUPPORTED;
    }
    bool isDone = advanceAll(stream, stream->numEnqueued);
    if (getDevice().failure)
      return getDevice().failure;
    if (isDone)
      return CUDA_SUCCESS;
  }
  // Lets other threads have the lock and a core.
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  return CUDA_ERROR_NOT_READY;
}

/// Queries until the work is done. The lock is released in between.
template <typename Query>
static CUresult synchronize(Query query) {
  for (;;) {
    CUresult result = query();
    if (result != CUDA_ERROR_NOT_READY)
      return result;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

EXPORT cuStreamSynchronize(CUstream stream) {
  return synchronize([&] { return cuStreamQuery(stream); });
}

EXPORT cuEventCreate(CUevent *event, unsigned flags) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuEventCreate"))
    return result;
  *event = new CUevent_st;
  (*event)->isTimed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  addLive(*event);
  return CUDA_SUCCESS;
}

EXPORT cuEventDestroy_v2(CUevent event) {
  Lock lock(getMutex());
  if (CUresult result = beginFree("cuEventDestroy"))
    return result;
  removeLive(event);
  // Keeps the event, because enqueued work may still record it.
  static auto &destroyed = *new std::vector<std::unique_ptr<CUevent_st>>;
  destroyed.emplace_back(event);
  return CUDA_SUCCESS;
}

EXPORT cuEventRecord(CUevent event, CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuEventRecord", describe(stream)))
    return result;
  if (std::shared_ptr<CUgraph_st> graph = stream->graph)
    beginAdding(*graph);
  event->stream = stream;
  event->graph = stream->graph;
  event->needs = stream->needs;
  if (stream->graph)
    return CUDA_SUCCESS;
  if (event->isTimed)
    enqueue(stream, [event] {
      event->time = std::chrono::steady_clock::now() + getDevice().addedTime;
      return true;
    });
  event->position = stream->numEnqueued;
  return CUDA_SUCCESS;
}

EXPORT cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuStreamWaitEvent", describe(stream)))
    return result;
  if (std::shared_ptr<CUgraph_st> graph = event->graph) {
    beginAdding(*graph);
    if (stream->graph && stream->graph != graph) {
      invalidate(*graph, "a captured stream waits for another capture");
      return CAPTURE_MERGE;
    }
    stream->graph = event->graph;
    stream->needs.insert(event->needs.begin(), event->needs.end());
    return CUDA_SUCCESS;
  }
  if (stream->graph) {
    invalidate(*stream->graph, "a captured stream waits for one that isn't");
    return CAPTURE_ISOLATION;
  }
  if (CUstream other = event->stream)
    enqueue(stream, [other, position = event->position] {
      return advance(other, position);
    });
  return CUDA_SUCCESS;
}

EXPORT cuEventQuery(CUevent event) {
  Lock lock(getMutex());
  if (event->graph) {
    invalidate(*event->graph, "a captured event is queried");
    return CAPTURE_UNSUPPORTED;
  }
  if (!event->stream)
    return CUDA_SUCCESS;
  bool isDone = advanceAll(event->stream, event->position);
  if (getDevice().failure)
    return getDevice().failure;
  return isDone ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT cuEventSynchronize(CUevent event) {
  return synchronize([&] { return cuEventQuery(event); });
}

EXPORT cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  Lock lock(getMutex());
  if (!start->isTimed || !end->isTimed)
    return INVALID_HANDLE;
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

EXPORT cuStreamBeginCapture_v2(CUstream stream, int32_t) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuStreamBeginCapture", describe(stream)))
    return result;
  if (stream->graph)
    return CAPTURE_MERGE;
  stream->graph = std::make_shared<CUgraph_st>();
  stream->needs.clear();
  stream->isOrigin = true;
  return CUDA_SUCCESS;
}

EXPORT cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuStreamEndCapture", describe(stream)))
    return result;
  if (!stream->graph || !stream->isOrigin)
    return INVALID_VALUE;
  std::shared_ptr<CUgraph_st> captured = stream->graph;
  // The nodes that the origin needs at the end, directly or indirectly.
  std::set<size_t> joined = stream->needs;
  for (size_t i = captured->nodes.size(); i-- > 0;)
    if (joined.contains(i))
      joined.insert(captured->nodes[i].needs.begin(),
                    captured->nodes[i].needs.end());
  bool isJoined = true;
  for (CUstream other : getDevice().streams) {
    if (other->graph != captured)
      continue;
    for (size_t need : other->needs)
      isJoined &= joined.contains(need);
    other->graph = nullptr;
    other->needs.clear();
  }
  stream->isOrigin = false;
  if (captured->isInvalid)
    return CAPTURE_INVALIDATED;
  if (!isJoined)
    return CAPTURE_UNJOINED;
  *graph = new CUgraph_st(*captured);
  return CUDA_SUCCESS;
}

EXPORT cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                   unsigned long long) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuGraphInstantiate",
                              std::to_string(graph->nodes.size()) + " nodes"))
    return result;
  *executable = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph)};
  getDevice().executables.insert(*executable);
  return CUDA_SUCCESS;
}

EXPORT cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuGraphLaunch", describe(stream)))
    return result;
  enqueue(stream, makeReplay(executable->graph));
  return CUDA_SUCCESS;
}

EXPORT cuGraphDestroy(CUgraph graph) {
  Lock lock(getMutex());
  delete graph;
  return CUDA_SUCCESS;
}

EXPORT cuGraphExecDestroy(CUgraphExec executable) {
  Lock lock(getMutex());
  if (CUresult result = beginFree("cuGraphExecDestroy"))
    return result;
  if (getDevice().executables.erase(executable) == 0)
    return INVALID_HANDLE;
  delete executable;
  return CUDA_SUCCESS;
}
