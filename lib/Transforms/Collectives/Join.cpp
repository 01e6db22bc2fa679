//===- Join.cpp - Several collectives as one ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of one kind, group and element type are flattened, concatenated,
// moved at once, and taken apart again. As many bytes move as before; this
// saves the fixed time that each collective takes.
//
//   %2 = tp.all_reduce sum %0           %2 = concat (reshape %0), (reshape %1)
//   %3 = tp.all_reduce sum %1           %3 = tp.all_reduce sum %2
//                                       %4 = reshape (slice %3 …), …
//
// In gathers and reduce-scatters, row r of the buffer is what rank r gives or
// gets. Uneven blocks are padded with zeros to the size of the first one, as in
// PyTorch's FSDP.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Interfaces/TensorBuilder.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// How a tensor is gathered or scattered.
struct Split {
  int64_t dim, ranks;
  /// The size of the largest block along `dim`.
  int64_t blockSize;
};

} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The split of a gather or a reduce-scatter; nullopt if the blocks, each
/// padded to the largest one, don't make up the global dimension in order.
static std::optional<Split> getSplit(Operation *op) {
  auto gather = dyn_cast<AllGatherOp>(op);
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  if (!gather && !scatter)
    return std::nullopt;
  AxisListAttr axes = gather ? gather.getAxes() : scatter.getAxes();
  int64_t dim = gather ? gather.getDim() : scatter.getDim();
  RankedTensorType whole =
      typeOf(gather ? op->getResult(0) : op->getOperand(0));
  if (!axes.getSegments().empty())
    return std::nullopt;
  auto collective = cast<CollectiveOpInterface>(op);
  MeshOp mesh = lookupMesh(op, collective.getMeshAttr());
  int64_t size = whole.getDimSize(dim);
  // Each further axis cuts the blocks again.
  int64_t blockSize = size;
  for (AxisRefAttr axis : axes.getAxes())
    blockSize = llvm::divideCeilSigned(blockSize, mesh.getAxesSize(axis));
  int64_t ranks = mesh.getAxesSize(axes.getAxes());
  if (axes.getAxes().size() > 1 && blockSize * ranks != size)
    return std::nullopt;
  return Split{dim, ranks, blockSize};
}

std::optional<JoinKey> collectives::getJoinKey(Operation *op, bool mayFill) {
  if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op))
    return std::nullopt;
  bool isReduced = isa<AllReduceOp>(op);
  RankedTensorType whole =
      typeOf(isa<AllGatherOp>(op) ? op->getResult(0) : op->getOperand(0));
  std::optional<Split> split = getSplit(op);
  if (whole.getNumElements() == 0 || (!isReduced && !split))
    return std::nullopt;
  if (!isReduced && !mayFill &&
      split->blockSize * split->ranks != whole.getDimSize(split->dim))
    return std::nullopt;
  NamedAttrList meaning(getMeaning(op));
  meaning.erase("dim");
  meaning.set("op",
              StringAttr::get(op->getContext(), op->getName().getStringRef()));
  return JoinKey(meaning.getDictionary(op->getContext()),
                 whole.getElementType());
}

namespace {

class Joiner {
public:
  explicit Joiner(ArrayRef<CollectiveOpInterface> list)
      : members(list), b(members.back()), loc(members.back().getLoc()),
        tensors(TensorBuilder::get(members.back())) {}

  void run() {
    CollectiveOpInterface first = members.front(), last = members.back();
    remarkRewrite(last, "Bucket",
                  std::to_string(members.size()) + " " +
                      last.getCollectiveKind().str() + " joined");
    SmallVector<Value> parts;
    if (isa<AllReduceOp>(first.getOperation()))
      parts = reduce();
    else if (isa<AllGatherOp>(first.getOperation()))
      parts = gather();
    else
      parts = scatter();
    for (auto [member, part] : llvm::zip_equal(members, parts))
      member->getResult(0).replaceAllUsesWith(part);
    for (CollectiveOpInterface member : members)
      member.erase();
  }

private:
  SmallVector<Value> reduce() {
    auto first = cast<AllReduceOp>(members.front().getOperation());
    SmallVector<Value> flat;
    for (CollectiveOpInterface member : members) {
      Value operand = member->getOperand(0);
      flat.push_back(reshape(operand, {typeOf(operand).getNumElements()}));
    }
    auto reduced = createFor<AllReduceOp>(members, b, loc, concat(flat, 0),
                                          first.getKind(), first.getMeshAttr(),
                                          first.getAxes());
    SmallVector<Value> parts;
    int64_t offset = 0;
    for (CollectiveOpInterface member : members) {
      RankedTensorType type = typeOf(member->getResult(0));
      Value part = slice(reduced, 0, offset, type.getNumElements());
      parts.push_back(reshape(part, type.getShape()));
      offset += type.getNumElements();
    }
    return parts;
  }

