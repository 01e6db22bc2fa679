//===- AtenResize.cpp - interpolation of images ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All modes work on one dimension after the other: an element of the result is
// a weighted sum of a few elements of the input, whose positions and weights
// are constants.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

namespace {
/// One element of the input for each element of the result.
struct Tap {
  llvm::SmallVector<int64_t> positions;
  llvm::SmallVector<double> weights;
};

/// A dimension that is resized, and the factor that the model states, or 0.
struct ResizedDim {
  int64_t from, to;
  double factor;
};
} // namespace

static Value sumTaps(ImportBuilder &b, Value v, int64_t dim,
                     ArrayRef<Tap> taps) {
  Type element = elementOf(v);
  llvm::SmallVector<int64_t> shape(rankOf(v) - dim, 1);
  Value sum;
  for (const Tap &tap : taps) {
    shape[0] = tap.weights.size();
    auto weights = llvm::map_to_vector(tap.weights, [&](double weight) {
      return Attribute(b.getFloatAttr(element, weight));
    });
    Value factors = nn::ConstantOp::create(
        b,
        DenseElementsAttr::get(RankedTensorType::get(shape, element), weights));
    Value term = mul(b, b.pick(v, dim, tap.positions), factors);
    sum = sum ? add(b, sum, term) : term;
  }
  return sum;
}

/// Each element is repeated as often as the sizes say, if that is a number.
static Value nearest(ImportBuilder &b, Value v, int64_t dim,
                     ArrayRef<int64_t> positions) {
  int64_t from = shapeOf(v)[dim], to = positions.size();
  bool repeats = to % from == 0;
  for (int64_t i = 0; i < to && repeats; ++i)
    repeats = positions[i] == i / (to / from);
  if (!repeats)
    return b.pick(v, dim, positions);
  llvm::SmallVector<int64_t> shape(shapeOf(v)), repeated;
  shape.insert(shape.begin() + dim + 1, 1);
  repeated = shape;
  repeated[dim + 1] = to / from;
  v = broadcast(b, b.reshape(v, shape), repeated);
  repeated.erase(repeated.begin() + dim + 1);
  repeated[dim] = to;
  return b.reshape(v, repeated);
}

/// PyTorch's positions of nearest elements, which it computes in f32.
static llvm::SmallVector<int64_t> nearestPositions(ResizedDim dim,
                                                   bool isExact) {
  float scale =
      dim.factor > 0 ? float(1 / dim.factor) : float(dim.from) / float(dim.to);
  llvm::SmallVector<int64_t> positions;
  for (int64_t i = 0; i < dim.to; ++i) {
    float place = (float(i) + (isExact ? 0.5f : 0.0f)) * scale;
    positions.push_back(std::min(int64_t(std::floor(place)), dim.from - 1));
  }
  return positions;
}

/// Two elements for a line between neighbors, four for a cubic curve.
static llvm::SmallVector<Tap>
interpolationTaps(ResizedDim dim, bool alignCorners, bool isCubic) {
  double scale =
      dim.factor > 0 ? 1 / dim.factor : double(dim.from) / double(dim.to);
  if (alignCorners)
    scale = dim.to > 1 ? double(dim.from - 1) / double(dim.to - 1) : 0;
  llvm::SmallVector<Tap> taps(isCubic ? 4 : 2);
  for (int64_t i = 0; i < dim.to; ++i) {
    double place =
        alignCorners ? scale * double(i) : scale * (double(i) + 0.5) - 0.5;
    if (!isCubic)
      place = std::max(place, 0.0);
    int64_t first = int64_t(std::floor(place));
    double t = place - double(first);
    llvm::SmallVector<double> weights;
    if (isCubic) {
      // The convolution kernel of Keys, with a = -0.75.
      constexpr double a = -0.75;
      auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
      auto far = [](double x) {
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
      };
      weights = {far(t + 1), near(t), near(1 - t), far(2 - t)};
      --first;
    } else {
      weights = {1 - t, t};
    }
    for (auto [k, weight] : llvm::enumerate(weights)) {
      taps[k].positions.push_back(
          std::clamp(first + int64_t(k), int64_t(0), dim.from - 1));
      taps[k].weights.push_back(weight);
    }
  }
  return taps;
}

/// The last n dimensions, and their factors: a list of all, or one by one.
template <int64_t n>
static llvm::SmallVector<ResizedDim> resizedDims(AtenCall &call, Value input) {
  llvm::SmallVector<double> factors(n, 0);
  constexpr StringRef names[] = {"scales_d", "scales_h", "scales_w"};
  if (call.has("scale_factors"))
    factors = call.reals("scale_factors");
  else
    for (int64_t i = 0; i < n; ++i)
      factors[i] = call.real(n == 1 ? "scales" : names[3 - n + i]);
  llvm::SmallVector<ResizedDim> dims;
  for (int64_t i = 0; i < n; ++i)
    dims.push_back({shapeOf(input).take_back(n)[i],
                    call.resultShape().take_back(n)[i], factors[i]});
  return dims;
}

