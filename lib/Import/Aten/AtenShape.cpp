//===- AtenShape.cpp - reshapes, slices, concatenations -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// view, flatten, unsqueeze, …: PyTorch has computed the shape.
static LogicalResult reshape(AtenCall &call, ImportBuilder &b) {
  return call.result(b.reshape(call.tensor("self"), call.resultShape()));
}

static LogicalResult broadcast(AtenCall &call, ImportBuilder &b) {
  return call.result(broadcast(b, call.tensor("self"), call.resultShape()));
}

static LogicalResult broadcastTensors(AtenCall &call, ImportBuilder &b) {
  for (auto [i, tensor] : llvm::enumerate(call.tensors("tensors")))
    call.setResult(i, broadcast(b, tensor, call.resultShape(i)));
  return success();
}

static LogicalResult swapDims(AtenCall &call, ImportBuilder &b, StringRef first,
                              StringRef second) {
  Value self = call.tensor("self");
  int64_t rank = rankOf(self);
  if (rank == 0)
    return call.result(self);
  return call.result(
      b.swap(self, call.dim(first, rank), call.dim(second, rank)));
}

static LogicalResult transpose(AtenCall &call, ImportBuilder &b) {
  return swapDims(call, b, "dim0", "dim1");
}
static LogicalResult swapAxes(AtenCall &call, ImportBuilder &b) {
  return swapDims(call, b, "axis0", "axis1");
}

static LogicalResult permute(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(b.transpose(self, call.dims("dims", rankOf(self))));
}

/// t, .T: all dimensions in reverse.
static LogicalResult reverseDims(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  auto permutation =
      llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rankOf(self))));
  return call.result(b.transpose(self, permutation));
}

/// .mT
static LogicalResult matrixTranspose(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(b.swap(self, rankOf(self) - 2, rankOf(self) - 1));
}

static LogicalResult moveDims(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t rank = rankOf(self);
  if (rank == 0)
    return call.result(self);
  auto source = call.dims("source", rank);
  auto target = call.dims("destination", rank);
  llvm::SmallVector<int64_t> permutation(rank, -1);
  for (auto [from, to] : llvm::zip_equal(source, target))
    permutation[to] = from;
  int64_t next = 0;
  for (int64_t &entry : permutation) {
    if (entry >= 0)
      continue;
    while (llvm::is_contained(source, next))
      ++next;
    entry = next++;
  }
  return call.result(b.transpose(self, permutation));
}

/// Puts a new dimension of size `count` before each dimension and merges them.
static Value tile(ImportBuilder &b, Value v, ArrayRef<int64_t> counts) {
  llvm::SmallVector<int64_t> shape(counts.size() - rankOf(v), 1);
  llvm::append_range(shape, shapeOf(v));
  llvm::SmallVector<int64_t> split, expanded, merged;
  for (auto [count, size] : llvm::zip_equal(counts, shape)) {
    if (count != 1) {
      split.push_back(1);
      expanded.push_back(count);
    }
    split.push_back(size);
    expanded.push_back(size);
    merged.push_back(count * size);
  }
  return b.reshape(broadcast(b, b.reshape(v, split), expanded), merged);
}

static LogicalResult repeat(AtenCall &call, ImportBuilder &b) {
  return call.result(tile(b, call.tensor("self"), call.integers("repeats")));
}

static LogicalResult tileOp(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  auto counts = call.integers("dims");
  if (int64_t(counts.size()) < rankOf(self))
    counts.insert(counts.begin(), rankOf(self) - counts.size(), 1);
  return call.result(tile(b, self, counts));
}

static LogicalResult repeatInterleave(AtenCall &call, ImportBuilder &b) {
  if (!call.has("repeats") || call.isTensor("repeats"))
    return call.unsupported("with a tensor of repeats: the size of the result "
                            "depends on the data");
  Value v = call.tensor("self");
  int64_t count = call.integer("repeats");
  int64_t dim = 0;
  if (call.has("dim"))
    dim = call.dim("dim", rankOf(v));
  else
    v = b.reshape(v, {typeOf(v).getNumElements()});
  auto split = llvm::to_vector(shapeOf(v));
  split.insert(split.begin() + dim + 1, 1);
  auto expanded = split;
  expanded[dim + 1] = count;
  v = broadcast(b, b.reshape(v, split), expanded);
  return call.result(b.reshape(v, call.resultShape()));
}

