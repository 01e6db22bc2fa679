//===- StreamTest.cpp - Memory, copies and events on a device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaDevice.h"
#include "cuda/Driver.h"

#include "Fake.h"
#include "Jobs.h"
#include "TestUtils.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <elf.h>
#include <numeric>
#include <thread>

using namespace tprt;
using namespace tprt::test;

namespace {

class DeviceTest : public testing::Test {
protected:
  void SetUp() override { fake::reset(); }
  void TearDown() override { fake::reset(); }

  tprt_device_code code = {};
  std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});

  std::vector<float> read(const std::shared_ptr<std::byte> &data,
                          int64_t count) {
    std::vector<float> elements(count);
    device->read(data.get(), Dtype::F32, {count}, makeBox({0}, {count}),
                 reinterpret_cast<std::byte *>(elements.data()));
    return elements;
  }
};

} // namespace

/// Sums of vectors, of what is left of them, and of unaligned elements; one
/// result takes the place of an operand.
TEST_F(DeviceTest, Reduces) {
  for (Dtype dtype : {Dtype::F32, Dtype::F16, Dtype::I8, Dtype::I64})
    for (int64_t count : {1, 15, 31, 4099, 70001})
      for (int64_t offset : {0, 1}) {
        SCOPED_TRACE(testing::Message()
                     << toString(dtype) << " " << count << " from " << offset);
        int64_t width = byteWidth(dtype);
        std::vector<std::shared_ptr<std::byte>> memory;
        for (int i = 0; i < 4; ++i) {
          memory.push_back(device->allocate((count + 1) * width));
          std::vector<std::byte> bytes((count + 1) * width);
          for (int64_t j = 0; j < count; ++j) {
            auto value = static_cast<float>((j * (i + 1)) % 11);
            std::byte *at = &bytes[(j + offset) * width];
            if (dtype == Dtype::F32)
              std::memcpy(at, &value, sizeof(value));
            else if (dtype == Dtype::F16)
              convertFromF32(dtype, &value, at, 1);
            else
              *at = static_cast<std::byte>(value);
          }
          device->write({Dtype::I8,
                         {int64_t(bytes.size())},
                         {bytes.data(), [](auto *) {}}},
                        makeBox({0}, {int64_t(bytes.size())}), Dtype::I8,
                        memory.back().get());
        }
        auto at = [&](int i) { return memory[i].get() + offset * width; };
        DeviceStream &stream = *device->getStream(0);
        stream.beginRun();
        stream.reduce(Reduction::Sum, dtype, {at(0), at(1), at(2)},
                      {at(3), at(1)}, count);
        stream.endRun();
        stream.finish([](auto) {});
        for (int result : {3, 1}) {
          std::vector<std::byte> bytes((count + 1) * width);
          device->read(memory[result].get(), Dtype::I8, {int64_t(bytes.size())},
                       makeBox({0}, {int64_t(bytes.size())}), bytes.data());
          for (int64_t j = 0; j < count; ++j)
            ASSERT_EQ(loadAsDouble(dtype, bytes.data(), j + offset),
                      j % 11 + j * 2 % 11 + j * 3 % 11)
                << j;
        }
      }
  // 256 threads of two vectors of four elements each.
  EXPECT_GT(fake::countCalls("cuLaunchKernel tprt_reduce_sum_f32 grid 3 "), 0u);
}

TEST_F(DeviceTest, BlocksGoThroughPinnedMemory) {
  // 5 M elements, three times what is pinned, of which every second row is
  // this rank's.
  Shape shape = {10, 1 << 20};
  std::vector<float> elements(numElements(shape));
  std::iota(elements.begin(), elements.end(), 0.0f);
  Tensor tensor = makeTensor<float>(Dtype::F32, shape, elements);
  Block block = makeBox({0, 0}, shape);
  block.dims[0] = {{1, 1}, {3, 1}, {5, 1}, {7, 1}, {9, 1}};
  auto data = device->allocate(5 * shape[1] * 4);
  device->write(tensor, block, Dtype::F32, data.get());
  std::vector<float> dense = read(data, 5 * shape[1]);
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t i : {int64_t(0), int64_t(12345), shape[1] - 1})
      EXPECT_EQ(dense[row * shape[1] + i],
                elements[(2 * row + 1) * shape[1] + i]);
  EXPECT_LE(fake::getMaxPinnedBytes(), size_t(17) << 20);

  std::vector<float> back(elements.size(), -1);
  device->read(data.get(), Dtype::F32, shape, block,
               reinterpret_cast<std::byte *>(back.data()));
  EXPECT_EQ(back[0], -1);
  EXPECT_EQ(back[9 * shape[1] + 77], elements[9 * shape[1] + 77]);
}

