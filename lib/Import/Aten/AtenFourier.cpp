//===- AtenFourier.cpp - discrete Fourier transforms ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch leaves the transforms of torch.fft to three ops. Here they are
// products with matrices of cosines and sines, so a transform of n elements
// costs n² operations.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// The largest size of a transform: its matrices are constants of the program.
static constexpr int64_t kMaxSize = 1024;

namespace {
/// fft_norm_mode: by what the result is divided.
enum Normalization { kNone, kByRoot, kBySize };

/// The real and the imaginary part of numbers; the latter is null for real
/// ones.
struct Spectrum {
  Value real, imaginary;
};

/// Multiplies along one dimension by e^(± 2πi k n / size), for k below `rows`
/// and n below `columns`.
class Transform {
public:
  Transform(ImportBuilder &b, int64_t size, int64_t rows, int64_t columns,
            bool isForward, Normalization normalization)
      : b(b), size(size), rows(rows), columns(columns), isForward(isForward) {
    if (normalization != kNone)
      scale = 1.0 / (normalization == kBySize ? double(size)
                                              : std::sqrt(double(size)));
  }

  Spectrum run(const Spectrum &x, int64_t dim) {
    Value cosine = matrix(elementOf(x.real), /*isSine=*/false);
    Value sine = matrix(elementOf(x.real), /*isSine=*/true);
    Spectrum result{multiply(x.real, cosine, dim), multiply(x.real, sine, dim)};
    if (x.imaginary) {
      result.real = sub(b, result.real, multiply(x.imaginary, sine, dim));
      result.imaginary =
          add(b, result.imaginary, multiply(x.imaginary, cosine, dim));
    }
    return result;
  }

  /// The real result of the inverse of a spectrum of which the second half,
  /// the mirror image of the first one, is left out.
  Value runToReal(const Spectrum &x, int64_t dim) {
    isHalf = true;
    Value cosine = matrix(elementOf(x.real), /*isSine=*/false);
    Value sine = matrix(elementOf(x.real), /*isSine=*/true);
    return sub(b, multiply(x.real, cosine, dim),
               multiply(x.imaginary, sine, dim));
  }

private:
  Value matrix(Type element, bool isSine) {
    llvm::SmallVector<double> numbers;
    numbers.reserve(rows * columns);
    for (int64_t k = 0; k < rows; ++k)
      for (int64_t n = 0; n < columns; ++n) {
        double angle = 2 * llvm::numbers::pi * double(k * n % size) / size;
        double number =
            isSine ? std::sin(isForward ? -angle : angle) : std::cos(angle);
        bool isMirrored = isHalf && k > 0 && 2 * k != size;
        numbers.push_back(number * scale * (isMirrored ? 2 : 1));
      }
    auto type = RankedTensorType::get({rows, columns}, element);
    if (element.isF64())
      return nn::ConstantOp::create(
          b, DenseElementsAttr::get(type, ArrayRef<double>(numbers)));
    llvm::SmallVector<float> rounded(numbers.begin(), numbers.end());
    return nn::ConstantOp::create(
        b, DenseElementsAttr::get(type, ArrayRef<float>(rounded)));
  }

  Value multiply(Value x, Value matrix, int64_t dim) {
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
    std::swap(order[dim], order.back());
    if (order.back() != dim)
      return matmul(b, x, matrix);
    return transpose(b, matmul(b, transpose(b, x, order), matrix), order);
  }

  ImportBuilder &b;
  int64_t size, rows, columns;
  bool isForward, isHalf = false;
  double scale = 1;
};
} // namespace

static Spectrum split(ImportBuilder &b, Value pairs) {
  int64_t dim = rankOf(pairs) - 1;
  ArrayRef<int64_t> shape = shapeOf(pairs).drop_back();
  return {b.reshape(b.slice(pairs, dim, 0, 1), shape),
          b.reshape(b.slice(pairs, dim, 1, 1), shape)};
}

static LogicalResult join(AtenCall &call, ImportBuilder &b,
                          const Spectrum &parts) {
  int64_t rank = rankOf(parts.real);
  return call.result(b.concat(
      {unsqueeze(b, parts.real, rank), unsqueeze(b, parts.imaginary, rank)},
      rank));
}

/// Whether matrices of these sizes can be constants.
static LogicalResult checkSizes(AtenCall &call, ArrayRef<int64_t> shape,
                                ArrayRef<int64_t> dims) {
  for (int64_t dim : dims)
    if (shape[dim] > kMaxSize)
      return call.unsupported("of " + llvm::Twine(shape[dim]) +
                              " elements, expected at most " +
                              llvm::Twine(kMaxSize));
  return success();
}

static Normalization getNormalization(AtenCall &call) {
  return static_cast<Normalization>(call.integer("normalization"));
}

static LogicalResult complexToComplex(AtenCall &call, ImportBuilder &b) {
  Spectrum x = split(b, call.tensor("self"));
  llvm::SmallVector<int64_t> shape(shapeOf(x.real));
  auto dims = call.dims("dim", shape.size());
  if (failed(checkSizes(call, shape, dims)))
    return failure();
  for (int64_t dim : dims)
    x = Transform(b, shape[dim], shape[dim], shape[dim], call.flag("forward"),
                  getNormalization(call))
            .run(x, dim);
  return join(call, b, x);
}

static LogicalResult realToComplex(AtenCall &call, ImportBuilder &b) {
  Spectrum x{call.tensor("self"), Value()};
  llvm::SmallVector<int64_t> shape(shapeOf(x.real));
  auto dims = call.dims("dim", shape.size());
  if (failed(checkSizes(call, shape, dims)))
    return failure();
  for (int64_t dim : llvm::reverse(dims)) {
    int64_t columns = call.flag("onesided") && dim == dims.back()
                          ? shape[dim] / 2 + 1
                          : shape[dim];
    x = Transform(b, shape[dim], shape[dim], columns, /*isForward=*/true,
                  getNormalization(call))
            .run(x, dim);
  }
  return join(call, b, x);
}

static LogicalResult complexToReal(AtenCall &call, ImportBuilder &b) {
  Spectrum x = split(b, call.tensor("self"));
  llvm::SmallVector<int64_t> shape(shapeOf(x.real));
  auto dims = call.dims("dim", shape.size());
  int64_t last = dims.pop_back_val(), size = call.integer("last_dim_size");
  auto sizes = shape;
  sizes[last] = size;
  if (failed(checkSizes(call, sizes, dims)) ||
      failed(checkSizes(call, sizes, last)))
    return failure();
  for (int64_t dim : dims)
    x = Transform(b, shape[dim], shape[dim], shape[dim], /*isForward=*/false,
                  getNormalization(call))
            .run(x, dim);
  return call.result(Transform(b, size, shape[last], size, /*isForward=*/false,
                               getNormalization(call))
                         .runToReal(x, last));
}

void mlir::tp::addFourierOps(AtenTable &table) {
  table["_fft_c2c"] = {.reads = "self dim normalization forward",
                       .runOnPairs = complexToComplex};
  table["_fft_r2c"] = {.reads = "self dim normalization onesided",
                       .runOnPairs = realToComplex};
  table["_fft_c2r"] = {.reads = "self dim normalization last_dim_size",
                       .runOnPairs = complexToReal};
}