static LogicalResult slice(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t size = shapeOf(self)[dim];
  int64_t start = call.has("start") ? call.integer("start") : 0;
  start = std::clamp(start < 0 ? start + size : start, int64_t(0), size);
  return call.result(
      b.slice(self, dim, start, call.resultShape()[dim], call.integer("step")));
}

static LogicalResult narrow(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t start = call.integer("start");
  if (start < 0)
    start += shapeOf(self)[dim];
  return call.result(b.slice(self, dim, start, call.integer("length")));
}

static LogicalResult select(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t index = call.dim("index", shapeOf(self)[dim]);
  return call.result(
      b.reshape(b.slice(self, dim, index, 1), call.resultShape()));
}

/// chunk, split, …: the results' sizes say where each begins.
static LogicalResult split(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t start = 0;
  for (unsigned i = 0; i < call.numResults(); ++i) {
    int64_t size = call.resultShape(i)[dim];
    call.setResult(i, b.slice(self, dim, start, size));
    start += size;
  }
  return success();
}

/// Splits at `indices`, where parts begin; they may overlap.
static LogicalResult splitAt(AtenCall &call, ImportBuilder &b) {
  if (!call.has("indices"))
    return split(call, b);
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t size = shapeOf(self)[dim];
  auto indices = call.integers("indices");
  for (unsigned i = 0; i < call.numResults(); ++i) {
    int64_t start = i == 0 ? 0 : indices[i - 1];
    start = std::clamp(start < 0 ? start + size : start, int64_t(0), size);
    call.setResult(i, b.slice(self, dim, start, call.resultShape(i)[dim]));
  }
  return success();
}

static LogicalResult unbind(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  for (unsigned i = 0; i < call.numResults(); ++i)
    call.setResult(i, b.reshape(b.slice(self, dim, i, 1), call.resultShape(i)));
  return success();
}

static LogicalResult concat(AtenCall &call, ImportBuilder &b) {
  int64_t rank = call.resultType().getRank();
  int64_t dim = call.dim("dim", rank);
  llvm::SmallVector<Value> parts;
  // PyTorch skips empty vectors among tensors of another rank.
  for (Value part : call.tensors("tensors"))
    if (rankOf(part) == rank && shapeOf(part)[dim] != 0)
      parts.push_back(castTo(b, part, call.resultElement()));
  if (parts.empty())
    return call.result(b.splat(call.resultShape(), call.resultElement(),
                               Scalar::of(int64_t(0))));
  return call.result(b.concat(parts, dim));
}

static LogicalResult stack(AtenCall &call, ImportBuilder &b) {
  int64_t dim = call.dim("dim", call.resultType().getRank());
  llvm::SmallVector<int64_t> shape(call.resultShape());
  shape[dim] = 1;
  auto parts = llvm::map_to_vector(call.tensors("tensors"), [&](Value part) {
    return b.reshape(castTo(b, part, call.resultElement()), shape);
  });
  return call.result(b.concat(parts, dim));
}

template <bool upper>
static LogicalResult triangle(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t rank = rankOf(self);
  Value keep = b.triangle(shapeOf(self)[rank - 2], shapeOf(self)[rank - 1],
                          call.integer("diagonal"), upper);
  if (isBool(self))
    return call.result(binary<nn::LogicalAndOp>(b, self, keep));
  Value zero = b.scalar(elementOf(self), Scalar::of(int64_t(0)));
  return call.result(select(b, keep, self, zero));
}

static LogicalResult flip(AtenCall &call, ImportBuilder &b) {
  Value v = call.tensor("self");
  if (rankOf(v) == 0)
    return call.result(v);
  for (int64_t dim : call.dims("dims", rankOf(v))) {
    auto order =
        llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, shapeOf(v)[dim])));
    v = b.pick(v, dim, order);
  }
  return call.result(v);
}

