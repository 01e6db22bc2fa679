//===- CheckpointTest.cpp - The state of a training on disk ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Checkpoint.h"

#include "TrainPrograms.h"

#include <csignal>
#include <sys/resource.h>

using namespace tprt;
using namespace tprt::test;
namespace fs = std::filesystem;

namespace {

/// A session with a few steps behind it, and a checkpoint of it.
class Checkpoints : public testing::Test {
protected:
  Checkpoints()
      : session(loadTrainProgram("train.3"), makeRegressionWeights()) {
    for (int step = 0; step < 3; ++step)
      session.run(makeRegressionData(8));
  }
  std::string write(int64_t step) {
    return CheckpointDirectory(path).write(session, step, state);
  }

  TestDirectory directory;
  std::string path = directory / "run";
  DataState state{.numExamples = 20, .position = 24, .seed = 7};
  Session session;
};

} // namespace

TEST_F(Checkpoints, SayWhatTheyAre) {
  Checkpoint checkpoint = readCheckpoint(write(3));
  EXPECT_EQ(checkpoint.path, path + "/step-00000003");
  EXPECT_EQ(checkpoint.step, 3);
  EXPECT_EQ(checkpoint.data, state);
  EXPECT_EQ(checkpoint.meshName, "mesh");
  ASSERT_EQ(checkpoint.axes.size(), 1u);
  EXPECT_EQ(checkpoint.axes[0].size, 3);
  // Three files and an index, of the model and of the optimizer.
  EXPECT_EQ(checkpoint.files.size(), 8u);
  EXPECT_TRUE(verifyCheckpoint(checkpoint).empty());
  EXPECT_EQ(readCheckpointTensors(checkpoint, true, false).size(), 3u);
  EXPECT_EQ(readCheckpointTensors(checkpoint, false, true).size(), 3u);

  state.seed.reset();
  EXPECT_EQ(readCheckpoint(write(4)).data, state);
}

TEST_F(Checkpoints, HoldEveryBit) {
  TensorMap loaded =
      loadCheckpoint(readCheckpoint(write(3)), session.getManifest());
  for (const TensorInfo &info : session.getManifest().parameters) {
    Tensor expected = session.getParameter(info.name);
    const Tensor &found = loaded.at(info.name);
    EXPECT_EQ(found.getTypeString(), expected.getTypeString());
    EXPECT_EQ(std::memcmp(found.data.get(), expected.data.get(),
                          expected.getNumBytes()),
              0)
        << info.name;
  }
}

TEST_F(Checkpoints, FitAnotherMesh) {
  Checkpoint checkpoint = readCheckpoint(write(3));
  std::shared_ptr<const Artifact> other = loadTrainProgram("train.2");
  Session resumed(other, loadCheckpoint(checkpoint, other->getManifest()));
  for (const TensorInfo &info : session.getManifest().parameters)
    EXPECT_EQ(std::memcmp(resumed.getParameter(info.name).data.get(),
                          session.getParameter(info.name).data.get(),
                          session.getParameter(info.name).getNumBytes()),
              0)
        << info.name;
}

/// A later one that is damaged must not displace the good one before it.
TEST_F(Checkpoints, LaterOnesDontCount) {
  CheckpointDirectory checkpoints(path);
  for (int64_t step : {2, 4, 3})
    checkpoints.write(session, step, state);
  checkpoints.keepLast(1, 3);
  CheckpointList list = listCheckpoints(path);
  ASSERT_EQ(list.complete.size(), 2u);
  EXPECT_EQ(list.complete[0].step, 3);
  EXPECT_EQ(list.complete[1].step, 4);
}

/// Also where the program could begin with an initial value.
TEST_F(Checkpoints, DontFitAnotherProgram) {
  Checkpoint checkpoint = readCheckpoint(write(3));
  nlohmann::json manifest = readTrainManifest("train.2");
  manifest["parameters"][3]["name"] = "optimizer.exp_avg.w";
  EXPECT_EQ(errorOf([&] {
              loadCheckpoint(checkpoint, Manifest::parse(manifest.dump()));
            }),
            "checkpoint '" + checkpoint.path +
                "' doesn't fit the program:\n"
                "missing parameter 'optimizer.exp_avg.w' of type 7xf32\n"
                "unknown parameter 'optimizer.momentum.w', expected 'w', 'b', "
                "'scale', 'optimizer.exp_avg.w', 'optimizer.momentum.b', "
                "'optimizer.step' (did you mean 'optimizer.momentum.b'?)");
}

/// One changed byte of any file, or one missing: noticed, and named.
TEST_F(Checkpoints, DamageIsNoticed) {
  Checkpoint checkpoint = readCheckpoint(write(3));
  for (const WrittenFile &file : checkpoint.files) {
    std::string filePath = checkpoint.path + "/" + file.name;
    std::string bytes = readFile(filePath);
    for (size_t at : {size_t(0), bytes.size() / 2, bytes.size() - 1}) {
      std::string damaged = bytes;
      damaged[at] ^= 1;
      std::ofstream(filePath, std::ios::binary) << damaged;
      std::vector<std::string> problems =
          verifyCheckpoint(readCheckpoint(checkpoint.path));
      ASSERT_FALSE(problems.empty()) << file.name << " " << at;
      EXPECT_TRUE(contains(problems[0], "'" + filePath + "' is damaged"));
    }
    std::ofstream(filePath, std::ios::binary) << bytes.substr(1);
    EXPECT_TRUE(contains(errorOf([&] { readCheckpoint(checkpoint.path); }),
                         "'" + filePath + "' has"));
    fs::remove(filePath);
    EXPECT_EQ(errorOf([&] { readCheckpoint(checkpoint.path); }),
              "'" + filePath + "' is missing");
    std::ofstream(filePath, std::ios::binary) << bytes;
  }
  EXPECT_TRUE(verifyCheckpoint(readCheckpoint(checkpoint.path)).empty());
}

