//===- TrainingTest.cpp - Training, interrupted and continued -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Training.h"

#include "Jobs.h"
#include "ThreadTransport.h"
#include "TrainPrograms.h"
#include "tprt/Metrics.h"
#include "tprt/TrainingPage.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <csignal>
#include <sys/resource.h>

using namespace tprt;
using namespace tprt::test;

namespace {

class Training : public testing::Test {
protected:
  Training() {
    for (const auto &[name, tensor] : makeRegressionData(20))
      writeNpy(directory / (name + ".npy"), tensor);
  }
  Dataset open(const Manifest &manifest) {
    return Dataset::fromArrays(
        manifest,
        {{"x", directory / "x.npy"}, {"target", directory / "target.npy"}});
  }
  Session makeSession(const std::string &name,
                      TensorMap weights = makeRegressionWeights()) {
    return Session(loadTrainProgram(name), weights);
  }
  /// Bits of all parameters.
  static std::map<std::string, std::string> getState(const Session &session) {
    std::map<std::string, std::string> state;
    for (const TensorInfo &info : session.getManifest().parameters) {
      Tensor value = session.getParameter(info.name);
      state[info.name] = {reinterpret_cast<const char *>(value.data.get()),
                          static_cast<size_t>(value.getNumBytes())};
    }
    return state;
  }
  /// The contents of the files in a directory of checkpoints.
  static std::map<std::string, std::string> readAll(const std::string &path) {
    std::map<std::string, std::string> files;
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), path)] =
            readFile(entry.path());
    return files;
  }

  TestDirectory directory;
};

/// While it lives, no file can have more than `bytes` bytes, as if the disk were
/// full.
class FullDisk {
public:
  explicit FullDisk(rlim_t bytes) : handler(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = {bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
  }

private:
  sighandler_t handler;
  rlimit before = {};
};

} // namespace

TEST_F(Training, ReportsEachStep) {
  Session session = makeSession("train.3");
  std::vector<StepReport> reports;
  TrainingOptions options{.steps = 30};
  options.onStep = [&](const StepReport &report) { reports.push_back(report); };
  TrainingResult result =
      train(session, open(session.getManifest()), 0, 0, options);
  EXPECT_EQ(result.step, 30);
  EXPECT_FALSE(result.wasStopped);
  EXPECT_EQ(result.checkpoint, "");
  ASSERT_EQ(reports.size(), 30u);
  EXPECT_EQ(reports[0].step, 1);
  EXPECT_EQ(reports[29].step, 30);
  EXPECT_LT(reports[29].loss, reports[0].loss / 4);
  EXPECT_FLOAT_EQ(*reports[0].learningRate, 0.05f);
  EXPECT_GT(*reports[0].gradNorm, 0);
  EXPECT_EQ(reports[0].numExamples, 8);
}

/// Continued at any step the training is the one that never ended.
TEST_F(Training, ResumesExactly) {
  for (std::optional<uint64_t> seed : {std::optional<uint64_t>(3), {}}) {
    Session whole = makeSession("train.3");
    Dataset data = open(whole.getManifest());
    train(whole, data, 0, 0, {.steps = 12, .seed = seed});
    for (int64_t split = 1; split < 12; ++split) {
      CheckpointDirectory checkpoints(directory / "run");
      Session first = makeSession("train.3");
      TrainingResult result =
          train(first, data, 0, 0,
                {.steps = split, .seed = seed, .checkpoints = &checkpoints});
      Checkpoint checkpoint = readCheckpoint(result.checkpoint);
      EXPECT_EQ(checkpoint.step, split);
      EXPECT_EQ(checkpoint.data, (DataState{20, split * 8, seed}));
      Session second = makeSession(
          "train.3", loadCheckpoint(checkpoint, whole.getManifest()));
      train(second, data, split, checkpoint.data.position,
            {.steps = 12, .seed = seed});
      EXPECT_EQ(getState(second), getState(whole)) << split;
    }
  }
}

