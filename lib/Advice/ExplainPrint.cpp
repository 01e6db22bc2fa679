//===- ExplainPrint.cpp - An explanation as text, JSON and remarks --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Explain.md describes both forms.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "mlir/IR/Remarks.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Plan/Finding.h"
#include "tp/Plan/Pattern.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::explain;

//===----------------------------------------------------------------------===//
// Names of things
//===----------------------------------------------------------------------===//

/// "model.mlir:3:8"; empty if it isn't known.
static std::string printLocation(Location loc) {
  auto file = loc->findInstanceOf<FileLineColLoc>();
  if (!file)
    return "";
  return (llvm::sys::path::filename(file.getFilename().getValue()) + ":" +
          Twine(file.getLine()) + ":" + Twine(file.getColumn()))
      .str();
}

/// "nn.linear (up)", or the location instead of the module if it has none.
static std::string printOp(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  StringRef fqn = getFqn(op);
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return "'" + parameter.getFqn().str() + "'";
  if (!fqn.empty())
    return name + " (" + fqn.str() + ")";
  std::string place = printLocation(op->getLoc());
  return place.empty() ? name : name + " (" + place + ")";
}

static std::string printType(RankedTensorType type) {
  std::string text;
  for (int64_t size : type.getShape())
    text += std::to_string(size) + "x";
  llvm::raw_string_ostream(text) << type.getElementType();
  return text;
}

static std::string getArgumentName(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue().str() : "";
}

static std::string printArgument(func::FuncOp function, unsigned index) {
  std::string name = getArgumentName(function, index);
  return "argument " + std::to_string(index) +
         (name.empty() ? "" : " '" + name + "'");
}

/// "'up.weight'", "argument 0 'x'", "nn.relu (act) result 1".
static std::string printValue(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto function = dyn_cast<func::FuncOp>(parent))
      return printArgument(function, argument.getArgNumber());
    return "argument " + std::to_string(argument.getArgNumber()) +
           " of the body of " + printOp(parent);
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  return printOp(op) + (op->getNumResults() > 1
                            ? " result " + std::to_string(index)
                            : std::string());
}

/// "1 collective".
static std::string count(int64_t n, StringRef what) {
  return std::to_string(n) + " " + what.str() + (n == 1 || n == -1 ? "" : "s");
}

/// "-1 KiB (1024 bytes), +2 collectives", or "as many collectives" if their
/// number doesn't change.
static std::string printDelta(int64_t bytes, int64_t collectives) {
  auto getSign = [](int64_t n) { return n > 0 ? "+" : "-"; };
  std::string text = bytes == 0
                         ? "as many bytes"
                         : getSign(bytes) + plan::printBytes(std::abs(bytes));
  text += ", ";
  text += collectives == 0 ? "as many collectives"
                           : getSign(collectives) +
                                 count(std::abs(collectives), "collective");
  return text;
}

