//===- ManifestNode.h - Checked access to a manifest's JSON -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_PROGRAM_MANIFESTNODE_H
#define TPRT_LIB_PROGRAM_MANIFESTNODE_H

#include "support/Json.h"
#include "tprt/Collective.h"

namespace tprt {

/// A JSON value and its path, which diagnostics begin with.
class ManifestNode {
public:
  ManifestNode(const nlohmann::json &value, std::string path)
      : value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &message) const {
    throw inputError("manifest: " + path + ": " + message);
  }

  ManifestNode operator[](const char *key) const {
    require(value.is_object(), "an object");
    auto found = value.find(key);
    if (found == value.end())
      throw inputError("manifest: missing '" + join(key) + "'");
    return {*found, join(key)};
  }
  bool has(const char *key) const { return value.contains(key); }

  std::vector<ManifestNode> getArray() const {
    require(value.is_array(), "an array");
    std::vector<ManifestNode> nodes;
    for (size_t i = 0; i < value.size(); ++i)
      nodes.emplace_back(value[i], path + "[" + std::to_string(i) + "]");
    return nodes;
  }
  std::string getString() const {
    require(value.is_string(), "a string");
    return value.get<std::string>();
  }
  int64_t getInt(int64_t minimum, int64_t maximum) const {
    require(value.is_number_integer(), "an integer");
    bool fits =
        !value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX;
    int64_t number = fits ? value.get<int64_t>() : 0;
    if (!fits || number < minimum || number > maximum)
      fail("found " + value.dump() + ", expected " + std::to_string(minimum) +
           (minimum == maximum ? "" : " to " + std::to_string(maximum)));
    return number;
  }
  bool getBool() const {
    require(value.is_boolean(), "true or false");
    return value.get<bool>();
  }
  /// A number that an element of `dtype` can hold.
  double getElement(Dtype dtype) const {
    require(value.is_number(), "a number");
    double number = value.get<double>();
    if (!holds(dtype, number))
      fail("found " + value.dump() + ", which isn't of type " +
           std::string(tprt::toString(dtype)));
    return number;
  }
  std::vector<int64_t> getInts(int64_t minimum, int64_t maximum) const {
    std::vector<int64_t> numbers;
    for (const ManifestNode &node : getArray())
      numbers.push_back(node.getInt(minimum, maximum));
    return numbers;
  }
  std::vector<std::string> getStrings() const {
    std::vector<std::string> strings;
    for (const ManifestNode &node : getArray())
      strings.push_back(node.getString());
    return strings;
  }
  /// The value of an Enum by its name; `last` is the Enum's last value.
  template <typename Enum>
  Enum getEnum(Enum last) const {
    std::string name = getString();
    std::vector<std::string> known;
    for (size_t i = 0; i <= static_cast<size_t>(last); ++i) {
      known.emplace_back(tprt::toString(static_cast<Enum>(i)));
      if (known.back() == name)
        return static_cast<Enum>(i);
    }
    fail("found '" + name + "', expected one of " + quotedList(known));
  }
  Dtype getDtype() const {
    std::string name = getString();
    if (std::optional<Dtype> dtype = parseDtype(name))
      return *dtype;
    fail("unknown dtype '" + name + "'");
  }
  Shape getShape() const {
    Shape shape = getInts(0, INT64_MAX);
    if (!checkedNumElements(shape))
      fail("shape " + value.dump() + " is too large");
    return shape;
  }

  /// One shape for each rank, all with the same number of dimensions.
  std::vector<Shape> getShapes(int64_t worldSize) const {
    std::vector<Shape> shapes;
    for (const ManifestNode &node : getArrayOf(worldSize)) {
      shapes.push_back(node.getShape());
      if (shapes.back().size() != shapes.front().size())
        node.fail("has " + std::to_string(shapes.back().size()) +
                  " dimensions, the first shape has " +
                  std::to_string(shapes.front().size()));
    }
    return shapes;
  }
  /// The elements of an array with one for each rank.
  std::vector<ManifestNode> getArrayOf(int64_t worldSize) const {
    std::vector<ManifestNode> nodes = getArray();
    if (static_cast<int64_t>(nodes.size()) != worldSize)
      fail("has " + std::to_string(nodes.size()) +
           " entries, expected one for each of " + std::to_string(worldSize) +
           " ranks");
    return nodes;
  }

private:
  void require(bool holds, const char *what) const {
    if (!holds)
      fail(std::string("expected ") + what + ", found " +
           value.dump().substr(0, 60));
  }
  std::string join(const char *key) const {
    return path.empty() ? key : path + "." + key;
  }

  const nlohmann::json &value;
  std::string path;
};

} // namespace tprt

#endif // TPRT_LIB_PROGRAM_MANIFESTNODE_H
