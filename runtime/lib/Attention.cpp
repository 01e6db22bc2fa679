//===- Attention.cpp - Fused attention -----------------------------------===//
//
// Works on blocks of a head's query rows: their scores against all keys that
// they see, the exponentials of these, and their product with the values. No
// more than a block of scores exists at a time, and what a causal mask hides
// from a whole block isn't computed.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "Multiversion.h"
#include "Softmax.h"
#include "Tiles.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <type_traits>

using namespace tprt;

/// A multiple of every tile's rows. Higher blocks read keys and values less
/// often, and compute more scores that a causal mask hides.
static constexpr int64_t queryRows = 48;

/// The type that sums and exponentials of a dtype have.
template <typename S>
using Wide = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <typename T>
static constexpr T lowest = -std::numeric_limits<T>::infinity();

TPRT_MULTIVERSION static void addRow(float *row, const float *other,
                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] += other[i];
}
static void addRow(double *row, const double *other, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] += other[i];
}

TPRT_MULTIVERSION static void scaleRow(float *row, float factor,
                                       int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}
static void scaleRow(double *row, double factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}

TPRT_MULTIVERSION static void loadKept(const uint8_t *keep, int64_t count,
                                       float *row) {
  for (int64_t i = 0; i < count; ++i)
    row[i] = keep[i] ? 0.0f : lowest<float>;
}
static void loadKept(const uint8_t *keep, int64_t count, double *row) {
  for (int64_t i = 0; i < count; ++i)
    row[i] = keep[i] ? 0.0 : lowest<double>;
}