template <int64_t n, bool isExact>
static LogicalResult resizeNearest(AtenCall &call, ImportBuilder &b) {
  Value v = inputOf(call);
  int64_t lead = rankOf(v) - n;
  for (auto [i, dim] : llvm::enumerate(resizedDims<n>(call, v)))
    v = nearest(b, v, lead + i, nearestPositions(dim, isExact));
  return call.result(v);
}

template <int64_t n, bool isCubic>
static LogicalResult interpolate(AtenCall &call, ImportBuilder &b) {
  Value input = inputOf(call);
  if (!isFloat(input))
    return call.unsupported("of integers");
  bool alignCorners = call.flag("align_corners");
  Value v = b.widen(input);
  int64_t lead = rankOf(v) - n;
  for (auto [i, dim] : llvm::enumerate(resizedDims<n>(call, v)))
    if (dim.from != dim.to || (dim.factor > 0 && dim.factor != 1))
      v = sumTaps(b, v, lead + i,
                  interpolationTaps(dim, alignCorners, isCubic));
  return call.result(castTo(b, v, elementOf(input)));
}

/// (…, c r², h, w) → (…, c, h r, w r)
static LogicalResult pixelShuffle(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t factor = call.integer("upscale_factor"), rank = rankOf(self);
  ArrayRef<int64_t> image = shapeOf(self).take_back(3);
  llvm::SmallVector<int64_t> shape(shapeOf(self).drop_back(3));
  llvm::append_range(shape,
                     ArrayRef<int64_t>{image[0] / (factor * factor), factor,
                                       factor, image[1], image[2]});
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  llvm::append_range(order,
                     ArrayRef<int64_t>{rank, rank - 2, rank + 1, rank - 1});
  return call.result(b.reshape(b.transpose(b.reshape(self, shape), order),
                               call.resultShape()));
}

/// (…, c, h r, w r) → (…, c r², h, w)
static LogicalResult pixelUnshuffle(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t factor = call.integer("downscale_factor"), rank = rankOf(self);
  ArrayRef<int64_t> image = shapeOf(self).take_back(2);
  llvm::SmallVector<int64_t> shape(shapeOf(self).drop_back(2));
  llvm::append_range(shape, ArrayRef<int64_t>{image[0] / factor, factor,
                                              image[1] / factor, factor});
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  llvm::append_range(order,
                     ArrayRef<int64_t>{rank - 1, rank + 1, rank - 2, rank});
  return call.result(b.reshape(b.transpose(b.reshape(self, shape), order),
                               call.resultShape()));
}

/// (b, g c, …) → (b, c g, …)
static LogicalResult channelShuffle(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t groups = call.integer("groups");
  llvm::SmallVector<int64_t> shape(shapeOf(self));
  shape[1] /= groups;
  shape.insert(shape.begin() + 1, groups);
  return call.result(
      b.reshape(b.swap(b.reshape(self, shape), 1, 2), call.resultShape()));
}

void mlir::tp::addResizeOps(AtenTable &table) {
  auto addAll = [&](const std::string &name, AtenHandler run,
                    StringRef arguments) {
    table[name] = {.run = run, .reads = arguments, .inType = "output_size"};
  };
  constexpr StringRef line = "self input scales scale_factors",
                      image = "self input scales_h scales_w scale_factors",
                      volume =
                          "self input scales_d scales_h scales_w scale_factors";
  addAll("upsample_nearest1d", resizeNearest<1, false>, line);
  addAll("upsample_nearest2d", resizeNearest<2, false>, image);
  addAll("upsample_nearest3d", resizeNearest<3, false>, volume);
  addAll("_upsample_nearest_exact1d", resizeNearest<1, true>, line);
  addAll("_upsample_nearest_exact2d", resizeNearest<2, true>, image);
  addAll("_upsample_nearest_exact3d", resizeNearest<3, true>, volume);
  addAll("upsample_linear1d", interpolate<1, false>,
         "self input align_corners scales scale_factors");
  addAll("upsample_bilinear2d", interpolate<2, false>,
         "self input align_corners scales_h scales_w scale_factors");
  addAll("upsample_trilinear3d", interpolate<3, false>,
         "self input align_corners scales_d scales_h scales_w scale_factors");
  addAll("upsample_bicubic2d", interpolate<2, true>,
         "self input align_corners scales_h scales_w scale_factors");
  table["pixel_shuffle"] = {pixelShuffle, "self upscale_factor"};
  table["pixel_unshuffle"] = {pixelUnshuffle, "self downscale_factor"};
  table["channel_shuffle"] = {channelShuffle, "self groups"};
}
