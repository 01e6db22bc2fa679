//===- Edit.cpp - Changes of a parallelize plan ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/Edit.h"
#include "tp/Plan/Style.h"
#include "tp/Support/Quote.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

PlanFile plan::applyEdit(PlanFile file, const PlanEdit &edit) {
  std::vector<PlanEntry> &entries = file.groups[edit.group].entries;
  switch (edit.action) {
  case PlanEdit::Action::Replace:
    entries[edit.entry] = edit.changed;
    break;
  case PlanEdit::Action::Add:
    entries.push_back(edit.changed);
    break;
  case PlanEdit::Action::Remove:
    entries.erase(entries.begin() + edit.entry);
    break;
  }
  return file;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// A text as a scalar in YAML's flow style; in quotes if it needs them or if
/// `quoted`.
static std::string printScalar(StringRef text, bool quoted = false) {
  bool isPlain =
      !text.empty() && !StringRef("*&!|>%@`\"'#{}[],?:- ").contains(text[0]) &&
      text.find_first_of("{}[]#\"\\") == StringRef::npos &&
      !text.contains(": ") && !text.contains(", ") && !text.ends_with(" ");
  // In flow style, a comma ends a plain text, even inside parentheses.
  return !quoted && isPlain && !text.contains(',') ? text.str() : quote(text);
}

static std::string printValue(const YamlValue &value) {
  SmallVector<std::string> items;
  switch (value.kind) {
  case YamlValue::Kind::Null:
    return "null";
  case YamlValue::Kind::Scalar:
    return printScalar(value.text, value.quoted);
  case YamlValue::Kind::List:
    return "[" +
           llvm::join(llvm::map_to_vector(value.items, printValue), ", ") + "]";
  case YamlValue::Kind::Map:
    for (size_t i = 0; i < value.getNumFields(); ++i)
      items.push_back(printScalar(value.getKey(i).text) + ": " +
                      printValue(value.getField(i)));
    return "{" + llvm::join(items, ", ") + "}";
  }
  llvm_unreachable("all kinds are handled");
}

std::string plan::printEntry(const PlanEntry &entry) {
  std::string text = printScalar(entry.pattern) + ": ";
  if (!entry.direct.empty())
    return text + "[" +
           llvm::join(llvm::map_range(entry.direct,
                                      [](const Placement &placement) {
                                        return printScalar(placement.str());
                                      }),
                      ", ") +
           "]";
  if (entry.arguments.empty())
    return text + entry.style;
  text += "{style: " + entry.style;
  for (const PlanArgument &argument : entry.arguments)
    text += ", " + argument.name + ": " + printValue(argument.value);
  return text + "}";
}

//===----------------------------------------------------------------------===//
// Proposals
//===----------------------------------------------------------------------===//

/// The layouts that are tried instead of a written one.
static ArrayRef<StringRef> getLayouts() {
  static const StringRef layouts[] = {"Replicate", "Shard(0)", "Shard(1)",
                                      "Shard(2)", "Shard(-1)"};
  return layouts;
}

namespace {
class Proposer {
public:
  Proposer(const CheckedPlan &plan, std::vector<PlanEdit> &edits)
      : plan(plan), file(plan.file), edits(edits) {}

  void propose(unsigned group, unsigned entry) {
    this->group = group;
    this->index = entry;
    const PlanEntry &original = file.groups[group].entries[entry];
    if (original.direct.empty()) {
      changeArguments(original);
      changeStyle(original);
      narrowPattern(original);
    } else {
      changePlacements(original);
    }
    edits.push_back({PlanEdit::Action::Remove, group, entry, original});
  }

  void proposeAddition(unsigned group, StringRef module, FileLineColLoc loc) {
    for (StringRef style :
         {"SequenceParallel", "ColwiseParallel", "RowwiseParallel"}) {
      PlanEntry entry{getPattern(module, file.groups[group].match),
                      loc,
                      style.str(),
                      loc,
                      {}};
      edits.push_back({PlanEdit::Action::Add, group, 0, std::move(entry)});
    }
  }

private:
  void replace(PlanEntry entry) {
    edits.push_back(
        {PlanEdit::Action::Replace, group, index, std::move(entry)});
  }

  static YamlValue makeScalar(StringRef text, FileLineColLoc loc) {
    YamlValue value(loc);
    value.kind = YamlValue::Kind::Scalar;
    value.text = text.str();
    return value;
  }

  void changeArguments(const PlanEntry &original) {
    const Style *style = lookupStyle(original.loc.getContext(), original.style);
    if (!style)
      return;
    // Try defaults first: they are the shortest to write.
    for (size_t i = 0; i < original.arguments.size(); ++i) {
      PlanEntry entry = original;
      entry.arguments.erase(entry.arguments.begin() + i);
      replace(std::move(entry));
    }
    for (const ArgumentSpec &spec : style->getArguments()) {
      if (spec.type != ArgumentSpec::Type::Layout &&
          spec.type != ArgumentSpec::Type::Layouts &&
          spec.type != ArgumentSpec::Type::InputLayouts)
        continue;
      auto written =
          llvm::find_if(original.arguments, [&](const PlanArgument &argument) {
            return argument.name == spec.name;
          });
      size_t place = written - original.arguments.begin();
      if (written != original.arguments.end() && written->value.isList()) {
        for (size_t item = 0; item < written->value.items.size(); ++item)
          for (StringRef layout : getLayouts()) {
            PlanEntry entry = original;
            YamlValue &value = entry.arguments[place].value.items[item];
            if (value.isNull() || value.text == layout)
              continue;
            value = makeScalar(layout, value.loc);
            replace(std::move(entry));
          }
        continue;
      }
      // The length of an absent list isn't known.
      if (written == original.arguments.end() &&
          spec.type != ArgumentSpec::Type::Layout)
        continue;
      for (StringRef layout : getLayouts()) {
        PlanEntry entry = original;
        if (written == original.arguments.end()) {
          if (layout == spec.defaultText)
            continue;
          entry.arguments.push_back({spec.name.str(), original.loc,
                                     makeScalar(layout, original.loc)});
        } else {
          if (layout == written->value.text || layout == spec.defaultText)
            continue;
          entry.arguments[place].value = makeScalar(layout, written->loc);
        }
        replace(std::move(entry));
      }
    }
  }

  /// Tries the other split of a weight, without the layouts of the current one.
  void changeStyle(const PlanEntry &original) {
    for (StringRef style : {"ColwiseParallel", "RowwiseParallel"}) {
      if (original.style == style)
        continue;
      PlanEntry entry = original;
      entry.style = style.str();
      entry.arguments.clear();
      replace(std::move(entry));
    }
  }

  /// Narrows the entry to one of the kinds of modules that it matches, such as
  /// wq, wk or wv for w[qkv].
  void narrowPattern(const PlanEntry &original) {
    std::set<std::string> patterns;
    for (const ModuleLayouts &layouts : plan.modules)
      if (layouts.entry == &original)
        patterns.insert(getPattern(layouts.fqn, file.groups[group].match));
    if (patterns.size() < 2)
      return;
    for (const std::string &pattern : patterns) {
      PlanEntry entry = original;
      entry.pattern = pattern;
      replace(std::move(entry));
    }
  }

  void changePlacements(const PlanEntry &original) {
    for (size_t i = 0; i < original.direct.size(); ++i)
      for (Placement placement :
           {Placement::replicate(), Placement::shard(0), Placement::shard(1)}) {
        if (original.direct[i] == placement)
          continue;
        PlanEntry entry = original;
        entry.direct[i] = placement;
        replace(std::move(entry));
      }
  }

  const CheckedPlan &plan;
  const PlanFile &file;
  std::vector<PlanEdit> &edits;
  unsigned group = 0, index = 0;
};
} // namespace

/// Whether the entry matches the module or parameters of it.
static bool concerns(const PlanEntry &entry, StringRef module, MatchMode mode) {
  if (entry.direct.empty())
    return matchFqn(entry.pattern, module, mode);
  StringRef holder = StringRef(entry.pattern).rsplit('.').first;
  return matchFqn(holder, module, mode);
}

std::vector<PlanEdit> plan::proposeEdits(const CheckedPlan &plan,
                                         ArrayRef<StringRef> modules) {
  const PlanFile &file = plan.file;
  std::vector<PlanEdit> edits;
  Proposer proposer(plan, edits);
  for (unsigned group = 0; group < file.groups.size(); ++group) {
    const PlanGroup &from = file.groups[group];
    llvm::SmallSetVector<unsigned, 8> entries;
    SmallVector<StringRef> without;
    for (StringRef module : modules) {
      bool hasEntry = false;
      // Entries of enclosing modules decide the layouts of its inputs.
      for (StringRef fqn = module;;
           fqn = fqn.contains('.') ? fqn.rsplit('.').first : StringRef()) {
        for (auto [index, entry] : llvm::enumerate(from.entries))
          if (concerns(entry, fqn, from.match)) {
            entries.insert(index);
            hasEntry |= fqn == module;
          }
        if (fqn.empty())
          break;
      }
      if (!hasEntry && !module.empty())
        without.push_back(module);
    }
    for (unsigned entry : entries)
      proposer.propose(group, entry);
    for (StringRef module : without)
      proposer.proposeAddition(group, module, from.loc);
  }
  return edits;
}
