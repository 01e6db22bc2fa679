//===- FakeKernels.cpp - What kernels do without a device ----------------===//

#include "Kernels.h"

#include "Emulator.h"

#include "tprt/Dtype.h"
#include "tprt/abi.h"

#include <algorithm>
#include <cmath>
#include <dlfcn.h>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

namespace {

// The kernels of lib/Cuda/*.cu have no form for the host: here they are written
// a second time, as plainly as possible.

/// The arguments of Reduce.cu's.
struct ReduceArguments {
  const void *operands[32];
  void *results[32];
  int64_t count;
  int32_t numOperands, numResults;
};

template <typename T, typename Acc>
void reduceElements(const std::string &reduction,
                    const ReduceArguments &arguments) {
  auto get = [&](int32_t operand, int64_t i) {
    return castElement<Acc>(
        static_cast<const T *>(arguments.operands[operand])[i]);
  };
  for (int64_t i = 0; i < arguments.count; ++i) {
    Acc acc = get(0, i);
    for (int32_t j = 1; j < arguments.numOperands; ++j) {
      Acc value = get(j, i);
      if (reduction == "max")
        acc = acc > value || acc != acc ? acc : value;
      else if (reduction == "min")
        acc = acc < value || acc != acc ? acc : value;
      else if (reduction == "product")
        acc *= value;
      else
        acc += value;
    }
    if (reduction == "avg")
      acc /= static_cast<Acc>(arguments.numOperands);
    for (int32_t j = 0; j < arguments.numResults; ++j)
      static_cast<T *>(arguments.results[j])[i] = castElement<T>(acc);
  }
}

/// tprt_reduce_REDUCTION_DTYPE.
CUfunc_st makeReduction(const std::string &name) {
  size_t split = name.rfind('_');
  std::string dtype = name.substr(split + 1);
  std::string reduction = name.substr(12, split - 12);
  auto run = [=](uint32_t, uint32_t, void *const *arguments) {
    const auto &reduce = *static_cast<const ReduceArguments *>(arguments[0]);
    size_t width = dtype == "i1"           ? 1
                   : dtype.ends_with("16") ? 2
                   : dtype.ends_with("64") ? 8
                                           : 4;
    for (int32_t j = 0; j < reduce.numOperands; ++j)
      if (!checkMemory(reduce.operands[j], reduce.count * width))
        return;
    for (int32_t j = 0; j < reduce.numResults; ++j)
      if (!checkMemory(reduce.results[j], reduce.count * width))
        return;
    if (dtype == "f32")
      reduceElements<float, float>(reduction, reduce);
    else if (dtype == "f64")
      reduceElements<double, double>(reduction, reduce);
    else if (dtype == "f16")
      reduceElements<Half, float>(reduction, reduce);
    else if (dtype == "bf16")
      reduceElements<BFloat16, float>(reduction, reduce);
    else if (dtype == "i64")
      reduceElements<int64_t, int64_t>(reduction, reduce);
    else if (dtype == "i32")
      reduceElements<int32_t, int32_t>(reduction, reduce);
    else
      reduceElements<uint8_t, uint8_t>(reduction, reduce);
  };
  return {name, 0, sizeof(ReduceArguments), 0, run};
}

/// The arguments of Attention.cu's.
struct AttentionArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

template <typename T, typename Acc>
void attend(const AttentionArguments &a) {
  const tprt_attention_args &args = a.args;
  int64_t numBatches = 1;
  for (int64_t size : args.batch)
    numBatches *= size;
  auto getOffset = [&](const tprt_attention_strides &strides, int64_t index) {
    int64_t offset = 0;
    for (int d = TPRT_ATTENTION_BATCHES; d-- > 0; index /= args.batch[d])
      offset += index % args.batch[d] * strides.batch[d];
    return offset;
  };
  auto get = [&](const void *data, int64_t i) -> Acc {
    if (!checkMemory(static_cast<const T *>(data) + i, sizeof(T)))
      return 0;
    return castElement<Acc>(static_cast<const T *>(data)[i]);
  };
  std::vector<Acc> scores(args.columns);
  for (int64_t batch = 0; batch < numBatches; ++batch)
    for (int64_t i = 0; i < args.rows; ++i) {
      int64_t columns =
          args.causal ? std::min(args.columns, i + 1) : args.columns;
      Acc highest = -INFINITY, sum = 0;
      for (int64_t j = 0; j < columns; ++j) {
        Acc dot = 0;
        for (int64_t d = 0; d < args.depth; ++d)
          dot += get(a.query, getOffset(args.query, batch) +
                                  i * args.query.row + d * args.query.col) *
                 get(a.key, getOffset(args.key, batch) + j * args.key.row +
                                d * args.key.col);
        dot *= static_cast<Acc>(args.scale);
        int64_t at = getOffset(args.mask_strides, batch) +
                     i * args.mask_strides.row + j * args.mask_strides.col;
        if (args.mask == TPRT_ADDED_MASK)
          dot += get(a.mask, at);
        else if (args.mask == TPRT_BOOLEAN_MASK &&
                 !static_cast<const uint8_t *>(a.mask)[at])
          dot = -INFINITY;
        scores[j] = dot;
        highest = std::max(highest, dot);
      }
      for (int64_t j = 0; j < columns; ++j)
        sum += scores[j] = std::exp(scores[j] - highest);
      for (int64_t e = 0; e < args.width; ++e) {
        Acc value = 0;
        for (int64_t j = 0; j < columns; ++j)
          value += scores[j] *
                   get(a.value, getOffset(args.value, batch) +
                                    j * args.value.row + e * args.value.col);
        T *result = static_cast<T *>(a.output) + getOffset(args.output, batch) +
                    i * args.output.row + e * args.output.col;
        if (checkMemory(result, sizeof(T)))
          *result = castElement<T>(value / sum);
      }
    }
}

/// tprt_attention_DTYPE.
CUfunc_st makeAttention(const std::string &name) {
  std::string dtype = name.substr(name.rfind('_') + 1);
  auto run = [=](uint32_t, uint32_t, void *const *arguments) {
    const auto &attention =
        *static_cast<const AttentionArguments *>(arguments[0]);
    if (dtype == "f32")
      attend<float, float>(attention);
    else if (dtype == "f64")
      attend<double, double>(attention);
    else if (dtype == "f16")
      attend<Half, float>(attention);
    else
      attend<BFloat16, float>(attention);
  };
  return {name, 0, sizeof(AttentionArguments), 0, run};
}

} // namespace

CUfunc_st fake::makeOwn(const std::string &name) {
  return name.starts_with("tprt_reduce_") ? makeReduction(name)
                                          : makeAttention(name);
}

bool fake::findEmulated(void *handle, const std::string &name,
                        CUfunc_st &function) {
  auto kernel =
      reinterpret_cast<tp_emulated_kernel>(::dlsym(handle, name.c_str()));
  auto *sharedBytes = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_shared_bytes").c_str()));
  auto *numArguments = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_num_arguments").c_str()));
  if (!kernel || !sharedBytes || !numArguments)
    return false;
  auto shared = static_cast<uint32_t>(*sharedBytes);
  function = {name, static_cast<size_t>(*numArguments), 0, shared,
              [=](uint32_t grid, uint32_t block, void *const *arguments) {
                runEmulated(kernel, grid, block, shared, arguments);
              }};
  return true;
}