TEST_F(Training, ResumesOnAnotherMesh) {
  CheckpointDirectory checkpoints(directory / "run");
  Session whole = makeSession("train.3"), first = makeSession("train.3");
  Dataset data = open(whole.getManifest());
  train(whole, data, 0, 0, {.steps = 12});
  TrainingResult result =
      train(first, data, 0, 0, {.steps = 5, .checkpoints = &checkpoints});
  Checkpoint checkpoint = readCheckpoint(result.checkpoint);
  Session second =
      makeSession("train.2", loadCheckpoint(checkpoint, whole.getManifest()));
  train(second, data, 5, checkpoint.data.position, {.steps = 12});
  std::vector<float> expected = getElements<float>(whole.getParameter("w"));
  std::vector<float> found = getElements<float>(second.getParameter("w"));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5);
}

TEST_F(Training, WritesCheckpointsOnTheWay) {
  CheckpointDirectory checkpoints(directory / "run");
  Session session = makeSession("train.2");
  std::vector<std::string> written;
  TrainingOptions options{.steps = 10,
                          .checkpoints = &checkpoints,
                          .checkpointEvery = 4,
                          .checkpointKeep = 2};
  options.onCheckpoint = [&](const std::string &path) {
    written.push_back(std::filesystem::path(path).filename());
  };
  train(session, open(session.getManifest()), 0, 0, options);
  EXPECT_EQ(written, (std::vector<std::string>{"step-00000004", "step-00000008",
                                               "step-00000010"}));
  EXPECT_EQ(listCheckpoints(checkpoints.getPath()).complete.size(), 2u);
  // Nothing to do, nothing to write.
  EXPECT_EQ(train(session, open(session.getManifest()), 10, 80, options).step,
            10);
  EXPECT_EQ(written.size(), 3u);
}

/// The same files as if each step had waited for them.
TEST_F(Training, WritesCheckpointsBesideTheSteps) {
  for (int64_t keep : {0, 2}) {
    std::map<std::string, std::string> written[2];
    for (bool isAsync : {false, true}) {
      CheckpointDirectory checkpoints(directory / "run");
      Session session = makeSession("train.3");
      std::vector<std::string> names;
      TrainingOptions options{.steps = 10,
                              .checkpoints = &checkpoints,
                              .checkpointEvery = 3,
                              .checkpointKeep = keep,
                              .checkpointAsync = isAsync};
      options.onCheckpoint = [&](const std::string &path) {
        names.push_back(std::filesystem::path(path).filename());
      };
      TrainingResult result =
          train(session, open(session.getManifest()), 0, 0, options);
      EXPECT_EQ(names,
                (std::vector<std::string>{"step-00000003", "step-00000006",
                                          "step-00000009", "step-00000010"}));
      EXPECT_EQ(result.checkpoint, checkpoints.getPath() + "/step-00000010");
      written[isAsync] = readAll(checkpoints.getPath());
      std::filesystem::remove_all(checkpoints.getPath());
    }
    EXPECT_EQ(written[0], written[1]);
  }
}

TEST_F(Training, StopsWhenAsked) {
  for (bool isAsync : {false, true})
    for (int64_t every : {0, 1, 4}) {
      CheckpointDirectory checkpoints(directory / "run");
      Session session = makeSession("train.2");
      TrainingOptions options{.steps = 10,
                              .checkpoints = &checkpoints,
                              .checkpointEvery = every,
                              .checkpointAsync = isAsync};
      int asked = 0;
      options.shouldStop = [&] { return ++asked == 5; };
      TrainingResult result =
          train(session, open(session.getManifest()), 0, 0, options);
      EXPECT_TRUE(result.wasStopped);
      EXPECT_EQ(result.step, 4);
      EXPECT_EQ(readCheckpoint(result.checkpoint).step, 4);
      std::filesystem::remove_all(checkpoints.getPath());
    }
}

/// A checkpoint that can't be written beside the steps ends the training before
/// the next one. Those before it stay.
TEST_F(Training, AFullDiskBesideTheSteps) {
  CheckpointDirectory checkpoints(directory / "run");
  Session session = makeSession("train.2");
  std::optional<FullDisk> disk;
  TrainingOptions options{.steps = 1000000,
                          .checkpoints = &checkpoints,
                          .checkpointEvery = 2,
                          .checkpointKeep = 1,
                          .checkpointAsync = true};
  options.onCheckpoint = [&](const std::string &) { disk.emplace(100); };
  std::string error = errorOf(
      [&] { train(session, open(session.getManifest()), 0, 0, options); });
  disk.reset();
  EXPECT_TRUE(contains(error, "checkpoint of step 4: cannot write '"));
  EXPECT_TRUE(contains(error, "File too large"));
  std::vector<std::string> names;
  for (const auto &entry :
       std::filesystem::directory_iterator(checkpoints.getPath()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"lock", "step-00000002"}));
  readCheckpoint(directory / "run/step-00000002");
}

