//===- FakeDnn.cpp - libcudnn without a device ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descriptors with their attributes, and cuDNN's checks of them. DnnInterpreter
// executes the graphs.
//
//===----------------------------------------------------------------------===//

#include "DnnInterpreter.h"
#include "Work.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace tprt::cuda {
struct cudnnContext {
  CUstream stream = nullptr;
};
} // namespace tprt::cuda

namespace {

enum : cudnnStatus_t {
  BAD_PARAM = 2000,
  NOT_SUPPORTED = 3000,
  EXECUTION_FAILED = 5000,
};

struct Attribute {
  int32_t type = 0;
  int64_t count = 0;
  std::string bytes;
};

struct Descriptor {
  int32_t kind = 0;
  bool isFinal = false;
  std::map<int32_t, Attribute> attributes;

  // The program of an operation graph, also in descriptors that refer to one.
  std::shared_ptr<const DnnProgram> program;
  int64_t engine = -1; ///< of an engine, its configuration, and a plan

  template <typename T>
  std::vector<T> getAll(int32_t name) const {
    auto found = attributes.find(name);
    if (found == attributes.end())
      return {};
    std::vector<T> values(found->second.bytes.size() / sizeof(T));
    std::memcpy(values.data(), found->second.bytes.data(),
                values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T get(int32_t name, T otherwise = {}) const {
    auto found = attributes.find(name);
    if (found != attributes.end() && found->second.bytes.size() >= sizeof(T))
      std::memcpy(&otherwise, found->second.bytes.data(), sizeof(T));
    return otherwise;
  }
  Descriptor *getDescriptor(int32_t name) const {
    return get<Descriptor *>(name);
  }
};

/// Why a call is rejected.
struct Refusal {
  cudnnStatus_t status;
  std::string reason;
};

/// The engines that are proposed: the first one isn't deterministic.
constexpr int64_t numEngines = 2;
constexpr int64_t planBytes = 4096;

thread_local std::string lastError;

} // namespace

static void require(bool holds, const std::string &reason,
                    cudnnStatus_t status = BAD_PARAM) {
  if (!holds)
    throw Refusal{status, reason};
}

/// Runs `body`, and keeps the reason if it is rejected.
template <typename Body>
static cudnnStatus_t enter(const std::string &call, const std::string &details,
                           Body body) {
  Lock lock(getMutex());
  lastError.clear();
  if (int32_t status = note(call, details)) {
    lastError = "as the test wants it";
    return status;
  }
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal &refusal) {
    lastError = refusal.reason;
    return refusal.status;
  }
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

EXPORT size_t cudnnGetVersion() { return getSettings().dnnVersion; }

EXPORT const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
         : status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_EXECUTION_FAILED";
}

EXPORT void cudnnGetLastErrorString(char *text, size_t bytes) {
  std::snprintf(text, bytes, "%s", lastError.c_str());
}

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  return enter("cudnnCreate", "", [&] {
    *handle = new cudnnContext;
    addLive(*handle);
  });
}
EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (!requireContext())
    return 1001; // not initialized
  removeLive(handle);
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  return enter("cudnnSetStream", describe(stream),
               [&] { handle->stream = stream; });
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// The attributes of a kind, from the first to the last number.
struct KindOfDescriptor {
  int32_t first, last;
};
static const std::map<int32_t, KindOfDescriptor> kinds = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, {900, 913}},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {1500, 1503}},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {1520, 1527}},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {0, 9}},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {750, 758}},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, {1600, 1602}},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {1610, 1612}},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, {2200, 2201}},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, {800, 804}},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, {200, 204}},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, {1300, 1308}},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {300, 304}},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, {400, 407}},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, {1000, 1003}},
};

static size_t getBytes(int32_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    return 1;
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  default:
    return 4; // enumerations
  }
}

EXPORT cudnnStatus_t
cudnnBackendCreateDescriptor(int32_t kind, cudnnBackendDescriptor_t *result) {
  return enter("cudnnBackendCreateDescriptor", std::to_string(kind), [&] {
    require(kinds.contains(kind), "unknown kind of descriptor");
    auto *descriptor = new Descriptor;
    descriptor->kind = kind;
    *result = descriptor;
  });
}

