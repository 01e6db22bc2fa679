//===- Calibrate.cpp - Measurement of this machine ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each number is the median of many rounds in which every core does the same,
// because that is how ranks run. It is a machine's sustained speed, which is
// below its peak if the machine is shared or throttled. A collective is fitted
// to
//   seconds = latency + received bytes / bandwidth
// over several sizes, minimizing relative errors, so that small sizes count as
// much as large ones.
//
//===----------------------------------------------------------------------===//

#include "tprt/Calibrate.h"

#include "cpu/Gemm.h"
#include "support/Multiversion.h"
#include "tprt/LocalCommunicator.h"
#include "tprt/Tensor.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>
#include <unistd.h>

using namespace tprt;
using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

static double getSeconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static double getMedian(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls work(i) for 0 <= i < count, each in a thread of its own. None begins
/// before all threads exist. Throws if the system can't create enough threads.
static void runTogether(int64_t count,
                        const std::function<void(int64_t)> &work) {
  enum : int { Waiting, Begun, Canceled };
  std::atomic<int> state{Waiting};
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  try {
    for (int64_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        state.wait(Waiting);
        if (state == Canceled)
          return;
        try {
          work(i);
        } catch (...) {
          std::lock_guard<std::mutex> lock(mutex);
          if (!failure)
            failure = std::current_exception();
        }
      });
    state = Begun;
  } catch (...) {
    failure = std::current_exception();
    state = Canceled;
  }
  state.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}

/// Seconds of one call of the function that `make()` returns, while
/// `numThreads` threads do the same. They start each round together, so that
/// none has the machine to itself. A round takes as long as its slowest thread.
template <typename Make>
static double measure(int64_t numThreads, double seconds, Make make) {
  constexpr int64_t numRounds = 25;
  std::barrier meeting(numThreads);
  std::vector<double> perCall(numThreads);
  std::vector<double> rounds;
  int64_t numCalls = 1;
  runTogether(numThreads, [&](int64_t thread) {
    std::optional<decltype(make())> work;
    try {
      work.emplace(make());
    } catch (...) {
      meeting.arrive_and_drop();
      throw;
    }
    for (int64_t round = -1; round < numRounds; ++round) {
      meeting.arrive_and_wait();
      Clock::time_point start = Clock::now();
      for (int64_t call = 0; call < numCalls; ++call)
        (*work)();
      perCall[thread] = getSeconds(start) / numCalls;
      meeting.arrive_and_wait();
      if (thread > 0)
        continue;
      double slowest = *std::max_element(perCall.begin(), perCall.end());
      if (round >= 0) // the first one touches the memory
        rounds.push_back(slowest);
      numCalls = std::clamp<int64_t>(seconds / numRounds / slowest, 1, 1 << 24);
    }
  });
  return getMedian(rounds);
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

TPRT_MULTIVERSION static void triad(const double *a, const double *b, double *c,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    c[i] = a[i] + 3.0 * b[i];
}

/// Bytes per second and thread, when `numThreads` read and write memory that is
/// too large for the caches.
static double measureMemory(int64_t numThreads, double seconds) {
  static constexpr int64_t count = 8 << 20; // 64 MiB each
  double perCall = measure(numThreads, seconds, [&] {
    auto buffers = std::make_shared<std::vector<double>>(3 * count, 1.0);
    return [buffers] {
      double *data = buffers->data();
      triad(data, data + count, data + 2 * count, count);
    };
  });
  return 3 * sizeof(double) * count / perCall;
}

/// Seconds of a product of two n x n matrices.
static double measureProduct(Dtype dtype, int64_t n, int64_t numThreads,
                             double seconds) {
  return measure(numThreads, seconds, [&] {
    int64_t bytes = n * n * byteWidth(dtype);
    auto matrices = allocateAligned(3 * bytes);
    std::memset(matrices.get(), 0, 3 * bytes);
    auto scratch = std::make_shared<GemmState>();
    return [=] {
      tprt_gemm_args args{};
      args.dtype = static_cast<int32_t>(dtype);
      args.batch0 = args.batch1 = 1;
      args.m = args.n = args.k = n;
      args.a_row = args.b_row = args.c_row = n;
      args.a_col = args.b_col = 1;
      gemm(args,
           {matrices.get(), matrices.get() + bytes, matrices.get() + 2 * bytes},
           *scratch);
    };
  });
}

/// The usual work of a transcendental function: range reduction and a
/// polynomial.
TPRT_MULTIVERSION static void evaluate(const float *in, float *out,
                                       int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float x = in[i] * 1.442695f, n = static_cast<int32_t>(x), f = x - n;
    float p = 1.5403530e-4f;
    for (float coefficient : {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f,
                              2.4022651e-1f, 6.9314718e-1f, 1.0f})
      p = p * f + coefficient;
    out[i] = (p + n) / (1.0f + p);
  }
}

