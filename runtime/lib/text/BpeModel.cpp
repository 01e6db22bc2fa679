//===- BpeModel.cpp - Byte pair encoding ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with
// Subword Units, 2016 (https://arxiv.org/abs/1508.07909). A piece begins as its
// code points, in other words "symbols". As long as two neighbors can be
// merged, those with the smallest rank are; among equal ones the leftmost.
//
//===----------------------------------------------------------------------===//

#include "text/Model.h"

#include "text/Text.h"

#include <queue>

using namespace tprt;
using namespace tprt::text;

namespace {

struct Options {
  std::optional<std::string> unknown;
  std::string prefix; ///< of all symbols but a piece's first
  std::string suffix; ///< of a piece's last symbol
  bool fusesUnknown, fallsBackToBytes, ignoresMerges;
};

struct Merge {
  int64_t rank, id;
};

/// Merges by the ids of two neighbors.
class Merges {
public:
  /// Reads ["a b", …] or [["a", "b"], …].
  Merges(const Component &component, const Vocabulary &vocabulary,
         size_t prefixSize);

  const Merge *find(int64_t left, int64_t right) const {
    auto found = merges.find(key(left, right));
    return found == merges.end() ? nullptr : &found->second;
  }

private:
  static uint64_t key(int64_t left, int64_t right) {
    static_assert(maxId <= UINT32_MAX);
    return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
  }

  std::unordered_map<uint64_t, Merge> merges;
};

/// The symbols of a piece, as a linked list in an array.
class Symbols {
public:
  explicit Symbols(const std::vector<int64_t> &ids);
  void merge(const Merges &merges);
  void append(std::vector<int64_t> &ids) const;

private:
  static constexpr size_t none = SIZE_MAX;
  struct Symbol {
    int64_t id;
    size_t previous, next;
    bool isMerged; ///< into the symbol before
  };
  /// A possible merge of the symbol at `position` and the next.
  struct Candidate {
    Merge merge;
    size_t position;
    bool operator>(const Candidate &other) const {
      return std::pair(merge.rank, position) >
             std::pair(other.merge.rank, other.position);
    }
  };

  const Merge *findMerge(const Merges &merges, size_t position) const {
    size_t next = symbols[position].next;
    return next == none ? nullptr
                        : merges.find(symbols[position].id, symbols[next].id);
  }

  std::vector<Symbol> symbols;
};

class BpeModel : public Model {
public:
  BpeModel(Vocabulary itsVocabulary, Merges merges, Options options)
      : Model(std::move(itsVocabulary)), merges(std::move(merges)),
        options(std::move(options)), byteTokens(vocabulary) {}

  void tokenize(std::string_view piece,
                std::vector<int64_t> &ids) const override;

private:
  std::vector<int64_t> getSymbols(std::string_view piece) const;

  const Merges merges;
  const Options options;
  const ByteTokens byteTokens;
};

} // namespace

static std::pair<std::string, std::string>
readPair(const Component::json &merge) {
  if (merge.is_string()) {
    const auto &text = merge.get_ref<const std::string &>();
    size_t space = text.find(' ');
    if (space != text.npos && text.find(' ', space + 1) == text.npos)
      return {text.substr(0, space), text.substr(space + 1)};
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  throw inputError("found " + merge.dump() +
                   ", expected two tokens, such as \"a b\" or [\"a\", \"b\"]");
}

Merges::Merges(const Component &component, const Vocabulary &vocabulary,
               size_t prefixSize) {
  const Component::json &list = component.getValue();
  component.require(list.is_array(), "a list");
  auto getId = [&](const std::string &token) {
    std::optional<int64_t> id = vocabulary.getId(token);
    if (!id)
      throw inputError("the vocabulary has no '" + token + "'");
    return *id;
  };
  // Before the notation with two strings, a first line was a version.
  int64_t rank = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string() &&
        list[i].get_ref<const std::string &>().starts_with("#version"))
      continue;
    try {
      auto [left, right] = readPair(list[i]);
      int64_t leftId = getId(left), rightId = getId(right);
      if (right.size() < prefixSize)
        throw inputError("'" + right + "' has no prefix");
      Merge merge{rank++, getId(left + right.substr(prefixSize))};
      merges.insert_or_assign(key(leftId, rightId), merge);
    } catch (const Error &error) {
      component[i].fail(error.what());
    }
  }
}