EXPORT cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor *>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                              int32_t name, int32_t type,
                                              int64_t count,
                                              const void *values) {
  return enter("cudnnBackendSetAttribute", std::to_string(name), [&] {
    auto &descriptor = *static_cast<Descriptor *>(handle);
    KindOfDescriptor kind = kinds.at(descriptor.kind);
    require(!descriptor.isFinal, "the descriptor is final");
    require(name >= kind.first && name <= kind.last,
            "the descriptor has no attribute " + std::to_string(name));
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      for (int64_t i = 0; i < count; ++i)
        require((*(static_cast<Descriptor *const *>(values) + i))->isFinal ||
                    name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                "a descriptor that isn't final");
    descriptor.attributes[name] = {
        type, count,
        std::string(static_cast<const char *>(values), count * getBytes(type))};
  });
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static DnnTensor getTensor(const Descriptor &descriptor) {
  DnnTensor tensor;
  tensor.id = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = descriptor.get<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  tensor.sizes = descriptor.getAll<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = descriptor.getAll<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  tensor.isVirtual = descriptor.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  tensor.isByValue = descriptor.get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  return tensor;
}

static void checkTensor(const Descriptor &descriptor) {
  for (int32_t name : {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_DATA_TYPE,
                       CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES,
                       CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT})
    require(descriptor.attributes.contains(name),
            "a tensor without attribute " + std::to_string(name));
  DnnTensor tensor = getTensor(descriptor);
  require(tensor.sizes.size() == 4 && tensor.strides.size() == 4,
          "a tensor needs four sizes and strides");
  for (int64_t size : tensor.sizes)
    require(size > 0, "a size isn't positive");
  require(!(tensor.isVirtual && tensor.isByValue),
          "a tensor is virtual, and by value");
}

/// The operands and result of an operation.
static DnnOperation getOperation(const Descriptor &descriptor) {
  auto tensor = [&](int32_t name) -> std::optional<DnnTensor> {
    Descriptor *found = descriptor.getDescriptor(name);
    if (!found)
      return std::nullopt;
    return getTensor(*found);
  };
  DnnOperation operation;
  operation.kind = descriptor.kind;
  switch (descriptor.kind) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    require(descriptor.getDescriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC),
            "a product without its descriptor");
    operation.x = tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    operation.b = tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    operation.y = tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    require(operation.b.has_value(), "a product without an operand");
    break;
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
    Descriptor *mode =
        descriptor.getDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    require(mode, "a pointwise operation without its descriptor");
    operation.mode = mode->get<int32_t>(CUDNN_ATTR_POINTWISE_MODE);
    operation.axis = mode->get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
    operation.x = tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    operation.b = tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    operation.t = tensor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    operation.y = tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    break;
  }
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
    Descriptor *mode =
        descriptor.getDescriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    require(mode, "a reduction without its descriptor");
    operation.mode = mode->get<int32_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    operation.x = tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    operation.y = tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    break;
  }
  default:
    operation.x = tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    operation.y = tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  }
  require(operation.x && operation.y, "an operation without x or y");
  return operation;
}

static bool isOperation(int32_t kind) {
  return kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR;
}

/// Makes a graph's program. Checks that each tensor has one shape, and that a
/// virtual one is computed before it is read.
static std::shared_ptr<const DnnProgram> makeProgram(const Descriptor &graph) {
  auto program = std::make_shared<DnnProgram>();
  std::map<int64_t, DnnTensor> tensors;
  std::set<int64_t> computed;
  for (Descriptor *descriptor :
       graph.getAll<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    DnnOperation operation = getOperation(*descriptor);
    for (const auto &tensor : {operation.x, operation.b, operation.t}) {
      if (!tensor)
        continue;
      require(tensors.emplace(tensor->id, *tensor).first->second == *tensor,
              "two tensors have one identifier");
      require(!tensor->isVirtual || computed.contains(tensor->id),
              "a virtual tensor is read before it is computed");
    }
    require(tensors.emplace(operation.y->id, *operation.y).first->second ==
                *operation.y,
            "two tensors have one identifier");
    require(computed.insert(operation.y->id).second,
            "a tensor is computed twice");
    program->operations.push_back(operation);
  }
  require(!program->operations.empty(), "a graph without operations");
  for (const auto &[id, tensor] : tensors)
    if (!tensor.isVirtual)
      program->operands[id] = tensor;
  return program;
}

