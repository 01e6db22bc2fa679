//===- PostProcessor.cpp - Special tokens around the input ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/PostProcessor.h"

using namespace tprt;
using namespace tprt::text;

using Reader = PostProcessor (*)(const Component &);

/// BertProcessing and RobertaProcessing: [CLS] before, [SEP] after.
static PostProcessor readClassification(const Component &component) {
  auto getId = [&](const char *key) { // of ["[CLS]", 101]
    Component token = component[key];
    if (token.getList().size() != 2)
      token.fail("expected a token and its id");
    return token[1].getInteger(maxId);
  };
  return {{getId("cls")}, {getId("sep")}};
}

static PostProcessor readTemplate(const Component &component) {
  PostProcessor result;
  bool isBefore = true;
  for (const Component &piece : component["single"].getList()) {
    if (piece.has("Sequence")) {
      if (!isBefore || piece["Sequence"]["id"].getString() != "A")
        piece.fail("expected the sequence 'A', once");
      isBefore = false;
      continue;
    }
    const std::string &name = piece["SpecialToken"]["id"].getString();
    Component token = component["special_tokens"][name.c_str()];
    for (const Component &id : token["ids"].getList())
      (isBefore ? result.before : result.after).push_back(id.getInteger(maxId));
  }
  if (isBefore)
    component["single"].fail("expected the sequence 'A', once");
  return result;
}

static PostProcessor readSequence(const Component &component) {
  PostProcessor result;
  for (const Component &each : component["processors"].getList()) {
    auto [before, after] = readPostProcessor(each);
    result.before.insert(result.before.begin(), before.begin(), before.end());
    result.after.insert(result.after.end(), after.begin(), after.end());
  }
  return result;
}

PostProcessor text::readPostProcessor(const Component &component) {
  static constexpr std::pair<const char *, Reader> readers[] = {
      {"TemplateProcessing", readTemplate},
      {"BertProcessing", readClassification},
      {"RobertaProcessing", readClassification},
      // Changes only the positions of tokens in the text.
      {"ByteLevel", [](const Component &) { return PostProcessor(); }},
      {"Sequence", readSequence}};
  return component["type"].choose(readers)(component);
}
