//===- YamlScanner.cpp - Problems in the text of a YAML file --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "YamlScanner.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp;

static bool isBlank(char c) { return c == ' ' || c == '\t'; }
static bool isBreak(char c) { return c == '\n' || c == '\r'; }
static bool isSpace(char c) { return isBlank(c) || isBreak(c); }
static bool isFlowIndicator(char c) { return StringRef(",[]{}").contains(c); }

namespace {

/// Scans a text token by token.
class Scanner {
public:
  Scanner(StringRef text, StringRef what) : text(text), what(what) {}

  std::optional<YamlProblem> run() {
    (void)consume("\xEF\xBB\xBF"); // a byte order mark
    while (position < text.size() && !problem) {
      if (isAtLineStart())
        beginLine();
      else
        scan();
    }
    if (!problem && !open.empty())
      report(open.back().offset,
             "'" + Twine(open.back().kind) + "' is never closed");
    return problem;
  }

private:
  struct Bracket {
    char kind;
    size_t offset;
  };

  bool consume(StringRef prefix) {
    if (!text.substr(position).starts_with(prefix))
      return false;
    position += prefix.size();
    return true;
  }

  char peek(size_t ahead = 0) const {
    return position + ahead < text.size() ? text[position + ahead] : '\n';
  }
  bool isAtLineStart() const {
    return position == 0 || text[position - 1] == '\n';
  }
  bool isInFlow() const { return !open.empty(); }

  void report(size_t offset, const Twine &message) {
    if (!problem)
      problem = YamlProblem{offset, message.str()};
  }

  /// Skips the indentation of a line.
  void beginLine() {
    indentation = 0;
    size_t start = position;
    while (isBlank(peek()) && position < text.size()) {
      if (peek() == '\t' && !isInFlow()) {
        size_t rest = text.find_first_not_of(" \t", position);
        // Blank lines and comments may have any indentation.
        if (rest != StringRef::npos && !isBreak(text[rest]) &&
            text[rest] != '#')
          return report(position,
                        "a tab can't indent a line of YAML; write spaces");
      }
      ++position;
    }
    indentation = position - start;
    if (position == start && (consume("---") || consume("...")))
      return;
    if (position < text.size())
      scan();
  }

  void scan() {
    char c = peek();
    if (isSpace(c)) {
      ++position;
      return;
    }
    if (c == '#' && (position == 0 || isSpace(text[position - 1]))) {
      skipLine();
      return;
    }
    // A character that begins an item, a key or a value of a block.
    if ((c == '-' || c == '?' || c == ':') && isSpace(peek(1))) {
      ++position;
      lastSignificant = c;
      return;
    }
    if (isFlowIndicator(c) && (isInFlow() || c == '[' || c == '{'))
      return scanFlowIndicator(c);
    if (isInFlow() && c == ':') {
      ++position;
      lastSignificant = c;
      return;
    }
    if (c == '*' || c == '&' || c == '!')
      return reportProperty(c);
    if (c == '"' || c == '\'')
      return scanQuoted(c);
    if ((c == '|' || c == '>') && !isInFlow())
      return skipBlockScalar();
    scanPlain();
  }

  void skipLine() {
    position = std::min(text.find('\n', position), text.size());
  }

  void skipBlockScalar() {
    skipLine();
    while (position < text.size()) {
      size_t line = position + 1;
      size_t content = text.find_first_not_of(' ', line);
      if (content == StringRef::npos) {
        position = text.size();
        return;
      }
      if (!isBreak(text[content]) && content - line <= indentation) {
        position = line;
        return;
      }
      position = std::min(text.find('\n', line), text.size());
    }
  }

  void scanFlowIndicator(char c) {
    size_t offset = position++;
    if (c == '[' || c == '{') {
      open.push_back({c, offset});
    } else if (c == ',') {
      if (lastSignificant == ',' || lastSignificant == '[' ||
          lastSignificant == '{')
        report(offset, "nothing stands before this comma");
    } else {
      char opening = c == ']' ? '[' : '{';
      if (lastSignificant == ',')
        report(lastComma, "nothing stands behind this comma");
      else if (open.back().kind != opening)
        report(open.back().offset, "'" + Twine(open.back().kind) +
                                       "' is closed by '" + Twine(c) + "'");
      open.pop_back();
    }
    if (c == ',')
      lastComma = offset;
    lastSignificant = c;
    // In a block, a bracket after a value is an error.
    if (!isInFlow() && (c == ']' || c == '}')) {
      size_t next = text.find_first_not_of(" \t", position);
      if (next != StringRef::npos && (text[next] == ']' || text[next] == '}'))
        report(next, "'" + Twine(text[next]) + "' closes nothing");
    }
  }

  /// Reports an alias, an anchor or a tag.
  void reportProperty(char c) {
    StringRef name = text.substr(position).take_until(
        [](char c) { return isSpace(c) || isFlowIndicator(c) || c == ':'; });
    StringRef kind = c == '*' ? "alias" : c == '&' ? "anchor" : "tag";
    report(position, "'" + name + "' is a YAML " + kind + ", which " + what +
                         " doesn't have; put quotes around a text that begins "
                         "with '" +
                         Twine(c) + "'");
  }

