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
// Values of the IR are never overwritten. Meta tensors that share a storage, as
// those of PyTorch do, have one of them as their base. A write to one of them
// gives a new value of the base, and the others get their values from it when
// they are read again (PyTorch's functionalization does the same).
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_TORCHTENSORS_H
#define TP_LIB_IMPORT_ATEN_TORCHTENSORS_H

#include "StridedView.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Import/SafetensorsWriter.h"
#include "llvm/ADT/SetVector.h"
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

StridedLayout layoutOf(const at::Tensor &tensor);

/// Whether two tensors of data have the same elements. Unlike at::equal, it
/// tells 0 from -0.
bool areSame(const at::Tensor &first, const at::Tensor &second);

/// A tensor without data and with the shape, type and strides of `tensor`.
at::Tensor makeMeta(const at::Tensor &tensor);

/// Where the data of a tensor lies in memory. Tied tensors have the same; a
/// tensor without elements has none that could identify it.
struct DataKey {
  const void *data;
  std::vector<int64_t> sizes, strides;
  at::ScalarType type;

  explicit DataKey(const at::Tensor &tensor);
  bool operator==(const DataKey &) const = default;
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
  /// Tensors of a storage with different numbers are without each other's
  /// gradients, as those before and after detach() are.
  unsigned gradientNumber = 0;

  bool isParameter() const { return !fqn.empty(); }
  /// Whether a model may give it another value for the next call.
  bool isAssignable() const { return isBuffer; }
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
  Value materialize(const at::Tensor &constant);

  /// Registers a result of an op that is a view of `source`.
  TrackedTensor &trackView(const at::Tensor &meta, Value value,
                           const at::Tensor &source);
  /// Another meta tensor for all of `meta`, inside or outside of a module.
  at::Tensor makeAlias(const at::Tensor &meta, Value value);

  /// A buffer's value for the model's next call, if no write says it.
  void assign(const at::Tensor &buffer, Value value);
  /// Builds an nn.assign for each buffer that has been written or assigned.
  void buildAssignments();
  /// Builds the parameters that are assigned but not read.
  void completeAssignments(func::FuncOp function);

  /// The tensor with the base of the storage of `meta`.
  TrackedTensor &ownerOf(const at::Tensor &meta);
  /// The value of `meta`, which no op has computed: a part of its base. Null,
  /// with the reason, if no ops are known that give it.
  Value readView(const at::Tensor &meta, std::string &why);
  /// Writes `value` in place. Fails, with the reason, if a write of it isn't
  /// supported.
  bool overwrite(const at::Tensor &meta, Value value, std::string &why);
  bool isWritten(const at::Tensor &meta) { return storageOf(meta).version > 0; }
  /// Refuses writes of both tensors, one of which is a copy of the other where
  /// PyTorch has a view.
  void refuseWrites(const at::Tensor &x, const at::Tensor &y) {
    storageOf(x).isTorn = storageOf(y).isTorn = true;
  }
  /// Whether a constant is a square mask that is true on and below its diagonal.
  /// Layers often share one, which is looked at once.
  bool isCausalMask(const at::Tensor &constant);

  /// Makes a constant, which is to be overwritten with data of the model, and
  /// all others that share its storage, values of the model.
  void promote(const at::Tensor &constant);
  /// The current tensor for `tensor`: itself, with the value after all writes
  /// of its storage, or the meta tensor that a constant has become. Undefined,
  /// with the reason, if the value isn't known.
  at::Tensor current(const at::Tensor &tensor, std::string &why);

  /// Ops between these two belong to the module `fqn` with this body.
  /// Parameters and large constants get one op per module.
  void enterModule(StringRef fqn, Block *body);
  void leaveModule();
  /// Appends to the results of the current module, `leaving`, what later ops
  /// need to know of their storages and of those that the module has written.
  void appendStorages(llvm::ArrayRef<at::Tensor> leaving,
                      llvm::SmallVectorImpl<Value> &yielded);
  /// Registers the op of a module that has been left. All results from
  /// `numResults` on are those of appendStorages.
  void close(nn::ModuleOp op, unsigned numResults);
  /// Removes results of appendStorages that nothing uses. Returns the op in the
  /// place of `op`.
  nn::ModuleOp dropUnused(nn::ModuleOp op);
  /// Uses `value` for `constant` in the current module.
  void setLocal(const at::Tensor &constant, Value value);

