//===- Model.h - From pieces of text to tokens ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_MODEL_H
#define TPRT_LIB_TEXT_MODEL_H

#include "text/Component.h"

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

namespace tprt::text {

/// Tokens and their ids, both unique.
class Vocabulary {
public:
  /// Throws an input error that begins with `component`'s path if the token or
  /// the id exists.
  void add(const Component &component, const std::string &token, int64_t id);

  /// Reads {"token": id, …}.
  static Vocabulary read(const Component &component);

  size_t size() const { return ids.size(); }
  std::optional<int64_t> getId(const std::string &token) const;
  /// Null if there is none.
  const std::string *getToken(int64_t id) const;
  const std::unordered_map<std::string, int64_t> &getIds() const { return ids; }

private:
  std::unordered_map<std::string, int64_t> ids;
  std::unordered_map<int64_t, const std::string *> tokens;
};

/// The ids of the tokens <0x00> to <0xFF>, which stand for bytes that other
/// tokens don't cover.
class ByteTokens {
public:
  explicit ByteTokens(const Vocabulary &vocabulary);
  /// Appends the ids of all bytes, and returns true, if all of them have one.
  bool append(std::string_view bytes, std::vector<int64_t> &ids) const;

private:
  std::array<std::optional<int64_t>, 256> ids;
};

class Model {
public:
  virtual ~Model() = default;

  /// Appends the ids of a piece, which isn't empty. Throws an input error if
  /// the piece needs an unknown token that the model lacks.
  virtual void tokenize(std::string_view piece,
                        std::vector<int64_t> &ids) const = 0;

  const Vocabulary &getVocabulary() const { return vocabulary; }

protected:
  explicit Model(Vocabulary vocabulary) : vocabulary(std::move(vocabulary)) {}

  const Vocabulary vocabulary;
};

using OwnedModel = std::unique_ptr<const Model>;

/// Each reads the component `model` of the type of its name.
OwnedModel readBpeModel(const Component &component);
OwnedModel readWordPieceModel(const Component &component);
OwnedModel readUnigramModel(const Component &component);
OwnedModel readWordLevelModel(const Component &component);

/// Reads `model`. Throws an input error for a type that isn't supported.
OwnedModel readModel(const Component &component);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_MODEL_H
