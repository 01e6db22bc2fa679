//===- ExplainText.cpp - An explanation as text and as remarks ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Explain.md describes the text.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "mlir/IR/Remarks.h"
#include "tp/Advice/Print/PlanPrinter.h"
#include "tp/Plan/Finding.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::explain;

/// "1 collective".
static std::string count(int64_t n, StringRef what) {
  return std::to_string(n) + " " + what.str() + (n == 1 || n == -1 ? "" : "s");
}

/// "-1 KiB (1024 bytes), +2 collectives", or "the same number of collectives" if their
/// number doesn't change.
static std::string printDelta(int64_t bytes, int64_t collectives) {
  auto getSign = [](int64_t n) { return n > 0 ? "+" : "-"; };
  std::string text = bytes == 0
                         ? "the same number of bytes"
                         : getSign(bytes) + plan::printBytes(std::abs(bytes));
  text += ", ";
  text += collectives == 0 ? "the same number of collectives"
                           : getSign(collectives) +
                                 count(std::abs(collectives), "collective");
  return text;
}

static std::string printTotals(const Totals &totals) {
  return plan::printBytes(totals.bytes) + " received by all ranks, " +
         count(totals.collectives, "collective");
}

/// "'up.weight' Shard(0) [plan.yaml:3:3: ColwiseParallel] -> nn.linear (up)
/// factor n Shard(1)".
static std::string printChain(const PlacementChain &chain,
                              const Program &program) {
  if (!chain.source)
    return chain.placement + ", chosen by cost: nothing fixed leads here";
  NamedSource source = nameSource(chain, program);
  std::string placement = chain.sourcePlacement;
  std::string text = source.what + " " + placement + " [" + source.by + "]";
  if (chain.numLeftOut) {
    text += " -> … " + count(chain.numLeftOut, "op") + " …";
    placement.clear();
  }
  for (const PlacementChain::Step &step : chain.steps) {
    text += " -> " + printOp(step.op);
    if (!step.split.empty())
      text += " " + step.split;
    if (step.placement != placement)
      text += " " + step.placement;
    placement = step.placement;
  }
  return text;
}

/// "all_reduce over {tp}", "2 x all_reduce over {tp}, all_gather over {dp}".
static std::string printCollectives(ArrayRef<std::string> collectives) {
  std::string text;
  for (size_t i = 0, end; i < collectives.size(); i = end) {
    for (end = i;
         end < collectives.size() && collectives[end] == collectives[i];)
      ++end;
    text += (text.empty() ? "" : ", ") +
            (end - i > 1 ? std::to_string(end - i) + " x " : std::string()) +
            collectives[i];
  }
  return text;
}

/// "plan.yaml:3:3, net1: ColwiseParallel".
static std::string printChange(const TriedEdit &edit) {
  return edit.action + " " + edit.place +
         (edit.text.empty()      ? ""
          : edit.action == "add" ? ", " + edit.text
                                 : " by " + edit.text);
}

static std::string printEffect(const TriedEdit &edit) {
  std::string text = printDelta(edit.bytes, edit.collectives);
  if (!edit.removes)
    text += "; moves less, but doesn't remove it";
  if (edit.parameterBytes)
    text += "; each rank holds " +
            plan::printBytes(std::abs(edit.parameterBytes)) +
            (edit.parameterBytes > 0 ? " more" : " less") + " of parameters";
  if (edit.work > 1.05)
    text += "; each rank computes " + llvm::formatv("{0:F1}", edit.work).str() +
            " times as much";
  for (const std::string &change : edit.interface)
    text += "; " + change;
  return text;
}

/// `place`: "" or ", at model.mlir:3:8".
static void printMovement(const Program &program, size_t index, StringRef place,
                          raw_ostream &os) {
  const ExplainedMovement &movement = program.explanation.movements[index];
  os << printCollectives(movement.collectives) << "\n     "
     << (movement.from ? "of " : "in ") << printValue(movement.value) << ", "
     << plan::printType(movement.type);
  if (movement.from)
    os << ", " << printPlacements(movement.from, program.mesh) << " to "
       << printPlacements(movement.to, program.mesh);
  os << place;
  os << "\n     cause: " << movement.reason;
  if (!movement.fqn.empty())
    os << ", in '" << movement.fqn << "'";
  os << "\n     bytes: " << plan::printBytes(movement.bytes)
     << " received by all ranks, " << plan::printBytes(movement.bytesPerRank)
     << " by one";
  if (movement.times > 1)
    os << ", " << movement.times << " times";
  os << "\n";
  for (const ExplainedMovement::Conflict &conflict : movement.conflicts)
    os << "     over " << conflict.axis << ": " << conflict.verdict
       << "\n       lost: " << conflict.current.placement << ", from "
       << printChain(conflict.current, program)
       << "\n       won:  " << conflict.required.placement << ", from "
       << printChain(conflict.required, program) << "\n";
  for (const ExplainedMovement::Alternative &other : movement.alternatives)
    os << "     otherwise: " << movement.choice->getName() << " "
       << (other.description == "whole" ? "" : "split along ")
       << other.description << ", " << llvm::join(other.operands, ", ")
       << " -> " << llvm::join(other.results, ", ") << "\n       "
       << printDelta(other.delta.bytes, other.delta.collectives) << "\n";
  if (program.edits.empty())
    return;
  for (const TriedEdit &edit : program.edits[index])
    os << "     edit: " << printChange(edit) << "\n       " << printEffect(edit)
       << "\n";
  if (!program.edits[index].empty())
    return;
  os << "     no single edit that was tried reduces the communication";
  if (movement.from)
    os << "; " << plan::printBytes(movement.leastBytes)
       << (movement.leastBytes == 1 ? " is" : " are")
       << " the least for this change of placement";
  os << "\n";
}

