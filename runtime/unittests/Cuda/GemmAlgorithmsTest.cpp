//===- GemmAlgorithmsTest.cpp - Choice of cuBLASLt's algorithms -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaDevice.h"

#include "Fake.h"
#include "TestUtils.h"

#include <thread>

using namespace tprt;
using namespace tprt::test;

namespace {

/// Products whose algorithms are measured.
class CudaGemmAlgorithms : public testing::Test {
protected:
  void SetUp() override {
    fake::reset();
    fake::getSettings().fastestAlgorithm = 2;
  }
  void TearDown() override { fake::reset(); }

  /// Runs a product on a device of its own. C was `before`, all elements of A
  /// and B are 1.
  GemmUses run(bool accumulates = false, bool hasAddend = false,
               double maxSeconds = 60) { // of a busy machine
    GemmOptions options{.library = {}, .file = file, .maxSeconds = maxSeconds};
    std::shared_ptr<Device> device =
        cuda::makeDevice({&code}, {}, options, mayMeasure);
    DeviceStream &stream = *device->getStream(0);
    std::vector<std::shared_ptr<std::byte>> data;
    for (double value : {1.0, 1.0, 10.0, 100.0}) {
      data.push_back(device->allocate(256));
      device->fill(Dtype::F32, value, data.back().get(), 64);
    }
    tprt_gemm_args args = {0, accumulates, 1, 1, 4, 4, 3, 3, 1, 0,
                           0, 4,           1, 0, 0, 4, 0, 0, 0, 4};
    stream.beginRun();
    if (earlier) { // by a kernel
      tprt_gemm_args none = args;
      none.k = 0;
      stream.gemm(none, {data[0].get(), data[1].get(), data[3].get()});
    }
    stream.gemm(args, {data[0].get(), data[1].get(), data[2].get(), nullptr,
                       hasAddend ? data[3].get() : nullptr});
    stream.endRun();
    stream.finish([](auto) {});
    float result = 0;
    device->read(data[2].get(), Dtype::F32, {1}, makeBox({0}, {1}),
                 reinterpret_cast<std::byte *>(&result));
    EXPECT_EQ(result, 3 + (accumulates ? 10 : 0) + (hasAddend ? 100 : 0));
    return stream.getGemmUses();
  }

  TestDirectory directory;
  std::string file = directory / "choices.json";
  bool mayMeasure = true;
  bool earlier = false; ///< whether there is other work in front
  tprt_device_code code = {};
};

} // namespace

TEST_F(CudaGemmAlgorithms, FastestOneIsKept) {
  GemmUses uses = run();
  ASSERT_EQ(uses.products.size(), 1u);
  EXPECT_EQ(uses.file, file);
  EXPECT_EQ(uses.note, "");
  GemmUse use = uses.products[0];
  EXPECT_EQ(use.form,
            "f32, 4 x 4 x 3 (m x n x k), A by rows of 3, B by rows of 4, C by "
            "rows of 4, aligned to 256 256 256");
  EXPECT_EQ(use.library, "cuBLASLt 13.1.0");
  EXPECT_EQ(use.epilogue, "none");
  EXPECT_EQ(use.algorithm, 2);
  EXPECT_EQ(use.numAlgorithms, 3);
  EXPECT_EQ(use.calls, 1);
  EXPECT_GT(use.seconds, 0);
  EXPECT_GT(use.firstSeconds, use.seconds);
  size_t calls = fake::countCalls("cublasLtMatmul ");
  EXPECT_GT(calls, 5u);
  // Another process takes it from the file.
  GemmUses again = run();
  EXPECT_EQ(again.products, uses.products);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), calls + 1);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul 2 "),
            fake::countCalls("cublasLtMatmul 2 stream"));
  // Another version of the library has other algorithms.
  fake::getSettings().blasVersion = 130200;
  fake::getSettings().fastestAlgorithm = 1;
  EXPECT_EQ(run().products.at(0).algorithm, 1);
  fake::getSettings().blasVersion = 130100;
  EXPECT_EQ(run().products.at(0).algorithm, 2); // both are in the file
}

TEST_F(CudaGemmAlgorithms, MeasuringKeepsWhatIsAddedTo) {
  EXPECT_EQ(run(/*accumulates=*/true).products.at(0).algorithm, 2);
  EXPECT_EQ(run(false, /*hasAddend=*/true).products.at(0).algorithm, 2);
}

TEST_F(CudaGemmAlgorithms, OnlyWhatCanBeKeptIsMeasured) {
  std::string first =
      "; products without a stored choice use cuBLASLt's first algorithm";
  std::string path = file;
  file = directory / "nothing/choices.json";
  GemmUses uses = run();
  EXPECT_EQ(uses.note, "'" + file + "' can't be written" + first);
  EXPECT_EQ(uses.products.at(0).algorithm, 0);
  file = path;
  uses = run(false, false, /*maxSeconds=*/0);
  EXPECT_EQ(uses.note, "no time is given for measuring" + first);
  mayMeasure = false;
  EXPECT_EQ(run().note, "processes that share ranks don't measure" + first);
  mayMeasure = true;
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 3u);
  file = "";
  EXPECT_EQ(run().note, "");
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 4u);
}

