//===- Component.h - Checked access to tokenizer.json -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_COMPONENT_H
#define TPRT_LIB_TEXT_COMPONENT_H

#include "support/Json.h"

namespace tprt::text {

/// The largest id of a token.
inline constexpr int64_t maxId = UINT32_MAX;

/// A part of tokenizer.json, such as a normalizer, and its path in the file,
/// which diagnostics begin with. As in `tokenizers`, members that a component
/// doesn't have are ignored.
class Component {
public:
  using json = nlohmann::json;

  Component(const json &value, std::string path)
      : value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &message) const {
    throw inputError(path.empty() ? message : path + ": " + message);
  }

  const std::string &getPath() const { return path; }
  const json &getValue() const { return value; }
  /// Whether there is a value that isn't null.
  bool has(const char *key) const {
    require(value.is_object(), "an object");
    auto found = value.find(key);
    return found != value.end() && !found->is_null();
  }
  Component operator[](const char *key) const {
    if (!has(key))
      fail(std::string("missing '") + key + "'");
    return {value[key], path.empty() ? key : path + "." + key};
  }

  std::vector<Component> getList() const {
    require(value.is_array(), "a list");
    std::vector<Component> components;
    for (size_t i = 0; i < value.size(); ++i)
      components.push_back((*this)[i]);
    return components;
  }
  Component operator[](size_t i) const {
    return {value[i], path + "[" + std::to_string(i) + "]"};
  }
  const std::string &getString() const {
    require(value.is_string(), "a string");
    return value.get_ref<const std::string &>();
  }
  int64_t getInteger(int64_t maximum) const {
    require(value.is_number_integer(), "an integer");
    bool isNegative = !value.is_number_unsigned() && value.get<int64_t>() < 0;
    if (isNegative || value.get<uint64_t>() > static_cast<uint64_t>(maximum))
      fail("found " + value.dump() + ", expected 0 to " +
           std::to_string(maximum));
    return value.get<int64_t>();
  }
  double getNumber() const {
    require(value.is_number(), "a number");
    return value.get<double>();
  }
  bool getBool() const {
    require(value.is_boolean(), "true or false");
    return value.get<bool>();
  }
  bool getBool(const char *key, bool otherwise) const {
    return has(key) ? (*this)[key].getBool() : otherwise;
  }

  /// The value of `table` for the name of this component's type, or for the
  /// string that this is.
  template <typename Value, size_t size>
  const Value &
  choose(const std::pair<const char *, Value> (&table)[size]) const {
    const std::string &name = getString();
    std::vector<std::string> known;
    for (const auto &[each, chosen] : table) {
      if (name == each)
        return chosen;
      known.emplace_back(each);
    }
    fail("'" + name + "' isn't supported" + didYouMean(name, known) +
         ", expected one of " + quotedList(known));
  }

  void require(bool condition, const char *expected) const {
    if (!condition)
      fail(std::string("expected ") + expected + ", found " +
           value.type_name());
  }

private:
  const json &value;
  std::string path;
};

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_COMPONENT_H