static double measureElementwise(int64_t numThreads, double seconds) {
  static constexpr int64_t count = 4096; // stays in the first-level cache
  double perCall = measure(numThreads, seconds, [&] {
    auto buffers = std::make_shared<std::vector<float>>(2 * count, 0.5f);
    return [buffers] {
      evaluate(buffers->data(), buffers->data() + count, count);
    };
  });
  return count / perCall;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A collective of f32 over all ranks in which the largest block has `elements`
/// elements, a multiple of the number of ranks.
static Collective makeCollective(CollectiveKind kind, int64_t numRanks,
                                 int64_t elements) {
  Collective collective{};
  collective.kind = kind;
  collective.dtype = Dtype::F32;
  int64_t block = elements / numRanks;
  Shape operand = {elements}, result = {elements};
  const CollectiveRule &rule = getRule(kind);
  if (rule.cut && rule.joined) {
    operand = {numRanks, block};
    result = {1, elements};
    collective.*rule.joined->member = 1;
  } else if (rule.joined) {
    operand = {block};
  } else if (rule.cut) {
    result = {block};
  }
  collective.operandShapes.assign(numRanks, operand);
  collective.resultShapes.assign(numRanks, result);
  std::vector<int64_t> everyone(numRanks);
  std::iota(everyone.begin(), everyone.end(), 0);
  collective.groups = {everyone};
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    collective.source.push_back((rank + 1) % numRanks);
    collective.transfers.push_back(
        {{(rank + 1) % numRanks, {0}, {0}, {elements}}});
  }
  return collective;
}

namespace {

struct Sample {
  double bytes, seconds;
};

struct Fit {
  double latency, bandwidth;
};

} // namespace

/// Least squares of relative errors: minimizes the sum over samples of
/// ((latency + bytes * perByte - seconds) / seconds)^2.
static Fit fit(const std::vector<Sample> &samples) {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  for (const Sample &sample : samples) {
    double weight = 1 / (sample.seconds * sample.seconds);
    w += weight;
    wx += weight * sample.bytes;
    wxx += weight * sample.bytes * sample.bytes;
    wy += weight * sample.seconds;
    wxy += weight * sample.bytes * sample.seconds;
  }
  double perByte = (w * wxy - wx * wy) / (w * wxx - wx * wx);
  double latency = (wy - perByte * wx) / w;
  // Noise may bend the line below zero at one end.
  perByte = std::max(perByte, 1e-15);
  return {std::max(latency, 0.0), 1 / perByte};
}

/// Seconds of each of the manifest's collectives, and the bytes that a rank
/// receives in it.
static std::vector<Sample> measureCollectives(const Manifest &manifest,
                                              double seconds) {
  std::vector<Sample> samples(manifest.collectives.size());
  auto communicators = makeLocalCommunicators(manifest, {});
  runTogether(communicators.size(), [&](int64_t i) {
    const std::unique_ptr<Communicator> &communicator = communicators[i];
    try {
      for (size_t id = 0; id < samples.size(); ++id) {
        const Collective &collective = manifest.collectives[id];
        int64_t bytes = numElements(collective.operandShapes[0]) +
                        numElements(collective.resultShapes[0]);
        auto memory = allocateAligned(bytes * sizeof(float));
        std::byte *src = memory.get();
        std::byte *dst =
            src + numElements(collective.operandShapes[0]) * sizeof(float);
        std::memset(src, 0, bytes * sizeof(float));
        // Every rank must make the same number of calls, so it depends only on
        // the size.
        constexpr int64_t numRuns = 15;
        const int64_t callsPerRun = std::clamp<int64_t>(
            seconds / numRuns / (1e-6 + bytes * 1e-9), 4, 500);
        std::vector<double> runs;
        for (int64_t run = -1; run < numRuns; ++run) {
          communicator->barrier();
          Clock::time_point start = Clock::now();
          int64_t received = 0;
          for (int64_t call = 0; call < callsPerRun; ++call)
            received = communicator->run(id, src, dst);
          if (run >= 0) // the first one warms up
            runs.push_back(getSeconds(start) / callsPerRun);
          if (communicator->getRank() == 0)
            samples[id].bytes = received;
        }
        if (communicator->getRank() == 0)
          samples[id].seconds = getMedian(runs);
      }
      communicator->finish();
    } catch (const std::exception &error) {
      communicator->abort(error.what()); // the others wait for this one
      throw;
    }
  });
  return samples;
}