  void scanQuoted(char quote) {
    size_t offset = position++;
    for (; position < text.size(); ++position) {
      if (quote == '"' && peek() == '\\') {
        ++position;
      } else if (peek() == quote) {
        if (quote == '\'' && peek(1) == '\'') {
          ++position;
          continue;
        }
        ++position;
        lastSignificant = quote;
        return;
      }
    }
    position = text.size();
    report(offset, "the text that begins with this quote is never closed");
  }

  void scanPlain() {
    size_t offset = position;
    for (; position < text.size() && !isBreak(peek()); ++position) {
      char c = peek();
      if (c == '#' && isSpace(text[position - 1]))
        break;
      if (c == ':' &&
          (isSpace(peek(1)) || (isInFlow() && isFlowIndicator(peek(1)))))
        break;
      if (isInFlow() && isFlowIndicator(c))
        break;
    }
    lastSignificant = 'a';
    StringRef scalar = text.slice(offset, position);
    if (isInFlow() && position < text.size())
      checkPlainInFlow(offset, scalar);
  }

  /// Reports a plain text that is cut off by a comma or bracket inside it.
  void checkPlainInFlow(size_t offset, StringRef scalar) {
    char next = peek();
    bool isCall = scalar.count('(') > scalar.count(')') && next == ',';
    bool isPattern = (next == '[' || next == '{') && !isSpace(scalar.back());
    if (!isCall && !isPattern)
      return;
    size_t end = offset, depth = 0;
    for (; end < text.size() && !isBreak(text[end]); ++end) {
      char c = text[end];
      depth += c == '(';
      if (isCall && c == ')' && --depth == 0) {
        ++end;
        break;
      }
      if (isPattern &&
          (isSpace(c) || c == ',' ||
           (c == ':' &&
            isSpace(text.substr(end + 1).empty() ? '\n' : text[end + 1]))))
        break;
    }
    StringRef whole = text.slice(offset, end);
    if (isCall && whole.starts_with("("))
      return report(offset, "'" + whole +
                                "' is a tuple in Python; a list is written in "
                                "brackets here, and None as null, as in "
                                "[Shard(1), null]");
    report(offset, "put quotes around '" + whole + "': within { } and [ ] a " +
                       (isCall ? "comma" : "bracket") + " ends a text");
  }

  StringRef text, what;
  size_t position = 0;
  size_t indentation = 0;
  SmallVector<Bracket> open;
  /// The last significant character; 'a' for a plain text.
  char lastSignificant = '\n';
  size_t lastComma = 0;
  std::optional<YamlProblem> problem;
};

} // namespace

std::optional<YamlProblem> tp::findYamlProblem(StringRef text, StringRef what) {
  return Scanner(text, what).run();
}

/// "1 space".
static std::string countSpaces(size_t count) {
  return std::to_string(count) + (count == 1 ? " space" : " spaces");
}

std::optional<YamlProblem> tp::findIndentationProblem(StringRef text) {
  SmallVector<size_t> levels;
  size_t offset = 0, previousNumber = 0, number = 0;
  bool opensBlock = true;
  while (offset < text.size()) {
    StringRef line = text.substr(offset).take_until(isBreak);
    size_t indentation = line.size() - line.ltrim(' ').size();
    StringRef content = line.trim();
    ++number;
    size_t next = text.find('\n', offset);
    size_t start = offset + indentation;
    offset = next == StringRef::npos ? text.size() : next + 1;
    if (content.empty() || content.starts_with("#") ||
        content.starts_with("---"))
      continue;
    if (size_t comment = content.find(" #"); comment != StringRef::npos)
      content = content.take_front(comment).rtrim();
    if (levels.empty() || (indentation > levels.back() && opensBlock)) {
      levels.push_back(indentation);
    } else if (indentation > levels.back()) {
      return YamlProblem{
          start, "this line is indented by " + countSpaces(indentation) +
                     ", deeper than line " + std::to_string(previousNumber) +
                     ", which has its value already"};
    } else if (!llvm::is_contained(levels, indentation)) {
      std::string known;
      for (size_t level : levels)
        known += (known.empty()            ? ""
                  : level == levels.back() ? " or "
                                           : ", ") +
                 std::to_string(level);
      return YamlProblem{start, "this line is indented by " +
                                    countSpaces(indentation) +
                                    ", the lines above that it could belong "
                                    "to by " +
                                    known};
    }
    while (levels.back() > indentation)
      levels.pop_back();
    // The content of an item is indented as far as the text after the dash.
    while (content.consume_front("- ")) {
      size_t spaces = content.size() - content.ltrim().size();
      indentation += 2 + spaces;
      content = content.ltrim();
      levels.push_back(indentation);
    }
    opensBlock = content.ends_with(":") || content == "-";
    previousNumber = number;
  }
  return std::nullopt;
}