static std::string printTotals(const Totals &totals) {
  return plan::printBytes(totals.bytes) + " received by all ranks, " +
         count(totals.collectives, "collective");
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

namespace {
/// What fixes a placement: the value or op, and the reason.
struct NamedSource {
  StringRef kind;
  std::string what, by;
};
} // namespace

/// The style of data parallelism over `axis`; null if there is none.
static const plan::DataAxis *getDataAxis(unsigned axis,
                                         const plan::CheckedPlan &plan) {
  auto found = llvm::find_if(plan.file.data, [&](const plan::DataAxis &data) {
    return data.axis == axis;
  });
  return found == plan.file.data.end() ? nullptr : &*found;
}

/// What determines the placement of an argument or a result over `axis`.
static std::string getInterfaceReason(const PlacementSource &source,
                                      unsigned axis, const Program &program) {
  if (source.isDefault)
    return "whole, as nothing else is said";
  if (const plan::DataAxis *data =
          program.plan ? getDataAxis(axis, *program.plan) : nullptr)
    return plan::printReason(data->loc, "data_parallel");
  return program.plan ? "by the plan's layouts" : "tp.sharding";
}

/// What determines the placement of a parameter over `axis`.
static std::string getParameterReason(nn::ParameterOp parameter, unsigned axis,
                                      const plan::CheckedPlan &plan) {
  auto found = plan.parameters.find(parameter.getFqnAttr());
  if (found != plan.parameters.end())
    for (const plan::ParameterLayout &layout : found->second)
      if (llvm::is_contained(layout.over.axes, axis))
        return plan::printReason(layout.entry->loc,
                                 layout.entry->direct.empty()
                                     ? StringRef(layout.entry->style)
                                     : StringRef("placements"));
  if (const plan::DataAxis *data = getDataAxis(axis, plan))
    return plan::printReason(
        data->loc, data->style == plan::DataAxis::FSDP ? "fsdp" : "ddp");
  return "whole, as nothing else is said";
}

static NamedSource nameSource(const PlacementChain &chain,
                              const Program &program) {
  const PlacementSource &source = *chain.source;
  func::FuncOp function = source.function;
  switch (source.kind) {
  case PlacementSource::Argument:
    return {"argument", printArgument(function, source.index),
            getInterfaceReason(source, chain.axis, program)};
  case PlacementSource::Result:
    return {"result", "result " + std::to_string(source.index),
            getInterfaceReason(source, chain.axis, program)};
  case PlacementSource::Body:
    return {"body", printOp(source.op), "reads it in its body"};
  case PlacementSource::Attribute: {
    auto parameter = dyn_cast<nn::ParameterOp>(source.op);
    std::string by = "tp.sharding";
    if (parameter && program.plan)
      by = getParameterReason(parameter, chain.axis, *program.plan);
    return {parameter ? "parameter" : "op", printOp(source.op), by};
  }
  case PlacementSource::Op:
    break;
  }
  auto redistribute = dyn_cast<RedistributeOp>(source.op);
  std::string fqn = getFqn(source.op).str();
  if (redistribute && redistribute.getReason())
    return {"layout", fqn.empty() ? printLocation(source.op->getLoc()) : fqn,
            redistribute.getReason()->str()};
  return {"op", printOp(source.op), source.op->getName().getStringRef().str()};
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

//===----------------------------------------------------------------------===//
// The filter
//===----------------------------------------------------------------------===//

static bool isCalled(Operation *op, StringRef name) {
  auto matches = [&](StringRef fqn) {
    return !fqn.empty() && plan::matchFqn(name, fqn);
  };
  auto parameter = dyn_cast<nn::ParameterOp>(op);
  return op->getName().getStringRef() == name || matches(getFqn(op)) ||
         (parameter && matches(parameter.getFqn()));
}

static bool isCalled(Value value, StringRef name) {
  if (Operation *op = value.getDefiningOp())
    return isCalled(op, name);
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<func::FuncOp>(parent))
    return getArgumentName(function, argument.getArgNumber()) == name;
  return isCalled(parent, name);
}

bool explain::filter(Program &program, StringRef name) {
  Explanation &explanation = program.explanation;
  llvm::erase_if(explanation.values, [&](const ExplainedValue &entry) {
    return !isCalled(entry.value, name);
  });
  llvm::erase_if(explanation.movements, [&](const ExplainedMovement &movement) {
    return movement.fqn != name && !isCalled(movement.op, name) &&
           !isCalled(movement.value, name);
  });
  return !explanation.values.empty() || !explanation.movements.empty();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

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
    text += "; reduces it, doesn't remove it";
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
     << printType(movement.type);
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
       << "\n       lost: " << conflict.has.placement << ", from "
       << printChain(conflict.has, program)
       << "\n       won:  " << conflict.needs.placement << ", from "
       << printChain(conflict.needs, program) << "\n";
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
  os << "     no single edit that was tried leaves less to move";
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
  const Explanation &explanation = program.explanation;
  os << "\ntotal as propagated: " << printTotals(program.total);
  if (program.gap)
    os << "; at most " << plan::printBytes(program.gap) << " above the optimum";
  os << "\ntotal after tp-optimize-collectives: "
     << printTotals(program.optimized);
  os << "\n\nplacements\n";
  AlikeTexts values;
  for (const ExplainedValue &entry : explanation.values) {
    std::string rest =
        ": " + printType(cast<RankedTensorType>(entry.value.getType())) + " " +
        printPlacements(entry.sharding, mesh) + "\n";
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
      os << "     the same " << group.size - 1
         << " more times, in other layers\n";
  }
  if (explanation.movements.empty())
    os << "  none\n";
  if (program.isCutShort)
    os << "\n"
       << program.trials
       << " edits were tried, and there are more; 'trials' allows them\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace {
class JsonPrinter {
public:
  JsonPrinter(const Program &program, raw_ostream &os)
      : program(program), mesh(program.mesh), json(os, /*IndentSize=*/2) {}

  void print() {
    const Explanation &explanation = program.explanation;
    json.object([&] {
      json.attribute("schema", 1);
      json.attributeObject("mesh", [&] {
        json.attribute("name", mesh.getSymName());
        json.attributeArray("axes", [&] {
          for (size_t i = 0; i < mesh.getNumAxes(); ++i)
            json.object([&] {
              json.attribute("name", mesh.getAxisName(i));
              json.attribute("size", mesh.getAxisSizes()[i]);
            });
        });
      });
      json.attributeObject("totals", [&] {
        json.attribute("bytes", program.total.bytes);
        json.attribute("collectives", program.total.collectives);
        json.attribute("gap", program.gap);
        json.attributeObject("optimized", [&] {
          json.attribute("bytes", program.optimized.bytes);
          json.attribute("collectives", program.optimized.collectives);
        });
      });
      json.attributeArray("values", [&] {
        for (const ExplainedValue &entry : explanation.values)
          printEntry(entry);
      });
      json.attributeArray("redistributions", [&] {
        for (size_t i = 0; i < explanation.movements.size(); ++i)
          printMovement(i);
      });
      json.attribute("trials", program.trials);
      json.attribute("trials_cut_short", program.isCutShort);
    });
  }

private:
  void printOpFields(Operation *op) {
    json.attribute("op", op->getName().getStringRef());
    json.attribute("fqn", getFqn(op));
    json.attribute("location", printLocation(op->getLoc()));
  }

  void printType(RankedTensorType type) {
    json.attribute("shape", llvm::json::Array(type.getShape()));
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    json.attribute("dtype", element);
  }

  StringRef getFunctionName(unsigned function) {
    return func::FuncOp(program.functions[function].op).getSymName();
  }

  void printChainFields(const PlacementChain &chain) {
    json.attribute("placement", chain.placement);
    if (chain.source)
      json.attributeObject("source", [&] {
        NamedSource source = nameSource(chain, program);
        json.attribute("kind", source.kind);
        json.attribute("what", source.what);
        json.attribute("by", source.by);
        json.attribute("placement", chain.sourcePlacement);
      });
    else
      json.attribute("source", nullptr);
    json.attribute("left_out", chain.numLeftOut);
    json.attributeArray("steps", [&] {
      for (const PlacementChain::Step &step : chain.steps)
        json.object([&] {
          printOpFields(step.op);
          json.attribute("split", step.split);
          json.attribute("placement", step.placement);
        });
    });
  }

  void printEntry(const ExplainedValue &entry) {
    json.object([&] {
      json.attribute("function", getFunctionName(entry.function));
      json.attribute("name", printValue(entry.value));
      if (Operation *op = entry.value.getDefiningOp())
        printOpFields(op);
      printType(cast<RankedTensorType>(entry.value.getType()));
      json.attribute("placements",
                     llvm::json::Array(getPlacements(entry.sharding, mesh)));
      json.attributeArray("chains", [&] {
        for (auto [axis, chain] : llvm::enumerate(entry.chains))
          json.object([&] {
            json.attribute("mesh_dim", mesh.getAxisName(axis));
            printChainFields(chain);
          });
      });
    });
  }

  void printMovement(size_t index) {
    const ExplainedMovement &movement = program.explanation.movements[index];
    json.object([&] {
      json.attribute("function", getFunctionName(movement.function));
      json.attribute("value", printValue(movement.value));
      printOpFields(movement.op);
      if (movement.operand)
        json.attribute("operand", *movement.operand);
      printType(movement.type);
      if (movement.from) {
        json.attribute("from",
                       llvm::json::Array(getPlacements(movement.from, mesh)));
        json.attribute("to",
                       llvm::json::Array(getPlacements(movement.to, mesh)));
      }
      json.attribute("module", movement.fqn);
      json.attribute("reason", movement.reason);
      json.attribute("asked", movement.isAsked);
      json.attribute("collectives", llvm::json::Array(movement.collectives));
      json.attribute("bytes", movement.bytes);
      json.attribute("bytes_per_rank", movement.bytesPerRank);
      json.attribute("least_bytes", movement.leastBytes);
      json.attribute("times", movement.times);
      json.attributeArray("conflicts", [&] {
        for (const ExplainedMovement::Conflict &conflict : movement.conflicts)
          json.object([&] {
            json.attribute("mesh_dim", conflict.axis);
            json.attribute("verdict", conflict.verdict);
            json.attributeObject("lost",
                                 [&] { printChainFields(conflict.has); });
            json.attributeObject("won",
                                 [&] { printChainFields(conflict.needs); });
          });
      });
      if (movement.choice)
        json.attributeObject("choice", [&] { printOpFields(movement.choice); });
      json.attributeArray("alternatives", [&] {
        for (const ExplainedMovement::Alternative &other :
             movement.alternatives)
          json.object([&] {
            json.attribute("split", other.description);
            json.attribute("operands", llvm::json::Array(other.operands));
            json.attribute("results", llvm::json::Array(other.results));
            json.attribute("bytes", other.delta.bytes);
            json.attribute("collectives", other.delta.collectives);
          });
      });
      if (!program.edits.empty())
        json.attributeArray("edits", [&] {
          for (const TriedEdit &edit : program.edits[index])
            printEdit(edit);
        });
    });
  }

  void printEdit(const TriedEdit &edit) {
    json.object([&] {
      json.attribute("action", edit.action);
      json.attribute("place", edit.place);
      json.attribute("text", edit.text);
      json.attribute("removes", edit.removes);
      json.attribute("bytes", edit.bytes);
      json.attribute("collectives", edit.collectives);
      json.attribute("parameter_bytes_per_rank", edit.parameterBytes);
      json.attribute("work", edit.work);
      json.attribute("interface", llvm::json::Array(edit.interface));
    });
  }

  const Program &program;
  MeshOp mesh;
  llvm::json::OStream json;
};
} // namespace

void explain::printJson(const Program &program, raw_ostream &os) {
  JsonPrinter(program, os).print();
  os << "\n";
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
                 conflict.has.placement + " lost to " +
                 conflict.needs.placement + ", " + conflict.verdict;
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
