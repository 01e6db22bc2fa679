//===- Parallel.cpp - Independent work on several threads ----------------===//

#include "Parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

void tprt::parallelFor(int64_t count, int64_t numThreads,
                       const std::function<void(int64_t)> &work) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto serve = [&] {
    for (int64_t i; (i = next++) < count;)
      try {
        work(i);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure)
          failure = std::current_exception();
        next = count;
      }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min(numThreads, count); ++i)
    threads.emplace_back(serve);
  serve();
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}
