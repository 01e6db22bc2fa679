//===- ProgramChoice.cpp - The program of an artifact for inputs ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/ProgramChoice.h"

#include "device/Device.h"

#include <algorithm>
#include <tuple>

using namespace tprt;

//===----------------------------------------------------------------------===//
// Inputs that grow
//===----------------------------------------------------------------------===//

static std::string nameSize(const TensorInfo &info, size_t dim, int64_t size) {
  return "dimension " + std::to_string(dim) + " of input '" + info.name +
         "' is " + std::to_string(size);
}

/// Finds the values of symbols from one dimension of an input, whose size is at
/// most the program's. Returns why it doesn't fit; empty if it does.
static std::string fitDim(const TensorInfo &info, size_t dim, int64_t given,
                          ProgramChoice &choice) {
  if (info.symbolicShape.empty())
    return ""; // of the program's size
  const SymbolicSize &size = info.symbolicShape[dim];
  if (size.symbol.empty())
    return "";
  std::optional<int64_t> value = size.solve(given);
  if (!value)
    return nameSize(info, dim, given) + ", expected a size of the form " +
           size.text;
  auto [known, isNew] = choice.symbols.emplace(size.symbol, *value);
  if (known->second != *value)
    return nameSize(info, dim, given) + ", so " + size.symbol + " would be " +
           std::to_string(*value) + ", but it is " +
           std::to_string(known->second) + " in the inputs before it";
  choice.isPadded |= *value < choice.program->symbols.at(size.symbol);
  return "";
}

/// Whether, and why not, the dimension of an input may grow.
static std::string checkGrowth(const TensorInfo &info, size_t dim,
                               int64_t given, const ProgramQuery &query) {
  std::string text = nameSize(info, dim, given) + ", expected " +
                     std::to_string(info.shape[dim]);
  if (given > info.shape[dim])
    return text + " at most";
  if (info.symbolicShape.empty())
    return text + "; only programs of torch.export with dynamic_shapes have "
                  "sizes that can grow";
  if (info.symbolicShape[dim].symbol.empty())
    return text + ", since its size isn't a multiple of a symbol but '" +
           info.symbolicShape[dim].text + "'";
  if (!query.pad.contains(info.name))
    return text + "; there is no value to pad this input with";
  return "";
}

static std::string fitShape(const TensorInfo &info, const Shape &given,
                            const ProgramQuery &query, ProgramChoice &choice) {
  for (size_t d = 0; d < given.size(); ++d) {
    std::string problem;
    if (given[d] != info.shape[d])
      problem = checkGrowth(info, d, given[d], query);
    if (problem.empty())
      problem = fitDim(info, d, given[d], choice);
    if (!problem.empty())
      return problem;
  }
  return "";
}

/// The size of an output's dimension for the given inputs; nullopt if it isn't
/// known.
static std::optional<int64_t> getCutSize(const ProgramChoice &choice,
                                         const TensorInfo &output, size_t dim) {
  if (output.symbolicShape.empty())
    return std::nullopt;
  const SymbolicSize &size = output.symbolicShape[dim];
  auto given = choice.symbols.find(size.symbol);
  if (size.isLinear && given == choice.symbols.end())
    return output.shape[dim]; // of a symbol that no input has
  return size.isLinear ? size.evaluate(given->second) : std::nullopt;
}