  SmallVector<Value> gather() {
    auto first = cast<AllGatherOp>(members.front().getOperation());
    SmallVector<Value> flat;
    for (CollectiveOpInterface member : members) {
      Split split = *getSplit(member);
      Value block = fill(member->getOperand(0), split.dim, split.blockSize);
      flat.push_back(reshape(block, {typeOf(block).getNumElements()}));
    }
    Value all = concat(flat, 0);
    int64_t ranks = getSplit(first)->ranks;
    int64_t size = typeOf(all).getDimSize(0);
    auto gathered = createFor<AllGatherOp>(
        members, b, loc, typeOf(all).clone({ranks * size}), all,
        b.getI64IntegerAttr(0), first.getMeshAttr(), first.getAxes());
    Value rows = reshape(gathered, {ranks, size});
    SmallVector<Value> parts;
    int64_t offset = 0;
    for (CollectiveOpInterface member : members) {
      Split split = *getSplit(member);
      RankedTensorType whole = typeOf(member->getResult(0));
      SmallVector<int64_t> shape(whole.getShape());
      shape[split.dim] = split.blockSize;
      shape.insert(shape.begin(), ranks);
      int64_t own = ShapedType::getNumElements(shape) / ranks;
      Value part = reshape(slice(rows, 1, offset, own), shape);
      // Move the ranks' dimension in front of the gathered one.
      part = moveDim(part, 0, split.dim);
      shape.assign(whole.getShape().begin(), whole.getShape().end());
      shape[split.dim] = ranks * split.blockSize;
      part = reshape(part, shape);
      parts.push_back(slice(part, split.dim, 0, whole.getDimSize(split.dim)));
      offset += own;
    }
    return parts;
  }

  SmallVector<Value> scatter() {
    auto first = cast<ReduceScatterOp>(members.front().getOperation());
    int64_t ranks = getSplit(first)->ranks;
    SmallVector<Value> rows;
    for (CollectiveOpInterface member : members) {
      Split split = *getSplit(member);
      Value whole =
          fill(member->getOperand(0), split.dim, ranks * split.blockSize);
      SmallVector<int64_t> shape(typeOf(whole).getShape());
      shape[split.dim] = split.blockSize;
      shape.insert(shape.begin() + split.dim, ranks);
      whole = moveDim(reshape(whole, shape), split.dim, 0);
      rows.push_back(
          reshape(whole, {ranks, typeOf(whole).getNumElements() / ranks}));
    }
    Value all = concat(rows, 1);
    int64_t size = typeOf(all).getDimSize(1);
    auto scattered = createFor<ReduceScatterOp>(
        members, b, loc, typeOf(all).clone({1, size}), all, first.getKind(),
        b.getI64IntegerAttr(0), first.getMeshAttr(), first.getAxes());
    Value flat = reshape(scattered, {size});
    SmallVector<Value> parts;
    int64_t offset = 0;
    for (CollectiveOpInterface member : members) {
      Split split = *getSplit(member);
      RankedTensorType block = typeOf(member->getResult(0));
      SmallVector<int64_t> shape(block.getShape());
      shape[split.dim] = split.blockSize;
      int64_t own = ShapedType::getNumElements(shape);
      Value part = reshape(slice(flat, 0, offset, own), shape);
      parts.push_back(slice(part, split.dim, 0, block.getDimSize(split.dim)));
      offset += own;
    }
    return parts;
  }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return tensors.reshape(b, loc, value, shape);
  }

  Value slice(Value value, int64_t dim, int64_t start, int64_t size) {
    return tensors.slice(b, loc, value, dim, start, size);
  }

  Value concat(ArrayRef<Value> parts, int64_t dim) {
    return tensors.concat(b, loc, parts, dim);
  }

  /// Pads `value` with zeros at the end of `dim`, to `size` elements.
  Value fill(Value value, int64_t dim, int64_t size) {
    RankedTensorType type = typeOf(value);
    int64_t missing = size - type.getDimSize(dim);
    if (missing == 0)
      return value;
    Attribute zeros = b.getZeroAttr(resize(type, dim, missing));
    return concat({value, tensors.constant(b, loc, cast<ElementsAttr>(zeros))},
                  dim);
  }

  Value moveDim(Value value, int64_t from, int64_t to) {
    auto permutation =
        llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank()));
    permutation.erase(permutation.begin() + from);
    permutation.insert(permutation.begin() + to, from);
    return tensors.transpose(b, loc, value, permutation);
  }

  SmallVector<CollectiveOpInterface> members;
  OpBuilder b;
  Location loc;
  const TensorBuilder &tensors;
};

} // namespace

void collectives::join(ArrayRef<CollectiveOpInterface> members) {
  Joiner(members).run();
}
