//===- DnnCalls.cpp - The ABI's attention as calls of cuDNN's -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ABI has eight loops over batches, each with a stride for every operand;
// cuDNN has one batch dimension and heads, several of which may share a key. So
// the innermost loop becomes the heads, the next one the batch, and each index
// of the remaining loops becomes a call. Two loops are merged if their strides
// allow it for every operand. For example, six query heads that share three
// keys are a loop over keys around a loop over two heads:
//
//   query: strides 2 d, d -> 6 heads, d apart     key: strides d, 0 -> 3 heads
//
// The ABI's gradient has a separate key gradient for each head, but cuDNN would
// add those of a shared key. For gradients, the loop over a key's heads
// therefore becomes calls.
//
//===----------------------------------------------------------------------===//

#include "cuda/DnnCalls.h"

#include "support/Division.h"

#include <algorithm>

using namespace tprt;
using namespace tprt::cuda;

// Rows are aligned to 16 bytes, which is this many elements.
static constexpr int64_t unit = 8;

namespace {

/// A loop over batches: its size, and the stride of each operand.
struct Loop {
  int64_t size = 1;
  std::map<int64_t, int64_t> strides;

  bool isShared(int64_t operand) const { return strides.at(operand) == 0; }
  /// Whether `outer` and this loop can be merged for `operand`.
  bool continues(const Loop &outer, int64_t operand) const {
    return outer.strides.at(operand) == size * strides.at(operand);
  }
};

/// The loops of a program's attention in cuDNN's terms.
class Nest {
public:
  Nest(const tprt_attention_args &args, const DnnStrides &strides);

  Loop batch, head;
  Loop key; ///< over heads of key and value
  std::vector<Loop> calls;

private:
  /// Removes and returns the innermost remaining loop.
  Loop take();
  /// Merges the loop around `head` into it if all operands but key and value
  /// allow that.
  void foldHeads();
  /// Splits batch and heads of a gradient into calls, of maxScoreBytes each.
  /// A head has so many scores.
  void limitScores(int64_t ofHead);

  const DnnStrides &strides;
  std::vector<Loop> loops; ///< remaining ones, outermost first
};

} // namespace

Nest::Nest(const tprt_attention_args &args, const DnnStrides &strides)
    : strides(strides) {
  for (int d = 0; d < TPRT_ATTENTION_BATCHES; ++d) {
    if (args.batch[d] == 1)
      continue;
    Loop &loop = loops.emplace_back();
    loop.size = args.batch[d];
    for (auto [operand, its] : strides)
      loop.strides[operand] = its->batch[d];
  }
  auto isShared = [&] {
    return head.size > 1 && head.isShared(DnnKey) && head.isShared(DnnValue);
  };
  head = take();
  if (isShared() && strides.contains(DnnGradient)) {
    calls.push_back(head);
    head = take();
  }
  key = head;
  if (isShared() && !strides.contains(DnnGradient)) {
    key.size = 1;
    foldHeads();
  }
  batch = take();
  while (!loops.empty() &&
         std::all_of(strides.begin(), strides.end(), [&](auto entry) {
           return batch.continues(loops.back(), entry.first);
         }))
    batch.size *= take().size;
  calls.insert(calls.end(), loops.begin(), loops.end());
  if (strides.contains(DnnGradient))
    limitScores(args.rows * args.columns);
}

void Nest::limitScores(int64_t ofHead) {
  constexpr int64_t elementBytes = 2;
  int64_t maxHeads =
      std::max<int64_t>(maxScoreBytes / elementBytes / ofHead, 1);
  // The largest part of at most `limit` indices becomes a call.
  auto split = [&](Loop &loop, int64_t limit) {
    int64_t size = std::min(loop.size, limit);
    while (loop.size % size != 0)
      --size;
    Loop &outer = calls.emplace_back(loop);
    outer.size = loop.size / size;
    for (auto &[operand, stride] : outer.strides)
      stride *= size;
    loop.size = size;
  };
  if (batch.size * head.size <= maxHeads)
    return;
  split(batch, std::max<int64_t>(maxHeads / head.size, 1));
  split(head, maxHeads);
  key = head;
}

Loop Nest::take() {
  Loop loop;
  if (loops.empty()) {
    for (auto [operand, its] : strides)
      loop.strides[operand] = 0;
    return loop;
  }
  loop = std::move(loops.back());
  loops.pop_back();
  return loop;
}

void Nest::foldHeads() {
  if (loops.empty())
    return;
  const Loop &outer = loops.back();
  for (auto [operand, its] : strides)
    if (operand != DnnKey && operand != DnnValue &&
        !head.continues(outer, operand))
      return;
  key = take();
  head.size *= key.size;
}

static const char *getName(int64_t operand) {
  switch (operand) {
  case DnnQuery:
    return "query";
  case DnnKey:
    return "key";
  case DnnValue:
    return "value";
  case DnnMask:
    return "mask";
  case DnnOutput:
    return "output";
  case DnnGradient:
    return "output's gradient";
  case DnnQueryGradient:
    return "query's gradient";
  case DnnKeyGradient:
    return "key's gradient";
  default:
    return "value's gradient";
  }
}

