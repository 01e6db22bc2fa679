//===- TemporaryDirectoryTest.cpp - Removal of temporary directories ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/TemporaryDirectory.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <unistd.h>

using namespace mlir::tp;
namespace fs = llvm::sys::fs;

static volatile std::sig_atomic_t numSignals = 0;

namespace {

struct TemporaryDirectoryTest : testing::Test {
  TemporaryDirectoryTest() {
    EXPECT_FALSE(fs::createUniqueDirectory("temporary-directory", folder));
    ::setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporaryDirectoryTest() override {
    ::unsetenv("TMPDIR");
    fs::remove_directories(folder);
  }
  static bool contains(const std::string &text, llvm::StringRef part) {
    return llvm::StringRef(text).contains(part);
  }
  bool isEmpty() {
    std::error_code code;
    return fs::directory_iterator(folder, code) == fs::directory_iterator();
  }

  llvm::SmallString<128> folder;
};

TEST_F(TemporaryDirectoryTest, IsRemovedWithItsContents) {
  {
    TemporaryDirectory directory;
    ASSERT_FALSE(directory.create("test"));
    EXPECT_FALSE(directory.run({"/bin/sh", "-c", "true"}));
    EXPECT_TRUE(fs::exists(directory.getFile("log")));
    EXPECT_FALSE(isEmpty());
  }
  EXPECT_TRUE(isEmpty());
}

TEST_F(TemporaryDirectoryTest, SaysWhatAProgramHasPrinted) {
  TemporaryDirectory directory;
  ASSERT_FALSE(directory.create("test"));
  auto run = [&](llvm::StringRef program, llvm::StringRef script) {
    return llvm::toString(directory.run({program, "-c", script}));
  };
  EXPECT_TRUE(
      contains(run("/bin/sh", "echo out; echo err >&2; exit 3"), "out\nerr"));
  EXPECT_TRUE(contains(run("/bin/sh", "exit 3"), "exit code 3"));
  EXPECT_TRUE(
      contains(run("/bin/sh", "kill -SEGV $$"), "it was ended by SIGSEGV"));
  EXPECT_TRUE(
      contains(run("/bin/sh", "kill -40 $$"), "it was ended by signal 40"));
  EXPECT_TRUE(contains(run("/no/program", ""),
                       "can't run it: No such file or directory"));
}

TEST_F(TemporaryDirectoryTest, SaysWhichVariableNamesTheFolder) {
  ::setenv("TMPDIR", "/dev/null", 1);
  TemporaryDirectory directory;
  EXPECT_EQ(llvm::toString(directory.create("test")),
            "can't make a temporary directory in '/dev/null', which $TMPDIR "
            "names: Not a directory");
  ::setenv("TMPDIR", "", 1); // names nothing
  EXPECT_EQ(describeTemporaryFolder(), "'/tmp'");
}

TEST_F(TemporaryDirectoryTest, LetsSignalsWait) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) { numSignals = numSignals + 1; };
  ::sigaction(SIGTERM, &action, &before);
  {
    TemporaryDirectory directory;
    ASSERT_FALSE(directory.create("test"));
    auto start = std::chrono::steady_clock::now();
    std::string error = llvm::toString(
        directory.run({"/bin/sh", "-c", "kill -TERM $PPID; exec sleep 60"}));
    EXPECT_TRUE(contains(error, "it was ended by SIGKILL"));
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(30));
    EXPECT_EQ(numSignals, 0);
  }
  EXPECT_EQ(numSignals, 1);
  ::raise(SIGTERM); // the handler is the one of before
  EXPECT_EQ(numSignals, 2);
  ::sigaction(SIGTERM, &before, nullptr);
}

} // namespace