TEST_F(DeviceTest, RoundsToBF16OnTheWay) {
  Tensor tensor = makeTensor<float>(Dtype::F32, {3}, {1, 3.14159f, -2});
  auto data = device->allocate(6);
  device->write(tensor, makeBox({0}, {3}), Dtype::BF16, data.get());
  BFloat16 elements[3];
  device->read(data.get(), Dtype::BF16, {3}, makeBox({0}, {3}),
               reinterpret_cast<std::byte *>(elements));
  EXPECT_EQ(elements[0].widen(), 1);
  EXPECT_EQ(elements[1].widen(), 3.140625f);
  EXPECT_EQ(elements[2].widen(), -2);
}

TEST_F(DeviceTest, FillsElements) {
  for (int32_t number = 0; number < numDtypes; ++number) {
    Dtype dtype = static_cast<Dtype>(number);
    auto data = device->allocate(3 * byteWidth(dtype));
    device->fill(dtype, 1, data.get(), 3);
    std::byte elements[24];
    device->read(data.get(), dtype, {3}, makeBox({0}, {3}), elements);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(loadAsDouble(dtype, elements, i), 1) << toString(dtype);
  }
}

/// The driver itself, without the runtime's care.
struct BareDriver {
#define FUNCTION(NAME) decltype(cuda::Driver::NAME) NAME
  FUNCTION(cuModuleLoadDataEx);
  FUNCTION(cuModuleUnload);
  FUNCTION(cuModuleGetFunction);
  FUNCTION(cuLaunchKernel);
  FUNCTION(cuFuncSetAttribute);
  FUNCTION(cuStreamCreate);
  FUNCTION(cuStreamDestroy);
  FUNCTION(cuStreamQuery);
  FUNCTION(cuStreamWaitEvent);
  FUNCTION(cuStreamBeginCapture);
  FUNCTION(cuStreamEndCapture);
  FUNCTION(cuEventCreate);
  FUNCTION(cuEventDestroy);
  FUNCTION(cuEventRecord);
#undef FUNCTION

  BareDriver() {
    cuda::Library library({"the CUDA driver", {"libcuda.so.1"}, {12, 0}});
    library.find("cuModuleLoadDataEx", cuModuleLoadDataEx);
    library.find("cuModuleUnload", cuModuleUnload);
    library.find("cuModuleGetFunction", cuModuleGetFunction);
    library.find("cuLaunchKernel", cuLaunchKernel);
    library.find("cuFuncSetAttribute", cuFuncSetAttribute);
    library.find("cuStreamCreate", cuStreamCreate);
    library.find("cuStreamDestroy_v2", cuStreamDestroy);
    library.find("cuStreamQuery", cuStreamQuery);
    library.find("cuStreamWaitEvent", cuStreamWaitEvent);
    library.find("cuStreamBeginCapture_v2", cuStreamBeginCapture);
    library.find("cuStreamEndCapture", cuStreamEndCapture);
    library.find("cuEventCreate", cuEventCreate);
    library.find("cuEventDestroy_v2", cuEventDestroy);
    library.find("cuEventRecord", cuEventRecord);
  }

  int32_t launch(cuda::CUfunction kernel, unsigned threads,
                 unsigned sharedBytes = 0) const {
    return cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, sharedBytes, nullptr,
                          nullptr, nullptr);
  }
};

constexpr int invalidValue = 1, outOfResources = 701, captureUnsupported = 900,
              captureInvalidated = 901, captureIsolation = 905;

