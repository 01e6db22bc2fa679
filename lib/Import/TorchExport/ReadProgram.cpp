//===- ReadProgram.cpp - the JSON of an exported program ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExportedProgram.h"
#include "Import/JsonText.h"
#include "ReadArgument.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::tp;

/// The major version of the schema that PyTorch 2.8 to 2.13 write; another one
/// isn't compatible.
static constexpr int64_t kSchemaVersion = 8;
static constexpr int kMaxDepth = 128;
static constexpr unsigned kMaxFrames = 256;
/// The prefix of the names of positional arguments whose own names aren't
/// stored.
static constexpr StringLiteral kUnnamed = "args.";

llvm::json::Value mlir::tp::parseRecord(StringRef text, StringRef name) {
  auto json = parseJson(text, kMaxDepth);
  if (!json)
    throw ExportError("'" + name + "': " + llvm::toString(json.takeError()));
  return std::move(*json);
}

//===----------------------------------------------------------------------===//
// Metadata of nodes
//===----------------------------------------------------------------------===//

std::string ExportFrame::getCallName() const {
  return call == 0 ? fqn : fqn + "@" + std::to_string(call);
}

/// Splits "key,fqn,class", whose class may have commas in parentheses.
static llvm::SmallVector<StringRef> splitFrame(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += StringRef("([").contains(text[i]);
    depth -= StringRef(")]").contains(text[i]);
    if (text[i] != ',' || depth != 0)
      continue;
    parts.push_back(text.slice(start, i));
    start = i + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

/// Removes the number of a call, "@1", from a name, and returns it.
static unsigned takeCallNumber(StringRef &name) {
  auto [start, digits] = name.rsplit('@');
  unsigned call = 0;
  if (digits.getAsInteger(10, call))
    return 0;
  name = start;
  return call;
}

/// Reads "key,fqn,class;key,fqn,class;…". The key tells calls of one module
/// apart.
static std::optional<std::vector<ExportFrame>>
readModules(StringRef text, std::string &rootClass) {
  std::vector<ExportFrame> frames;
  for (StringRef part : llvm::split(text, ';')) {
    llvm::SmallVector<StringRef> fields = splitFrame(part);
    // PyTorch marks nodes of its own passes so.
    if (fields.size() != 3 ||
        fields[1] == "_empty_nn_module_stack_from_metadata_hook")
      return std::nullopt;
    ExportFrame frame;
    frame.call = takeCallNumber(fields[0]);
    takeCallNumber(fields[1]);
    frame.fqn = fields[1];
    frame.className = fields[2].rsplit('.').second.empty()
                          ? fields[2].str()
                          : fields[2].rsplit('.').second.str();
    if (frames.size() == kMaxFrames)
      throw ExportError("calls of modules nest deeper than " +
                        llvm::Twine(kMaxFrames));
    if (frame.fqn.empty())
      rootClass = frame.className;
    else
      frames.push_back(std::move(frame));
  }
  return frames;
}

/// file:line of the innermost function in a stack trace of Python.
static std::string readPlace(StringRef trace) {
  StringRef last = trace.substr(trace.rfind("File \""));
  if (!last.consume_front("File \""))
    return "";
  auto [file, rest] = last.split("\", line ");
  return (file + ":" + rest.take_while(llvm::isDigit)).str();
}

bool ExportStep::mapsTensor() const {
  return !arguments.empty() && arguments[0].operands.size() == 1 &&
         arguments[0].operands[0].value && results.size() == 1 &&
         results[0].size() == 1;
}

bool ExportStep::isInPlace() const {
  StringRef name = target;
  if (!name.consume_front("torch.ops.") || !mapsTensor())
    return false;
  name = name.split('.').second.split('.').first;
  return name.ends_with("_") && !name.ends_with("__");
}

//===----------------------------------------------------------------------===//
// Trees and signatures
//===----------------------------------------------------------------------===//

unsigned ExportTree::countLeaves() const {
  if (isLeaf())
    return 1;
  unsigned count = 0;
  for (const ExportTree &child : children)
    count += child.countLeaves();
  return count;
}

/// The keys in the context of a dictionary, a text of JSON; none if it has
/// anything else.
static std::optional<std::vector<std::string>> readKeys(StringRef text) {
  auto json = parseJson(text, kMaxDepth);
  if (!json) {
    llvm::consumeError(json.takeError());
    return std::nullopt;
  }
  const llvm::json::Array *array = json->getAsArray();
  if (!array)
    return std::nullopt;
  std::vector<std::string> keys;
  for (const llvm::json::Value &element : *array) {
    auto key = element.getAsString();
    if (!key)
      return std::nullopt;
    keys.push_back(key->str());
  }
  return keys;
}

static ExportTree readTree(JsonNode node) {
  ExportTree tree;
  node["children_spec"].forEach(
      [&](JsonNode child) { tree.children.push_back(readTree(child)); });
  auto type = node.find("type");
  if (!type)
    return tree;
  std::string name = type->getText();
  std::string context =
      node.find("context") ? node["context"].getText() : std::string();
  if (name == "builtins.tuple" || name == "collections.namedtuple") {
    tree.kind = ExportTree::Tuple;
  } else if (name == "builtins.list") {
    tree.kind = ExportTree::List;
  } else if (auto keys = readKeys(context);
             keys && keys->size() == tree.children.size()) {
    // Dictionaries, and classes such as the outputs of transformers.
    tree.kind = ExportTree::Dict;
    tree.keys = std::move(*keys);
  } else {
    tree.unknownType = name;
  }
  return tree;
}

/// Reads a text "[1, {…}]".
static ExportTree readTreeText(JsonNode node) {
  llvm::json::Value json = parseRecord(node.getText(), "a treespec");
  std::optional<ExportTree> tree;
  unsigned i = 0;
  JsonNode(json, "treespec").forEach([&](JsonNode part) {
    if (i++ == 0 && part.getInteger() != 1)
      part.fail("version 1 of treespecs");
    if (i == 2)
      tree = readTree(part);
  });
  if (!tree)
    node.fail("a version and a tree");
  return std::move(*tree);
}

static ExportTensor readTensor(JsonNode meta) {
  ExportTensor tensor;
  tensor.type = readScalarType(meta["dtype"]);
  meta["sizes"].forEach(
      [&](JsonNode size) { tensor.shape.push_back(readSize(size)); });
  return tensor;
}

namespace {
class ProgramReader {
public:
  explicit ProgramReader(JsonNode root) : root(root) {}
  ExportedProgram run();

private:
  ValueId define(StringRef name, ExportScope &scope);
  void readInput(JsonNode spec, JsonNode graph);
  void readOutput(JsonNode spec, JsonNode graph);
  void readNode(JsonNode node, JsonNode tensors, ExportScope &scope);
  void readGraph(JsonNode graph, ExportScope &scope);
  void inlineGraph(JsonNode graph, llvm::ArrayRef<ExportArgument> arguments,
                   JsonNode node, ExportScope &scope);
  bool readHigherOrder(JsonNode node, ExportScope &scope, ExportStep &step);
  ExportSignature readSignature(JsonNode node);
  void followWrites();
  void nameArguments();

  JsonNode root;
  ExportedProgram program;
  ExportScope rootScope;
  bool isGradEnabled = true;
};
} // namespace

ValueId ProgramReader::define(StringRef name, ExportScope &scope) {
  ValueId value = program.values.size();
  program.values.push_back({name.str(), std::nullopt, std::nullopt});
  scope[name] = value;
  return value;
}

/// Names and positions of the leaves below one argument: "batch.image", with
/// keys of dictionaries and indices in anything else.
static void nameLeaves(const ExportTree &tree, const std::string &name,
                       int64_t position, ExportSignature &signature) {
  if (tree.isLeaf())
    signature.arguments.push_back({name, position, std::nullopt});
  for (auto [i, child] : llvm::enumerate(tree.children))
    nameLeaves(
        child,
        name + "." +
            (tree.kind == ExportTree::Dict ? tree.keys[i] : std::to_string(i)),
        position, signature);
}

/// Positions are those in the call, then keywords follow. Names of positional
/// arguments aren't always stored.
ExportSignature ProgramReader::readSignature(JsonNode node) {
  ExportSignature signature;
  ExportTree tree = readTreeText(node["in_spec"]);
  std::vector<std::string> names;
  if (auto stored = node.find("forward_arg_names"))
    stored->forEach([&](JsonNode name) { names.push_back(name.getText()); });
  if (tree.children.size() != 2)
    node["in_spec"].fail("arguments and keyword arguments");
  const ExportTree &positional = tree.children[0], &named = tree.children[1];
  int64_t position = 0;
  for (const ExportTree &child : positional.children) {
    std::string name = size_t(position) < names.size()
                           ? names[position]
                           : kUnnamed.str() + std::to_string(position);
    nameLeaves(child, name, position++, signature);
  }
  for (auto [key, child] : llvm::zip(named.keys, named.children)) {
    auto it = llvm::find(names, key);
    int64_t own = it == names.end() ? position++ : it - names.begin();
    nameLeaves(child, key, own, signature);
  }
  size_t leaf = 0;
  node["inputs"].forEach([&](JsonNode input) {
    ExportArgument argument = readArgument(input, rootScope);
    if (leaf < signature.arguments.size() && argument.operands.size() == 1)
      signature.arguments[leaf].value = argument.operands[0].value;
    ++leaf;
  });
  node["outputs"].forEach([&](JsonNode output) {
    for (ExportOperand &operand : readArgument(output, rootScope).operands)
      signature.results.push_back(std::move(operand));
  });
  return signature;
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

void ProgramReader::readInput(JsonNode spec, JsonNode graph) {
  auto [kind, body] = spec.getUnion();
  ExportInput input;
  auto defineAs = [&](ExportInput::Kind kind, StringRef fqnKey) {
    input.kind = kind;
    input.name = body[fqnKey].getText();
    input.value = define(body["arg"]["name"].getText(), rootScope);
  };
  if (kind == "parameter") {
    defineAs(ExportInput::Parameter, "parameter_name");
  } else if (kind == "buffer") {
    defineAs(ExportInput::Buffer, "buffer_name");
    if (auto isPersistent = body.find("persistent"))
      input.isSaved = isPersistent->getBool();
  } else if (kind == "tensor_constant") {
    defineAs(ExportInput::Constant, "tensor_constant_name");
    input.isSaved = false;
  } else if (kind == "user_input") {
    auto [argumentKind, argument] = body["arg"].getUnion();
    if (argumentKind == "as_tensor") {
      input.kind = ExportInput::Tensor;
      input.name = argument["name"].getText();
      input.tensor = readTensor(graph["tensor_values"][input.name]);
    } else if (argumentKind == "as_sym_int") {
      input.kind = ExportInput::Number;
      input.name = argument["as_name"].getText();
      input.number = readSize(graph["sym_int_values"][input.name]);
    }
    if (input.kind != ExportInput::Other)
      input.value = define(input.name, rootScope);
  } else if (kind != "constant_input") {
    throw ExportError("the program has an input of kind '" + kind +
                      "', expected tensors and numbers");
  }
  program.inputs.push_back(std::move(input));
}

void ProgramReader::readOutput(JsonNode spec, JsonNode graph) {
  auto [kind, body] = spec.getUnion();
  auto getValue = [&]() {
    return lookUp(body["arg"]["name"].getText(), rootScope);
  };
  if (kind == "user_output") {
    for (ExportOperand &operand : readArgument(body["arg"], rootScope).operands)
      program.outputs.push_back(std::move(operand));
    auto [argumentKind, argument] = body["arg"].getUnion();
    if (argumentKind == "as_tensor")
      program.outputShapes.push_back(
          readTensor(graph["tensor_values"][argument["name"].getText()]).shape);
    program.outputShapes.resize(program.outputs.size());
  } else if (kind == "loss_output") {
    program.outputs.push_back({getValue(), {}});
    program.outputShapes.emplace_back();
  } else if (kind == "buffer_mutation") {
    std::string name = body["buffer_name"].getText();
    auto buffer = llvm::find_if(program.inputs, [&](const ExportInput &input) {
      return input.kind == ExportInput::Buffer && input.name == name;
    });
    if (buffer == program.inputs.end())
      throw ExportError("the program writes a buffer '" + name +
                        "' that it doesn't have");
    program.bufferMutations.push_back({buffer->value, getValue()});
  } else if (kind == "user_input_mutation") {
    program.writtenInputs.push_back(body["user_input_name"].getText());
  } else {
    throw ExportError("the program has an output of kind '" + kind +
                      "', expected tensors and buffers");
  }
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// Adds the nodes of `graph`, whose inputs are `arguments`, instead of the
/// `node` that has it.
void ProgramReader::inlineGraph(JsonNode graph,
                                llvm::ArrayRef<ExportArgument> arguments,
                                JsonNode node, ExportScope &scope) {
  ExportScope inner;
  size_t next = 0;
  graph["inputs"].forEach([&](JsonNode input) {
    if (next == arguments.size() || arguments[next].operands.size() != 1)
      input.fail("as many inputs as the op that has the graph passes to it");
    const ExportOperand &operand = arguments[next++].operands[0];
    std::string name = readName(input);
    if (operand.value)
      inner[name] = *operand.value;
    else
      program.values[define(name, inner)].constant = operand.constant;
  });
  readGraph(graph, inner);
  llvm::SmallVector<ExportOperand> results;
  graph["outputs"].forEach([&](JsonNode output) {
    llvm::append_range(results, readArgument(output, inner).operands);
  });
  next = 0;
  node["outputs"].forEach([&](JsonNode output) {
    for (const std::string &name : readNames(output)) {
      if (next == results.size())
        output.fail("as many results as the graph has");
      ExportOperand &result = results[next++];
      if (result.value)
        scope[name] = *result.value;
      else
        program.values[define(name, scope)].constant = result.constant;
    }
  });
}

/// Reads an op that takes a graph. If it only runs the graph, with gradients or
/// without, the graph is inlined.
bool ProgramReader::readHigherOrder(JsonNode node, ExportScope &scope,
                                    ExportStep &step) {
  StringRef name = step.target;
  if (!name.consume_front("torch.ops.higher_order."))
    return false;
  std::vector<ExportArgument> before, after;
  std::optional<JsonNode> graph;
  node["inputs"].forEach([&](JsonNode input) {
    auto [kind, body] = input["arg"].getUnion();
    if (kind == "as_graph" && !graph)
      graph = body["graph"];
    else
      (graph ? after : before).push_back(readArgument(input["arg"], scope));
  });
  auto isFlag = [&](size_t i) {
    return i < before.size() && before[i].operands.size() == 1 &&
           before[i].operands[0].constant.isBool();
  };
  auto getFlag = [&](size_t i) {
    return before[i].operands[0].constant.toBool();
  };
  if (graph && name == "wrap_with_set_grad_enabled" && isFlag(0)) {
    llvm::SaveAndRestore<bool> restore(isGradEnabled, getFlag(0));
    inlineGraph(*graph, after, node, scope);
    return true;
  }
  if (graph && name == "wrap_with_autocast" && isFlag(2) && !getFlag(2)) {
    inlineGraph(*graph, after, node, scope);
    return true;
  }
  step.problem = "unsupported op '" + step.target +
                 (name == "wrap_with_autocast"
                      ? "': export the model without autocast, converted by "
                        "model.to(torch.bfloat16) or the like"
                      : "', which runs graphs of its own");
  return false;
}

/// `tensors` describes the graph's tensors, by their names.
void ProgramReader::readNode(JsonNode node, JsonNode tensors,
                             ExportScope &scope) {
  ExportStep step;
  step.target = node["target"].getText();
  step.isGradEnabled = isGradEnabled;
  JsonNode metadata = node["metadata"];
  if (auto modules = metadata.find("nn_module_stack"))
    step.modules = readModules(modules->getText(), program.rootClass);
  if (auto trace = metadata.find("stack_trace"))
    step.place = readPlace(trace->getText());
  if (readHigherOrder(node, scope, step))
    return;
  if (step.problem.empty())
    node["inputs"].forEach([&](JsonNode input) {
      ExportArgument argument = readArgument(input["arg"], scope);
      argument.name = input["name"].getText();
      step.arguments.push_back(std::move(argument));
    });
  node["outputs"].forEach([&](JsonNode output) {
    auto &values = step.results.emplace_back();
    for (const std::string &name : readNames(output)) {
      values.push_back(define(name, scope));
      if (auto meta = tensors.find(name))
        program.values.back().tensor = readTensor(*meta);
    }
  });
  program.steps.push_back(std::move(step));
}

void ProgramReader::readGraph(JsonNode graph, ExportScope &scope) {
  JsonNode tensors = graph["tensor_values"];
  graph["nodes"].forEach(
      [&](JsonNode node) { readNode(node, tensors, scope); });
}

/// Replaces a tensor that an op has written in place by the op's result in all
/// later reads.
void ProgramReader::followWrites() {
  std::vector<ValueId> current(program.values.size());
  std::iota(current.begin(), current.end(), 0);
  // A buffer has one name in the graph, and each write of it another.
  auto follow = [&](ValueId id) {
    ValueId last = id;
    while (current[last] != last)
      last = current[last];
    return current[id] = last; // the next search is short
  };
  for (ExportStep &step : program.steps) {
    for (ExportArgument &argument : step.arguments)
      for (ExportOperand &operand : argument.operands)
        if (operand.value)
          operand.value = follow(*operand.value);
    if (step.isInPlace())
      current[*step.arguments[0].operands[0].value] = step.results[0][0];
  }
  for (ExportOperand &output : program.outputs)
    if (output.value)
      output.value = follow(*output.value);
  for (const ExportInput &input : program.inputs)
    if (input.kind == ExportInput::Buffer && follow(input.value) != input.value)
      program.bufferMutations.push_back({input.value, follow(input.value)});
}

/// Inputs have the names of forward's arguments where they are stored, else
/// those of the graph.
void ProgramReader::nameArguments() {
  auto &arguments = program.signature.arguments;
  size_t leaf = 0;
  for (ExportInput &input : program.inputs) {
    if (!input.isArgument())
      continue;
    if (leaf == arguments.size())
      arguments.push_back({input.name, int64_t(leaf), std::nullopt});
    ExportSignature::Argument &argument = arguments[leaf++];
    if (StringRef(argument.name).starts_with(kUnnamed))
      argument.name = input.name;
    else
      input.name = argument.name;
  }
}

ExportedProgram ProgramReader::run() {
  JsonNode version = root["schema_version"];
  int64_t major = version["major"].getInteger();
  if (major != kSchemaVersion)
    throw ExportError("the program has version " + llvm::Twine(major) + "." +
                      llvm::Twine(version["minor"].getInteger()) +
                      " of torch.export's schema, expected " +
                      llvm::Twine(kSchemaVersion) +
                      ".x, as PyTorch 2.8 to 2.13 write it");
  JsonNode graphModule = root["graph_module"];
  JsonNode graph = graphModule["graph"];
  JsonNode signature = graphModule["signature"];
  signature["input_specs"].forEach(
      [&](JsonNode spec) { readInput(spec, graph); });
  readGraph(graph, rootScope);
  signature["output_specs"].forEach(
      [&](JsonNode spec) { readOutput(spec, graph); });
  graphModule["module_call_graph"].forEach([&](JsonNode entry) {
    auto call = entry.find("signature");
    if (!call)
      return;
    std::string fqn = entry["fqn"].getText();
    if (!fqn.empty()) {
      program.signatures[fqn] = readSignature(*call);
      return;
    }
    program.signature = readSignature(*call);
    program.outputTree = readTreeText((*call)["out_spec"]);
  });
  followWrites();
  nameArguments();
  root["range_constraints"].forEachMember([&](StringRef symbol,
                                              JsonNode range) {
    ExportRange &bounds = program.ranges[symbol.str()];
    // Infinities are texts.
    for (auto [key, bound] :
         {std::pair{"min_val", &bounds.min}, std::pair{"max_val", &bounds.max}})
      if (auto value = range.find(key);
          value && std::isfinite(value->getReal()))
        *bound = value->getInteger();
  });
  return std::move(program);
}

ExportedProgram mlir::tp::readExportedProgram(JsonNode root) {
  return ProgramReader(root).run();
}
