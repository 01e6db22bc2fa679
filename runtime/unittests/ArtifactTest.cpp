//===- ArtifactTest.cpp ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Artifact.h"

#include "TestUtils.h"

using namespace tprt;
using namespace tprt::test;

TEST(Container, RoundTrips) {
  std::string bytes = makeContainer("{}", "ELF");
  EXPECT_EQ(bytes.size(), 40u + 5);
  ArtifactParts parts = checkContainer(bytes, "p");
  EXPECT_EQ(parts.manifest, "{}");
  EXPECT_EQ(parts.sharedObject, "ELF");
}

/// The layout of docs/Artifact.md, byte for byte.
TEST(Container, Layout) {
  std::string bytes = makeContainer("{}", "ELF");
  EXPECT_EQ(bytes.substr(0, 40), std::string("TPMLIRX\0"
                                             "\10\0\0\0"
                                             "\0\0\0\0"
                                             "\2\0\0\0\0\0\0\0"
                                             "\3\0\0\0\0\0\0\0"
                                             // zlib.crc32(b'{}ELF')
                                             "\x05\xf5\x57\x64"
                                             "\0\0\0\0",
                                             40));
}

/// No byte of a container can change unnoticed.
TEST(Container, EveryChangedByteIsNoticed) {
  const std::string valid = makeContainer("{}", "ELF");
  for (size_t i = 0; i < valid.size(); ++i) {
    std::string bytes = valid;
    bytes[i] ^= 0x41;
    EXPECT_THROW(checkContainer(bytes, "p"), Error) << "byte " << i;
  }
}

TEST(Container, EveryTruncationIsNoticed) {
  const std::string valid = makeContainer("{}", "ELF");
  for (size_t size = 0; size < valid.size(); ++size)
    EXPECT_THROW(checkContainer(valid.substr(0, size), "p"), Error) << size;
  EXPECT_THROW(checkContainer(valid + "x", "p"), Error);
}

TEST(Container, ErrorsNameTheField) {
  const std::string valid = makeContainer("{}", "ELF");
  auto errorWith = [&](size_t offset, char value) {
    std::string bytes = valid;
    bytes[offset] = value;
    return errorOf([&] { checkContainer(bytes, "m.tpx"); });
  };
  EXPECT_EQ(errorWith(0, 'X'), "'m.tpx' is not an artifact of tp-compile");
  EXPECT_TRUE(contains(errorWith(8, 1), "has artifact version 1, this runtime "
                                        "reads version 8"));
  EXPECT_TRUE(contains(errorWith(12, 1), "reserved fields are not zero"));
  EXPECT_TRUE(contains(errorWith(16, 1), "truncated or corrupt: 5 bytes"));
  EXPECT_TRUE(contains(errorWith(23, '\xff'), "truncated or corrupt"));
  EXPECT_TRUE(contains(errorWith(24, 4), "truncated or corrupt"));
  EXPECT_TRUE(contains(errorWith(32, 0), "its checksum doesn't match"));
  EXPECT_TRUE(contains(errorWith(36, 1), "reserved fields are not zero"));
  EXPECT_TRUE(contains(errorWith(44, 'x'), "its checksum doesn't match"));
  EXPECT_TRUE(
      contains(errorOf([&] { checkContainer(valid.substr(0, 20), "m.tpx"); }),
               "is truncated: 20 bytes, expected at least 40"));
}

static std::string makeManifest(const std::string &triple,
                                const std::string &feature,
                                const std::string &entries) {
  return R"({"schema": 5, "producer": "test", "target": {"triple": ")" +
         triple + R"(", "cpu": "", "features": [")" + feature +
         R"("]}, "mesh": {"name": "m", "axes": []}, "world_size": 1,
            "parameters": [], "programs": [{"name": "main", "entries": [)" +
         entries + R"(], "arena_bytes": 0, "inputs": [], "parameters": [],
            "outputs": [], "collectives": [], "ops": []}]})";
}

#if defined(__x86_64__)
static constexpr const char *hostTriple = "x86_64-pc-linux-gnu";
static constexpr const char *otherTriple = "aarch64-linux-gnu";
#else
static constexpr const char *hostTriple = "aarch64-linux-gnu";
static constexpr const char *otherTriple = "x86_64-pc-linux-gnu";
#endif