/// Checks types and sizes as in NVIDIA's table for fused attention.
static void checkSupport(const DnnProgram &program) {
  for (const DnnOperation &operation : program.operations) {
    if (operation.kind != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      continue;
    for (const auto &tensor : {operation.x, operation.b, operation.y}) {
      if (tensor->isVirtual)
        continue;
      require(tensor->type == CUDNN_DATA_HALF ||
                  tensor->type == CUDNN_DATA_BFLOAT16,
              "operands are neither half nor bfloat16", NOT_SUPPORTED);
      int64_t width =
          std::find(tensor->strides.begin() + 2, tensor->strides.end(), 1) -
          tensor->strides.begin();
      require(width < 4 && tensor->sizes[width] % 8 == 0 &&
                  tensor->sizes[width] <= getSettings().maxDnnHead,
              "the head's size isn't supported", NOT_SUPPORTED);
    }
  }
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  return enter("cudnnBackendFinalize", std::to_string(descriptor.kind), [&] {
    require(!descriptor.isFinal, "the descriptor is final");
    if (descriptor.kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      checkTensor(descriptor);
    else if (isOperation(descriptor.kind))
      getOperation(descriptor);
    else if (descriptor.kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
      require(descriptor.get<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE),
              "a graph without a handle");
      descriptor.program = makeProgram(descriptor);
    } else if (descriptor.kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
      Descriptor *graph =
          descriptor.getDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      require(graph && graph->isFinal, "heuristics without a graph");
      descriptor.program = graph->program;
      checkSupport(*descriptor.program);
    } else if (descriptor.kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
      Descriptor *config =
          descriptor.getDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      require(config && descriptor.get<cudnnHandle_t>(
                            CUDNN_ATTR_EXECUTION_PLAN_HANDLE),
              "a plan without a handle or configuration");
      descriptor.program = config->program;
      descriptor.engine = config->engine;
    }
    descriptor.isFinal = true;
  });
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle,
                                              int32_t name, int32_t,
                                              int64_t requested, int64_t *count,
                                              void *values) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  return enter("cudnnBackendGetAttribute", std::to_string(name), [&] {
    require(descriptor.isFinal, "the descriptor isn't final");
    auto *descriptors = static_cast<Descriptor **>(values);
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = std::min(requested, numEngines);
      for (int64_t i = 0; i < *count; ++i) {
        require(descriptors[i]->kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                "results are configurations of engines");
        descriptors[i]->isFinal = true;
        descriptors[i]->program = descriptor.program;
        descriptors[i]->engine = i;
      }
      return;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      descriptors[0]->isFinal = true;
      descriptors[0]->engine = descriptor.engine;
      return;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = descriptor.engine == 0;
      if (*count)
        *static_cast<int32_t *>(values) = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      return;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *count = 1;
      *static_cast<int64_t *>(values) = planBytes;
      return;
    default:
      require(false, "no such attribute to be read");
    }
  });
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                         cudnnBackendDescriptor_t planHandle,
                                         cudnnBackendDescriptor_t packHandle) {
  auto &plan = *static_cast<Descriptor *>(planHandle);
  auto &pack = *static_cast<Descriptor *>(packHandle);
  std::string details = "engine " + std::to_string(plan.engine) + ", " +
                        std::to_string(plan.program->operations.size()) +
                        " operations " + describe(handle->stream);
  return enter("cudnnBackendExecute", details, [&] {
    require(plan.isFinal && pack.isFinal, "a plan or pack that isn't final");
    auto ids = pack.getAll<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    auto pointers = pack.getAll<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    void *workspace = pack.get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    require(ids.size() == pointers.size(), "as many addresses as identifiers");
    std::map<int64_t, void *> addresses;
    std::map<int64_t, float> scalars; // by value: read now
    for (size_t i = 0; i < ids.size(); ++i) {
      auto found = plan.program->operands.find(ids[i]);
      require(found != plan.program->operands.end(),
              "the graph has no tensor " + std::to_string(ids[i]));
      require(reinterpret_cast<uintptr_t>(pointers[i]) % 16 == 0 ||
                  found->second.isByValue,
              "an address isn't aligned");
      if (found->second.isByValue)
        scalars[ids[i]] = *static_cast<float *>(pointers[i]);
      else
        addresses[ids[i]] = pointers[i];
    }
    require(addresses.size() + scalars.size() == plan.program->operands.size(),
            "a tensor of the graph has no address");
    enqueue(handle->stream, [program = plan.program, addresses, scalars,
                             workspace] {
      bool isAllocated = checkMemory(workspace, planBytes);
      for (const auto &[id, address] : addresses)
        isAllocated &= program->operands.at(id).checkMemory(address);
      if (!isAllocated)
        return true;
      std::memset(workspace, 0xAB, planBytes); // not shared with other work
      program->run(addresses, scalars);
      return true;
    });
  });
}
