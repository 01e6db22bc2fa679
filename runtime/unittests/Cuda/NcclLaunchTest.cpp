//===- NcclLaunchTest.cpp - Jobs of processes that tp-run starts ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclProgram.h"
#include "tprt/Npy.h"
#include "tprt/Weights.h"

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

namespace {

/// tp-run, started as from a shell, on the toy program.
class NcclLaunch : public testing::Test {
protected:
  void SetUp() override {
    std::vector<TensorSource> sources;
    for (const auto &[name, tensor] : getWeights())
      sources.push_back(makeSource(name, tensor.dtype, tensor.shape,
                                   [tensor] { return tensor; }));
    TestDirectory &folder = directory;
    writeSafetensors(std::filesystem::path(folder / "x").parent_path().string(),
                     "weights.safetensors", std::move(sources));
    write("x", getInputs().at("x"));
    write("y", makeTensor<float>(Dtype::F32, {2, 3}, {30, 52, 74, 46, 68, 90}));
  }

  void write(const std::string &name, const Tensor &tensor) {
    OutputFile file(directory / (name + ".npy"));
    writeNpy(file, tensor);
    file.commit();
  }

  /// The exit code; what it prints is in `output`.
  int run(const std::string &entry, const std::string &options) {
    directory.write(entry + ".tpx", makeProgram(entry));
    std::string command = TP_RUN " " + (directory / (entry + ".tpx")) +
                          " --weights " + (directory / "weights.safetensors") +
                          " --input " + (directory / "x.npy") + " " + options +
                          " > " + (directory / "output") + " 2>&1";
    int status = std::system(command.c_str());
    output = readFile(directory / "output");
    return WEXITSTATUS(status);
  }

  TestDirectory directory;
  std::string output;
};

} // namespace

TEST_F(NcclLaunch, StartsAProcessForEachRank) {
  EXPECT_EQ(run("tpx_main", "-n 2 --repeat 3 --json " + (directory / "r.json") +
                                " --expect " + (directory / "y.npy")),
            0)
      << output;
  // Rank 0 alone says so.
  EXPECT_EQ(output.find("output 'y' matches"),
            output.rfind("output 'y' matches"));
  json report = json::parse(readFile(directory / "r.json"));
  EXPECT_EQ(report["backend"], "nccl");
  EXPECT_EQ(report["device"], "cuda");
  EXPECT_EQ(report["total"]["bytes"], 48);
}

TEST_F(NcclLaunch, UsesWhatTheVersionHas) {
  auto getCommunication = [&](const char *version) {
    ::setenv("TPRT_FAKE_NCCL_VERSION", version, 1);
    EXPECT_EQ(run("tpx_main", "-n 2 --repeat 5 --json " +
                                  (directory / "r.json") + " --expect " +
                                  (directory / "y.npy")),
              0)
        << output;
    ::unsetenv("TPRT_FAKE_NCCL_VERSION");
    return json::parse(readFile(directory / "r.json"))["communication"];
  };
  EXPECT_EQ(getCommunication("22703"), "NCCL 2.27.3, window buffers");
  EXPECT_EQ(getCommunication("21903"), "NCCL 2.19.3, registered buffers");
  EXPECT_EQ(getCommunication("21805"), "NCCL 2.18.5, plain buffers");
}

namespace {

struct Missing {
  const char *library, *options, *name, *version;
};

class NcclLaunchWithout : public NcclLaunch,
                          public testing::WithParamInterface<Missing> {};

} // namespace