static std::string loadError(const std::string &manifest,
                             const std::string &object) {
  TestDirectory directory;
  std::string path = directory.write("m.tpx", makeContainer(manifest, object));
  return errorOf([&] { Artifact::load(path)->loadCode(); });
}

/// What an object says should run when it is loaded runs neither for a look at
/// the program nor where something else is wrong.
TEST(Artifact, CodeWaitsForItsCall) {
  TestDirectory directory;
  std::string path = directory.write(
      "m.tpx", makeContainer(makeManifest(hostTriple, "", "\"tpx_main\""),
                             readFile(TOY_PROGRAM)));
  ::unsetenv("TOY_IS_LOADED");
  readManifest(path);
  auto artifact = Artifact::load(path);
  EXPECT_EQ(std::getenv("TOY_IS_LOADED"), nullptr);
  EXPECT_TRUE(artifact->isOwn());
  artifact->loadCode();
  EXPECT_NE(std::getenv("TOY_IS_LOADED"), nullptr);
  EXPECT_NE(artifact->getEntry(), nullptr);
}

/// Of several variants, the last that the machine can run; none is made up.
TEST(Artifact, ChoosesCodeForTheCPU) {
  std::string object = readFile(TOY_PROGRAM);
  auto manifestWith = [](const std::string &entries,
                         const std::string &variants) {
    std::string text = makeManifest(hostTriple, "", entries);
    std::string_view key = R"("cpu": "")";
    return text.replace(text.find(key), key.size(),
                        R"("cpu": "", "variants": [)" + variants + "]");
  };
  // No CPU has both XOP and AVX-512 FP16.
  std::string missing = R"({"features": ["+xop", "+avx512fp16"]})";
  std::string good = R"({"features": []})";
  auto load = [&](const std::string &manifest) {
    TestDirectory directory;
    auto artifact = Artifact::load(
        directory.write("m.tpx", makeContainer(manifest, object)));
    artifact->loadCode();
    return artifact;
  };
  EXPECT_TRUE(load(manifestWith(R"("nope", "tpx_main", "missing")",
                                good + ", " + missing))
                  ->getEntry());
  EXPECT_TRUE(
      load(manifestWith(R"("tpx_main", "missing")", missing))->getEntry());
  EXPECT_TRUE(
      contains(loadError(manifestWith(R"("tpx_main", "tpx_main", "unknown")",
                                      good + ", " + good),
                         object),
               "its code has no function 'unknown'"));
}

TEST(Artifact, LoadErrors) {
  std::string object = readFile(TOY_PROGRAM);
  EXPECT_TRUE(
      contains(loadError(makeManifest(otherTriple, "", "\"tpx_main\""), object),
               std::string("compiled for '") + otherTriple + "'"));
  // No CPU has both XOP and AVX-512 FP16.
  std::string features = "+xop\", \"+avx512fp16";
  EXPECT_TRUE(contains(
      loadError(makeManifest(hostTriple, features, "\"tpx_main\""), object),
      "compiled for CPU features that this machine lacks"));
  EXPECT_TRUE(
      contains(loadError(makeManifest(hostTriple, "", "\"nope\""), object),
               "its code has no function 'nope'"));
  EXPECT_TRUE(contains(
      loadError(makeManifest(hostTriple, "", "\"tpx_main\""), "not ELF"),
      "cannot load its code"));
  EXPECT_TRUE(contains(loadError("{}", object), "m.tpx': manifest: missing"));
}

TEST(Artifact, TwoLiveTogether) {
  TestDirectory directory;
  std::string object = readFile(TOY_PROGRAM);
  auto load = [&](const std::string &entry) {
    auto artifact = Artifact::load(directory.write(
        entry, makeContainer(makeManifest(hostTriple, "", "\"" + entry + "\""),
                             object)));
    artifact->loadCode();
    return artifact;
  };
  auto first = load("fail_status"), second = load("fail_status");
  EXPECT_NE(first->getEntry(), second->getEntry());
  EXPECT_EQ(first->getEntry()(nullptr, 0, nullptr, nullptr, nullptr, nullptr),
            77);
}

TEST(Artifact, IsArtifact) {
  TestDirectory directory;
  EXPECT_TRUE(isArtifact(directory.write("a", makeContainer("", ""))));
  EXPECT_FALSE(isArtifact(directory.write("b", "module {}")));
  EXPECT_FALSE(isArtifact(directory.write("c", "TPML")));
  EXPECT_FALSE(isArtifact(directory / "missing"));
}
