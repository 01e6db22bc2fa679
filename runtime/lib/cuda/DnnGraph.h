//===- DnnGraph.h - Graphs of cuDNN's operations ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN takes a graph of small operations, and finds a kernel that computes all
// of them at once: its engines know graphs of certain forms.
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

/// One of cuDNN's descriptors.
class TPRT_API DnnDescriptor {
public:
  /// Of the kind CUDNN_BACKEND_..._DESCRIPTOR.
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

  /// No attribute is set behind this.
  void finalize();
  /// The same, where it may be that cuDNN doesn't have what is asked for: its
  /// reason, which is empty when all is well.
  std::string tryFinalize();

  /// Up to `limit` values of an attribute.
  template <typename T>
  std::vector<T> getValues(int32_t name, int32_t type, int64_t limit) const {
    std::vector<T> values(limit);
    values.resize(getAttribute(name, type, values.data(), limit));
    return values;
  }
  /// How many values of an attribute `values` has got; there are `limit`.
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

  /// Row-major without gaps.
  static DnnShape makeDense(std::array<int64_t, 4> sizes);
  /// With rows and columns exchanged.
  DnnShape transpose() const;
};

/// Operations on tensors, in the order in which they are added. A tensor is in
/// memory that the caller names when the graph runs, or virtual: never stored.
class TPRT_API DnnGraph {
public:
  using Tensor = const DnnDescriptor *;

  /// In memory, aligned to 16 bytes, by the name `id`, from 1 to 999. `type` is
  /// a CUDNN_DATA_....
  Tensor addOperand(int64_t id, int32_t type, const DnnShape &shape);
  /// An f32 with a fixed value.
  Tensor addScalar(float value);
  Tensor addVirtual(int32_t type, const DnnShape &shape);

  /// Each returns `result`, one of the tensors.
  Tensor multiply(Tensor a, Tensor b, Tensor result);
  /// x mode b; `mode` is a CUDNN_POINTWISE_...; b may be null. Sizes of 1
  /// broadcast.
  Tensor apply(int32_t mode, Tensor x, Tensor b, Tensor result);
  /// Where `condition` holds x, else b.
  Tensor select(Tensor condition, Tensor x, Tensor b, Tensor result);
  /// Each element's index along dimension `axis` of x's.
  Tensor index(Tensor x, int64_t axis, Tensor result);
  /// Over the dimensions in which the result has size 1.
  Tensor reduce(int32_t reduction, Tensor x, Tensor result);
  /// x as another tensor of its elements.
  Tensor reshape(Tensor x, Tensor result);

  /// No operation is added behind this. Throws an execution error where cuDNN
  /// doesn't take them.
  void finish(cudnnHandle_t handle);

  /// The engines that cuDNN proposes for the graph, best first, less those that
  /// sum in an order that differs from run to run; for the handle's device, or
  /// another one.
  std::vector<DnnDescriptor>
  findEngines(const DnnDescriptor *device = nullptr) const;

  /// By their names, as plans take them.
  const std::map<int64_t, float> &getScalars() const { return scalars; }

private:
  DnnDescriptor makeTensor(int64_t id, int32_t type, const DnnShape &shape);
  Tensor keep(DnnDescriptor tensor);
  DnnDescriptor makePointwise(int32_t mode, int64_t axis, Tensor x,
                              Tensor result);
  Tensor addOperation(DnnDescriptor operation, Tensor result);

  std::vector<std::unique_ptr<DnnDescriptor>> tensors;
  std::vector<DnnDescriptor> operations;
  std::vector<DnnDescriptor> modes; ///< that operations refer to
  std::optional<DnnDescriptor> graph;
  std::map<int64_t, float> scalars;
  int64_t nextId = 1000; ///< of the tensors that callers don't name
};

/// How cuDNN computes a graph on a handle's device.
class DnnPlan {
public:
  /// The first of the engines that cuDNN has code for. Throws an execution
  /// error with cuDNN's reasons where it has none.
  DnnPlan(cudnnHandle_t handle, const DnnGraph &graph);

  int64_t getWorkspaceBytes() const { return workspaceBytes; }

  /// Enqueues it on the handle's stream. `operands` are addresses by name.
  void run(cudnnHandle_t handle, const std::map<int64_t, void *> &operands,
           void *workspace) const;

private:
  std::optional<DnnDescriptor> plan;
  std::map<int64_t, float> scalars;
  int64_t workspaceBytes = 0;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DNNGRAPH_H
