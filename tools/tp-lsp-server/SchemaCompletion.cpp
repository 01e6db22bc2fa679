//===- SchemaCompletion.cpp - Proposals by a JSON schema ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SchemaCompletion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace json = llvm::json;
using llvm::StringRef;

static constexpr llvm::StringLiteral kItem = "[]";

/// A key without its quotes.
static std::string unquote(StringRef key) {
  return key.trim().trim("'\"").str();
}

namespace {
/// A line in block style: "- - key: value".
struct BlockLine {
  explicit BlockLine(StringRef line) {
    StringRef rest = line.ltrim(' ');
    column = line.size() - rest.size();
    while (rest.consume_front("- ")) {
      dashes.push_back(column);
      StringRef item = rest.ltrim(' ');
      column += 2 + rest.size() - item.size();
      rest = item;
    }
    isEmpty = rest.empty() || rest.starts_with("#");
    size_t colon = rest.find(": ");
    if (colon == StringRef::npos && rest.rtrim(' ').ends_with(":"))
      colon = rest.rtrim(' ').size() - 1;
    if (colon != StringRef::npos) {
      key = unquote(rest.take_front(colon));
      hasKey = true;
    }
  }

  /// The column where the line begins.
  size_t getBegin() const { return dashes.empty() ? column : dashes.front(); }

  size_t column;
  llvm::SmallVector<size_t> dashes;
  bool isEmpty, hasKey = false;
  std::string key;
};

/// An open bracket, and the key before the place in it.
struct Bracket {
  size_t offset; ///< from the beginning of the text that is read
  bool isMap;
  std::string key;
  bool hasKey = false;
};
} // namespace

/// Reads the brackets that are open at the end of `text`, a value in flow style.
static llvm::SmallVector<Bracket> readBrackets(StringRef text) {
  llvm::SmallVector<Bracket> open;
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' || c == '\'') {
      size_t end = text.find(c, i + 1);
      word += text.slice(i + 1, end);
      if (end == StringRef::npos)
        break;
      i = end;
    } else if (c == '{' || c == '[') {
      open.push_back({i, c == '{', ""});
      word.clear();
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
      word.clear();
    } else if (c == ',' && !open.empty()) {
      open.back().hasKey = false;
      word.clear();
    } else if (c == ':' && !open.empty()) {
      open.back().key = unquote(word);
      open.back().hasKey = true;
      word.clear();
    } else {
      word += c;
    }
  }
  return open;
}

YamlPlace findPlace(StringRef text) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  // A value in flow style may have begun in a line above.
  size_t first = lines.size() - 1;
  llvm::SmallVector<Bracket> open;
  for (size_t i = lines.size(); i-- > 0;) {
    size_t bracket = lines[i].find_first_of("{[");
    if (bracket == StringRef::npos)
      continue;
    auto found =
        readBrackets(text.drop_front(lines[i].data() + bracket - text.data()));
    // The first one must be of this line: others are found again below it.
    if (!found.empty() && found.front().offset < lines[i].size() - bracket) {
      open = found;
      first = i;
    }
  }

  YamlPlace place;
  BlockLine line(lines[first]);
  place.isValue = line.hasKey;
  if (line.hasKey)
    place.path.push_back(line.key);
  auto addItems = [&](const BlockLine &of) {
    place.path.insert(place.path.begin(), of.dashes.size(), kItem.str());
  };
  addItems(line);
  size_t begin = line.getBegin();
  // A list may begin in the column of its key.
  bool isItem = !line.dashes.empty();
  for (size_t i = first; i-- > 0;) {
    BlockLine above(lines[i]);
    bool isParent = above.hasKey &&
                    (above.column < begin ||
                     (isItem && above.dashes.empty() && above.column == begin));
    // The first line of the item that this line belongs to.
    bool isBegin = !above.dashes.empty() && above.getBegin() < begin;
    if (above.isEmpty || !(isParent || isBegin))
      continue;
    if (isParent)
      place.path.insert(place.path.begin(), above.key);
    addItems(above);
    begin = above.getBegin();
    isItem = !above.dashes.empty();
  }
  for (const Bracket &bracket : open) {
    place.isValue = !bracket.isMap || bracket.hasKey;
    if (!bracket.isMap)
      place.path.push_back(kItem.str());
    else if (bracket.hasKey)
      place.path.push_back(bracket.key);
  }
  return place;
}

namespace {
/// Walks a schema. An editor needs all alternatives, whichever applies.
class SchemaWalker {
public:
  explicit SchemaWalker(const json::Object &root) : root(root) {}

  /// Adds `schema` and its alternatives.
  void add(const json::Object *schema,
           std::vector<const json::Object *> &found) const {
    if (!schema)
      return;
    if (auto reference = schema->getString("$ref"))
      return add(root.getObject("$defs")->getObject(
                     reference->drop_front(StringRef("#/$defs/").size())),
                 found);
    if (llvm::is_contained(found, schema))
      return;
    found.push_back(schema);
    for (StringRef key : {"anyOf", "allOf"})
      if (const json::Array *parts = schema->getArray(key))
        for (const json::Value &part : *parts)
          add(part.getAsObject(), found);
    for (StringRef key : {"then", "else"})
      add(schema->getObject(key), found);
  }

  std::vector<const json::Object *>
  step(const std::vector<const json::Object *> &from, StringRef key) const {
    std::vector<const json::Object *> found;
    for (const json::Object *schema : from) {
      if (key == kItem) {
        add(schema->getObject("items"), found);
        continue;
      }
      const json::Object *properties = schema->getObject("properties");
      if (properties && properties->get(key))
        add(properties->getObject(key), found);
      else
        add(schema->getObject("additionalProperties"), found);
    }
    return found;
  }

private:
  const json::Object &root;
};
} // namespace

std::map<std::string, std::string> propose(const json::Object &schema,
                                           const YamlPlace &place) {
  SchemaWalker walker(schema);
  std::vector<const json::Object *> here;
  walker.add(&schema, here);
  for (const std::string &key : place.path)
    here = walker.step(here, key);
  std::map<std::string, std::string> proposals;
  for (const json::Object *alternative : here) {
    if (place.isValue) {
      if (const json::Array *names = alternative->getArray("enum"))
        for (const json::Value &name : *names)
          if (auto text = name.getAsString())
            proposals.emplace(*text, "");
      if (alternative->getString("type") == "boolean")
        proposals.insert({{"true", ""}, {"false", ""}});
      continue;
    }
    if (const json::Object *properties = alternative->getObject("properties"))
      for (const auto &[key, value] : *properties)
        if (const json::Object *property = value.getAsObject()) {
          std::string &text = proposals[key.str()];
          if (auto description = property->getString("description"))
            text = description->str();
        }
  }
  return proposals;
}
