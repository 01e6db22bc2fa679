//===- SafetensorsTest.cpp ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Safetensors.h"

#include "TestUtils.h"

using namespace tprt;
using namespace tprt::test;

static std::string makeFile(const std::string &header, std::string_view data) {
  uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char *>(&size), sizeof(size));
  return bytes + header + std::string(data);
}

TEST(Safetensors, ReadsTensorsAndSkipsMetadata) {
  TestDirectory directory;
  std::string path = directory.write(
      "w.safetensors",
      makeFile(R"({"__metadata__": {"format": "pt"},
                   "b": {"dtype": "I32", "shape": [2], "data_offsets": [4, 12]},
                   "a": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]},
                   "s": {"dtype": "F64", "shape": [], "data_offsets": [12, 20]},
                   "e": {"dtype": "F32", "shape": [0, 3], "data_offsets": [4, 4]},
                   "u": {"dtype": "U16", "shape": [1], "data_offsets": [20, 22]}})",
               std::string("\x80\x3f\x00\x40\1\0\0\0\2\0\0\0", 12) +
                   std::string(10, '\0')));
  Safetensors file = Safetensors::open(path);
  ASSERT_EQ(file.getEntries().size(), 5u);
  const Tensor &a = file.getEntries().at("a").tensor;
  EXPECT_EQ(a.getTypeString(), "2x1xbf16");
  EXPECT_EQ(loadAsDouble(a.dtype, a.data.get(), 0), 1.0);
  EXPECT_EQ(loadAsDouble(a.dtype, a.data.get(), 1), 2.0);
  EXPECT_EQ(getElements<int32_t>(file.getEntries().at("b").tensor),
            (std::vector<int32_t>{1, 2}));
  EXPECT_FALSE(file.getEntries().at("u").isSupported);
}

TEST(Safetensors, TensorsKeepTheFileMapped) {
  TestDirectory directory;
  Tensor tensor;
  {
    std::string path = directory.write(
        "w",
        makeFile(
            R"({"a": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}})",
            std::string_view("\7\0\0\0", 4)));
    tensor = Safetensors::open(path).getEntries().at("a").tensor;
  }
  EXPECT_EQ(getElements<int32_t>(tensor), std::vector<int32_t>{7});
}

TEST(Safetensors, ALoopMayRunOverTheEntriesOfATemporary) {
  TestDirectory directory;
  std::string path = directory.write(
      "w",
      makeFile(
          R"({"a": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}})",
          std::string_view("\7\0\0\0", 4)));
  int64_t numBytes = 0;
  for (const auto &[name, entry] : Safetensors::open(path).getEntries())
    numBytes += entry.numBytes;
  EXPECT_EQ(numBytes, 4);
}

struct MalformedFile {
  const char *name;
  std::string bytes;
  const char *error;
};

class SafetensorsMalformed : public testing::TestWithParam<MalformedFile> {};

TEST_P(SafetensorsMalformed, IsRejected) {
  TestDirectory directory;
  std::string path = directory.write("w.safetensors", GetParam().bytes);
  std::string error = errorOf([&] { Safetensors::open(path); });
  EXPECT_TRUE(contains(error, GetParam().error));
  EXPECT_TRUE(contains(error, path));
}

static MalformedFile withHeader(const char *name, const std::string &header,
                                const char *error) {
  return {name, makeFile(header, "0123456789abcdef"), error};
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors, SafetensorsMalformed,
    testing::Values(
        MalformedFile{"empty", "", "0 bytes, expected at least 8"},
        MalformedFile{"pointer",
                      "version https://git-lfs.github.com/spec/v1\n"
                      "oid sha256:4d7a\nsize 988097824\n",
                      "is a pointer of Git LFS instead of a safetensors file: "
                      "fetch the file itself, with 'git lfs pull'"},
        MalformedFile{"foreign", "PK\3\4 a zip archive of some length",
                      "is truncated or not a safetensors file"},
        MalformedFile{"cut_header", makeFile("{\"a\": {}}", "").substr(0, 12),
                      "is truncated or not a safetensors file"},
        MalformedFile{
            "cut_data",
            makeFile(
                R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
                "01234567"),
            "tensor 'a': data_offsets [0, 16) lie outside of the 8 bytes"},
        withHeader("deep", R"({"a": {"dtype":)" + std::string(1000000, '['),
                   "nested more deeply than 32 levels"),
        withHeader("json", "{\"a\": ", "has a malformed safetensors header"),
        withHeader("array", "[1]", "expected an object"),
        withHeader("entry", R"({"a": 3})", "tensor 'a' must be an object"),
        withHeader("no_dtype",
                   R"({"a": {"shape": [], "data_offsets": [0, 4]}})",
                   "tensor 'a' has no 'dtype'"),
        withHeader("no_shape",
                   R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})",
                   "tensor 'a' has no 'shape'"),
        withHeader("no_offsets", R"({"a": {"dtype": "F32", "shape": []}})",
                   "tensor 'a' has no 'data_offsets'"),
        withHeader(
            "dtype",
            R"({"a": {"dtype": "F31", "shape": [], "data_offsets": [0, 4]}})",
            "tensor 'a' has unknown dtype 'F31'"),
        withHeader(
            "dtype_kind",
            R"({"a": {"dtype": 7, "shape": [], "data_offsets": [0, 4]}})",
            "'dtype' must be a string, found 7"),
        withHeader(
            "negative",
            R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})",
            "expected a non-negative integer, found -1"),
        withHeader(
            "overflow",
            R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4]}})",
            "its shape is too large"),
        withHeader(
            "size",
            R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})",
            "holds 8 bytes, expected 12 for shape [3] of F32"),
        withHeader(
            "one_offset",
            R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [4]}})",
            "'data_offsets' must hold 2 integers, found 1"),
        withHeader(
            "reversed",
            R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [8, 4]}})",
            "data_offsets [8, 4) lie outside"),
        withHeader(
            "outside",
            R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [16, 20]}})",
            "data_offsets [16, 20) lie outside of the 16 bytes of data"),
        withHeader("metadata", R"({"__metadata__": {"a": 1}})",
                   "__metadata__ must be an object of strings"),
        withHeader(
            "rest",
            R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
            "has 8 bytes of no tensor before its end"),
        withHeader(
            "hole",
            R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [4, 16]}})",
            "has 4 bytes of no tensor before 'a'"),
        withHeader(
            "overlap",
            R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})",
            "the data of tensors 'a' and 'b' overlap"),
        withHeader(
            "twice",
            R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
                "a": {"dtype": "F32", "shape": [], "data_offsets": [4, 8]}})",
            "'a' is listed twice")),
    [](const auto &info) { return info.param.name; });