/// The fake device has the limits that kernels declare.
TEST_F(DeviceTest, LaunchesWithinLimits) {
  BareDriver driver;
  constexpr int attribute = 8;
  auto load = [&](const char *limits, auto use) {
    std::string ptx =
        ".version 7.0\n.target sm_80\n"
        ".visible .entry tprt_epilogue_f32(\n.param .b8 p[96])\n" +
        std::string(limits) + "\n{ret;}\n";
    cuda::CUmodule module = nullptr;
    cuda::CUfunction kernel = nullptr;
    ASSERT_EQ(
        driver.cuModuleLoadDataEx(&module, ptx.data(), 0, nullptr, nullptr), 0);
    ASSERT_EQ(driver.cuModuleGetFunction(&kernel, module, "tprt_epilogue_f32"),
              0);
    use(kernel);
    EXPECT_EQ(driver.cuModuleUnload(module), 0);
  };
  load(".maxntid 256, 1, 1", [&](cuda::CUfunction kernel) {
    EXPECT_EQ(driver.launch(kernel, 257), invalidValue);
    EXPECT_EQ(driver.launch(kernel, 256, 49153), invalidValue);
    EXPECT_EQ(driver.cuFuncSetAttribute(kernel, attribute, 228 << 10),
              invalidValue);
    EXPECT_EQ(driver.cuFuncSetAttribute(kernel, attribute, 64 << 10), 0);
  });
  load(".maxntid 16, 4", [&](cuda::CUfunction kernel) {
    EXPECT_EQ(driver.launch(kernel, 65), invalidValue);
  });
  // A block has 65536 registers.
  load(".maxnreg 65", [&](cuda::CUfunction kernel) {
    EXPECT_EQ(driver.launch(kernel, 897), outOfResources);
    EXPECT_EQ(driver.launch(kernel, 896, 1),
              invalidValue); // not of this kernel
  });
}

/// Those of generated kernels, too.
TEST_F(DeviceTest, LaunchesGeneratedKernelsWithinLimits) {
  void *program = ::dlopen(CUDA_PROGRAM, RTLD_NOW);
  ASSERT_NE(program, nullptr);
  auto *toys = static_cast<const tprt_device_code *>(
      ::dlsym(program, "tprt_device_code"));
  BareDriver driver;
  cuda::CUmodule module = nullptr;
  cuda::CUfunction kernel = nullptr;
  ASSERT_EQ(driver.cuModuleLoadDataEx(&module, toys->images[0].data, 0, nullptr,
                                      nullptr),
            0);
  ASSERT_EQ(driver.cuModuleGetFunction(&kernel, module, "sum"), 0);
  EXPECT_EQ(driver.launch(kernel, 65), invalidValue);
  EXPECT_EQ(driver.cuModuleUnload(module), 0);
}