/// Each rank is a process of its own; the first one writes.
TEST_F(Training, WritesBesideTheStepsOfOtherProcesses) {
  Session whole = makeSession("train.3");
  train(whole, open(whole.getManifest()), 0, 0, {.steps = 9});
  std::vector<Job> jobs = makeJobs(3);
  auto transports = makeThreadTransports(3);
  CheckpointDirectory checkpoints(directory / "run");
  auto trainRank = [&](int64_t rank, int64_t steps) {
    Connection connection(jobs[rank], std::chrono::seconds(60));
    SessionOptions sessionOptions;
    sessionOptions.makeCommunicators = makeFactory(transports[rank]);
    sessionOptions.ranks = {rank};
    Session session(loadTrainProgram("train.3"), makeRegressionWeights(),
                    sessionOptions);
    TrainingOptions options{.steps = 100,
                            .checkpoints = rank == 0 ? &checkpoints : nullptr,
                            .checkpointEvery = 3,
                            .checkpointAsync = true};
    options.withParameters = [&](const UseParameters &work) {
      connection.withParameters(session, work);
    };
    options.shouldStop = [steps]() mutable { return steps-- == 0; };
    TrainingResult result =
        train(session, open(session.getManifest()), 0, 0, options);
    // When a process has ended, the checkpoint is there.
    EXPECT_EQ(readCheckpoint(directory / "run/step-00000009").step, 9);
    EXPECT_EQ(result.step, 9);
  };
  runThreads(3, [&](int64_t rank) { trainRank(rank, 9); });
  EXPECT_EQ(listCheckpoints(checkpoints.getPath()).complete.size(), 3u);
  TensorMap values = loadCheckpoint(
      readCheckpoint(directory / "run/step-00000009"), whole.getManifest());
  EXPECT_EQ(getElements<float>(values.at("w")),
            getElements<float>(whole.getParameter("w")));
}

TEST_F(Training, StopsAtALossThatIsNotFinite) {
  TensorMap weights = makeRegressionWeights();
  weights["scale"] = makeTensor<float>(Dtype::F32, {}, {1e18f});
  CheckpointDirectory checkpoints(directory / "run");
  std::vector<double> losses;
  TrainingOptions options{
      .steps = 10, .checkpoints = &checkpoints, .checkpointEvery = 1};
  options.onStep = [&](const StepReport &report) {
    losses.push_back(report.loss);
  };
  Session session = makeSession("train.2", weights);
  Dataset data = open(session.getManifest());
  std::string error = errorOf([&] { train(session, data, 0, 0, options); });
  EXPECT_TRUE(contains(error, "the loss of step "));
  EXPECT_FALSE(std::isfinite(losses.back()));
  // No checkpoint of what is broken.
  CheckpointList list = listCheckpoints(checkpoints.getPath());
  EXPECT_EQ(list.complete.size(), losses.size() - 1);

  Session tolerant = makeSession("train.2", weights);
  options.allowNonfinite = true;
  options.checkpoints = nullptr;
  EXPECT_EQ(train(tolerant, data, 0, 0, options).step, 10);
}

TEST_F(Training, OtherDataAreNoticed) {
  CheckpointDirectory checkpoints(directory / "run");
  Session session = makeSession("train.2");
  Dataset data = open(session.getManifest());
  Checkpoint checkpoint = readCheckpoint(
      train(session, data, 0, 0, {.steps = 1, .checkpoints = &checkpoints})
          .checkpoint);
  checkSameData(checkpoint, data, 0);
  EXPECT_TRUE(contains(
      errorOf([&] { checkSameData(checkpoint, data, {}); }),
      "was trained on 20 examples shuffled with seed 0, found 20 examples in "
      "the order of the files"));
}

