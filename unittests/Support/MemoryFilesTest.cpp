//===- MemoryFilesTest.cpp - Tests of files in memory ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/MemoryFiles.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <thread>

using namespace mlir::tp;

static std::string read(llvm::StringRef name) {
  auto file = readInput(name);
  if (!file)
    return "error: " + llvm::toString(file.takeError());
  return (*file)->getBuffer().str();
}

TEST(MemoryFiles, AreReadInsteadOfFiles) {
  MemoryFiles files;
  files.addInput("plan.yaml", "plan: {}");
  EXPECT_EQ(read("plan.yaml"), "plan: {}");
  EXPECT_EQ(read("other.yaml"), "error: No such file or directory");
}

TEST(MemoryFiles, AreCheckedLikeFiles) {
  MemoryFiles files;
  files.addInput("plan.yaml", "plan: \x1b[0m");
  EXPECT_NE(read("plan.yaml").find("the control character U+001B"),
            std::string::npos);
}

TEST(MemoryFiles, AreWrittenInsteadOfFiles) {
  MemoryFiles files;
  files.addOutput("memory-files-report.json");
  EXPECT_EQ(files.getOutput("memory-files-report.json"), std::nullopt);
  EXPECT_FALSE(static_cast<bool>(writeFile("memory-files-report.json", "{}")));
  EXPECT_EQ(files.getOutput("memory-files-report.json"), "{}");
  EXPECT_FALSE(llvm::sys::fs::exists("memory-files-report.json"));
}

TEST(MemoryFiles, AreWrittenTogether) {
  MemoryFiles files;
  files.addOutput("report.json");
  files.addOutput("report.html");
  llvm::Error error =
      writeFiles({{"report.json", "{}"}, {"/no/such/folder/x", ""}});
  EXPECT_NE(llvm::toString(std::move(error)), "");
  EXPECT_FALSE(files.getOutput("report.json"));
  EXPECT_FALSE(static_cast<bool>(
      writeFiles({{"report.json", "{}"}, {"report.html", "<p>"}})));
  EXPECT_EQ(files.getOutput("report.json"), "{}");
  EXPECT_EQ(files.getOutput("report.html"), "<p>");
}

TEST(MemoryFiles, FailedWritesLeaveNothing) {
  MemoryFiles files;
  files.addOutput("report.json");
  llvm::Error error = writeFile("report.json", [](llvm::raw_ostream &os) {
    os << "{";
    return llvm::createStringError("no");
  });
  EXPECT_EQ(llvm::toString(std::move(error)), "no");
  EXPECT_EQ(files.getOutput("report.json"), std::nullopt);
}

TEST(MemoryFiles, BelongToAThreadAndAScope) {
  {
    MemoryFiles outer;
    outer.addInput("plan.yaml", "outer");
    {
      MemoryFiles inner;
      EXPECT_EQ(read("plan.yaml"), "error: No such file or directory");
    }
    EXPECT_EQ(read("plan.yaml"), "outer");
    std::thread([] { EXPECT_EQ(MemoryFiles::getCurrent(), nullptr); }).join();
  }
  EXPECT_EQ(MemoryFiles::getCurrent(), nullptr);
}
