//===- Json.h - JSON that anyone may have written ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_JSON_H
#define TPRT_LIB_SUPPORT_JSON_H

#include "tprt/Error.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <set>
#include <span>

namespace tprt {

/// Parses a file's text. Throws an input error, which doesn't name the file, if
/// the text is malformed, is nested more deeply than any of our formats, or has
/// an object with a duplicate key, whose first value would be lost.
template <typename Json = nlohmann::json>
Json parseJson(std::string_view text) {
  constexpr int maxDepth = 32;
  using Event = typename Json::parse_event_t;
  std::vector<std::set<std::string>> keys; // of the currently open objects
  auto check = [&](int depth, Event event, Json &parsed) {
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= maxDepth)
        throw inputError("malformed JSON: nested more deeply than " +
                         std::to_string(maxDepth) + " levels");
      keys.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      const std::string &key = parsed.template get_ref<std::string &>();
      if (!keys.back().insert(key).second)
        throw inputError("malformed JSON: '" + key + "' is listed twice");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const typename Json::exception &error) {
    throw inputError(std::string("malformed JSON: ") + error.what());
  }
}

/// `value` as an integer. Throws an input error if it isn't an integer or is
/// too large; get<int64_t>() would then return an arbitrary number.
template <typename Json>
int64_t getInteger(const Json &value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.template get<uint64_t>() > INT64_MAX))
    throw inputError("found " + value.dump() + ", expected an integer");
  return value.template get<int64_t>();
}

/// A number, or null if it isn't finite: JSON has no other numbers.
inline nlohmann::ordered_json toJsonNumber(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value)
                              : nlohmann::ordered_json();
}

inline std::string_view asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_JSON_H
