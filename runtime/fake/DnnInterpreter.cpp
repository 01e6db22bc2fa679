//===- DnnInterpreter.cpp - Graphs of cuDNN's, executed -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DnnInterpreter.h"

#include "Work.h"

#include "tprt/Dtype.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

using Index = std::array<int64_t, 4>;

/// Calls visit(index) for each index, row-major.
template <typename Visit>
static void forEachIndex(const std::vector<int64_t> &sizes, Visit visit) {
  Index index = {};
  for (index[0] = 0; index[0] < sizes[0]; ++index[0])
    for (index[1] = 0; index[1] < sizes[1]; ++index[1])
      for (index[2] = 0; index[2] < sizes[2]; ++index[2])
        for (index[3] = 0; index[3] < sizes[3]; ++index[3])
          visit(index);
}

static int64_t getOffset(const DnnTensor &tensor, const Index &index) {
  int64_t offset = 0;
  for (size_t d = 0; d < 4; ++d)
    offset += index[d] * tensor.strides[d];
  return offset;
}

static int64_t getWidth(int32_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
}

static float load(int32_t type, const void *data, int64_t i) {
  if (type == CUDNN_DATA_HALF)
    return static_cast<float>(static_cast<const Half *>(data)[i]);
  if (type == CUDNN_DATA_BFLOAT16)
    return castElement<float>(static_cast<const BFloat16 *>(data)[i]);
  return static_cast<const float *>(data)[i];
}

static void store(int32_t type, void *data, int64_t i, float value) {
  if (type == CUDNN_DATA_HALF)
    static_cast<Half *>(data)[i] = static_cast<Half>(value);
  else if (type == CUDNN_DATA_BFLOAT16)
    static_cast<BFloat16 *>(data)[i] = BFloat16::round(value);
  else
    static_cast<float *>(data)[i] = value;
}

static float roundTo(int32_t type, float value) {
  float rounded;
  store(type, &rounded, 0, value);
  return load(type, &rounded, 0);
}

int64_t DnnTensor::getNumElements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

bool DnnTensor::checkMemory(const void *address) const {
  int64_t last = 0;
  for (size_t d = 0; d < 4; ++d)
    last += (sizes[d] - 1) * strides[d];
  return fake::checkMemory(address, (last + 1) * getWidth(type));
}

namespace {

/// Values of a tensor, row-major.
struct Values {
  const DnnTensor *tensor;
  std::vector<float> data;

  int64_t getPosition(const Index &index) const {
    int64_t position = 0;
    for (size_t d = 0; d < 4; ++d) // a size of 1 broadcasts
      position =
          position * tensor->sizes[d] + (tensor->sizes[d] == 1 ? 0 : index[d]);
    return position;
  }
  float &at(const Index &index) { return data[getPosition(index)]; }
  float at(const Index &index) const { return data[getPosition(index)]; }
};

/// A run of a program.
class Run {
public:
  Run(const std::map<int64_t, void *> &addresses,
      const std::map<int64_t, float> &scalars)
      : addresses(addresses), scalars(scalars) {}

  void execute(const DnnOperation &operation) {
    Values y{&*operation.y, std::vector<float>(operation.y->getNumElements())};
    switch (operation.kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      multiply(read(*operation.x), read(*operation.b), y);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      reduce(operation.mode, read(*operation.x), y);
      break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      reshape(read(*operation.x), y);
      break;
    default:
      apply(operation, y);
    }
    for (float &value : y.data)
      value = roundTo(y.tensor->type, value);
    write(std::move(y));
  }

private:
  Values read(const DnnTensor &tensor) const {
    Values values{&tensor, {}};
    if (tensor.isByValue) {
      values.data = {scalars.at(tensor.id)};
    } else if (auto found = computed.find(tensor.id); found != computed.end()) {
      values.data = found->second.data;
    } else {
      values.data.reserve(tensor.getNumElements());
      const void *memory = addresses.at(tensor.id);
      forEachIndex(tensor.sizes, [&](const Index &index) {
        values.data.push_back(
            load(tensor.type, memory, getOffset(tensor, index)));
      });
    }
    return values;
  }