/// Of the fake libraries one is none.
TEST_P(NcclLaunchWithout, SaysWhichLibraryIsMissing) {
  auto [library, options, name, version] = GetParam();
  namespace fs = std::filesystem;
  fs::path folder = fs::path(directory / "libraries");
  fs::create_directories(folder);
  std::string usual = std::getenv("LD_LIBRARY_PATH");
  for (const fs::directory_entry &entry : fs::directory_iterator(usual))
    if (entry.path().filename() != library)
      fs::create_symlink(fs::canonical(entry.path()),
                         folder / entry.path().filename());
  for (const std::string &file :
       {std::string(library), std::string("libcublasLt.so.12")})
    directory.write("libraries/" + file, "not a library");
  ::setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
  EXPECT_EQ(run("tpx_main", options), 1);
  ::setenv("LD_LIBRARY_PATH", usual.c_str(), 1);
  EXPECT_TRUE(contains(output, "tp-run: error: cannot load " +
                                   std::string(name) + " (" + version +
                                   " or newer): "))
      << output;
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, NcclLaunchWithout,
    testing::Values(Missing{"libcuda.so.1", "", "the CUDA driver", "12.0"},
                    Missing{"libcublasLt.so.13", "", "cuBLASLt", "12.0"},
                    Missing{"libnccl.so.2", "-n 2", "NCCL", "2.18"}));

TEST_F(NcclLaunch, SaysWhichLibraryIsTooOld) {
  auto getError = [&](const char *variable, const char *version,
                      const std::string &options) {
    ::setenv(variable, version, 1);
    EXPECT_EQ(run("tpx_main", options), 1);
    ::unsetenv(variable);
    return output;
  };
  EXPECT_TRUE(contains(getError("TPRT_FAKE_DRIVER_VERSION", "11080", ""),
                       "tp-run: error: the CUDA driver has version 11.8, "
                       "version 12.0 or newer is needed"))
      << output;
  EXPECT_TRUE(contains(getError("TPRT_FAKE_CUBLASLT_VERSION", "111103", ""),
                       "cuBLASLt has version 11.11, version 12.0 or newer is "
                       "needed"))
      << output;
  EXPECT_TRUE(contains(getError("TPRT_FAKE_NCCL_VERSION", "21701", "-n 2"),
                       "NCCL has version 2.17, version 2.18 or newer is "
                       "needed"))
      << output;
  EXPECT_TRUE(contains(getError("TPRT_FAKE_DEVICES", "0", ""),
                       "the CUDA driver finds no device"))
      << output;
  EXPECT_TRUE(contains(getError("TPRT_FAKE_DEVICES", "1", "-n 2"),
                       "there is no CUDA device 1, the driver finds 1"))
      << output;
}

TEST_F(NcclLaunch, WritesEachRanksBlocks) {
  EXPECT_EQ(run("tpx_main", "-n 2 --blocks " + (directory / "blocks")), 0)
      << output;
  for (const char *rank : {"0", "1"})
    EXPECT_EQ(getElements<float>(readNpy(
                  directory / ("blocks/y." + std::string(rank) + ".npy"))),
              (std::vector<float>{30, 52, 74, 46, 68, 90}));
}

TEST_F(NcclLaunch, WritesWeights) {
  EXPECT_EQ(run("tpx_main",
                "-n 2 --output-weights " + (directory / "out.safetensors")),
            0)
      << output;
  EXPECT_EQ(readFile(directory / "out.safetensors"),
            readFile(directory / "weights.safetensors"));
}

/// A process ends although one of its threads doesn't.
TEST_F(NcclLaunch, EndsWhereACallDoesNotReturn) {
  ::setenv("TPRT_FAKE_NCCL_HANGS", "ncclCommInitRank", 1);
  EXPECT_EQ(run("tpx_main", "-n 2 --timeout 1"), 4);
  ::unsetenv("TPRT_FAKE_NCCL_HANGS");
  EXPECT_TRUE(contains(output, "ncclCommInitRank hasn't returned for 1 s"));
}

TEST_F(NcclLaunch, FailsAsAWhole) {
  EXPECT_EQ(run("fail_index", "-n 2"), 4) << output;
  EXPECT_TRUE(contains(output, "tp-run: error: rank 1 failed: embeddings.word: "
                               "embedding: index 30522 is out of range"));
  EXPECT_EQ(run("tpx_main", "-n 3"), 1);
  EXPECT_TRUE(contains(output, "the program has 2 ranks, but there are 3"));
  EXPECT_EQ(run("tpx_main", "--comm=nccl"), 1);
  EXPECT_TRUE(contains(output, "--comm=nccl needs several processes"));
}
