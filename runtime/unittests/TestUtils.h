//===- TestUtils.h - Common code of tests -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_TESTUTILS_H
#define TPRT_UNITTESTS_TESTUTILS_H

#include "tprt/Tensor.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace tprt::test {

/// A directory for one test's files.
class TestDirectory {
public:
  TestDirectory()
      : path((std::filesystem::temp_directory_path() / "tprt-test-XXXXXX")
                 .string()) {
    if (!::mkdtemp(path.data()))
      throw std::runtime_error("mkdtemp failed");
  }
  ~TestDirectory() { std::filesystem::remove_all(path); }

  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  /// Writes a file and returns its path.
  std::string write(const std::string &name, std::string_view bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  size_t countFiles() const {
    auto files = std::filesystem::directory_iterator(path);
    return std::distance(begin(files), end(files));
  }

private:
  std::string path;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A tensor of `elements`, whose C++ type has the size of `dtype`.
template <typename T>
Tensor makeTensor(Dtype dtype, Shape shape, const std::vector<T> &elements) {
  EXPECT_EQ(sizeof(T), static_cast<size_t>(byteWidth(dtype)));
  EXPECT_EQ(numElements(shape), static_cast<int64_t>(elements.size()));
  auto data = allocateAligned(elements.size() * sizeof(T));
  std::copy(elements.begin(), elements.end(),
            reinterpret_cast<T *>(data.get()));
  return {dtype, std::move(shape), data};
}

template <typename T>
std::vector<T> getElements(const Tensor &tensor) {
  std::vector<T> elements(tensor.getNumElements());
  if (!elements.empty())
    std::memcpy(elements.data(), tensor.data.get(), tensor.getNumBytes());
  return elements;
}

/// The text of the error that `body` throws; fails when there is none.
template <typename Body>
std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

/// `text` contains `part`.
inline testing::AssertionResult contains(const std::string &text,
                                         const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << part << "' is not in '" << text << "'";
}

/// `count` numbers between -1 and 2, which repeat after 23; others for another
/// seed.
inline std::vector<float> makeFloats(int64_t count, int64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 37 + seed) % 23) / 8 - 1;
  return values;
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_TESTUTILS_H
