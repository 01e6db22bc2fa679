//===- DnnGraph.h - Graphs of cuDNN's operations ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN takes a graph of small operations, and finds a kernel that computes all
// of them at once. Its engines only recognize graphs of certain forms.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DNNGRAPH_H
#define TPRT_LIB_CUDA_DNNGRAPH_H

#include "cuda/Dnn.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tprt::cuda {

/// A cuDNN descriptor.
class TPRT_API DnnDescriptor {
public:
  /// `kind` is a CUDNN_BACKEND_..._DESCRIPTOR.
  explicit DnnDescriptor(int32_t kind);

  template <typename T>
  void set(int32_t name, int32_t type, const T *values, int64_t count) {
    setAttribute(name, type, values, count);
  }
  template <typename T>
  void set(int32_t name, int32_t type, T value) {
    setAttribute(name, type, &value, 1);
  }
  void set(int32_t name, const DnnDescriptor &descriptor) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptor.get());
  }

  /// No attribute may be set after this.
  void finalize();
  /// The same, but if cuDNN doesn't support what the descriptor describes,
  /// returns its reason. Returns an empty string on success.
  std::string tryFinalize();

  /// Up to `limit` values of an attribute.
  template <typename T>
  std::vector<T> getValues(int32_t name, int32_t type, int64_t limit) const {
    std::vector<T> values(limit);
    values.resize(getAttribute(name, type, values.data(), limit));
    return values;
  }
  /// Reads up to `limit` values of an attribute into `values`. Returns how
  /// many.
  int64_t getAttribute(int32_t name, int32_t type, void *values,
                       int64_t limit) const;

  cudnnBackendDescriptor_t get() const { return descriptor.get(); }

private:
  void setAttribute(int32_t name, int32_t type, const void *values,
                    int64_t count);

  std::unique_ptr<void, cudnnStatus_t (*)(cudnnBackendDescriptor_t)> descriptor;
};

/// Sizes, and strides in elements, of cuDNN's four dimensions: batch, head,
/// row, column.
struct TPRT_API DnnShape {
  std::array<int64_t, 4> sizes, strides;

  /// A row-major shape without gaps.
  static DnnShape makeDense(std::array<int64_t, 4> sizes);
  /// The shape with rows and columns exchanged.
  DnnShape transpose() const;
};

/// Operations on tensors, in the order in which they are added. A tensor either
/// is in memory whose address the caller gives when the graph runs, or it is
/// virtual, that is, never stored.
class TPRT_API DnnGraph {
public:
  using Tensor = const DnnDescriptor *;

  /// Adds a tensor in memory, aligned to 16 bytes. `id`, from 1 to 999, is its
  /// name, and `type` is a CUDNN_DATA_....
  Tensor addOperand(int64_t id, int32_t type, const DnnShape &shape);
  /// Adds an f32 with a fixed value.
  Tensor addScalar(float value);
  Tensor addVirtual(int32_t type, const DnnShape &shape);

  /// Each returns `result`, one of the tensors.
  Tensor multiply(Tensor a, Tensor b, Tensor result);
  /// x mode b; `mode` is a CUDNN_POINTWISE_...; b may be null. Sizes of 1
  /// broadcast.
  Tensor apply(int32_t mode, Tensor x, Tensor b, Tensor result);
  /// x if `condition` holds, else b.
  Tensor select(Tensor condition, Tensor x, Tensor b, Tensor result);
  /// The index of each element of x along dimension `axis`.
  Tensor index(Tensor x, int64_t axis, Tensor result);
  /// Reduces x over the dimensions in which the result has size 1.
  Tensor reduce(int32_t reduction, Tensor x, Tensor result);
  /// The elements of x as another tensor.
  Tensor reshape(Tensor x, Tensor result);

  /// No operation may be added after this. Throws an execution error if cuDNN
  /// doesn't accept the operations.
  void finish(cudnnHandle_t handle);

  /// The engines that cuDNN proposes for the graph, best first, without those
  /// that sum in an order that differs from run to run. They are for the
  /// handle's device, or for `device` if it isn't null.
  std::vector<DnnDescriptor>
  findEngines(const DnnDescriptor *device = nullptr) const;

  /// The scalars by name, as plans take them.
  const std::map<int64_t, float> &getScalars() const { return scalars; }

private:
  DnnDescriptor makeTensor(int64_t id, int32_t type, const DnnShape &shape);
  Tensor keep(DnnDescriptor tensor);
  DnnDescriptor makePointwise(int32_t mode, int64_t axis, Tensor x,
                              Tensor result);
  Tensor addOperation(DnnDescriptor operation, Tensor result);

  std::vector<std::unique_ptr<DnnDescriptor>> tensors;
  std::vector<DnnDescriptor> operations;
  std::vector<DnnDescriptor> modes; ///< referenced by operations
  std::optional<DnnDescriptor> graph;
  std::map<int64_t, float> scalars;
  int64_t nextId = 1000; ///< for tensors that callers don't name
};

/// cuDNN's plan to compute a graph on a handle's device.
class DnnPlan {
public:
  /// Uses the first engine that cuDNN has code for. Throws an execution error
  /// with cuDNN's reasons if there is none.
  DnnPlan(cudnnHandle_t handle, const DnnGraph &graph);

  int64_t getWorkspaceBytes() const { return workspaceBytes; }

  /// Enqueues the graph on the handle's stream. `operands` are addresses by
  /// name.
  void run(cudnnHandle_t handle, const std::map<int64_t, void *> &operands,
           void *workspace) const;

private:
  std::optional<DnnDescriptor> plan;
  std::map<int64_t, float> scalars;
  int64_t workspaceBytes = 0;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DNNGRAPH_H
