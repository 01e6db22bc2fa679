//===- TorchTensors.h - PyTorch's tensors and their MLIR values -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The importer runs a model on *meta* tensors: tensors of PyTorch that have
// shape, type and strides but no data. PyTorch then computes every shape and
// type, and runs all of the model's Python-level code on lists, tuples and
// numbers. This table knows which MLIR value each meta tensor stands for. A
// tensor with data is a constant; it becomes IR when an op on meta tensors uses
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_TORCHTENSORS_H
#define TP_LIB_IMPORT_ATEN_TORCHTENSORS_H

#include "Import/ImportBuilder.h"
#include "tp/Import/SafetensorsWriter.h"
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <map>
#include <set>
#include <unordered_map>

namespace mlir::tp {

/// The MLIR type, or null if the nn dialect has none.
Type convertType(MLIRContext *context, at::ScalarType type);
/// For complex numbers, the type of the pairs of reals that stand for them.
RankedTensorType convertTensorType(MLIRContext *context,
                                   const at::Tensor &tensor);

/// A tensor's entry of the weights file.
WeightTensor describeWeight(const std::string &name, const at::Tensor &tensor);

/// A tensor without data and with the shape, type and strides of `tensor`.
at::Tensor makeMeta(const at::Tensor &tensor);

/// Where the data of a tensor lies in memory. Tied tensors have the same; a
/// tensor without elements has none that could identify it.
struct DataKey {
  const void *data;
  std::vector<int64_t> sizes, strides;
  at::ScalarType type;

  explicit DataKey(const at::Tensor &tensor);
  bool operator<(const DataKey &other) const {
    return std::tie(data, sizes, strides, type) <
           std::tie(other.data, other.sizes, other.strides, other.type);
  }
};

/// A meta tensor, and the value or data that it represents.
struct TrackedTensor {
  at::Tensor meta;
  /// A value computed by the model.
  Value value;
  /// Or known data: a constant, or the parameter called `fqn`.
  at::Tensor data;
  std::string fqn;
  bool isBuffer = false;
  /// Of a buffer: it has got its value for the next call.
  bool isAssigned = false;
  /// Whether a state_dict has the parameter. If not, it comes with the program,
  /// unless it is large.
  bool isSaved = true;
  /// The result of an unsupported op, which has no value.
  bool poisoned = false;
  /// Why it has no value, if nothing has been reported so far: the op is
  /// supported without this result.
  std::string missing;
  /// Computed while gradients were off; `value` doesn't stop them yet.
  bool isDetached = false;
  /// How often the storage had been written when this tensor was last valid.
  uint64_t version = 0;

  bool isParameter() const { return !fqn.empty(); }
  /// Whether a model may give it another value for the next call.
  bool isAssignable() const { return isBuffer && isSaved; }
  bool isConstant() const { return data.defined() && fqn.empty(); }
};

class TensorTable {
public:
  explicit TensorTable(ImportBuilder &b) : b(b) {}

  /// Registers what `meta` stands for.
  TrackedTensor &track(const at::Tensor &meta, Value value);
  TrackedTensor &trackPoison(const at::Tensor &meta);
  /// The meta tensor of a parameter. Tied parameters have one, whose FQN is
  /// that of the first call.
  at::Tensor parameter(const at::Tensor &data, const std::string &fqn,
                       bool isBuffer, bool isSaved);
  /// A meta tensor that stands for a constant.
  at::Tensor standIn(const at::Tensor &constant);

  TrackedTensor *find(const at::Tensor &meta);
  /// Whether gradients are on; torch.no_grad turns them off. Values computed
  /// while they are off have no gradient when they are used while they are on.
  bool isGradEnabled() const { return gradEnabled; }
  void setGradEnabled(bool enabled) { gradEnabled = enabled; }
  /// The IR value; builds the parameter's or constant's op. Null if poisoned.
  Value valueOf(const at::Tensor &meta);
  /// The IR value of a constant.
  Value materialise(const at::Tensor &constant);

  /// Assigns a buffer, which can't be used after that: the new value counts
  /// from the next call on.
  void assign(const at::Tensor &buffer, Value value);

  /// In-place writes. After one, all other views of the storage are stale.
  void written(const at::Tensor &meta);
  bool isStale(const at::Tensor &meta);
  /// Turns a constant that was overwritten with data of the model into a value.
  void promote(const at::Tensor &constant, const at::Tensor &meta);
  /// The current tensor for `tensor`: itself, the meta tensor that a constant
  /// has become, or undefined if another view of its storage has been written.
  at::Tensor current(const at::Tensor &tensor);

  /// Parameters and large constants get one op per module region.
  void enterModule(StringRef fqn);
  void leaveModule();
  /// Uses `value` for `constant` in the current module.
  void setLocal(const at::Tensor &constant, Value value);

  /// Reserves a name that constants must not take.
  void reserveName(const std::string &fqn) { names.insert(fqn); }
  const std::unordered_map<std::string, at::Tensor> &weights() const {
    return weightData;
  }

private:
  struct Scope {
    std::string fqn;
    std::unordered_map<const c10::TensorImpl *, Value> locals;
  };
  Value largeConstant(const at::Tensor &constant);

  ImportBuilder &b;
  bool gradEnabled = true;
  std::unordered_map<const c10::TensorImpl *, TrackedTensor> tensors;
  std::unordered_map<const c10::StorageImpl *, uint64_t> versions;
  /// Constants, kept alive as keys.
  struct Promotion {
    at::Tensor constant, meta;
  };
  std::unordered_map<const c10::TensorImpl *, Promotion> promoted;
  std::set<const c10::StorageImpl *> promotedStorages;
  std::map<DataKey, at::Tensor> parameterMetas;
  std::unordered_map<std::string, at::Tensor> weightData;
  std::set<std::string> names;
  std::vector<at::Tensor> keptAlive;
  std::vector<Scope> scopes;
};

/// Emits a constant as readable IR if it has a simple form: a splat, a range, a
/// triangle, a broadcast of these, or few enough elements to be written out.
/// Null otherwise.
Value emitConstant(ImportBuilder &b, const at::Tensor &constant);

/// Calls `f` on each defined tensor in lists, tuples and dictionaries.
void forEachTensor(const c10::IValue &value,
                   llvm::function_ref<void(const at::Tensor &)> f);
/// Rebuilds `value` with each defined tensor replaced.
c10::IValue mapTensors(const c10::IValue &value,
                       llvm::function_ref<at::Tensor(const at::Tensor &)> f);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHTENSORS_H
