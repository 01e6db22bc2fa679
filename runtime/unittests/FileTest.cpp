//===- FileTest.cpp - Tests of written files ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/File.h"
#include "TestUtils.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace tprt;
using namespace tprt::test;

namespace {

void write(const std::string &path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

mode_t getMode(const std::string &path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode : 0;
}

TEST(File, ReplacesInCommit) {
  TestDirectory directory;
  std::string path = directory / "f";
  write(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  {
    OutputFile file(path);
    file.write("lost");
    file.close();
  }
  EXPECT_EQ(readFile(path), "old");
  write(path, "new");
  EXPECT_EQ(readFile(path), "new");
  EXPECT_EQ(getMode(path) & 07777, 0640u);
  EXPECT_EQ(directory.countFiles(), 1u);
}

TEST(File, LeavesNothingWhenKilled) {
  TestDirectory directory;
  std::string path = directory / "f";
  int nameless = ::open((directory / ".").c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0)
    GTEST_SKIP() << "the file system has no O_TMPFILE";
  ::close(nameless);
  auto writeAndEnd = [&] {
    OutputFile file(path);
    file.write("half");
    ::raise(SIGKILL);
  };
  EXPECT_EXIT(writeAndEnd(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(directory.countFiles(), 0u);
  write(path, "old");
  EXPECT_EXIT(writeAndEnd(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(readFile(path), "old");
  EXPECT_EQ(directory.countFiles(), 1u);
}

TEST(File, RefusesAtOnceWhatCannotBeNamed) {
  TestDirectory directory;
  write(directory / "f", "");
  for (const std::string &path : {directory / std::string(256, 'n'),
                                  directory / "f/g", directory / "none/g"})
    EXPECT_THROW(OutputFile{path}, Error) << path;
  EXPECT_EQ(directory.countFiles(), 1u);
}

TEST(File, FollowsLinks) {
  TestDirectory directory;
  std::filesystem::create_directory(directory / "sub");
  write(directory / "sub/f", "old");
  std::filesystem::create_symlink("sub/f", directory / "link");
  std::filesystem::create_symlink("sub/g", directory / "dangling");
  write(directory / "link", "new");
  write(directory / "dangling", "new");
  EXPECT_EQ(readFile(directory / "sub/f"), "new");
  EXPECT_EQ(readFile(directory / "sub/g"), "new");
  EXPECT_TRUE(S_ISLNK(getMode(directory / "link")));
  EXPECT_TRUE(S_ISLNK(getMode(directory / "dangling")));
}

TEST(File, WritesThroughToWhatIsNoFile) {
  TestDirectory directory;
  std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  auto reader = std::async(std::launch::async, [&] { return readFile(fifo); });
  write(fifo, "text");
  EXPECT_EQ(reader.get(), "text");
  EXPECT_TRUE(S_ISFIFO(getMode(fifo)));
  EXPECT_EQ(directory.countFiles(), 1u);
  write("/dev/null", "text");
  EXPECT_TRUE(S_ISCHR(getMode("/dev/null")));
  EXPECT_TRUE(contains(errorOf([] { write("/dev/full", "text"); }),
                       "cannot write '/dev/full': No space left on device"));
}

TEST(File, EndsTheWaitForAReader) {
  TestDirectory directory;
  std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  static volatile std::sig_atomic_t isWanted = 1; // a signal that came before
  endWaitsForReaders(isWanted);
  EXPECT_TRUE(contains(errorOf([&] { OutputFile file(fifo); }),
                       "fifo': a signal has ended the wait for its reader"));
  isWanted = 0;
  std::thread reader([&] {
    std::ifstream in(fifo);
    std::string text;
    EXPECT_TRUE(std::getline(in, text) && text == "text");
  });
  OutputFile(fifo).write("text\n");
  reader.join();
}

TEST(File, SaysWhyNothingCanBeWritten) {
  TestDirectory directory;
  std::string folder = directory / "";
  EXPECT_TRUE(contains(errorOf([&] { OutputFile file(folder); }),
                       "cannot write '" + folder + "': Is a directory"));
  std::string path = directory / "gone/f";
  EXPECT_TRUE(
      contains(errorOf([&] { OutputFile file(path); }),
               "cannot write '" + path + "': No such file or directory"));
}

TEST(File, ChecksOutputs) {
  TestDirectory directory;
  std::filesystem::create_symlink("f", directory / "link");
  std::filesystem::create_directory(directory / "sub");
  auto check = [&](const std::string &one, const std::string &other) {
    std::string paths[] = {one, other};
    return errorOf([&] { checkOutputs(paths); });
  };
  std::string f = directory / "f", g = directory / "g";
  EXPECT_NO_THROW(checkOutputs(std::vector{f, g}));
  EXPECT_NO_THROW(checkOutputs(std::vector<std::string>(2, "/dev/null")));
  EXPECT_EQ(check(f, f), "'" + f +
                             "' is given for two outputs; give each a "
                             "file of its own");
  for (std::string same :
       {directory / "link", directory / "./f", directory / "sub/../f"})
    EXPECT_EQ(check(f, same), "'" + same + "' and '" + f +
                                  "' are the same file; give each output a "
                                  "file of its own");
  EXPECT_TRUE(contains(check(f, directory / "gone/f"), "cannot write"));
  EXPECT_EQ(directory.countFiles(), 2u); // those above
}

TEST(File, RemovesNewDirectoriesThatStayEmpty) {
  namespace fs = std::filesystem;
  TestDirectory directory;
  {
    NewDirectory made(directory / "a/b/");
    EXPECT_TRUE(fs::is_directory(directory / "a/b"));
  }
  EXPECT_FALSE(fs::exists(directory / "a"));
  {
    NewDirectory made(directory / "a/b/c");
    directory.write("a/f", "");
  }
  EXPECT_FALSE(fs::exists(directory / "a/b"));
  EXPECT_TRUE(fs::exists(directory / "a/f"));
  fs::create_directory(directory / "old");
  {
    NewDirectory made(directory / "old");
  }
  EXPECT_TRUE(fs::exists(directory / "old"));
  EXPECT_TRUE(contains(errorOf([&] { NewDirectory(directory / "a/f/g"); }),
                       "cannot create directory '"));
}

TEST(FileDeathTest, SaysWhichFileWasCut) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  TestDirectory directory;
  std::string path = directory / "f";
  write(path, std::string(1 << 16, 'x'));
  auto readCut = [&] {
    reportLostPages("tool", 4);
    auto other = MappedFile::open(path);
    auto file = MappedFile::open(path);
    other.reset();
    std::filesystem::resize_file(path, 4096);
    volatile std::byte last = file->getBytes().back();
    (void)last;
  };
  EXPECT_EXIT(readCut(), testing::ExitedWithCode(4),
              "tool: error: '.*/f' can no longer be read");
}

TEST(File, FifosAreNoInputs) {
  TestDirectory directory;
  std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(contains(errorOf([&] { MappedFile::open(fifo); }),
                       "is not a regular file"));
}

} // namespace
