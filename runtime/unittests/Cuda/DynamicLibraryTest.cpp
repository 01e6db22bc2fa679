//===- DynamicLibraryTest.cpp - Missing and old libraries -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/DynamicLibrary.h"

#include "TestUtils.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::test;

TEST(Library, MissingOne) {
  std::string error = errorOf([] {
    Library({"cuBLASLt", {"libnothere.so.13", "libnothere.so.12"}, {12, 4}});
  });
  EXPECT_TRUE(contains(error, "cannot load cuBLASLt, version 12.4 or newer, "
                              "which programs for CUDA devices need: "
                              "libnothere.so.13: cannot open"))
      << error;
}

TEST(Library, BrokenOne) {
  TestDirectory directory;
  std::string path = directory.write("libbroken.so", "not an object");
  EXPECT_TRUE(contains(
      errorOf([&] { Library({"the CUDA driver", {path}, {12, 0}}); }),
      "cannot load the CUDA driver, version 12.0 or newer, which programs for "
      "CUDA devices need: " +
          path + ": "));
}

TEST(Library, TakesTheFirstThatIsThere) {
  Library library({"NCCL", {"libnothere.so.2", "libcuda.so.1"}, {2, 18}});
  int (*function)(unsigned) = nullptr;
  library.find("cuInit", function);
  EXPECT_NE(function, nullptr);
}

TEST(Library, OldOnes) {
  Library library({"NCCL", {"libcuda.so.1"}, {2, 18}});
  library.checkVersion({2, 18});
  library.checkVersion({3, 0});
  EXPECT_EQ(errorOf([&] { library.checkVersion({2, 17}); }),
            "NCCL has version 2.17, version 2.18 or newer is needed");
  EXPECT_EQ(errorOf([&] { library.checkVersion({1, 99}); }),
            "NCCL has version 1.99, version 2.18 or newer is needed");
  void (*function)() = nullptr;
  EXPECT_EQ(errorOf([&] { library.find("ncclCommNotThere", function); }),
            "NCCL has no function 'ncclCommNotThere': version 2.18 or newer is "
            "needed");
}