TEST_F(Checkpoints, DamagedManifests) {
  std::string manifestPath = write(3) + "/checkpoint.json";
  std::string text = readFile(manifestPath);
  for (size_t size = 0; size + 2 < text.size(); size += 7) {
    std::ofstream(manifestPath) << text.substr(0, size);
    EXPECT_TRUE(
        contains(errorOf([&] { readCheckpoint(path + "/step-00000003"); }),
                 "checkpoint.json' is damaged"));
  }
  nlohmann::json valid = nlohmann::json::parse(text);
  for (const auto &[key, value] : valid.items()) {
    nlohmann::json broken = valid;
    broken.erase(key);
    std::ofstream(manifestPath) << broken.dump();
    EXPECT_TRUE(
        contains(errorOf([&] { readCheckpoint(path + "/step-00000003"); }),
                 "checkpoint.json' is damaged"));
  }
  auto errorWithFile = [&](const char *key, const char *value) {
    nlohmann::json broken = valid;
    broken["files"][0][key] = value;
    std::ofstream(manifestPath) << broken.dump();
    return errorOf([&] { readCheckpoint(path + "/step-00000003"); });
  };
  for (const char *crc : {"", "x", "12z", " 1", "-1", "123456789"})
    EXPECT_TRUE(
        contains(errorWithFile("crc32", crc),
                 "is damaged: found '" + std::string(crc) + "' as the"));
  for (const char *name : {"../other", "/etc/passwd", "..", ".", "a/b", ""})
    EXPECT_TRUE(
        contains(errorWithFile("name", name), "'" + std::string(name) +
                                                  "' can't be the name of a "
                                                  "checkpoint's file"));
  std::ofstream(manifestPath) << R"({"schema":)" << std::string(1000000, '[');
  EXPECT_TRUE(
      contains(errorOf([&] { readCheckpoint(path + "/step-00000003"); }),
               "nested more deeply"));
  valid["schema"] = 2;
  std::ofstream(manifestPath) << valid.dump();
  EXPECT_TRUE(
      contains(errorOf([&] { readCheckpoint(path + "/step-00000003"); }),
               "schema 2, expected 1"));
  fs::remove(manifestPath);
  EXPECT_TRUE(
      contains(errorOf([&] { readCheckpoint(path + "/step-00000003"); }),
               "is not a checkpoint: it has no checkpoint.json"));
}

TEST_F(Checkpoints, AreListedByStep) {
  for (int64_t step : {20, 3, 100})
    write(step);
  fs::remove(path + "/step-00000020/model-00001-of-00003.safetensors");
  fs::create_directory(path + "/step-00000001");
  fs::create_directory(path + "/other");
  CheckpointList list = listCheckpoints(path);
  ASSERT_EQ(list.complete.size(), 2u);
  EXPECT_EQ(list.complete[0].step, 3);
  EXPECT_EQ(list.complete[1].step, 100);
  ASSERT_EQ(list.broken.size(), 2u);
  EXPECT_EQ(list.broken[0].first, path + "/step-00000001");
  EXPECT_TRUE(contains(list.broken[1].second, "is missing"));
  EXPECT_TRUE(contains(errorOf([&] { listCheckpoints(path + "/none"); }),
                       "cannot list '"));
}

TEST_F(Checkpoints, TheLastOnesAreKept) {
  CheckpointDirectory checkpoints(path);
  for (int64_t step : {1, 2, 3, 4}) {
    checkpoints.write(session, step, state);
    checkpoints.keepLast(2, step);
  }
  CheckpointList list = listCheckpoints(path);
  ASSERT_EQ(list.complete.size(), 2u);
  EXPECT_EQ(list.complete[0].step, 3);
  EXPECT_TRUE(list.broken.empty());
  auto entries = fs::directory_iterator(path);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 3); // and the lock
}

TEST_F(Checkpoints, LeftoversAreRemovedAndBrokenOnesReplaced) {
  write(3);
  fs::create_directory(path + "/step-00000004.tmp-abcdef");
  std::ofstream(path + "/step-00000004.tmp-abcdef/model") << "half";
  fs::create_directory(path + "/step-00000005");
  EXPECT_EQ(listCheckpoints(path).complete.size(), 1u);
  write(5);
  EXPECT_FALSE(fs::exists(path + "/step-00000004.tmp-abcdef"));
  CheckpointList list = listCheckpoints(path);
  EXPECT_EQ(list.complete.size(), 2u);
  EXPECT_TRUE(list.broken.empty());
}

TEST_F(Checkpoints, OneProcessWritesToADirectory) {
  CheckpointDirectory mine(path);
  EXPECT_EQ(errorOf([&] { CheckpointDirectory other(path); }),
            "another process writes checkpoints to '" + path + "'");
}

TEST_F(Checkpoints, AFullDiskLeavesNothing) {
  CheckpointDirectory checkpoints(path);
  // The limit of a file's size stands for the disk.
  auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = {100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::string error = errorOf([&] { checkpoints.write(session, 4, state); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_TRUE(contains(error, "cannot write '"));
  EXPECT_TRUE(contains(error, "File too large"));
  auto entries = fs::directory_iterator(path);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1); // the lock
}