/// `text` with a `*` for each number that is a component of an FQN.
static std::string maskNumbers(StringRef text) {
  std::string masked;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    if (end == i) {
      masked += text[i++];
      continue;
    }
    auto isPart = [](char c) { return llvm::isAlpha(c) || c == '_'; };
    StringRef before = masked;
    bool isAfterName =
        before.size() > 1 && before.back() == '.' &&
        (isPart(before[before.size() - 2]) || before[before.size() - 2] == '*');
    bool isBeforeName =
        !before.empty() && StringRef("'( ").contains(before.back()) &&
        end + 1 < text.size() && text[end] == '.' && isPart(text[end + 1]);
    if (isAfterName || isBeforeName)
      masked += '*';
    else
      masked += text.slice(i, end);
    i = end;
  }
  return masked;
}

namespace {
/// Groups texts that differ only in the numbers of layers.
struct AlikeTexts {
  struct Item {
    unsigned function;
    std::string name, rest;
  };
  struct Group {
    Item first;
    size_t size = 1;
  };

  void add(StringRef key, Item item) {
    auto [it, isNew] = indices.try_emplace(maskNumbers(key), groups.size());
    if (isNew)
      groups.push_back({std::move(item)});
    else
      ++groups[it->second].size;
  }

  /// In the order of their first items.
  std::vector<Group> groups;

private:
  llvm::StringMap<size_t> indices;
};
} // namespace

void explain::printText(const Program &program, raw_ostream &os) {
  MeshOp mesh = program.mesh;
  os << "mesh";
  for (size_t i = 0; i < mesh.getNumAxes(); ++i)
    os << " " << mesh.getAxisName(i) << "=" << mesh.getAxisSizes()[i];
  os << "\n";
  if (program.plan)
    plan::printPipeline(*program.plan, os);
  const Explanation &explanation = program.explanation;
  os << "total as propagated: " << printTotals(program.total);
  if (program.gap)
    os << "; at most " << plan::printBytes(program.gap) << " above the optimum";
  os << "\ntotal after tp-optimize-collectives: "
     << printTotals(program.optimized);
  os << "\n\nplacements\n";
  AlikeTexts values;
  for (const ExplainedValue &entry : explanation.values) {
    std::string rest =
        ": " + plan::printType(cast<RankedTensorType>(entry.value.getType())) +
        " " + printPlacements(entry.sharding, mesh) + "\n";
    for (auto [axis, chain] : llvm::enumerate(entry.chains))
      rest += "      " + mesh.getAxisName(axis).str() + ": " +
              printChain(chain, program) + "\n";
    std::string name = printValue(entry.value);
    values.add(std::to_string(entry.function) + " " + name + rest,
               {entry.function, std::move(name), std::move(rest)});
  }
  std::optional<unsigned> function;
  for (const AlikeTexts::Group &group : values.groups) {
    if (function != group.first.function) {
      function = group.first.function;
      os << "  @" << func::FuncOp(program.functions[*function].op).getSymName()
         << "\n";
    }
    os << "    " << group.first.name;
    if (group.size > 1)
      os << ", and " << group.size - 1 << " more of other layers";
    os << group.first.rest;
  }
  os << "\ncollectives\n";
  AlikeTexts movements;
  for (size_t i = 0; i < explanation.movements.size(); ++i) {
    const ExplainedMovement &movement = explanation.movements[i];
    std::string key, text;
    llvm::raw_string_ostream keyStream(key), textStream(text);
    printMovement(program, i, "", keyStream);
    std::string place = printLocation(movement.op->getLoc());
    printMovement(program, i, place.empty() ? "" : ", at " + place, textStream);
    movements.add(key, {movement.function, std::to_string(i + 1), text});
  }
  for (const AlikeTexts::Group &group : movements.groups) {
    os << "  " << group.first.name << ". " << group.first.rest;
    if (group.size > 1)
      os << "     the same in " << count(group.size - 1, "other layer") << '\n';
  }
  if (explanation.movements.empty())
    os << "  none\n";
  if (program.isCutShort)
    os << "\nonly " << program.trials
       << " edits were tried; 'trials' allows more\n";
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

void explain::emitRemarks(const Program &program) {
  for (auto [index, movement] :
       llvm::enumerate(program.explanation.movements)) {
    StringRef kind = StringRef(movement.collectives.front()).split(' ').first;
    func::FuncOp function = program.functions[movement.function].op;
    std::string edit = "none";
    if (!program.edits.empty() && !program.edits[index].empty())
      edit = printChange(program.edits[index].front()) + ": " +
             printEffect(program.edits[index].front());
    std::string verdict;
    for (const ExplainedMovement::Conflict &conflict : movement.conflicts)
      verdict += (verdict.empty() ? "" : "; ") + conflict.axis + ": " +
                 conflict.current.placement + " lost to " +
                 conflict.required.placement + ", " + conflict.verdict;
    remark::analysis(movement.op->getLoc(), remark::RemarkOpts::name(kind)
                                                .category("tp-explain")
                                                .function(function.getName()))
        << remark::metric("Collectives", printCollectives(movement.collectives))
        << remark::metric("Bytes", movement.bytes)
        << remark::metric("Times", movement.times)
        << remark::metric("FQN", movement.fqn)
        << remark::metric("Conflict", verdict) << remark::metric("Edit", edit)
        << remark::reason("{0}", movement.reason);
  }
}
