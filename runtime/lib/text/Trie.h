//===- Trie.h - Finding tokens that a text begins with ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_TRIE_H
#define TPRT_LIB_TEXT_TRIE_H

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tprt::text {

/// Strings of `Unit`s, each with a number.
template <typename Unit>
class Trie {
public:
  using Node = uint32_t;
  using View = std::basic_string_view<Unit>;
  static constexpr Node root = 0;

  /// Replaces the number of an equal string.
  void insert(View string, int64_t number) {
    Node node = root;
    for (Unit unit : string) {
      auto [edge, isNew] = edges.try_emplace(key(node, unit), numbers.size());
      if (isNew)
        numbers.emplace_back();
      node = edge->second;
    }
    numbers[node] = number;
  }

  /// The node of a string, or nullopt if no string begins with it.
  std::optional<Node> find(View string) const {
    Node node = root;
    for (Unit unit : string) {
      auto edge = edges.find(key(node, unit));
      if (edge == edges.end())
        return std::nullopt;
      node = edge->second;
    }
    return node;
  }

  bool contains(View string) const {
    std::optional<Node> node = find(string);
    return node && numbers[*node];
  }

  /// Calls `function(size, number)` for each string that begins at `node` and
  /// that `text` begins with, the shortest first.
  template <typename Function>
  void forEachPrefix(View text, Node node, Function function) const {
    for (size_t size = 0; size < text.size();) {
      auto edge = edges.find(key(node, text[size]));
      if (edge == edges.end())
        return;
      node = edge->second;
      ++size;
      if (numbers[node])
        function(size, *numbers[node]);
    }
  }

private:
  static uint64_t key(Node node, Unit unit) {
    return uint64_t(node) << 16 | static_cast<std::make_unsigned_t<Unit>>(unit);
  }

  std::unordered_map<uint64_t, Node> edges;
  std::vector<std::optional<int64_t>> numbers{1};
};

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_TRIE_H
