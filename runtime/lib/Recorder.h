//===- Recorder.h - Takes the times of one rank ------------------*- C++
//-*-===//

#ifndef TPRT_LIB_RECORDER_H
#define TPRT_LIB_RECORDER_H

#include "tprt/Recording.h"

#include <chrono>

namespace tprt {

/// Writes the slices of one rank. Ops follow each other, and end where the next
/// one, a collective, or the end of the run begins.
class Recorder {
public:
  Recorder(std::vector<Slice> &slices, int64_t run)
      : slices(slices), run(run), begin(now()) {}

  /// Code of op `op` begins.
  void beginOp(int64_t op) { current = {Slice::Kind::Op, op, run, endOp()}; }

  void beginCollective(int64_t id) {
    collective = {Slice::Kind::Collective, id, run, endOp()};
  }
  void endCollective(int64_t bytes) {
    collective.end = now();
    collective.bytes = bytes;
    slices.push_back(collective);
  }

  void endRun() {
    int64_t end = endOp();
    slices.push_back({Slice::Kind::Run, run, run, begin, end});
  }

private:
  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  /// Returns the time.
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
  int64_t run, begin;
  Slice current{Slice::Kind::Op, -1, 0};
  Slice collective{Slice::Kind::Collective, -1, 0};
};

} // namespace tprt

#endif // TPRT_LIB_RECORDER_H
