//===- AtenGrid.cpp - images sampled at the points of a grid --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A point lies between pixels: the result is a weighted sum of its neighbors,
// which a gather picks from the flattened image.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

namespace {
/// The numbers of PyTorch's arguments.
enum Interpolation { Bilinear = 0, Nearest = 1 };
enum Padding { Zeros = 0, Border = 1 };

/// The coordinates of all points along one dimension of the image, (n, p).
struct Axis {
  Value place;
  int64_t size;
};
} // namespace

/// A coordinate from -1 to 1 as a position between pixels.
static Value toPlace(ImportBuilder &b, Value x, int64_t size,
                     bool alignCorners) {
  if (alignCorners)
    return mul(b, add(b, x, 1), double(size - 1) / 2);
  return mul(b, add(b, mul(b, add(b, x, 1), double(size)), -1), 0.5);
}

/// The pixel at whole coordinates, 0 outside of the image: (n, c, p).
static Value pick(ImportBuilder &b, Value image, const Axis &y, const Axis &x) {
  Value isInside;
  auto clamp = [&](const Axis &axis) {
    double last = double(axis.size - 1);
    // NaN is outside: it compares false.
    Value isIn = binary<nn::LogicalAndOp>(
        b, compare(b, ComparePredicate::GE, axis.place, 0.0),
        compare(b, ComparePredicate::LE, axis.place, last));
    isInside = isInside ? binary<nn::LogicalAndOp>(b, isInside, isIn) : isIn;
    Value zero = constantLike(b, axis.place, 0);
    return castTo(b, select(b, isIn, axis.place, zero), b.getI64Type());
  };
  Value row = clamp(y), column = clamp(x);
  Value width = integer(b, b.getI64Type(), x.size);
  Value index = unsqueeze(b, add(b, mul(b, row, width), column), 1);
  llvm::SmallVector<int64_t> shape(shapeOf(image));
  shape[2] = shapeOf(index)[2];
  Value pixels = nn::GatherOp::create(b, image, broadcast(b, index, shape), 2);
  return keep(b, unsqueeze(b, isInside, 1), pixels);
}

static LogicalResult gridSample(AtenCall &call, ImportBuilder &b) {
  Value input = b.widen(call.tensor("input"));
  Value grid = castTo(b, call.tensor("grid"), elementOf(input));
  int64_t mode = call.integer("interpolation_mode"),
          padding = call.integer("padding_mode");
  if (mode != Bilinear && mode != Nearest)
    return call.unsupported("with mode 'bicubic', expected 'bilinear' or "
                            "'nearest'");
  if (padding != Zeros && padding != Border)
    return call.unsupported("with padding_mode 'reflection', expected 'zeros' "
                            "or 'border'");
  auto shape = shapeOf(input);
  int64_t n = shape[0], height = shape[2], width = shape[3];
  int64_t numPoints = shapeOf(grid)[1] * shapeOf(grid)[2];
  Value image = b.reshape(input, {n, shape[1], height * width});
  auto getAxis = [&](int64_t coordinate, int64_t size) {
    Value x = b.reshape(b.slice(grid, 3, coordinate, 1), {n, numPoints});
    x = toPlace(b, x, size, call.flag("align_corners"));
    if (padding == Border) {
      // NaN counts as 0, as in PyTorch.
      Value last = constantLike(b, x, double(size - 1));
      x = keep(b, compare(b, ComparePredicate::GT, x, 0.0), x);
      x = select(b, compare(b, ComparePredicate::LT, x, double(size - 1)), x,
                 last);
    }
    return Axis{x, size};
  };
  Axis x = getAxis(0, width), y = getAxis(1, height);
  Value result;
  if (mode == Nearest) {
    auto round = [&](Axis axis) {
      return Axis{unary<nn::RoundOp>(b, axis.place), axis.size};
    };
    result = pick(b, image, round(y), round(x));
  } else {
    for (bool isLower : {false, true})
      for (bool isRight : {false, true}) {
        // The neighbor on this side, and its share.
        auto neighbor = [&](const Axis &axis, bool isNext, Value &share) {
          Value floor = unary<nn::FloorOp>(b, axis.place);
          Value rest = sub(b, axis.place, floor);
          share = isNext ? rest : subFrom(b, 1, rest);
          return Axis{isNext ? add(b, floor, 1) : floor, axis.size};
        };
        Value shareY, shareX;
        Axis row = neighbor(y, isLower, shareY),
             column = neighbor(x, isRight, shareX);
        Value share = unsqueeze(b, mul(b, shareY, shareX), 1);
        Value term = mul(b, pick(b, image, row, column), share);
        result = result ? add(b, result, term) : term;
      }
  }
  return call.result(
      castTo(b, b.reshape(result, call.resultShape()), call.resultElement()));
}

void mlir::tp::addGridOps(AtenTable &table) {
  table["grid_sampler_2d"] = {
      gridSample, "input grid interpolation_mode padding_mode align_corners"};
}