static LogicalResult roll(AtenCall &call, ImportBuilder &b) {
  Value v = call.tensor("self");
  auto shape = llvm::to_vector(shapeOf(v));
  auto dims = call.dims("dims", rankOf(v));
  if (dims.empty()) {
    v = b.reshape(v, {typeOf(v).getNumElements()});
    dims = {0};
  }
  for (auto [shift, dim] : llvm::zip_equal(call.integers("shifts"), dims)) {
    int64_t size = shapeOf(v)[dim];
    if (size == 0)
      continue;
    int64_t first = ((shift % size) + size) % size;
    if (first == 0)
      continue;
    v = b.concat({b.slice(v, dim, size - first, first),
                  b.slice(v, dim, 0, size - first)},
                 dim);
  }
  return call.result(b.reshape(v, shape));
}

/// Borders that repeat elements: mirrored at the outermost one, this element
/// alone, or those of the other end of what negative amounts leave.
static LogicalResult padByElements(AtenCall &call, ImportBuilder &b, Value v,
                                   StringRef mode) {
  auto amounts = call.integers("pad");
  for (size_t i = 0; i + 1 < amounts.size(); i += 2) {
    int64_t dim = rankOf(v) - 1 - i / 2, size = shapeOf(v)[dim];
    int64_t before = amounts[i], after = amounts[i + 1];
    if (before == 0 && after == 0)
      continue;
    int64_t first = std::max<int64_t>(-before, 0),
            end = size - std::max<int64_t>(-after, 0);
    if (mode == "circular" && first >= end)
      return call.unsupported("that leaves no elements of a dimension");
    auto getSource = [&](int64_t to) {
      int64_t from = to - before;
      if (mode == "circular")
        return first + llvm::mod(from - first, end - first);
      if (mode == "reflect")
        from = from < size ? std::abs(from) : 2 * (size - 1) - from;
      return std::clamp<int64_t>(from, 0, size - 1);
    };
    v = b.pick(v, dim,
               llvm::map_to_vector(llvm::seq<int64_t>(0, before + size + after),
                                   getSource));
  }
  return call.result(v);
}

/// Constant padding: a block of the value before and after each dimension.
/// Each element of the result is a window of one element, so that the last
/// dimensions can be split.
static Value padByWindows(ImportBuilder &b, Value v, ArrayRef<int64_t> amounts,
                          double value) {
  size_t n = amounts.size() / 2;
  llvm::SmallVector<int64_t> shape(shapeOf(v)), ones(n, 1), before;
  for (size_t i = n; i-- > 0;) {
    before.push_back(amounts[2 * i]);
    shape[shape.size() - 1 - i] += amounts[2 * i] + amounts[2 * i + 1];
  }
  llvm::SmallVector<int64_t> windows(shape);
  windows.insert(windows.end() - n, n, 1);
  return b.reshape(nn::WindowsOp::create(b, typeOf(v).clone(windows), v, ones,
                                         before, ones, llvm::APFloat(value)),
                   shape);
}

static LogicalResult pad(AtenCall &call, ImportBuilder &b) {
  std::string mode = call.string("mode");
  Value v = call.tensor("self");
  if (!mode.empty() && mode != "constant")
    return padByElements(call, b, v, mode);
  Scalar value =
      call.has("value") ? call.scalar("value") : Scalar::of(int64_t(0));
  auto amounts = call.integers("pad");
  if (isFloat(v) && !amounts.empty() && typeOf(v).getNumElements() > 0 &&
      llvm::all_of(amounts, [](int64_t amount) { return amount >= 0; }))
    return call.result(padByWindows(b, v, amounts, value.real));
  for (size_t i = 0; i + 1 < amounts.size(); i += 2) {
    int64_t dim = rankOf(v) - 1 - i / 2;
    llvm::SmallVector<Value> parts;
    auto block = [&](int64_t size) {
      llvm::SmallVector<int64_t> shape(shapeOf(v));
      shape[dim] = size;
      parts.push_back(b.splat(shape, elementOf(v), value));
    };
    // A negative amount cuts elements off.
    int64_t before = amounts[i], after = amounts[i + 1];
    int64_t start = std::max<int64_t>(0, -before);
    int64_t size = shapeOf(v)[dim] - start - std::max<int64_t>(0, -after);
    v = b.slice(v, dim, start, size);
    if (before > 0)
      block(before);
    parts.push_back(v);
    if (after > 0)
      block(after);
    v = b.concat(parts, dim);
  }
  return call.result(v);
}