TEST_F(Training, NeedsATrainingProgram) {
  nlohmann::json manifest = readTrainManifest("train.2");
  manifest["programs"][0]["outputs"].erase(0);
  EXPECT_TRUE(contains(
      errorOf([&] { checkTrainingProgram(Manifest::parse(manifest.dump())); }),
      "the program has no output 'loss', expected an f32 scalar"));
  for (auto &parameter : manifest["parameters"])
    parameter.erase("updated");
  EXPECT_TRUE(contains(
      errorOf([&] { checkTrainingProgram(Manifest::parse(manifest.dump())); }),
      "the program updates no parameter"));
  manifest["programs"].push_back(manifest["programs"][0]);
  manifest["programs"][1]["name"] = "other";
  manifest["programs"][1]["inputs"][0]["name"] = "other";
  EXPECT_EQ(
      errorOf([&] { checkTrainingProgram(Manifest::parse(manifest.dump())); }),
      "the artifact has 2 programs, expected one, a training step");
}

//===----------------------------------------------------------------------===//
// Metrics
//===----------------------------------------------------------------------===//

static StepReport makeReport(int64_t step, double loss) {
  return {.step = step,
          .loss = loss,
          .learningRate = {},
          .gradNorm = {},
          .seconds = 0.5,
          .numExamples = 8};
}

TEST(Metrics, OneLineForEachStep) {
  TestDirectory directory;
  MetricsFile file(directory / "m.jsonl", 0);
  StepReport report = makeReport(1, 2.5);
  report.learningRate = 0.25;
  report.gradNorm = NAN;
  file.write(report);
  // Before the file is closed.
  EXPECT_EQ(readFile(directory / "m.jsonl"),
            "{\"step\":1,\"loss\":2.5,\"lr\":0.25,\"grad_norm\":null,"
            "\"seconds\":0.5,\"examples_per_second\":16.0}\n");
  file.write(makeReport(2, INFINITY), 3);
  EXPECT_TRUE(contains(readFile(directory / "m.jsonl"),
                       "\n{\"step\":2,\"loss\":null,\"seconds\":0.5,\"examples_"
                       "per_second\":16.0,\"tokens_per_second\":48.0}\n"));
}

TEST(Metrics, ContinuesAfterAStep) {
  TestDirectory directory;
  std::string path = directory / "m.jsonl";
  {
    MetricsFile file(path, 0);
    for (int64_t step = 1; step <= 5; ++step)
      file.write(makeReport(step, 10.0 / step));
  }
  std::string all = readFile(path);
  size_t third = 0;
  for (int i = 0; i < 3; ++i)
    third = all.find('\n', third) + 1;
  {
    MetricsFile file(path, 3);
    std::vector<double> losses;
    for (const StepReport &report : file.getHistory()) {
      EXPECT_EQ(report.step, int64_t(losses.size() + 1));
      EXPECT_EQ(report.seconds, 0.5);
      EXPECT_EQ(report.numExamples, 8);
      EXPECT_FALSE(report.learningRate);
      losses.push_back(report.loss);
    }
    EXPECT_EQ(losses, (std::vector<double>{10, 5, 10.0 / 3}));
    EXPECT_EQ(readFile(path), all.substr(0, third));
    file.write(makeReport(4, 2.5));
    file.write(makeReport(5, 2));
  }
  EXPECT_EQ(readFile(path), all);
  // Half a line is one that was being written.
  std::ofstream(path) << all.substr(0, all.size() - 20);
  EXPECT_EQ(MetricsFile(path, 9).getHistory().size(), 4u);
  EXPECT_EQ(MetricsFile(path, 0).getHistory().size(), 0u);
  EXPECT_EQ(readFile(path), "");
}

TEST(Metrics, AnotherFileIsLeftAlone) {
  TestDirectory directory;
  std::string path = directory.write("notes", "{\"step\": 1}\nbuy milk\n");
  EXPECT_TRUE(
      contains(errorOf([&] { MetricsFile(path, 3); }),
               "notes':1: this line isn't one of a training's metrics"));
  EXPECT_EQ(readFile(path), "{\"step\": 1}\nbuy milk\n");
}

TEST(LossCurve, IsAPicture) {
  LossHistory losses;
  for (int64_t step = 1; step <= 5000; ++step)
    losses.emplace_back(step, 3 + 2.0 / step);
  losses[2000].second = NAN;
  std::string svg = drawLossCurve(losses, "a < b & c");
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_TRUE(contains(svg, ">a &lt; b &amp; c</text>"));
  EXPECT_TRUE(contains(svg, ">step</text>"));
  EXPECT_TRUE(contains(svg, ">loss</text>"));
  EXPECT_TRUE(contains(svg, ">5000</text>"));
  EXPECT_LT(svg.size(), 20000u); // however many steps
  // The gap: the pen goes down twice.
  size_t path = svg.rfind("<path d=\"");
  EXPECT_EQ(std::count(svg.begin() + path, svg.end(), 'M'), 2);
  EXPECT_FALSE(contains(svg, "nan"));
}

