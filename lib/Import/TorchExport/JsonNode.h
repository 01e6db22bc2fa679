//===- JsonNode.h - JSON with the paths of its values -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_JSONNODE_H
#define TP_LIB_IMPORT_TORCHEXPORT_JSONNODE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"
#include <stdexcept>
#include <string>

namespace mlir::tp {

/// A problem with an archive of torch.export; what() is for the user.
struct ExportError : std::runtime_error {
  explicit ExportError(const llvm::Twine &why)
      : std::runtime_error(why.str()) {}
};

/// A value of a JSON text, and where it is: "graph.nodes[3].target". The
/// getters throw an ExportError that names the place if the value is of another
/// type than asked for.
class JsonNode {
public:
  JsonNode(const llvm::json::Value &value, const llvm::Twine &path)
      : value(&value), path(path.str()) {}

  /// A member of an object.
  JsonNode operator[](StringRef key) const;
  /// The member if there is one that isn't null.
  std::optional<JsonNode> find(StringRef key) const;
  /// The only member of an object, which PyTorch writes for a union, by its
  /// name.
  std::pair<StringRef, JsonNode> getUnion() const;
  void forEach(llvm::function_ref<void(JsonNode)> f) const;
  void forEachMember(llvm::function_ref<void(StringRef, JsonNode)> f) const;

  std::string getText() const;
  bool getBool() const;
  int64_t getInteger() const;
  /// A number; PyTorch writes texts for infinities and NaN.
  double getReal() const;

  [[noreturn]] void fail(const llvm::Twine &expected) const;

private:
  const llvm::json::Object &getObject() const;

  const llvm::json::Value *value;
  std::string path;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_JSONNODE_H
