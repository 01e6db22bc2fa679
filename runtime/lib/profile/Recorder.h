//===- Recorder.h - Recorder of one rank's times ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_PROFILE_RECORDER_H
#define TPRT_LIB_PROFILE_RECORDER_H

#include "device/Stream.h"
#include "tprt/Recording.h"

#include <chrono>
#include <map>

namespace tprt {

/// Writes the slices of one rank. An op ends where the next op or a collective
/// begins, or at the end of the run. On a device these are points in its
/// stream, whose times are known when the run is over.
class Recorder {
public:
  /// `stream` is null on the host.
  Recorder(std::vector<Slice> &slices, int64_t run,
           DeviceStream *stream = nullptr)
      : slices(slices), first(slices.size()), stream(stream), run(run) {
    if (stream)
      stream->beginTiming();
    begin = now();
  }

  /// The code of op `op` begins.
  void beginOp(int64_t op) { current = {Slice::Kind::Op, op, run, endOp()}; }

  void beginCollective(int64_t id) {
    collective = {Slice::Kind::Collective, id, run, endOp()};
  }
  /// A collective that overlaps the following computation, up to beginWait.
  void startCollective(int64_t id) {
    underWay[id] = {Slice::Kind::Collective, id, run, endOp()};
  }
  void beginWait(int64_t id) {
    collective = underWay[id];
    collective.waited = endOp();
  }
  /// `ranOn` is the stream that it was started on, null if it wasn't, or on the
  /// host.
  void endCollective(int64_t bytes, Stream *ranOn = nullptr) {
    collective.end = now(ranOn);
    collective.bytes = bytes;
    slices.push_back(collective);
  }

  /// Called when all enqueued work is done.
  void endRun() {
    int64_t end = endOp();
    slices.push_back({Slice::Kind::Run, run, run, begin, end});
    if (!stream)
      return;
    for (size_t i = first; i < slices.size(); ++i) {
      Slice &slice = slices[i];
      if (slice.waited)
        slice.waited = stream->getTime(*slice.waited);
      slice.begin = stream->getTime(slice.begin);
      slice.end = stream->getTime(slice.end);
    }
  }

private:
  int64_t now(Stream *on = nullptr) const {
    if (stream)
      return stream->markTime(on ? *on : *stream);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  /// Ends the current op, if any, and returns the time.
  int64_t endOp() {
    int64_t time = now();
    if (current.index >= 0) {
      current.end = time;
      slices.push_back(current);
      current.index = -1;
    }
    return time;
  }

  std::vector<Slice> &slices;
  size_t first; ///< index of this run's first slice
  DeviceStream *stream;
  int64_t run, begin;
  Slice current{Slice::Kind::Op, -1, 0};
  Slice collective{Slice::Kind::Collective, -1, 0};
  std::map<int64_t, Slice> underWay; ///< by collective
};

} // namespace tprt

#endif // TPRT_LIB_PROFILE_RECORDER_H