#ifdef PTXAS
/// Cubins that ptxas makes are taken where a driver takes them, and have limits.
TEST_F(DeviceTest, ReadsCubins) {
  constexpr int invalidImage = 200, noBinary = 209, numValues = 80;
  std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry tprt_epilogue_f32(.param .align 8 .b8 p[96])\n"
      ".maxntid 32, 4\n{ret;}\n"
      ".visible .entry tprt_epilogue_f64(.param .align 8 .b8 p[96]) {\n"
      ".reg .b64 %a;\n.reg .b32 %r<80>;\nld.param.b64 %a, [p];\n";
  for (int i = 0; i < numValues; ++i)
    ptx += "ld.volatile.global.b32 %r" + std::to_string(i) + ", [%a];\n";
  for (int i = numValues; i-- > 0;)
    ptx += "st.volatile.global.b32 [%a], %r" + std::to_string(i) + ";\n";
  TestDirectory folder;
  std::string source = folder.write("kernels.ptx", ptx + "ret;}\n"),
              result = folder / "kernels.cubin";
  ASSERT_EQ(std::system((std::string(PTXAS) + " -arch=sm_86 -o " + result +
                         " " + source)
                            .c_str()),
            0);
  std::ifstream file(result, std::ios::binary);
  std::string cubin{std::istreambuf_iterator<char>(file), {}};
  BareDriver driver;
  cuda::CUmodule module = nullptr;
  auto load = [&](int32_t version, int32_t architecture) {
    fake::getSettings().driverVersion = version;
    fake::getSettings().architecture = architecture;
    return driver.cuModuleLoadDataEx(&module, cubin.data(), 0, nullptr,
                                     nullptr);
  };
  EXPECT_EQ(load(13000, 90), noBinary); // another major architecture
  EXPECT_EQ(load(13000, 80), noBinary); // an older one
  bool isOfCuda13 = cubin[EI_ABIVERSION] >= 8;
  if (isOfCuda13) {
    EXPECT_EQ(load(12090, 86), invalidImage);
  }
  ASSERT_EQ(load(13000, 89), 0);
  EXPECT_EQ(fake::countCalls("cuModuleLoadDataEx cubin 86"), 3u + isOfCuda13);
  cuda::CUfunction kernel = nullptr;
  ASSERT_EQ(driver.cuModuleGetFunction(&kernel, module, "tprt_epilogue_f32"),
            0);
  EXPECT_EQ(driver.launch(kernel, 129), invalidValue);
  ASSERT_EQ(driver.cuModuleGetFunction(&kernel, module, "tprt_epilogue_f64"),
            0);
  EXPECT_EQ(driver.launch(kernel, 1024), outOfResources);
  EXPECT_EQ(driver.cuModuleUnload(module), 0);
}
#endif

/// The fake device notices calls that a capture doesn't allow.
TEST_F(DeviceTest, IllegalCallsInvalidateACapture) {
  BareDriver driver;
  cuda::CUstream stream = nullptr, other = nullptr;
  cuda::CUevent event = nullptr, before = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, 1), 0);
  ASSERT_EQ(driver.cuStreamCreate(&other, 1), 0);
  ASSERT_EQ(driver.cuEventCreate(&event, 2), 0);
  ASSERT_EQ(driver.cuEventCreate(&before, 2), 0);
  ASSERT_EQ(driver.cuEventRecord(before, other), 0);
  auto capture = [&](auto call) {
    EXPECT_EQ(driver.cuStreamBeginCapture(stream, 2), 0);
    EXPECT_EQ(driver.cuEventRecord(event, stream), 0);
    call();
    cuda::CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph), captureInvalidated);
    EXPECT_EQ(graph, nullptr);
  };
  capture([&] { EXPECT_EQ(driver.cuStreamQuery(stream), captureUnsupported); });
  capture([&] {
    EXPECT_EQ(driver.cuStreamWaitEvent(stream, before, 0), captureIsolation);
  });
  for (cuda::CUevent made : {event, before})
    EXPECT_EQ(driver.cuEventDestroy(made), 0);
  for (cuda::CUstream made : {stream, other})
    EXPECT_EQ(driver.cuStreamDestroy(made), 0);
}

/// The fake device notices threads that add to one capture at the same time.
TEST_F(DeviceTest, ThreadsInOneCaptureInvalidateIt) {
  BareDriver driver;
  constexpr int count = 100;
  cuda::CUstream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, 1), 0);
  ASSERT_EQ(driver.cuStreamBeginCapture(stream, 2), 0);
  std::atomic<int> numCalls[2] = {0, 0};
  runThreads(2, [&](int64_t thread) {
    device->getStream(thread)->beginRun(); // makes the context current
    cuda::CUevent event = nullptr;
    EXPECT_EQ(driver.cuEventCreate(&event, 2), 0);
    while (numCalls[0] < count || numCalls[1] < count) {
      driver.cuEventRecord(event, stream);
      ++numCalls[thread];
    }
    EXPECT_EQ(driver.cuEventDestroy(event), 0);
  });
  cuda::CUgraph graph = nullptr;
  EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph), captureInvalidated);
  EXPECT_EQ(driver.cuStreamDestroy(stream), 0);
}

