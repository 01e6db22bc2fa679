//===- ForwardSignature.cpp - the arguments of traced modules -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Import/ForwardSignature.h"
#include "JsonText.h"
#include "tp/Support/InputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::tp;

/// The texts of a list; none if `value` isn't a list of texts.
static std::optional<std::vector<std::string>>
readTexts(const llvm::json::Value &value) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array)
    return std::nullopt;
  std::vector<std::string> texts;
  for (const llvm::json::Value &element : *array) {
    std::optional<llvm::StringRef> text = element.getAsString();
    if (!text)
      return std::nullopt;
    texts.push_back(text->str());
  }
  return texts;
}

static llvm::Expected<ForwardSignature>
readSignature(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  const llvm::json::Value *names = object ? object->get("arguments") : nullptr;
  const llvm::json::Value *calls = object ? object->get("calls") : nullptr;
  if (!names || !calls || !calls->getAsArray())
    return llvm::createStringError(
        "expected {\"arguments\": […], \"calls\": [[…], …]}");
  ForwardSignature signature;
  auto arguments = readTexts(*names);
  if (!arguments)
    return llvm::createStringError("'arguments' must be a list of names");
  signature.arguments = std::move(*arguments);
  for (const llvm::json::Value &call : *calls->getAsArray()) {
    auto tensors = readTexts(call);
    if (!tensors)
      return llvm::createStringError("'calls' must be lists of names");
    std::vector<unsigned> &positions = signature.calls.emplace_back();
    for (const std::string &name : *tensors) {
      auto it = llvm::find(signature.arguments, name);
      if (it == signature.arguments.end())
        return llvm::createStringError("a call has the argument '" + name +
                                       "', which 'arguments' lacks");
      positions.push_back(it - signature.arguments.begin());
    }
  }
  return signature;
}

static constexpr int maxDepth = 32;

llvm::Expected<ForwardSignatures>
mlir::tp::readForwardSignatures(llvm::StringRef path) {
  auto error = [&](const llvm::Twine &why) {
    return llvm::createStringError("cannot read the signatures '" + path +
                                   "': " + why);
  };
  auto file = readInput(path);
  if (!file)
    return error(llvm::toString(file.takeError()));
  auto json = parseJson((*file)->getBuffer(), maxDepth);
  if (!json)
    return error(llvm::toString(json.takeError()));
  const llvm::json::Object *modules = json->getAsObject();
  if (!modules)
    return error("expected a JSON object with an entry for each module");
  ForwardSignatures signatures;
  for (const auto &[fqn, value] : *modules) {
    auto signature = readSignature(value);
    if (!signature)
      return error("'" + fqn.str() +
                   "': " + llvm::toString(signature.takeError()));
    signatures[fqn.str()] = std::move(*signature);
  }
  return signatures;
}