/// Rows and columns of an operand.
static std::array<int64_t, 2> getSizes(const tprt_attention_args &args,
                                       int64_t operand) {
  switch (operand) {
  case DnnQuery:
  case DnnQueryGradient:
    return {args.rows, args.depth};
  case DnnKey:
  case DnnKeyGradient:
    return {args.columns, args.depth};
  case DnnValue:
  case DnnValueGradient:
    return {args.columns, args.width};
  case DnnMask:
    return {args.rows, args.columns};
  default:
    return {args.rows, args.width};
  }
}

static DnnShape makeShape(const tprt_attention_args &args, const Nest &nest,
                          int64_t operand,
                          const tprt_attention_strides &strides) {
  const Loop &head =
      operand == DnnKey || operand == DnnValue ? nest.key : nest.head;
  auto [rows, columns] = getSizes(args, operand);
  DnnShape shape = {{nest.batch.size, head.size, rows, columns},
                    {nest.batch.strides.at(operand), head.strides.at(operand),
                     strides.row, strides.col}};
  std::string name = getName(operand);
  if (columns > 1 && strides.col != 1)
    throw executionError("the elements of a row of the " + name +
                         " don't lie side by side");
  for (size_t d = 0; d < 3; ++d) {
    if (shape.sizes[d] > 1 && shape.strides[d] == 0 && operand != DnnMask)
      throw executionError("the " + name + " is shared, not only by heads");
    if (shape.sizes[d] > 1 && shape.strides[d] % unit != 0)
      throw executionError("the rows of the " + name +
                           " aren't aligned to 16 bytes");
    if (shape.strides[d] == 0)
      shape.sizes[d] = 1; // a mask that broadcasts
  }
  // A dimension of size 1 may have any stride; cuDNN gets that of a dense one.
  if (columns == 1)
    shape.strides[3] = 1;
  for (size_t d = 3; d-- > 0;)
    if (shape.sizes[d] == 1)
      shape.strides[d] = shape.sizes[d + 1] * shape.strides[d + 1];
  return shape;
}

AddedMask cuda::layOutAddedMask(const tprt_attention_args &args) {
  AddedMask result;
  result.numRows = 1;
  result.strides.col = 1;
  int64_t rowElements = alignTo(args.columns, unit);
  auto add = [&](int64_t size, int64_t given) {
    if (size == 1 || given == 0)
      return int64_t(0);
    int64_t stride = result.numRows * rowElements;
    result.numRows *= size;
    return stride;
  };
  result.strides.row = add(args.rows, args.mask_strides.row);
  for (int d = TPRT_ATTENTION_BATCHES; d-- > 0;)
    result.strides.batch[d] = add(args.batch[d], args.mask_strides.batch[d]);
  constexpr int64_t elementBytes = 2;
  result.numBytes = result.numRows * rowElements * elementBytes;
  return result;
}

DnnCalls cuda::toDnnCalls(const tprt_attention_args &args,
                          const DnnStrides &strides) {
  if (args.dtype != TPRT_F16 && args.dtype != TPRT_BF16)
    throw executionError("it is neither f16 nor bf16");
  if (args.depth % unit != 0 || args.width % unit != 0)
    throw executionError("the sizes of heads aren't multiples of 8");
  if (std::min({args.rows, args.columns, args.depth, args.width}) == 0 ||
      std::find(std::begin(args.batch), std::end(args.batch), 0) !=
          std::end(args.batch))
    throw executionError("there is nothing to compute");

  Nest nest(args, strides);
  DnnCalls result;
  DnnAttention &attention = result.attention;
  attention.type =
      args.dtype == TPRT_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  attention.scale = static_cast<float>(args.scale);
  attention.causal = args.causal != 0;
  for (auto [operand, its] : strides)
    attention.operands[operand] = makeShape(args, nest, operand, *its);
  std::array<int64_t, 4> rows = {nest.batch.size, nest.head.size, args.rows, 1};
  attention.operands[DnnStatistics] = DnnShape::makeDense(rows);
  if (strides.contains(DnnGradient)) {
    attention.operands[DnnRowSums] = DnnShape::makeDense(rows);
    rows[3] = args.width;
    attention.operands[DnnOutput] = DnnShape::makeDense(rows);
  }

  // A call for each index of the remaining loops.
  std::map<int64_t, int64_t> first;
  for (auto [operand, its] : strides)
    first[operand] = 0;
  result.offsets = {first};
  for (const Loop &loop : nest.calls) {
    std::vector<std::map<int64_t, int64_t>> all;
    for (const std::map<int64_t, int64_t> &outer : result.offsets)
      for (int64_t i = 0; i < loop.size; ++i) {
        std::map<int64_t, int64_t> &inner = all.emplace_back(outer);
        for (auto &[operand, offset] : inner) {
          offset += i * loop.strides.at(operand);
          if (offset % unit != 0)
            throw executionError("the rows of the " +
                                 std::string(getName(operand)) +
                                 " aren't aligned to 16 bytes");
        }
      }
    result.offsets = std::move(all);
  }
  return result;
}