/// Streams that need different amounts of shared memory don't take it from each
/// other.
TEST_F(DeviceTest, StreamsShareKernels) {
  void *program = ::dlopen(CUDA_PROGRAM, RTLD_NOW);
  ASSERT_NE(program, nullptr);
  auto *toys = static_cast<const tprt_device_code *>(
      ::dlsym(program, "tprt_device_code"));
  device = cuda::makeDevice({toys}, {});
  DeviceStream &first = *device->getStream(0), &second = *device->getStream(1);
  auto data = device->allocate(64 * 4), result = device->allocate(4);
  device->fill(Dtype::F32, 1, data.get(), 64);
  void *addresses[] = {data.get(), result.get()};
  void *arguments[] = {&addresses[0], &addresses[1]};
  auto launch = [&](DeviceStream &stream, uint32_t sharedBytes) {
    constexpr int32_t sum = 2;
    stream.beginRun();
    stream.launch(sum, {{1, 1, 1}, {64, 1, 1}, sharedBytes}, arguments);
    stream.endRun();
    stream.finish([](auto) {});
  };
  launch(first, 100 << 10);
  launch(second, 60 << 10);
  launch(first, 100 << 10);
  launch(second, 0);
  EXPECT_EQ(fake::countCalls("cuFuncSetAttribute sum"), 1u);
  EXPECT_EQ(read(result, 1), std::vector<float>{64});
  EXPECT_EQ(errorOf([&] { launch(first, 228 << 10); }),
            "kernel 'sum': cuFuncSetAttribute: as the fake device says "
            "(CUDA_ERROR_INVALID_VALUE)");
}

TEST_F(DeviceTest, StreamsWaitForEvents) {
  DeviceStream &first = *device->getStream(0), &second = *device->getStream(1);
  EXPECT_EQ(device->getStream(0), &first);
  auto data = device->allocate(8), copy = device->allocate(8);
  auto run = [&](bool waits) {
    device->fill(Dtype::F32, 0, data.get(), 2);
    for (DeviceStream *stream : {&first, &second})
      stream->beginRun();
    float five = 5;
    uint32_t bits;
    std::memcpy(&bits, &five, 4);
    first.fill(data.get(), bits, 4, 2);
    if (waits)
      second.waitFor(first.announce());
    second.copy(copy.get(), data.get(), 8);
    second.endRun();
    second.finish([](auto) {});
    first.endRun();
    first.finish([](auto) {});
    return read(copy, 2);
  };
  EXPECT_EQ(run(true), (std::vector<float>{5, 5}));
  EXPECT_EQ(run(false), (std::vector<float>{0, 0})); // the fake device is lazy
}

