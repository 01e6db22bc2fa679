//===- JsonText.cpp - parse JSON of other programs ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "JsonText.h"

using namespace mlir;

static bool isTooDeep(llvm::StringRef text, int maxDepth) {
  int depth = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isString && c == '\\')
      ++i;
    else if (c == '"')
      isString = !isString;
    else if (!isString && (c == '[' || c == '{') && ++depth > maxDepth)
      return true;
    else if (!isString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

llvm::Expected<llvm::json::Value> mlir::tp::parseJson(llvm::StringRef text,
                                                      int maxDepth) {
  if (isTooDeep(text, maxDepth))
    return llvm::createStringError("malformed JSON: nested more deeply than " +
                                   llvm::Twine(maxDepth) + " levels");
  return llvm::json::parse(text);
}