static std::string checkOutputs(const ProgramChoice &choice) {
  for (const TensorInfo &output : choice.program->outputs)
    for (size_t d = 0; d < output.shape.size(); ++d)
      if (!getCutSize(choice, output, d))
        return "inputs can't be padded, since dimension " + std::to_string(d) +
               " of output '" + output.name + "' " +
               (output.symbolicShape.empty()
                    ? "has no known dependence on the inputs' sizes"
                    : "has the size '" + output.symbolicShape[d].text +
                          "', which isn't a multiple of a symbol plus a "
                          "number");
  return "";
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Why the inputs don't fit the program of `choice`; empty if they do. Then
/// completes `choice`.
static std::string fit(const TensorMap &inputs, const ProgramQuery &query,
                       ProgramChoice &choice) {
  const Program &program = *choice.program;
  TensorMap grown = inputs;
  if (!query.pad.empty())
    for (const TensorInfo &info : program.inputs)
      if (auto found = grown.find(info.name);
          found != grown.end() &&
          found->second.shape.size() == info.shape.size())
        found->second.shape = info.shape;
  std::string problems =
      checkTensors(program.inputs, grown, "input", /*allowUnused=*/false);
  if (!problems.empty() || query.pad.empty())
    return problems;
  for (const TensorInfo &info : program.inputs) {
    std::string problem =
        fitShape(info, inputs.at(info.name).shape, query, choice);
    if (!problem.empty())
      return problem;
  }
  return choice.isPadded ? checkOutputs(choice) : "";
}

/// How good a program is that the inputs fit: less is better.
static auto getCost(const Program &program, const TensorMap &inputs) {
  int64_t numElements = 0, numConverted = 0;
  for (const TensorInfo &info : program.inputs) {
    numElements += tprt::numElements(info.shape);
    numConverted += inputs.at(info.name).dtype != info.dtype;
  }
  return std::tuple(numElements, numConverted);
}

/// Checks what the query says, whatever the inputs are.
static void checkQuery(const Manifest &manifest, const ProgramQuery &query) {
  std::vector<std::string> programs, inputs;
  for (const Program &program : manifest.programs) {
    programs.push_back(program.name);
    for (const TensorInfo &info : program.inputs) {
      if (std::find(inputs.begin(), inputs.end(), info.name) == inputs.end())
        inputs.push_back(info.name);
      if (auto found = query.pad.find(info.name);
          found != query.pad.end() && !holds(info.dtype, found->second))
        throw inputError("input '" + info.name +
                         "' can't be padded with the given value, which isn't "
                         "of type " +
                         std::string(toString(info.dtype)));
    }
  }
  if (!query.program.empty() && std::find(programs.begin(), programs.end(),
                                          query.program) == programs.end())
    throw inputError("there is no program '" + query.program + "', expected " +
                     quotedList(programs) +
                     didYouMean(query.program, programs));
  for (const auto &[name, value] : query.pad)
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
      throw inputError("there is no input '" + name + "' to pad, expected " +
                       quotedList(inputs) + didYouMean(name, inputs));
}

ProgramChoice tprt::chooseProgram(const Manifest &manifest,
                                  const TensorMap &inputs,
                                  const ProgramQuery &query) {
  checkQuery(manifest, query);
  ProgramChoice best;
  std::string problems;
  for (const Program &program : manifest.programs) {
    if (!query.program.empty() && program.name != query.program)
      continue;
    ProgramChoice choice{&program};
    std::string problem = fit(inputs, query, choice);
    if (!problem.empty())
      problems += "\nprogram '" + program.name + "': " + problem;
    else if (!best.program ||
             getCost(program, inputs) < getCost(*best.program, inputs))
      best = choice;
    if (!problem.empty() && manifest.programs.size() == 1)
      throw inputError(problem);
  }
  if (!best.program)
    throw inputError("no program takes these inputs:" + problems);
  return best;
}

//===----------------------------------------------------------------------===//
// Padding and cutting
//===----------------------------------------------------------------------===//

TensorMap tprt::padInputs(const ProgramChoice &choice, const TensorMap &inputs,
                          const ProgramQuery &query) {
  if (!choice.isPadded)
    return inputs;
  TensorMap padded = inputs;
  for (const TensorInfo &info : choice.program->inputs) {
    const Tensor &input = inputs.at(info.name);
    if (input.shape == info.shape)
      continue;
    Tensor whole{input.dtype, info.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(whole.getNumBytes());
    fillElements(input.dtype, query.pad.at(info.name), data.get(),
                 whole.getNumElements());
    writeBlock(info.shape, makeBox(Shape(info.shape.size()), input.shape),
               byteWidth(input.dtype), input.data.get(), data.get());
    whole.data = data;
    padded[info.name] = whole;
  }
  return padded;
}

TensorMap tprt::cutOutputs(const ProgramChoice &choice, TensorMap outputs) {
  if (!choice.isPadded)
    return outputs;
  for (const TensorInfo &info : choice.program->outputs) {
    Tensor &output = outputs.at(info.name);
    Shape shape = info.shape;
    for (size_t d = 0; d < shape.size(); ++d)
      shape[d] = *getCutSize(choice, info, d);
    if (shape == info.shape)
      continue;
    Tensor part{output.dtype, shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(part.getNumBytes());
    readBlock(info.shape, makeBox(Shape(shape.size()), shape),
              byteWidth(output.dtype), output.data.get(), data.get());
    part.data = data;
    output = part;
  }
  return outputs;
}