/// `count` elements, `stride` apart.
template <typename S, typename T>
static void loadRow(const S *source, int64_t stride, int64_t count, T *row) {
  if (stride == 1) {
    if constexpr (std::is_same_v<S, T>)
      std::copy_n(source, count, row);
    else
      convertToF32(std::is_same_v<S, Half> ? Dtype::F16 : Dtype::BF16, source,
                   row, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    row[i] = castElement<T>(source[i * stride]);
}

template <typename S, typename T>
static void storeRow(const T *row, int64_t count, S *target, int64_t stride) {
  if (stride == 1) {
    if constexpr (std::is_same_v<S, T>)
      std::copy_n(row, count, target);
    else
      convertFromF32(std::is_same_v<S, Half> ? Dtype::F16 : Dtype::BF16, row,
                     target, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    target[i * stride] = castElement<S>(row[i]);
}

namespace {

/// One head after the other, of operands stored as S.
template <typename S>
class Attention {
  using T = Wide<S>;

public:
  Attention(const tprt_attention_args &args, GemmState &state) : args(args) {
    paddedColumns =
        (args.columns + softmaxPadding - 1) / softmaxPadding * softmaxPadding;
    int64_t height = std::min(args.rows, queryRows);
    // Parts begin at multiples of 64 bytes, for the sake of the tiles' loads.
    std::array<int64_t, 7> sizes = {
        getPackedSize<T>(args.depth, args.columns),
        getPackedSize<T>(args.columns, args.width),
        height * paddedColumns,
        paddedColumns,
        height * args.depth,
        height * args.width,
        std::is_same_v<S, T> ? 0
                             : args.columns * std::max(args.depth, args.width)};
    constexpr int64_t unit = 64 / sizeof(T);
    int64_t total = 0;
    for (int64_t &size : sizes) {
      size = (size + unit - 1) / unit * unit;
      total += size;
    }
    T *at = reinterpret_cast<T *>(
        state.getFloats(total * sizeof(T) / sizeof(float)));
    T **const parts[] = {&keys,    &values, &scores,   &maskRow,
                         &queries, &output, &converted};
    for (size_t i = 0; i < sizes.size(); ++i) {
      *parts[i] = at;
      at += sizes[i];
    }
  }

  void setKey(const S *data) {
    pack(data, args.key.col, args.key.row, args.depth, args.columns, keys);
  }
  void setValue(const S *data) {
    pack(data, args.value.row, args.value.col, args.columns, args.width,
         values);
  }

  void run(const S *query, const void *mask, S *result) {
    if (args.mask != TPRT_NO_MASK && args.mask_strides.row == 0)
      loadMask(mask, 0);
    for (int64_t top = 0; top < args.rows; top += queryRows) {
      int64_t height = std::min(queryRows, args.rows - top);
      int64_t seen =
          args.causal ? std::min(args.columns, top + height) : args.columns;
      for (int64_t i = 0; i < height; ++i) {
        T *row = queries + i * args.depth;
        loadRow(query + (top + i) * args.query.row, args.query.col, args.depth,
                row);
        scaleRow(row, static_cast<T>(args.scale), args.depth);
      }
      multiplyPacked<T>(height, seen, args.depth, {queries, args.depth, 1},
                        {keys, args.depth}, scores, paddedColumns,
                        /*accumulate=*/false);
      T sums[queryRows];
      for (int64_t i = 0; i < height; ++i)
        sums[i] = exponentiateRow(mask, top + i, seen, i);
      multiplyPacked<T>(height, args.width, seen, {scores, paddedColumns, 1},
                        {values, args.columns}, output, args.width,
                        /*accumulate=*/false);
      for (int64_t i = 0; i < height; ++i) {
        T *row = output + i * args.width;
        if (args.columns > 0)
          scaleRow(row, T(1) / sums[i], args.width);
        storeRow(row, args.width, result + (top + i) * args.output.row,
                 args.output.col);
      }
    }
  }

private:
  /// The scores of row `i`, of which `seen` are computed, become exponentials
  /// of their differences from the maximum. Returns their sum.
  T exponentiateRow(const void *mask, int64_t i, int64_t seen, int64_t at) {
    T *row = scores + at * paddedColumns;
    int64_t padded =
        (seen + softmaxPadding - 1) / softmaxPadding * softmaxPadding;
    int64_t last = args.causal ? std::min(seen, i + 1) : seen;
    if (args.mask != TPRT_NO_MASK) {
      if (args.mask_strides.row != 0)
        loadMask(mask, i);
      addRow(row, maskRow, last);
    }
    std::fill(row + last, row + padded, lowest<T>);
    return exponentiate(row, padded);
  }

  void loadMask(const void *mask, int64_t i) {
    int64_t stride = args.mask_strides.col, offset = i * args.mask_strides.row;
    if (args.mask == TPRT_ADDED_MASK)
      return loadRow(static_cast<const S *>(mask) + offset, stride,
                     args.columns, maskRow);
    const uint8_t *keep = static_cast<const uint8_t *>(mask) + offset;
    if (stride == 1)
      return loadKept(keep, args.columns, maskRow);
    for (int64_t j = 0; j < args.columns; ++j)
      maskRow[j] = keep[j * stride] ? T(0) : lowest<T>;
  }

  void pack(const S *data, int64_t row, int64_t col, int64_t k, int64_t n,
            T *packed) {
    if constexpr (std::is_same_v<S, T>) {
      tprt::pack<T>({data, row, col}, k, n, packed);
    } else if (row == 1) { // densely, in the source's order
      for (int64_t j = 0; j < n; ++j)
        loadRow(data + j * col, row, k, converted + j * k);
      tprt::pack<T>({converted, 1, k}, k, n, packed);
    } else {
      for (int64_t p = 0; p < k; ++p)
        loadRow(data + p * row, col, n, converted + p * n);
      tprt::pack<T>({converted, n, 1}, k, n, packed);
    }
  }

  const tprt_attention_args &args;
  int64_t paddedColumns;
  T *keys, *values; ///< packed
  T *scores;        ///< of a block of rows
  T *maskRow, *queries, *output, *converted;
};

} // namespace

template <typename S>
static void runBatches(const tprt_attention_args &args, const void *query,
                       const void *key, const void *value, const void *mask,
                       void *output, GemmState &state) {
  Attention<S> attention(args, state);
  int64_t index[TPRT_ATTENTION_BATCHES] = {};
  const S *lastKey = nullptr, *lastValue = nullptr;
  int64_t maskBytes = args.mask == TPRT_BOOLEAN_MASK ? 1 : sizeof(S);
  while (true) {
    auto offset = [&](const tprt_attention_strides &strides) {
      int64_t sum = 0;
      for (int i = 0; i < TPRT_ATTENTION_BATCHES; ++i)
        sum += index[i] * strides.batch[i];
      return sum;
    };
    const S *keyHead = static_cast<const S *>(key) + offset(args.key);
    if (keyHead != lastKey)
      attention.setKey(lastKey = keyHead);
    const S *valueHead = static_cast<const S *>(value) + offset(args.value);
    if (valueHead != lastValue)
      attention.setValue(lastValue = valueHead);
    attention.run(static_cast<const S *>(query) + offset(args.query),
                  static_cast<const std::byte *>(mask) +
                      (mask ? offset(args.mask_strides) * maskBytes : 0),
                  static_cast<S *>(output) + offset(args.output));
    int i = TPRT_ATTENTION_BATCHES;
    while (i > 0 && ++index[i - 1] == args.batch[i - 1])
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

static void check(const tprt_attention_args &args, const void *mask) {
  auto require = [](bool holds, const char *what) {
    if (!holds)
      throw executionError(std::string("tprt_attention: ") + what);
  };
  require(args.dtype >= TPRT_F32 && args.dtype <= TPRT_BF16,
          "dtype is not f32, f64, f16 or bf16");
  require(args.mask >= TPRT_NO_MASK && args.mask <= TPRT_BOOLEAN_MASK,
          "the kind of mask is unknown");
  require((args.mask == TPRT_NO_MASK) == !mask,
          "the mask's address and kind don't agree");
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  for (int64_t size : {args.rows, args.columns, args.depth, args.width})
    require(size >= 0 && size <= limit, "a size is out of range");
  for (int64_t size : args.batch)
    require(size >= 0 && size <= limit, "a batch size is out of range");
}

void tprt::attention(const tprt_attention_args &args, const void *query,
                     const void *key, const void *value, const void *mask,
                     void *output, GemmState &state) {
  check(args, mask);
  if (args.rows == 0 || args.width == 0 ||
      std::find(std::begin(args.batch), std::end(args.batch), 0) !=
          std::end(args.batch))
    return;
  auto run = [&](auto runBatches) {
    runBatches(args, query, key, value, mask, output, state);
  };
  switch (static_cast<Dtype>(args.dtype)) {
  case Dtype::F32:
    return run(runBatches<float>);
  case Dtype::F64:
    return run(runBatches<double>);
  case Dtype::F16:
    return run(runBatches<Half>);
  default:
    return run(runBatches<BFloat16>);
  }
}
