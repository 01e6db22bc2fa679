//===- NpyTest.cpp --------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Npy.h"

#include "TestUtils.h"

using namespace tprt;
using namespace tprt::test;

/// A version 1 file with this header text.
static std::string makeNpy(const std::string &header, std::string_view data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + std::string(data);
}

static constexpr const char *validHeader =
    "{'descr': '<i4', 'fortran_order': False, 'shape': (2, ), }\n";

TEST(Npy, RoundTripsEveryType) {
  TestDirectory directory;
  for (int32_t i = 0; i < numDtypes; ++i) {
    Dtype dtype = static_cast<Dtype>(i);
    for (Shape shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3, 4}}) {
      std::vector<char> bytes(numElements(shape) * byteWidth(dtype));
      for (size_t b = 0; b < bytes.size(); ++b)
        bytes[b] = static_cast<char>(b % 2);
      auto data = allocateAligned(bytes.size());
      std::copy(bytes.begin(), bytes.end(),
                reinterpret_cast<char *>(data.get()));
      std::string path = directory / "a.npy";
      writeNpy(path, {dtype, shape, data});
      Tensor read = readNpy(path);
      EXPECT_EQ(read.dtype, dtype);
      EXPECT_EQ(read.shape, shape);
      auto *elements = reinterpret_cast<const char *>(read.data.get());
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), elements));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data.get()) % blockAlignment,
                0u);
      EXPECT_EQ(directory.countFiles(), 1u);
    }
  }
}

TEST(Npy, ReadsWhatNumPyWrites) {
  TestDirectory directory;
  std::string path = directory.write(
      "a.npy", makeNpy("{'descr': '<i4', 'fortran_order': False, "
                       "'shape': (2,), }   \n",
                       std::string_view("\1\0\0\0\2\0\0\0", 8)));
  EXPECT_EQ(getElements<int32_t>(readNpy(path)), (std::vector<int32_t>{1, 2}));
}

TEST(Npy, FortranOrderOfAVectorIsFine) {
  TestDirectory directory;
  std::string path = directory.write(
      "a.npy", makeNpy("{'descr':'|b1','fortran_order':True,'shape':(1,2)}\n",
                       std::string_view("\1\0", 2)));
  EXPECT_EQ(readNpy(path).shape, (Shape{1, 2}));
}

struct Malformed {
  const char *name;
  std::string bytes;
  const char *error;
};

class NpyMalformed : public testing::TestWithParam<Malformed> {};

TEST_P(NpyMalformed, IsRejected) {
  TestDirectory directory;
  std::string path = directory.write("a.npy", GetParam().bytes);
  std::string error = errorOf([&] { readNpy(path); });
  EXPECT_TRUE(contains(error, GetParam().error));
  EXPECT_TRUE(contains(error, path));
}

static std::string withHeader(const char *header) {
  return makeNpy(header, std::string(8, '\0'));
}

INSTANTIATE_TEST_SUITE_P(
    Npy, NpyMalformed,
    testing::Values(
        Malformed{"empty", "", "is not a .npy file"},
        Malformed{"foreign", "PK\3\4 a zip archive", "is not a .npy file"},
        Malformed{"no_version", "\x93NUMPY", "is truncated"},
        Malformed{"version", std::string("\x93NUMPY\x09\x00\x02\x00{}", 12),
                  "has .npy version 9, expected 1, 2 or 3"},
        Malformed{"cut_header", makeNpy(validHeader, "").substr(0, 30),
                  "is truncated"},
        Malformed{"cut_data", makeNpy(validHeader, "1234567"),
                  "holds 7 bytes of data, expected 8 for 2xi32"},
        Malformed{"trailing_data", makeNpy(validHeader, "123456789"),
                  "holds 9 bytes of data, expected 8 for 2xi32"},
        Malformed{"big_endian",
                  withHeader("{'descr': '>i4', 'fortran_order': False, "
                             "'shape': (2,)}"),
                  "is big-endian ('>i4')"},
        Malformed{"fortran",
                  withHeader("{'descr': '<i4', 'fortran_order': True, "
                             "'shape': (2, 1, 1, 2)}"),
                  "is in Fortran order"},
        Malformed{"complex",
                  withHeader("{'descr': '<c8', 'fortran_order': False, "
                             "'shape': (1,)}"),
                  "has elements of type '<c8', expected one of f4"},
        Malformed{"structured",
                  withHeader("{'descr': [('a', '<i4')], 'fortran_order': "
                             "False, 'shape': (1,)}"),
                  "structured arrays"},
        Malformed{"negative",
                  withHeader("{'descr': '<i4', 'fortran_order': False, "
                             "'shape': (-2,)}"),
                  "expected a dimension"},
        Malformed{"overflow",
                  withHeader("{'descr': '<i4', 'fortran_order': False, "
                             "'shape': (9223372036854775807, 16)}"),
                  "is too large"},
        Malformed{"no_shape",
                  withHeader("{'descr': '<i4', 'fortran_order': False}"),
                  "missing 'descr' or 'shape'"},
        Malformed{"unknown_key", withHeader("{'dtype': '<i4'}"),
                  "unknown key 'dtype'"},
        Malformed{"not_a_dict", withHeader("42"), "expected '{'"},
        Malformed{"empty_descr",
                  withHeader("{'descr': '', 'fortran_order': False, "
                             "'shape': ()}"),
                  "missing 'descr' or 'shape'"}),
    [](const auto &info) { return info.param.name; });

TEST(Npy, MissingFile) {
  EXPECT_TRUE(contains(errorOf([] { readNpy("/nonexistent/a.npy"); }),
                       "cannot open '/nonexistent/a.npy'"));
  EXPECT_TRUE(contains(errorOf([] { readNpy("/tmp"); }),
                       "'/tmp' is not a regular file"));
}

TEST(Npy, UnwritablePathLeavesNothing) {
  Tensor tensor = makeTensor<int32_t>(Dtype::I32, {1}, {1});
  EXPECT_TRUE(contains(errorOf([&] { writeNpy("/nonexistent/a.npy", tensor); }),
                       "cannot write '/nonexistent/a.npy'"));
}

TEST(Npy, UncommittedFileLeavesNothing) {
  TestDirectory directory;
  {
    OutputFile file(directory / "a.npy");
    file.write("text");
  }
  EXPECT_EQ(directory.countFiles(), 0u);
}