TEST_F(CudaGemmAlgorithms, FilesThatAreWrong) {
  directory.write("choices.json", "{}");
  GemmUses uses = run();
  EXPECT_TRUE(contains(uses.note, "'" + file + "' holds no choices: "));
  EXPECT_EQ(uses.products.at(0).algorithm, 2);
  EXPECT_EQ(run().note, ""); // it was replaced
  // A position that isn't in the list.
  std::string text = readFile(file);
  size_t at = text.find("\"algorithm\": 2");
  ASSERT_NE(at, std::string::npos);
  directory.write("choices.json", text.replace(at, 14, "\"algorithm\": 7"));
  uses = run();
  EXPECT_TRUE(contains(uses.note, "'algorithm' is 7, of 3"));
  EXPECT_EQ(uses.products.at(0).algorithm, 2);
}

/// An algorithm that fails once isn't measured again. The next process takes
/// the choice from the file.
TEST_F(CudaGemmAlgorithms, OneThatFailsIsOut) {
  fake::failCall("cublasLtMatmul", 15, /*skip=*/4);
  GemmUse use = run().products.at(0);
  EXPECT_NE(use.algorithm, 2);
  EXPECT_EQ(use.numAlgorithms, 3);
  size_t calls = fake::countCalls("cublasLtMatmul ");
  GemmUses again = run();
  EXPECT_EQ(again.note, "");
  EXPECT_EQ(again.products.at(0), use);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), calls + 1);
}

/// A time that isn't known isn't kept.
TEST_F(CudaGemmAlgorithms, TheFirstOneFails) {
  fake::failCall("cublasLtMatmul", 15);
  GemmUse use = run().products.at(0);
  EXPECT_EQ(use.algorithm, 2);
  EXPECT_GT(use.seconds, 0);
  EXPECT_EQ(use.firstSeconds, 0);
  size_t calls = fake::countCalls("cublasLtMatmul ");
  GemmUses again = run();
  EXPECT_EQ(again.note, "");
  EXPECT_EQ(again.products.at(0), use);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), calls + 1);
}

/// Nothing is kept where all fail: the next process measures again.
TEST_F(CudaGemmAlgorithms, AllFail) {
  for (int i = 0; i < 3; ++i)
    fake::failCall("cublasLtMatmul", 15);
  GemmUses uses = run();
  EXPECT_TRUE(contains(uses.note, "a product couldn't be measured"));
  EXPECT_EQ(uses.products.at(0).algorithm, 0);
  GemmUses again = run();
  EXPECT_EQ(again.note, "");
  EXPECT_EQ(again.products.at(0).algorithm, 2);
}

/// Work in front of a product isn't part of its time.
TEST_F(CudaGemmAlgorithms, WaitsForEarlierWork) {
  fake::hangKernels();
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    fake::hangKernels(false);
  });
  earlier = true;
  GemmUses uses = run();
  later.join();
  EXPECT_EQ(uses.note, "");
  EXPECT_EQ(uses.products.at(0).algorithm, 2);
}

/// The time of an algorithm that doesn't end counts, so that nothing else is
/// measured.
TEST_F(CudaGemmAlgorithms, GivesUpOnce) {
  fake::getSettings().hangingAlgorithm = 1;
  tprt_gemm_args args = {0, 0, 1, 1, 4, 4, 3, 3, 1, 0,
                         0, 4, 1, 0, 0, 4, 0, 0, 0, 4};
  std::shared_ptr<Device> device =
      cuda::makeDevice({&code}, {}, {.library = {}, .file = file});
  DeviceStream &stream = *device->getStream(0);
  auto data = device->allocate(256);
  device->fill(Dtype::F32, 1, data.get(), 64);
  stream.beginRun();
  size_t events = fake::countCalls("cuEventCreate");
  for (int64_t k : {1, 2, 3}) {
    args.k = k;
    stream.gemm(args, {data.get(), data.get(), data.get() + 128});
  }
  stream.endRun();
  fake::getSettings().hangingAlgorithm = -1;
  stream.finish([](auto) {});
  GemmUses uses = stream.getGemmUses();
  EXPECT_TRUE(contains(uses.note, "a product couldn't be measured"));
  // Two for each algorithm of one product.
  EXPECT_EQ(fake::countCalls("cuEventCreate"), events + 6);
  EXPECT_EQ(uses.products.size(), 3u);
}

/// No algorithm begins after the time for a product is over.
TEST_F(CudaGemmAlgorithms, EndsInTime) {
  fake::getSettings().blasAlgorithms = 16;
  fake::getSettings().fastestAlgorithm = 0;
  fake::getSettings().blasMilliseconds = 20;
  GemmUse use = run(false, false, /*maxSeconds=*/0.3).products.at(0);
  EXPECT_EQ(use.algorithm, 0);
  EXPECT_GT(use.firstSeconds, 0);
  // Two calls of each of two algorithms, and that of the program.
  EXPECT_LE(fake::countCalls("cublasLtMatmul "), 5u);
}
