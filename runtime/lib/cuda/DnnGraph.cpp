//===- DnnGraph.cpp - Graphs of cuDNN's operations ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/DnnGraph.h"

#include <algorithm>

using namespace tprt;
using namespace tprt::cuda;

#define TPRT_CUDNN(function, ...)                                              \
  Dnn::get().check(Dnn::get().function(__VA_ARGS__), #function)

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

static cudnnBackendDescriptor_t create(int32_t kind) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  TPRT_CUDNN(cudnnBackendCreateDescriptor, kind, &descriptor);
  return descriptor;
}

DnnDescriptor::DnnDescriptor(int32_t kind)
    : descriptor(create(kind), Dnn::get().cudnnBackendDestroyDescriptor) {}

void DnnDescriptor::setAttribute(int32_t name, int32_t type, const void *values,
                                 int64_t count) {
  TPRT_CUDNN(cudnnBackendSetAttribute, get(), name, type, count, values);
}

void DnnDescriptor::finalize() { TPRT_CUDNN(cudnnBackendFinalize, get()); }

std::string DnnDescriptor::tryFinalize() {
  try {
    finalize();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

int64_t DnnDescriptor::getAttribute(int32_t name, int32_t type, void *values,
                                    int64_t limit) const {
  int64_t count = 0;
  TPRT_CUDNN(cudnnBackendGetAttribute, get(), name, type, limit, &count,
             values);
  return std::min(count, limit);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

DnnShape DnnShape::makeDense(std::array<int64_t, 4> sizes) {
  DnnShape shape = {sizes, {}};
  int64_t stride = 1;
  for (size_t d = 4; d-- > 0; stride *= sizes[d])
    shape.strides[d] = stride;
  return shape;
}

DnnShape DnnShape::transpose() const {
  DnnShape shape = *this;
  std::swap(shape.sizes[2], shape.sizes[3]);
  std::swap(shape.strides[2], shape.strides[3]);
  return shape;
}

DnnDescriptor DnnGraph::makeTensor(int64_t id, int32_t type,
                                   const DnnShape &shape) {
  DnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape.sizes.data(),
             4);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, shape.strides.data(),
             4);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t(16));
  return tensor;
}

DnnGraph::Tensor DnnGraph::keep(DnnDescriptor tensor) {
  tensor.finalize();
  tensors.push_back(std::make_unique<DnnDescriptor>(std::move(tensor)));
  return tensors.back().get();
}

DnnGraph::Tensor DnnGraph::addOperand(int64_t id, int32_t type,
                                      const DnnShape &shape) {
  return keep(makeTensor(id, type, shape));
}

DnnGraph::Tensor DnnGraph::addScalar(float value) {
  int64_t id = nextId++;
  scalars[id] = value;
  DnnDescriptor tensor =
      makeTensor(id, CUDNN_DATA_FLOAT, DnnShape::makeDense({1, 1, 1, 1}));
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  return keep(std::move(tensor));
}

DnnGraph::Tensor DnnGraph::addVirtual(int32_t type, const DnnShape &shape) {
  DnnDescriptor tensor = makeTensor(nextId++, type, shape);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  return keep(std::move(tensor));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

DnnGraph::Tensor DnnGraph::addOperation(DnnDescriptor operation,
                                        Tensor result) {
  operation.finalize();
  operations.push_back(std::move(operation));
  return result;
}

DnnGraph::Tensor DnnGraph::multiply(Tensor a, Tensor b, Tensor result) {
  DnnDescriptor mode(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  mode.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
           int32_t(CUDNN_DATA_FLOAT));
  mode.finalize();
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, mode);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *result);
  modes.push_back(std::move(mode));
  return addOperation(std::move(operation), result);
}

DnnDescriptor DnnGraph::makePointwise(int32_t mode, int64_t axis, Tensor x,
                                      Tensor result) {
  DnnDescriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                int32_t(CUDNN_DATA_FLOAT));
  if (axis >= 0)
    pointwise.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  pointwise.finalize();
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *result);
  modes.push_back(std::move(pointwise));
  return operation;
}

