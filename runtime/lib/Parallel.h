//===- Parallel.h - Independent work on several threads ----------*- C++
//-*-===//

#ifndef TPRT_LIB_PARALLEL_H
#define TPRT_LIB_PARALLEL_H

#include <cstdint>
#include <functional>

namespace tprt {

/// Calls work(i) for 0 <= i < count, by at most `numThreads` threads, this one
/// among them. The first exception ends the others early, and is thrown here.
void parallelFor(int64_t count, int64_t numThreads,
                 const std::function<void(int64_t)> &work);

} // namespace tprt

#endif // TPRT_LIB_PARALLEL_H