Symbols::Symbols(const std::vector<int64_t> &ids) {
  symbols.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    symbols.push_back({ids[i], i == 0 ? none : i - 1,
                       i + 1 == ids.size() ? none : i + 1, false});
}

void Symbols::merge(const Merges &merges) {
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto add = [&](size_t position) {
    if (const Merge *merge = findMerge(merges, position))
      queue.push({*merge, position});
  };
  for (size_t i = 0; i < symbols.size(); ++i)
    add(i);
  while (!queue.empty()) {
    auto [merge, position] = queue.top();
    queue.pop();
    Symbol &left = symbols[position];
    // Its symbols may have been merged with others since.
    const Merge *current =
        left.isMerged ? nullptr : findMerge(merges, position);
    if (!current || current->id != merge.id)
      continue;
    Symbol &right = symbols[left.next];
    left.id = merge.id;
    left.next = right.next;
    right.isMerged = true;
    if (left.next != none)
      symbols[left.next].previous = position;
    if (left.previous != none)
      add(left.previous);
    add(position);
  }
}

void Symbols::append(std::vector<int64_t> &ids) const {
  for (const Symbol &symbol : symbols)
    if (!symbol.isMerged)
      ids.push_back(symbol.id);
}

/// The symbols' ids. As in `tokenizers`, an unknown code point is the unknown
/// token, or nothing if the model has none, and comes after the tokens of bytes
/// that follow it.
std::vector<int64_t> BpeModel::getSymbols(std::string_view piece) const {
  std::vector<int64_t> ids;
  std::optional<int64_t> unknown;
  auto flushUnknown = [&] {
    if (unknown)
      ids.push_back(*unknown);
    unknown.reset();
  };
  for (size_t i = 0; i < piece.size();) {
    size_t begin = i;
    U8_FWD_1(piece.data(), i, piece.size());
    std::string symbol(begin == 0 ? "" : options.prefix);
    symbol += piece.substr(begin, i - begin);
    if (i == piece.size())
      symbol += options.suffix;
    if (std::optional<int64_t> id = vocabulary.getId(symbol)) {
      flushUnknown();
      ids.push_back(*id);
      continue;
    }
    if (options.fallsBackToBytes && byteTokens.append(symbol, ids))
      continue;
    if (!options.unknown)
      continue;
    if (!options.fusesUnknown)
      flushUnknown();
    unknown = vocabulary.getId(*options.unknown);
    if (!unknown)
      throw inputError("the vocabulary has neither '" + symbol +
                       "' nor the unknown token '" + *options.unknown + "'");
  }
  flushUnknown();
  return ids;
}

void BpeModel::tokenize(std::string_view piece,
                        std::vector<int64_t> &ids) const {
  if (options.ignoresMerges)
    if (std::optional<int64_t> id = vocabulary.getId(std::string(piece))) {
      ids.push_back(*id);
      return;
    }
  Symbols symbols(getSymbols(piece));
  symbols.merge(merges);
  symbols.append(ids);
}

OwnedModel text::readBpeModel(const Component &component) {
  if (component.has("dropout") && component["dropout"].getNumber() != 0)
    component["dropout"].fail("dropout makes tokens random, which isn't "
                              "supported: set it to null");
  auto getString = [&](const char *key) {
    return component.has(key) ? component[key].getString() : std::string();
  };
  Options options;
  if (component.has("unk_token"))
    options.unknown = component["unk_token"].getString();
  options.prefix = getString("continuing_subword_prefix");
  options.suffix = getString("end_of_word_suffix");
  options.fusesUnknown = component.getBool("fuse_unk", false);
  options.fallsBackToBytes = component.getBool("byte_fallback", false);
  options.ignoresMerges = component.getBool("ignore_merges", false);
  Vocabulary vocabulary = Vocabulary::read(component["vocab"]);
  Merges merges(component["merges"], vocabulary, options.prefix.size());
  return std::make_unique<BpeModel>(std::move(vocabulary), std::move(merges),
                                    std::move(options));
}