void mlir::tp::addShapeOps(AtenTable &table) {
  table["view"] = {
      .run = reshape, .reads = "self", .inType = "size", .refuses = "dtype"};
  table["reshape"] = {.run = reshape, .reads = "self", .inType = "shape"};
  table["_unsafe_view"] = {.run = reshape, .reads = "self", .inType = "size"};
  table["flatten"] = {
      .run = reshape, .reads = "self", .inType = "start_dim end_dim"};
  table["unflatten"] = {.run = reshape, .reads = "self", .inType = "dim sizes"};
  table["unsqueeze"] = {.run = reshape, .reads = "self", .inType = "dim"};
  table["squeeze"] = {.run = reshape, .reads = "self", .inType = "dim"};
  table["view_as"] = {.run = reshape, .reads = "self", .inType = "other"};
  table["reshape_as"] = {.run = reshape, .reads = "self", .inType = "other"};
  table["ravel"] = {reshape, "self"};
  table["expand"] = {.run = broadcast,
                     .reads = "self",
                     .inType = "size",
                     .noEffect = "implicit"};
  table["expand_as"] = {.run = broadcast, .reads = "self", .inType = "other"};
  table["broadcast_to"] = {.run = broadcast, .reads = "self", .inType = "size"};
  table["broadcast_tensors"] = {broadcastTensors, "tensors"};
  table["transpose"] = {transpose, "self dim0 dim1"};
  table["swapdims"] = {transpose, "self dim0 dim1"};
  table["swapaxes"] = {swapAxes, "self axis0 axis1"};
  table["permute"] = {permute, "self dims"};
  table["t"] = {reverseDims, "self"};
  table["numpy_T"] = {reverseDims, "self"};
  table["mT"] = {matrixTranspose, "self"};
  table["movedim"] = {moveDims, "self source destination"};
  table["moveaxis"] = {moveDims, "self source destination"};
  table["repeat"] = {repeat, "self repeats"};
  table["tile"] = {tileOp, "self dims"};
  table["repeat_interleave"] = {.run = repeatInterleave,
                                .reads = "self repeats dim",
                                .noEffect = "output_size"};
  table["slice"] = {
      .run = slice, .reads = "self dim start step", .inType = "end"};
  table["narrow"] = {narrow, "self dim start length"};
  table["select"] = {select, "self dim index"};
  table["chunk"] = {.run = split, .reads = "self dim", .inType = "chunks"};
  table["split"] = {
      .run = split, .reads = "self dim", .inType = "split_size split_sizes"};
  table["split_with_sizes"] = {
      .run = split, .reads = "self dim", .inType = "split_sizes"};
  for (StringRef name : {"split_with_sizes_copy", "unsafe_split_with_sizes"})
    table[name] = {.run = split, .reads = "self dim", .inType = "split_sizes"};
  table["unsafe_split"] = {
      .run = split, .reads = "self dim", .inType = "split_size"};
  table["unsafe_chunk"] = {
      .run = split, .reads = "self dim", .inType = "chunks"};
  table["tensor_split"] = {.run = splitAt,
                           .reads = "self dim indices",
                           .inType = "sections",
                           .refuses = "tensor_indices_or_sections"};
  table["unbind"] = {unbind, "self dim"};
  table["cat"] = {concat, "tensors dim"};
  table["concat"] = {concat, "tensors dim"};
  table["concatenate"] = {concat, "tensors dim"};
  table["stack"] = {stack, "tensors dim"};
  table["tril"] = {triangle<false>, "self diagonal"};
  table["triu"] = {triangle<true>, "self diagonal"};
  table["flip"] = {flip, "self dims"};
  table["roll"] = {roll, "self shifts dims"};
  table["constant_pad_nd"] = {pad, "self pad value"};
  table["pad"] = {pad, "self pad mode value"};
}