TEST(LossCurve, OfFewPoints) {
  for (const LossHistory &losses :
       {LossHistory{}, LossHistory{{1, 2}}, LossHistory{{1, NAN}},
        LossHistory{{1, 0}, {2, 0}}}) {
    std::string svg = drawLossCurve(losses, "t");
    EXPECT_FALSE(contains(svg, "nan"));
    EXPECT_FALSE(contains(svg, "inf"));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
  }
}

/// The data of a page.
static nlohmann::json readPage(const std::string &text) {
  const std::string begin =
      "<script type=\"application/json\" id=\"training\">";
  size_t from = text.find(begin) + begin.size();
  return nlohmann::json::parse(
      text.substr(from, text.find("</script>", from) - from));
}

TEST(TrainingPage, HasTheStepsAndTheState) {
  TrainingPage page("page.html", "</script>", 4, /*tokensPerExample=*/2);
  StepReport report = makeReport(1, 2.5);
  report.gradNorm = 1;
  page.add(report);
  page.add(makeReport(2, NAN));
  nlohmann::json data =
      readPage(page.getText(TrainingState::Failed, "not UTF-8: \xff"));
  EXPECT_EQ(data["name"], "</script>");
  EXPECT_EQ(data["state"], "failed");
  EXPECT_EQ(data["problem"], "not UTF-8: \uFFFD");
  EXPECT_EQ(data["step"], 2);
  EXPECT_EQ(data["steps"], 4);
  EXPECT_EQ(data["unit"], "tokens");
  EXPECT_EQ(data["points"].dump(),
            "{\"grad_norm\":[1.0,null],\"loss\":[2.5,null],"
            "\"rate\":[32.0,32.0],\"step\":[1,2]}");
  // Nothing is loaded.
  std::string text = page.getText(TrainingState::Running);
  EXPECT_TRUE(contains(text, "default-src 'none'"));
  EXPECT_FALSE(contains(text, "src=\""));
}

TEST(TrainingPage, HasFewPointsHoweverManySteps) {
  TrainingPage page("page.html", "t", 5000);
  for (int64_t step = 1; step <= 5000; ++step)
    page.add(makeReport(step, step));
  nlohmann::json data = readPage(page.getText(TrainingState::Done));
  EXPECT_EQ(data["steps_per_point"], 16);
  const nlohmann::json &points = data["points"];
  EXPECT_EQ(points["step"].size(), 313u);
  EXPECT_EQ(points["step"].front(), 16);
  EXPECT_EQ(points["loss"].front(), 8.5); // the mean of 1 to 16
  EXPECT_EQ(points["step"].back(), 5000); // the point of the last 8 steps
  EXPECT_EQ(points["loss"].back(), 4996.5);
  EXPECT_EQ(points["rate"].back(), 16);
}

TEST(TrainingPage, IsReplacedAboutOnceASecond) {
  TestDirectory directory;
  std::string path = directory / "page.html";
  TrainingPage page(path, "t", 3);
  auto begin = std::chrono::steady_clock::now();
  for (int64_t step = 1; step <= 2; ++step) {
    page.add(makeReport(step, 1));
    page.update();
  }
  nlohmann::json data = readPage(readFile(path));
  EXPECT_EQ(data["state"], "running");
  if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(1))
    EXPECT_EQ(data["step"], 1); // on a machine that isn't overloaded
  page.write(TrainingState::Done);
  EXPECT_EQ(readPage(readFile(path))["step"], 2);
}

TEST(TrainingPage, ReplacesOnlyFiles) {
  TestDirectory directory;
  TrainingPage::checkPath(directory / "new.html");
  TrainingPage::checkPath(directory.write("old.html", ""));
  for (const char *path : {"-", "/dev/stdout", "/dev/null"})
    EXPECT_TRUE(contains(errorOf([&] { TrainingPage::checkPath(path); }),
                         "'" + std::string(path) + "' isn't a regular file"));
}