  void write(Values values) {
    const DnnTensor &tensor = *values.tensor;
    if (!tensor.isVirtual)
      forEachIndex(tensor.sizes, [&](const Index &index) {
        store(tensor.type, addresses.at(tensor.id), getOffset(tensor, index),
              values.at(index));
      });
    computed.insert_or_assign(tensor.id, std::move(values));
  }

  /// Heads of b are shared by groups of a's.
  static void multiply(const Values &a, const Values &b, Values &y) {
    int64_t group = a.tensor->sizes[1] / b.tensor->sizes[1];
    int64_t depth = a.tensor->sizes[3];
    if (b.tensor->sizes[2] != depth)
      throw std::runtime_error("a product's sizes don't fit");
    forEachIndex(y.tensor->sizes, [&](const Index &i) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum +=
            a.at({i[0], i[1], i[2], k}) * b.at({i[0], i[1] / group, k, i[3]});
      y.at(i) = sum;
    });
  }

  static void reduce(int32_t mode, const Values &x, Values &y) {
    bool isMaximum = mode == CUDNN_REDUCE_TENSOR_MAX;
    std::fill(y.data.begin(), y.data.end(), isMaximum ? -INFINITY : 0.0f);
    forEachIndex(x.tensor->sizes, [&](const Index &index) {
      float &result = y.at(index); // if y has size 1, it is the same element
      float value = x.at(index);
      result = isMaximum ? std::max(result, value) : result + value;
    });
  }

  /// The same memory with other sizes and strides.
  static void reshape(const Values &x, Values &y) {
    std::map<int64_t, float> byOffset;
    forEachIndex(x.tensor->sizes, [&](const Index &index) {
      byOffset[getOffset(*x.tensor, index)] = x.at(index);
    });
    forEachIndex(y.tensor->sizes, [&](const Index &index) {
      y.at(index) = byOffset.at(getOffset(*y.tensor, index));
    });
  }

  void apply(const DnnOperation &operation, Values &y) const {
    Values x = read(*operation.x), b, t;
    if (operation.b)
      b = read(*operation.b);
    if (operation.t)
      t = read(*operation.t);
    forEachIndex(y.tensor->sizes, [&](const Index &index) {
      float left = x.at(index), right = operation.b ? b.at(index) : 0;
      float &result = y.at(index);
      switch (operation.mode) {
      case CUDNN_POINTWISE_ADD:
        result = left + right;
        break;
      case CUDNN_POINTWISE_SUB:
        result = left - right;
        break;
      case CUDNN_POINTWISE_MUL:
        result = left * right;
        break;
      case CUDNN_POINTWISE_DIV:
        result = left / right;
        break;
      case CUDNN_POINTWISE_EXP:
        result = std::exp(left);
        break;
      case CUDNN_POINTWISE_LOG:
        result = std::log(left);
        break;
      case CUDNN_POINTWISE_CMP_GE:
        result = left >= right;
        break;
      case CUDNN_POINTWISE_GEN_INDEX:
        result = static_cast<float>(index[operation.axis]);
        break;
      case CUDNN_POINTWISE_BINARY_SELECT:
        result = t.at(index) != 0 ? left : right;
        break;
      default:
        throw std::runtime_error("no such pointwise mode");
      }
    });
  }

  const std::map<int64_t, void *> &addresses;
  const std::map<int64_t, float> &scalars;
  std::map<int64_t, Values> computed;
};

} // namespace

void DnnProgram::run(const std::map<int64_t, void *> &addresses,
                     const std::map<int64_t, float> &scalars) const {
  Run run(addresses, scalars);
  for (const DnnOperation &operation : operations)
    run.execute(operation);
}