/// The fake device notices two calls at a time.
TEST_F(DeviceTest, ThreadsAddToACaptureOneByOne) {
  constexpr int64_t count = 100;
  DeviceStream &first = *device->getStream(0), &second = *device->getStream(1);
  auto data = device->allocate(2 * count * 4);
  device->fill(Dtype::F32, 0, data.get(), 2 * count);
  first.beginRun();
  second.beginRun();
  first.beginCapture();
  second.waitFor(first.announce());
  float five = 5;
  uint32_t bits;
  std::memcpy(&bits, &five, 4);
  std::vector<std::thread> threads;
  for (DeviceStream *stream : {&first, &second})
    threads.emplace_back([&, stream] {
      stream->beginRun();
      std::byte *own = data.get() + (stream == &first ? 0 : count * 4);
      for (int64_t i = 0; i < count; i += 2) {
        stream->fill(own + i * 4, bits, 4, 1);
        stream->announce();
        stream->copy(own + (i + 1) * 4, own + i * 4, 4);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  first.waitFor(second.announce());
  std::shared_ptr<void> graph = first.endCapture();
  first.replay(graph.get());
  first.finish([](auto) {});
  EXPECT_EQ(read(data, 2 * count), std::vector<float>(2 * count, 5));
}

/// A record that no kernel writes is neither reset nor read.
TEST_F(DeviceTest, ReportsOnlyWhatIsChecked) {
  DeviceStream &stream = *device->getStream(0);
  for (int32_t numSites : {0, 1}) {
    code.num_sites = numSites;
    fake::reset();
    stream.beginRun();
    stream.endRun();
    stream.finish([](auto) {});
    size_t expected = numSites;
    EXPECT_EQ(fake::countCalls("cuMemset"), expected);
    EXPECT_EQ(fake::countCalls("cuMemcpy"), expected);
  }
}

/// What the communication's stream does is seen only by who waits for it, and a
/// graph runs it too early unless it waits itself.
TEST_F(DeviceTest, CommunicationIsBesideComputation) {
  DeviceStream &stream = *device->getStream(0);
  Stream &communication = stream.getCommunication();
  auto data = device->allocate(8), copy = device->allocate(8),
       result = device->allocate(8);
  float five = 5;
  uint32_t bits;
  std::memcpy(&bits, &five, 4);
  auto enqueue = [&](bool startWaits, bool endWaits) {
    stream.beginRun();
    if (!startWaits) // joins, but behind nothing
      communication.waitFor(stream.announce());
    stream.fill(data.get(), bits, 4, 2);
    if (startWaits)
      communication.waitFor(stream.announce());
    communication.copy(copy.get(), data.get(), 8);
    Event *end = communication.announce();
    if (endWaits)
      stream.waitFor(end);
    stream.copy(result.get(), copy.get(), 8);
    if (!endWaits)
      stream.waitFor(end);
    stream.endRun();
  };
  auto run = [&](bool startWaits, bool endWaits, bool isGraph) {
    for (auto &memory : {data, copy, result})
      device->fill(Dtype::F32, 0, memory.get(), 2);
    if (isGraph)
      stream.beginCapture();
    enqueue(startWaits, endWaits);
    if (isGraph)
      stream.replay(stream.endCapture().get());
    stream.finish([](auto) {});
    return read(result, 2);
  };
  std::vector<float> right = {5, 5}, wrong = {0, 0};
  for (bool isGraph : {false, true}) {
    EXPECT_EQ(run(true, true, isGraph), right);
    EXPECT_EQ(run(true, false, isGraph), wrong);
  }
  EXPECT_EQ(run(false, true, true), wrong);
}

TEST_F(DeviceTest, StagingStaysWhileItIsUsed) {
  DeviceStream &stream = *device->getStream(0);
  auto data = device->allocate(8);
  device->fill(Dtype::F32, 5, data.get(), 2);
  auto copy = device->allocate(8);
  stream.beginRun();
  std::byte *staging = stream.getStaging(8);
  stream.copy(staging, data.get(), 8);
  EXPECT_NE(stream.getStaging(1 << 20), staging);
  stream.copy(copy.get(), staging, 8);
  stream.endRun();
  stream.finish([](auto) {});
  EXPECT_EQ(read(copy, 2), (std::vector<float>{5, 5}));
}

TEST_F(DeviceTest, SaysHowMuchMemoryThereIs) {
  fake::getSettings().memoryBytes = fake::getAllocatedBytes() + 1000;
  EXPECT_EQ(errorOf([&] { device->allocate(1 << 20); }),
            "cannot allocate 1048576 bytes on device 0 ('fake device'): of " +
                std::to_string(fake::getSettings().memoryBytes) +
                " bytes, 1000 are free");
}

TEST_F(DeviceTest, FreesWhatItHas) {
  size_t before = fake::getAllocatedBytes();
  device->allocate(1000);
  EXPECT_EQ(fake::getAllocatedBytes(), before);
}

TEST_F(DeviceTest, NamesTheDriversFunction) {
  auto data = device->allocate(64);
  fake::failCall("cuMemsetD8Async", 1);
  EXPECT_EQ(errorOf([&] { device->getStream(0)->fill(data.get(), 0, 1, 64); }),
            "cuMemsetD8Async: as the fake device says "
            "(CUDA_ERROR_INVALID_VALUE)");
}

/// The context needn't be current in the thread that frees.
TEST_F(DeviceTest, FreesInAnyThread) {
  size_t before = fake::getAllocatedBytes();
  auto data = device->allocate(64);
  std::thread([&] { data.reset(); }).join();
  EXPECT_EQ(fake::getAllocatedBytes(), before);
}

TEST_F(DeviceTest, SaysWhatIsNotFreed) {
  DeviceStream &stream = *device->getStream(0);
  fake::failCall("cuMemFree", 1);
  device->allocate(64);
  EXPECT_EQ(errorOf([&] { stream.finish([](auto) {}); }),
            "device 0 ('fake device') failed to free a resource: "
            "cuMemFree: as the fake device says (CUDA_ERROR_INVALID_VALUE)");
  stream.finish([](auto) {}); // once
}

/// An index out of range is reported first.
TEST_F(DeviceTest, SaysWhatIsNotFreedInTheNextRun) {
  const char *sites[] = {"a: gather"};
  code.num_sites = 1;
  code.sites = sites;
  DeviceStream &stream = *device->getStream(0);
  stream.beginRun();
  tprt_device_error *record = stream.getErrorRecord();
  stream.fill(&record->site, 0, 4, 1);
  stream.fill(&record->index, 7, 4, 1);
  stream.fill(&record->bound, 3, 4, 1);
  for (int64_t *field : {&record->index, &record->bound})
    stream.fill(reinterpret_cast<int32_t *>(field) + 1, 0, 4, 1);
  stream.endRun();
  fake::failCall("cuMemFree", 1);
  device->allocate(64);
  EXPECT_EQ(errorOf([&] { stream.finish([](auto) {}); }),
            "a: gather: index 7 is out of range [0, 3)");
  stream.beginRun();
  stream.endRun();
  EXPECT_TRUE(contains(errorOf([&] { stream.finish([](auto) {}); }),
                       "failed to free a resource"));
}

TEST_F(DeviceTest, KeepsOutgrownMemoryWhileItMayBeUsed) {
  DeviceStream &stream = *device->getStream(0);
  size_t before = fake::getAllocatedBytes();
  stream.beginRun();
  std::byte *small = stream.getStaging(1000);
  EXPECT_EQ(stream.getStaging(500), small);
  EXPECT_NE(stream.getStaging(2000), small);
  stream.endRun();
  EXPECT_EQ(fake::getAllocatedBytes(), before + 3000);
  stream.finish([](auto) {});
  EXPECT_EQ(fake::getAllocatedBytes(), before + 2000);
}

TEST_F(DeviceTest, SeesWildPointers) {
  auto data = device->allocate(64);
  DeviceStream &stream = *device->getStream(0);
  stream.beginRun();
  stream.fill(data.get(), 0, 1, 65);
  stream.endRun();
  EXPECT_EQ(errorOf([&] { stream.finish([](auto) {}); }),
            "device 0 ('fake device') failed: as the fake device says "
            "(CUDA_ERROR_ILLEGAL_ADDRESS)");
}

TEST_F(DeviceTest, NoSuchDevice) {
  EXPECT_EQ(errorOf([&] { cuda::makeDevice({&code}, {.device = 8}); }),
            "there is no CUDA device 8, the driver finds 8");
}

TEST_F(DeviceTest, ChoosesAnImage) {
  const char *ptx = ".version 7.0\n.entry tprt_reduce_sum_f32(\n";
  tprt_device_image images[] = {
      {80, 1, ptx, 1}, {90, 0, ptx, 1}, {90, 1, ptx, 1}, {100, 1, ptx, 1}};
  const char *kernels[] = {"tprt_reduce_sum_f32"};
  tprt_device_code code = {4, images, 1, kernels, 0, nullptr};
  for (int32_t supported : {80, 89, 90, 103, 120}) {
    fake::getSettings().architecture = supported;
    cuda::makeDevice({&code}, {});
  }
  fake::getSettings().architecture = 75;
  EXPECT_EQ(
      errorOf([&] { cuda::makeDevice({&code}, {}); }),
      "device 0 ('fake device') (sm_75) can't run the program's kernels, which "
      "are for 'compute_80', 'sm_90', 'compute_90', 'compute_100'; the "
      "oldest that can be compiled for is sm_80");
  fake::getSettings().architecture = 100;
  kernels[0] = "tprt_reduce_sum_f33";
  EXPECT_EQ(
      errorOf([&] { cuda::makeDevice({&code}, {}); }),
      "the device's code has no kernel 'tprt_reduce_sum_f33': as the fake "
      "device says (CUDA_ERROR_NOT_FOUND)");
}

/// The runtime's own kernels aren't a program's.
TEST_F(DeviceTest, NamesItsOwnKernels) {
  auto data = device->allocate(64);
  fake::failCall("cuModuleLoadDataEx", 209);
  fake::failCall("cuModuleLoadDataEx", 209);
  EXPECT_EQ(errorOf([&] {
              device->getStream(0)->reduce(Reduction::Sum, Dtype::F32,
                                           {data.get()}, {data.get()}, 1);
            }),
            "cannot load the machine code of libtprt's own kernels on device 0 "
            "('fake device'): as the fake device says "
            "(CUDA_ERROR_NO_BINARY_FOR_GPU)\ncannot load the PTX of libtprt's "
            "own kernels on device 0 ('fake device'): as the fake device says "
            "(CUDA_ERROR_NO_BINARY_FOR_GPU)");
}

/// Cubins of the same major architecture, the best one first, then PTX, until
/// the driver accepts one. These cubins have no kernels.
TEST_F(DeviceTest, TriesImagesInOrder) {
  auto makeCubin = [](uint32_t architecture) {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_machine = EM_CUDA;
    header.e_flags = architecture;
    return header;
  };
  Elf64_Ehdr sm80 = makeCubin(80), sm86 = makeCubin(86), sm90 = makeCubin(90);
  const char *old =
                 ".version 7.0\n.target sm_80\n.entry tprt_reduce_sum_f32(\n",
             *recent =
                 ".version 9.0\n.target sm_89\n.entry tprt_reduce_sum_f32(\n";
  tprt_device_image images[] = {{80, 0, &sm80, 1}, {86, 0, &sm86, 1},
                                {80, 1, old, 1},   {89, 1, recent, 1},
                                {90, 0, &sm90, 1}, {90, 1, recent, 1}};
  const char *kernels[] = {"tprt_reduce_sum_f32"};
  tprt_device_code code = {6, images, 1, kernels, 0, nullptr};
  auto load = [&](int32_t driver, int32_t architecture) {
    fake::reset();
    fake::getSettings().driverVersion = driver;
    fake::getSettings().architecture = architecture;
    cuda::makeDevice({&code}, {});
    std::vector<std::string> tried;
    for (const std::string &call : fake::getCalls())
      if (call.starts_with("cuModuleLoadDataEx "))
        tried.push_back(call.substr(call.find(' ') + 1));
    return tried;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(load(13000, 89), (Names{"cubin 86", "cubin 80", "ptx"}));
  // This driver doesn't know the newer PTX.
  EXPECT_EQ(load(12040, 89), (Names{"cubin 86", "cubin 80", "ptx", "ptx"}));
  EXPECT_EQ(load(12040, 80), (Names{"cubin 80", "ptx"}));
  images[2].arch = 100;
  std::string error = errorOf([&] { load(12040, 80); });
  EXPECT_EQ(error, "cannot load the kernels for sm_80 on device 0 ('fake "
                   "device'): as the fake device says "
                   "(CUDA_ERROR_INVALID_IMAGE)");
  images[2] = {80, 1, recent, 1};
  error = errorOf([&] { load(12040, 90); });
  EXPECT_TRUE(contains(error, "for compute_90 on device 0 ('fake device'): as "
                              "the fake device says (CUDA_ERROR_UNSUPPORTED_PTX"
                              "_VERSION)\ncannot load"))
      << error;
  // What isn't the image's fault ends the search.
  fake::reset();
  fake::getSettings().architecture = 89;
  fake::failCall("cuModuleLoadDataEx", 2);
  EXPECT_TRUE(contains(errorOf([&] { cuda::makeDevice({&code}, {}); }),
                       "CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(fake::countCalls("cuModuleLoadDataEx"), 1u);
}