  /// Reserves a name that constants must not take.
  void reserveName(const std::string &fqn) { names.insert(fqn); }
  const std::unordered_map<std::string, at::Tensor> &weights() const {
    return weightData;
  }

private:
  struct Storage {
    /// The first tensor, which is also the largest.
    at::Tensor base;
    /// In the order of the first tensors; 0 for what a model has before it runs.
    size_t number = 0;
    /// The base's value after the last write; null before the first.
    Value value;
    uint64_t version = 0;
    /// Written last while gradients were off.
    bool isDetached = false;
    /// Tensors without the base's gradient have written it: whether it had one
    /// then, and whether what they wrote had one.
    bool losesGradient = false, hasForeignGradient = false;
    /// Of a buffer: its value for the next call, if it isn't `value`.
    Value next;
    /// PyTorch has one storage where the importer has several.
    bool isTorn = false;
  };
  struct Scope {
    std::string fqn;
    Block *body;
    /// How many storages there were before.
    size_t numStorages;
    std::unordered_map<const c10::TensorImpl *, Value> locals;
    /// Storages from before that the module has written.
    llvm::SmallSetVector<Storage *, 4> written;
  };

  Storage &storageOf(const at::Tensor &meta);
  Value readBase(Storage &storage);
  bool refresh(TrackedTensor &tracked, std::string &why);
  bool isForeignGradient(const TrackedTensor &tracked);
  Value buildParameter(const TrackedTensor &tracked);
  /// The value for `value` where ops are built now: a result of the module that
  /// has computed it. Null if it isn't one.
  Value findVisible(Value value) const;
  Value largeConstant(const at::Tensor &constant);

  ImportBuilder &b;
  bool gradEnabled = true;
  std::unordered_map<const c10::TensorImpl *, TrackedTensor> tensors;
  /// Their addresses stay.
  std::unordered_map<const c10::StorageImpl *, Storage> storages;
  unsigned numGradients = 0; ///< gradientNumbers
  /// A constant that has become a value, and its meta tensor. The constant is
  /// kept alive as a key.
  struct Promotion {
    at::Tensor constant, meta;
  };
  /// The bases, by their storages, and other tensors.
  std::unordered_map<const c10::StorageImpl *, Promotion> promotedStorages;
  std::unordered_map<const c10::TensorImpl *, Promotion> promoted;
  /// What modules yield, and their results.
  llvm::DenseMap<Value, Value> results;
  llvm::DenseMap<Operation *, unsigned> numOwnResults;
  std::vector<at::Tensor> buffers; ///< meta tensors, also of parameters
  std::map<DataKey, at::Tensor> parameterMetas;
  std::unordered_map<std::string, at::Tensor> weightData;
  /// The values of unsaved buffers that are in the program.
  std::map<std::string, llvm::SmallVector<Value>> writtenOut;
  std::set<std::string> names;
  std::vector<at::Tensor> keptAlive;
  struct Mask {
    at::Tensor data; ///< kept alive, as its address is the key
    bool isCausal;
  };
  /// By the versions of their data, too.
  std::map<std::pair<DataKey, int64_t>, Mask> masks;
  std::vector<Scope> scopes;
};

/// Emits a constant as readable IR if it has a simple form: a splat, a range, a
/// triangle, a broadcast of these, or few enough elements to be written out.
/// Null otherwise.
Value emitConstant(ImportBuilder &b, const at::Tensor &constant);

/// `value` without a gradient, where all later readers of it can use it.
Value stopGradientAfter(ImportBuilder &b, Value value);

/// Whether `value` may depend on differentiated values.
bool mayHaveGradient(Value value);

/// Calls `f` on each defined tensor in lists, tuples and dictionaries.
void forEachTensor(const c10::IValue &value,
                   llvm::function_ref<void(const at::Tensor &)> f);
/// Rebuilds `value` with each defined tensor replaced.
c10::IValue mapTensors(const c10::IValue &value,
                       llvm::function_ref<at::Tensor(const at::Tensor &)> f);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHTENSORS_H