DnnGraph::Tensor DnnGraph::apply(int32_t mode, Tensor x, Tensor b,
                                 Tensor result) {
  DnnDescriptor operation = makePointwise(mode, /*axis=*/-1, x, result);
  if (b)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  return addOperation(std::move(operation), result);
}

DnnGraph::Tensor DnnGraph::select(Tensor condition, Tensor x, Tensor b,
                                  Tensor result) {
  DnnDescriptor operation =
      makePointwise(CUDNN_POINTWISE_BINARY_SELECT, /*axis=*/-1, x, result);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *condition);
  return addOperation(std::move(operation), result);
}

DnnGraph::Tensor DnnGraph::index(Tensor x, int64_t axis, Tensor result) {
  return addOperation(makePointwise(CUDNN_POINTWISE_GEN_INDEX, axis, x, result),
                      result);
}

DnnGraph::Tensor DnnGraph::reduce(int32_t reduction, Tensor x, Tensor result) {
  DnnDescriptor mode(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  mode.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
           reduction);
  mode.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
           int32_t(CUDNN_DATA_FLOAT));
  mode.finalize();
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *result);
  modes.push_back(std::move(mode));
  return addOperation(std::move(operation), result);
}

DnnGraph::Tensor DnnGraph::reshape(Tensor x, Tensor result) {
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *result);
  return addOperation(std::move(operation), result);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

void DnnGraph::finish(cudnnHandle_t handle) {
  std::vector<cudnnBackendDescriptor_t> all;
  for (const DnnDescriptor &operation : operations)
    all.push_back(operation.get());
  graph.emplace(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             all.data(), all.size());
  if (handle)
    graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph->finalize();
}

/// Whether an engine gives the same bits in every run.
static bool isDeterministic(const DnnDescriptor &config) {
  DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t address = engine.get();
  config.getAttribute(CUDNN_ATTR_ENGINECFG_ENGINE,
                      CUDNN_TYPE_BACKEND_DESCRIPTOR, &address, 1);
  constexpr int64_t limit = 64; // kinds of notes; there are about ten
  std::vector<int32_t> notes = engine.getValues<int32_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, limit);
  return std::find(notes.begin(), notes.end(),
                   CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) == notes.end();
}

std::vector<DnnDescriptor>
DnnGraph::findEngines(const DnnDescriptor *device) const {
  DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                 int32_t(CUDNN_HEUR_MODE_A));
  if (device)
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  heuristics.finalize();
  constexpr int64_t limit = 16;
  std::vector<DnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> addresses;
  for (int64_t i = 0; i < limit; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    addresses.push_back(configs.back().get());
  }
  int64_t count = heuristics.getAttribute(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          addresses.data(), limit);
  configs.erase(configs.begin() + count, configs.end());
  std::erase_if(configs, [](const DnnDescriptor &config) {
    return !isDeterministic(config);
  });
  return configs;
}

DnnPlan::DnnPlan(cudnnHandle_t handle, const DnnGraph &graph)
    : scalars(graph.getScalars()) {
  std::string reasons;
  for (const DnnDescriptor &config : graph.findEngines()) {
    DnnDescriptor candidate(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    candidate.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    candidate.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    std::string reason = candidate.tryFinalize();
    if (reason.empty()) {
      plan.emplace(std::move(candidate));
      workspaceBytes =
          plan->getValues<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                   CUDNN_TYPE_INT64, 1)
              .at(0);
      return;
    }
    reasons += (reasons.empty() ? ": " : "; ") + reason;
  }
  throw executionError("cuDNN has no deterministic engine for it" + reasons);
}

void DnnPlan::run(cudnnHandle_t handle,
                  const std::map<int64_t, void *> &operands,
                  void *workspace) const {
  std::vector<int64_t> ids;
  std::vector<const void *> addresses;
  for (auto [id, address] : operands) {
    ids.push_back(id);
    addresses.push_back(address);
  }
  for (const auto &[id, value] : scalars) { // read by cudnnBackendExecute
    ids.push_back(id);
    addresses.push_back(&value);
  }
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(),
           ids.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           addresses.data(), addresses.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  TPRT_CUDNN(cudnnBackendExecute, handle, plan->get(), pack.get());
}