static json calibrateCollectives(const CalibrationOptions &options) {
  json list = json::array();
  std::vector<CollectiveKind> kinds;
  for (int kind = 0; kind <= static_cast<int>(lastCollectiveKind); ++kind)
    kinds.push_back(static_cast<CollectiveKind>(kind));
  std::sort(kinds.begin(), kinds.end(), [](CollectiveKind a, CollectiveKind b) {
    return toString(a) < toString(b);
  });
  for (int64_t numRanks : options.ranks) {
    const int64_t sizes[] = {256, 4096, 32768, 262144, 1048576}; // elements
    Manifest manifest;
    manifest.worldSize = numRanks;
    for (CollectiveKind kind : kinds)
      for (int64_t size : sizes)
        manifest.collectives.push_back(
            makeCollective(kind, numRanks, size / numRanks * numRanks));
    if (options.onProgress)
      options.onProgress("collectives of " + std::to_string(numRanks) +
                         " ranks");
    std::vector<Sample> samples =
        measureCollectives(manifest, options.secondsPerMeasurement);
    auto sample = samples.begin();
    for (CollectiveKind kind : kinds) {
      std::vector<Sample> ofKind(sample, sample + std::size(sizes));
      sample += std::size(sizes);
      // Rank 0, which counts, is the root, and receives nothing.
      if (getRule(kind).origin == CollectiveRule::Root)
        for (size_t i = 0; i < ofKind.size(); ++i)
          ofKind[i].bytes = sizes[i] / numRanks * numRanks * sizeof(float);
      Fit fitted = fit(ofKind);
      list.push_back({{"kind", toString(kind)},
                      {"ranks", numRanks},
                      {"latency", fitted.latency},
                      {"bandwidth", fitted.bandwidth}});
    }
  }
  return list;
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

std::string tprt::calibrate(const CalibrationOptions &options) {
  int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  double seconds = options.secondsPerMeasurement;
  auto begin = [&](const std::string &what) {
    if (options.onProgress)
      options.onProgress(what);
  };
  begin("memory bandwidth");
  double memory = measureMemory(1, 10 * seconds);
  double sharedMemory = measureMemory(cores, 10 * seconds) * cores;
  json flops;
  for (Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16}) {
    constexpr double n = 384;
    begin("products of " + std::string(toString(dtype)));
    flops[std::string(toString(dtype))] =
        2 * n * n * n / measureProduct(dtype, n, cores, 10 * seconds);
  }
  begin("small kernels");
  double launch = measureProduct(Dtype::F32, 4, cores, 5 * seconds);
  json collectives = calibrateCollectives(options);
  begin("elementwise arithmetic");
  double elementwise = measureElementwise(cores, 10 * seconds);
  // The link's own numbers, for kinds that weren't measured, are those of the
  // first all-gather.
  json link = {{"name", "memory"}};
  for (const json &collective : collectives)
    if (collective["kind"] == "all_gather" && !link.contains("latency"))
      link.update({{"latency", collective["latency"]},
                   {"bandwidth", collective["bandwidth"]}});
  link["algorithm"] = "direct";
  link["collectives"] = collectives;
  int64_t bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  json machine = {
      {"name", "calibrated-cpu"},
      {"device",
       {{"flops", flops},
        {"elementwise", elementwise},
        {"memory_bandwidth", memory},
        {"memory_capacity", bytes / cores},
        {"launch", launch}}},
      {"node", {{"devices", cores}, {"memory_bandwidth", sharedMemory}}},
      {"links", json::array({link})}};
  return machine.dump(2) + "\n";
}
