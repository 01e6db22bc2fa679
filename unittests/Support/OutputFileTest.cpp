//===- OutputFileTest.cpp - Tests of written files ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/OutputFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <future>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir::tp;
namespace fs = llvm::sys::fs;

namespace {

struct OutputFileTest : testing::Test {
  OutputFileTest() {
    EXPECT_FALSE(fs::createUniqueDirectory("output-file", folder));
  }
  ~OutputFileTest() override { fs::remove_directories(folder); }

  std::string at(llvm::StringRef name) { return (folder + "/" + name).str(); }
  static std::string read(const std::string &path) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "(none)";
  }
  /// The message; empty where there is none.
  static std::string write(const std::string &path, llvm::StringRef text) {
    return llvm::toString(writeFile(path, text));
  }
  int64_t countFiles() {
    std::error_code code;
    int64_t count = 0;
    for (fs::directory_iterator it(folder, code), end; it != end;
         it.increment(code))
      ++count;
    return count;
  }

  llvm::SmallString<128> folder;
};

TEST_F(OutputFileTest, ReplacesAFileInCommit) {
  EXPECT_EQ(write(at("f"), "old"), "");
  auto file = OutputFile::create(at("f"));
  ASSERT_TRUE(bool(file));
  file->os() << "new";
  EXPECT_FALSE(bool(file->close()));
  EXPECT_EQ(read(at("f")), "old");
  EXPECT_FALSE(bool(file->commit()));
  EXPECT_EQ(read(at("f")), "new");
  EXPECT_EQ(countFiles(), 1);
}

TEST_F(OutputFileTest, LeavesWhatWasThereWithoutCommit) {
  EXPECT_EQ(write(at("f"), "old"), "");
  llvm::Error error = writeFile(at("f"), [](llvm::raw_ostream &os) {
    os << "new";
    return llvm::createStringError("no more");
  });
  EXPECT_EQ(llvm::toString(std::move(error)), "no more");
  EXPECT_EQ(read(at("f")), "old");
  EXPECT_EQ(countFiles(), 1);
}

TEST_F(OutputFileTest, RefusesAtOnceWhatCannotBeNamed) {
  EXPECT_EQ(write(at("f"), ""), "");
  for (const std::string &path :
       {at(std::string(256, 'n')), at("f/g"), at("none/g")}) {
    auto file = OutputFile::create(path);
    EXPECT_FALSE(bool(file)) << path;
    llvm::consumeError(file.takeError());
  }
  EXPECT_EQ(countFiles(), 1);
}

TEST_F(OutputFileTest, KeepsPermissions) {
  EXPECT_EQ(write(at("f"), "old"), "");
  ASSERT_EQ(::chmod(at("f").c_str(), 0640), 0);
  EXPECT_EQ(write(at("f"), "new"), "");
  struct stat status = {};
  ASSERT_EQ(::stat(at("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(OutputFileTest, FollowsLinks) {
  ASSERT_FALSE(fs::create_directory(at("sub")));
  EXPECT_EQ(write(at("sub/f"), "old"), "");
  ASSERT_EQ(::symlink("sub/f", at("link").c_str()), 0);
  EXPECT_EQ(write(at("link"), "new"), "");
  EXPECT_EQ(read(at("sub/f")), "new");
  EXPECT_TRUE(fs::is_symlink_file(at("link")));
  // A link to a file that isn't there yet, as open(O_CREAT) follows it.
  ASSERT_EQ(::symlink("sub/g", at("dangling").c_str()), 0);
  EXPECT_EQ(write(at("dangling"), "new"), "");
  EXPECT_EQ(read(at("sub/g")), "new");
  EXPECT_TRUE(fs::is_symlink_file(at("dangling")));
}

TEST_F(OutputFileTest, RefusesFolders) {
  EXPECT_EQ(write(folder.str().str(), "text"),
            "cannot write '" + folder.str().str() + "': it is a directory");
  EXPECT_NE(write(at("missing/f"), "text").find("No such file or directory"),
            std::string::npos);
}

TEST_F(OutputFileTest, WritesThroughToAFifo) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  auto reader = std::async(std::launch::async, [&] {
    int descriptor = ::open(at("fifo").c_str(), O_RDONLY);
    std::string text;
    char buffer[64];
    for (ssize_t n; (n = ::read(descriptor, buffer, sizeof(buffer))) > 0;)
      text.append(buffer, n);
    ::close(descriptor);
    return text;
  });
  EXPECT_EQ(write(at("fifo"), "text"), "");
  EXPECT_EQ(reader.get(), "text");
  struct stat status = {};
  ASSERT_EQ(::stat(at("fifo").c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(countFiles(), 1);
}

TEST_F(OutputFileTest, WritesThroughToDevices) {
  EXPECT_EQ(write("/dev/null", "text"), "");
  EXPECT_EQ(fs::get_file_type("/dev/null"), fs::file_type::character_file);
  EXPECT_EQ(write("/dev/full", "text"),
            "cannot write '/dev/full': No space left on device");
  EXPECT_EQ(fs::get_file_type("/dev/full"), fs::file_type::character_file);
}

TEST_F(OutputFileTest, WritesAllOrNone) {
  write(at("one"), "before");
  std::string message =
      llvm::toString(writeFiles({{at("one"), "1"}, {at("missing/two"), "2"}}));
  EXPECT_NE(message.find("missing/two"), std::string::npos) << message;
  EXPECT_EQ(read(at("one")), "before");
  EXPECT_EQ(countFiles(), 1);
  EXPECT_EQ(llvm::toString(writeFiles(
                {{at("one"), "1"}, {"", "nowhere"}, {at("two"), "2"}})),
            "");
  EXPECT_EQ(read(at("one")) + read(at("two")), "12");
  EXPECT_EQ(countFiles(), 2);
}

TEST_F(OutputFileTest, KnowsOutputsOfOneName) {
  DistinctOutputs distinct;
  ASSERT_EQ(::symlink("f", at("link").c_str()), 0);
  EXPECT_EQ(write(at("f"), "one"), "");
  EXPECT_EQ(write(at("link"), "two"),
            "'" + at("link") +
                "' is given for two outputs; give each a file of its own");
  EXPECT_EQ(read(at("f")), "one");
  // What keeps nothing may be written often.
  EXPECT_EQ(write("/dev/null", "one"), "");
  EXPECT_EQ(write("/dev/null", "two"), "");
}

TEST_F(OutputFileTest, MayReplaceItsOwnInput) {
  std::string text(1 << 20, 'x');
  EXPECT_EQ(write(at("f"), text), "");
  auto input = llvm::MemoryBuffer::getFile(at("f")); // mapped, at that size
  ASSERT_TRUE(bool(input));
  llvm::Error error = writeFile(at("f"), [&](llvm::raw_ostream &os) {
    os << (*input)->getBuffer() << "y";
    return llvm::Error::success();
  });
  EXPECT_EQ(llvm::toString(std::move(error)), "");
  EXPECT_EQ(read(at("f")), text + "y");
}

} // namespace
