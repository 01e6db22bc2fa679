//===- RoutingOps.cpp - tprt.sort, tprt.grouped_gemm ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DenseBuffers.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tprt;

//===----------------------------------------------------------------------===//
// GroupedGemmOp
//===----------------------------------------------------------------------===//

/// Calls `visit` with each dimension of the operands with maps: its size and
/// its loop.
static void forEachDim(GroupedGemmOp op,
                       function_ref<void(int64_t size, unsigned loop)> visit) {
  for (auto [number, operand] : llvm::enumerate(op.getMapped()))
    for (auto [size, expr] :
         llvm::zip_equal(cast<ShapedType>(operand->get().getType()).getShape(),
                         op.getMap(number).getResults()))
      visit(size, cast<AffineDimExpr>(expr).getPosition());
}

SmallVector<int64_t> GroupedGemmOp::getLoopSizes() {
  SmallVector<int64_t> sizes(4, 0);
  forEachDim(*this, [&](int64_t size, unsigned loop) { sizes[loop] = size; });
  return sizes;
}

/// An upper bound: all rows are in groups.
int64_t GroupedGemmOp::getFlops() {
  SmallVector<int64_t> sizes = getLoopSizes();
  return 2 * sizes[Row] * sizes[Column] * sizes[Depth];
}

int64_t GroupedGemmOp::getTouchedBytes() {
  return llvm::sum_of(
      llvm::map_range(getOperation()->getOperandTypes(), tp::getTensorBytes),
      int64_t(0));
}

LogicalResult GroupedGemmOp::verify() {
  Type element = getElementTypeOrSelf(getA().getType());
  if (!isa<Float32Type, Float64Type, Float16Type, BFloat16Type>(element))
    return emitOpError("computes f32, f64, f16 and bf16, not ") << element;
  for (Value operand : {getB(), getOutput()})
    if (getElementTypeOrSelf(operand.getType()) != element)
      return emitOpError("has operands of ")
             << element << " and " << getElementTypeOrSelf(operand.getType());
  if (getMaps().size() != 3)
    return emitOpError("needs 3 maps, has ") << getMaps().size();
  for (auto [number, operand] : llvm::enumerate(getMapped())) {
    AffineMap map = getMap(number);
    if (map.getNumDims() != 4 || !map.isProjectedPermutation() ||
        map.getNumResults() !=
            cast<ShapedType>(operand->get().getType()).getRank())
      return emitOpError("doesn't index operand ")
             << operand->getOperandNumber() << " by " << getMaps()[number];
  }
  auto isIndexedBy = [&](unsigned number, ArrayRef<Loop> loops, bool inOrder) {
    AffineMap map = getMap(number);
    if (map.getNumResults() != loops.size())
      return false;
    return llvm::all_of(llvm::enumerate(loops), [&](auto loop) {
      return inOrder ? map.getDimPosition(loop.index()) == loop.value()
                     : map.isFunctionOfDim(loop.value());
    });
  };
  bool isOneForm =
      isIndexedBy(0, {Row, Depth}, false) &&
      (sumsRows() ? isIndexedBy(1, {Row, Column}, false) &&
                        isIndexedBy(2, {Group, Depth, Column}, true)
                  : isIndexedBy(1, {Group, Depth, Column}, false) &&
                        isIndexedBy(2, {Row, Column}, true));
  if (!isOneForm)
    return emitOpError("needs maps of rows and depth for a, and either of "
                       "groups, depth and columns for b and of rows and "
                       "columns for the output, or the other way around; "
                       "found ")
           << getMaps();
  if (getMap(1).getDimPosition(getMap(1).getNumResults() - 1) == Group)
    return emitOpError("needs groups before the last dimension of b");
  SmallVector<int64_t> sizes = getLoopSizes();
  std::optional<std::pair<int64_t, unsigned>> different;
  forEachDim(*this, [&](int64_t size, unsigned loop) {
    if (sizes[loop] != size)
      different = {size, loop};
  });
  if (different)
    return emitOpError("has sizes ")
           << different->first << " and " << sizes[different->second]
           << " along loop " << different->second;
  auto bounds = cast<ShapedType>(getBounds().getType());
  if (bounds.getRank() != 1 || bounds.getDimSize(0) != sizes[Group] + 1)
    return emitOpError("needs ")
           << sizes[Group] + 1 << " bounds, found " << bounds;
  return success();
}

LogicalResult
GroupedGemmOp::bufferize(RewriterBase &rewriter,
                         const bufferization::BufferizationOptions &options,
                         bufferization::BufferizationState &state) {
  return bufferizeDense(*this, rewriter, options, state);
}

//===----------------------------------------------------------------------===//
// SortOp
//===----------------------------------------------------------------------===//

LogicalResult SortOp::verify() {
  auto input = cast<ShapedType>(getInput().getType()),
       values = cast<ShapedType>(getValues().getType()),
       indices = cast<ShapedType>(getIndices().getType());
  int64_t dim = getDim();
  if (dim < 0 || dim >= input.getRank())
    return emitOpError("dimension ") << dim << " is out of range for " << input;
  SmallVector<int64_t> shape(input.getShape());
  if (values.getRank() == input.getRank())
    shape[dim] = values.getDimSize(dim);
  if (values.getShape() != ArrayRef(shape) ||
      indices.getShape() != ArrayRef(shape) ||
      shape[dim] > input.getDimSize(dim) ||
      values.getElementType() != input.getElementType() ||
      !indices.getElementType().isInteger(64))
    return emitOpError("can't sort ")
           << input << " into " << values << " and " << indices;
  return success();
}

LogicalResult
SortOp::bufferize(RewriterBase &rewriter,
                  const bufferization::BufferizationOptions &options,
                  bufferization::BufferizationState &state) {
  return bufferizeDense(*this, rewriter, options, state);
}
