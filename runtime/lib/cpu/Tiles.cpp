//===- Tiles.cpp - Products of small and packed matrices ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Tiles.h"

#include "cpu/Activation.h"
#include "support/Multiversion.h"
#include "tprt/Dtype.h"

#include <algorithm>
#include <array>
#include <utility>

using namespace tprt;

/// Rows of A per block and terms of a sum per panel. A block of A and, beside
/// it, a panel of B have to stay in the second- and first-level cache.
static constexpr int64_t blockRows = 264;
static constexpr int64_t maxDepth = 384;

/// The size up to which B stays in the second-level cache while A is read.
static constexpr int64_t maxKeptBytes = 1 << 19;

/// One tile: rows x columns elements of C = a * panel, over `depth` terms, with
/// the scale, the biases, the addend and, if it is relu, the activation of
/// `epilogue`, whose bias is as wide as the tile. Without a scale, the sums
/// start from the bias.
template <typename T>
using TileFunction = void (*)(int64_t depth, const T *a, int64_t rowA,
                              int64_t colA, const T *panel,
                              const Epilogue<T> &epilogue, T *c, int64_t rowC);

static constexpr int maxTileRows = 12;

namespace {

/// The tiles of one instruction set, by their number of rows; tiles of half a
/// panel's columns; and the function that packs `given` columns of B for them.
template <typename T>
struct TileSet {
  int64_t rows, columns;
  std::array<TileFunction<T>, maxTileRows + 1> functions, narrowFunctions;
  void (*packPanel)(Matrix<const T> source, int64_t k, int64_t given, T *panel);
};

} // namespace

/// A loop over the sums of a tile. It is unrolled early, so that they stay in
/// registers.
#define TPRT_FOR_SUMS(I, V)                                                    \
  _Pragma("GCC unroll 12") for (int I = 0; I < rows; ++I)                      \
      _Pragma("GCC unroll 12") for (int V = 0; V < numVectors; ++V)

template <typename T, int vectorBytes, int panelVectors, int numVectors,
          int rows>
TPRT_INLINE void multiplyTile(int64_t depth, const T *a, int64_t rowA,
                              int64_t colA, const T *panel,
                              const Epilogue<T> &epilogue, T *c, int64_t rowC) {
  typedef T Vector
      __attribute__((vector_size(vectorBytes), aligned(alignof(T)), may_alias));
  constexpr int width = vectorBytes / sizeof(T);
  const T *rowScale = epilogue.rowScale, *rowBias = epilogue.rowBias;
  const T *addend = epilogue.addend;
  const T *init = epilogue.bias, *rowInit = rowScale ? nullptr : rowBias;
  Vector sums[rows][numVectors];
  TPRT_FOR_SUMS(i, v) {
    sums[i][v] = init      ? *reinterpret_cast<const Vector *>(init + v * width)
                 : rowInit ? Vector{} + rowInit[i]
                           : Vector{};
  }
  // C and the addend may be in memory, and have time to arrive.
  for (int i = 0; i < rows; ++i)
    for (int at = 0; at < numVectors * width; at += 64 / sizeof(T)) {
      __builtin_prefetch(c + i * rowC + at, /*write*/ 1);
      if (addend)
        __builtin_prefetch(addend + i * epilogue.rowAddend + at);
    }
  for (int64_t p = 0; p < depth; ++p) {
    Vector right[numVectors];
    for (int v = 0; v < numVectors; ++v)
      right[v] = *reinterpret_cast<const Vector *>(
          panel + (p * panelVectors + v) * width);
    for (int i = 0; i < rows; ++i) {
      T left = a[i * rowA + p * colA];
      for (int v = 0; v < numVectors; ++v)
        sums[i][v] += left * right[v];
    }
  }
  if (rowScale) {
    TPRT_FOR_SUMS(i, v) {
      sums[i][v] = sums[i][v] * rowScale[i] + (rowBias ? rowBias[i] : T(0));
    }
  }
  if (addend) {
    TPRT_FOR_SUMS(i, v) {
      sums[i][v] += *reinterpret_cast<const Vector *>(
          addend + i * epilogue.rowAddend + v * width);
    }
  }
  if (epilogue.activation == TPRT_RELU) {
    TPRT_FOR_SUMS(i, v) {
      sums[i][v] = sums[i][v] <= 0 ? Vector{} : sums[i][v]; // NaN stays
    }
  }
  TPRT_FOR_SUMS(i, v) {
    *reinterpret_cast<Vector *>(c + i * rowC + v * width) = sums[i][v];
  }
}

#undef TPRT_FOR_SUMS

/// Transposes a square of `rows` in place. In step d, in every 2d x 2d square,
/// the d x d blocks to the right of the diagonal and below it are swapped.
template <int d, typename Vector, int... lane>
TPRT_INLINE void transpose(Vector (&rows)[sizeof...(lane)],
                           std::integer_sequence<int, lane...> lanes) {
  constexpr int n = sizeof...(lane);
  for (int i = 0; i < n; ++i) {
    if (i & d)
      continue;
    Vector upper = rows[i], lower = rows[i + d];
    rows[i] = __builtin_shufflevector(upper, lower,
                                      (lane & d ? n + lane - d : lane)...);
    rows[i + d] = __builtin_shufflevector(upper, lower,
                                          (lane & d ? n + lane : lane + d)...);
  }
  if constexpr (d > 1)
    transpose<d / 2>(rows, lanes);
}

template <typename T, int columns>
TPRT_INLINE void packPanel(Matrix<const T> source, int64_t k, int64_t given,
                           T *panel) {
  if (given < columns)
    std::fill_n(panel, k * columns, T(0));
  if (source.col == 1) {
    for (int64_t p = 0; p < k; ++p)
      if (given == columns)
        std::copy_n(&source.at(p, 0), columns, panel + p * columns);
      else
        std::copy_n(&source.at(p, 0), given, panel + p * columns);
    return;
  }
  constexpr int width = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
  typedef T Unaligned
      __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  int64_t wholeRows = source.row == 1 ? k / width * width : 0;
  int64_t wholeColumns = given / width * width;
  for (int64_t p = 0; p < wholeRows; p += width)
    for (int64_t j = 0; j < wholeColumns; j += width) {
      Vector rows[width];
      for (int i = 0; i < width; ++i)
        rows[i] = *reinterpret_cast<const Unaligned *>(&source.at(p, j + i));
      transpose<width / 2>(rows, std::make_integer_sequence<int, width>());
      for (int i = 0; i < width; ++i)
        *reinterpret_cast<Unaligned *>(panel + (p + i) * columns + j) = rows[i];
    }
  for (int64_t j = 0; j < given; ++j)
    for (int64_t p = j < wholeColumns ? wholeRows : 0; p < k; ++p)
      panel[p * columns + j] = source.at(p, j);
}

/// The tiles of an instruction set: registers for rows * vectors sums, for a
/// row of the panel, and for an element of A.
#define TPRT_TILES(NAME, TARGET, BYTES, VECTORS, ROWS)                         \
  template <typename T, int vectors, int rows>                                 \
  TARGET static void NAME##Tile(                                               \
      int64_t depth, const T *a, int64_t rowA, int64_t colA, const T *panel,   \
      const Epilogue<T> &epilogue, T *c, int64_t rowC) {                       \
    multiplyTile<T, BYTES, VECTORS, vectors, rows>(depth, a, rowA, colA,       \
                                                   panel, epilogue, c, rowC);  \
  }                                                                            \
  template <typename T>                                                        \
  TARGET static void NAME##PackPanel(Matrix<const T> source, int64_t k,        \
                                     int64_t given, T *panel) {                \
    packPanel<T, BYTES / sizeof(T) * VECTORS>(source, k, given, panel);        \
  }                                                                            \
  template <typename T>                                                        \
  static TileSet<T> NAME##Tiles() {                                            \
    TileSet<T> set{                                                            \
        ROWS, BYTES / sizeof(T) * VECTORS, {}, {}, NAME##PackPanel<T>};        \
    [&]<int... i>(std::integer_sequence<int, i...>) {                          \
      ((set.functions[i + 1] = NAME##Tile<T, VECTORS, i + 1>), ...);           \
      ((set.narrowFunctions[i + 1] = NAME##Tile<T, VECTORS / 2, i + 1>), ...); \
    }(std::make_integer_sequence<int, ROWS>());                                \
    return set;                                                                \
  }

TPRT_TILES(generic, , 16, 2, 4)
#if defined(__x86_64__)
TPRT_TILES(avx2, __attribute__((target("avx2,fma"))), 32, 2, 6)
TPRT_TILES(avx512, __attribute__((target("avx512f"))), 64, 2, 12)
#endif

template <typename T>
static const TileSet<T> &getTiles() {
  static const TileSet<T> tiles = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
      return avx512Tiles<T>();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      return avx2Tiles<T>();
#endif
    return genericTiles<T>();
  }();
  return tiles;
}

template <typename T>
int64_t tprt::getPanelColumns() {
  return getTiles<T>().columns;
}

template <typename T>
int64_t tprt::getPackedSize(int64_t k, int64_t n) {
  int64_t columns = getPanelColumns<T>();
  return (n + columns - 1) / columns * columns * k;
}

template <typename T>
void tprt::pack(Matrix<const T> source, int64_t k, int64_t n, T *packed) {
  const TileSet<T> &tiles = getTiles<T>();
  for (int64_t j = 0; j < n; j += tiles.columns)
    tiles.packPanel({&source.at(0, j), source.row, source.col}, k,
                    std::min(tiles.columns, n - j), packed + j * k);
}

/// Computes the last columns of C, which are fewer than a tile has.
template <typename T>
static void multiplyEdge(const TileSet<T> &tiles, int64_t rows, int64_t given,
                         int64_t depth, Matrix<const T> a, const T *panel,
                         const Epilogue<T> &epilogue, T *c, int64_t rowC) {
  constexpr int64_t width = 128 / sizeof(T);
  alignas(64) T tile[maxTileRows * width] = {}, bias[width] = {};
  Epilogue<T> inTile = epilogue;
  if (epilogue.bias) {
    std::copy_n(epilogue.bias, given, bias);
    inTile.bias = bias;
  }
  if (epilogue.addend) {
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(epilogue.addend + i * epilogue.rowAddend, given,
                  tile + i * width);
    inTile.addend = tile;
    inTile.rowAddend = width;
  }
  bool isNarrow = given <= tiles.columns / 2;
  (isNarrow ? tiles.narrowFunctions : tiles.functions)[rows](
      depth, a.data, a.row, a.col, panel, inTile, tile, width);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(tile + i * width, given, c + i * rowC);
}

/// Computes `height` rows of the product, over `depth` terms, the first of
/// which is row `begin` of B. `epilogue` is for these rows and terms: the first
/// terms have the biases and the addend, the last ones the rest.
template <typename T>
static void multiplyBlock(const TileSet<T> &tiles, int64_t height, int64_t n,
                          int64_t begin, int64_t depth, Matrix<const T> a,
                          Packed<T> b, T *c, int64_t rowC,
                          const Epilogue<T> &epilogue) {
  bool isChanged =
      epilogue.factor || (epilogue.activation != TPRT_NO_ACTIVATION &&
                          epilogue.activation != TPRT_RELU);
  // Tiles of about equal height, because a low one at the end would be slow.
  int64_t numTiles = (height + tiles.rows - 1) / tiles.rows;
  auto getTop = [&](int64_t t) { return height * t / numTiles; };
  auto getPanel = [&](int64_t j) {
    return b.data + j * b.rows + begin * tiles.columns;
  };
  auto multiplyAt = [&](int64_t t, int64_t j) __attribute__((always_inline)) {
    int64_t top = getTop(t), rows = getTop(t + 1) - top;
    int64_t given = std::min(tiles.columns, n - j);
    Matrix<const T> block{&a.at(top, 0), a.row, a.col};
    const Epilogue<T> part = epilogue.at(top, j);
    T *corner = c + top * rowC + j;
    if (given == tiles.columns)
      tiles.functions[rows](depth, block.data, a.row, a.col, getPanel(j), part,
                            corner, rowC);
    else
      multiplyEdge(tiles, rows, given, depth, block, getPanel(j), part, corner,
                   rowC);
    if (isChanged) // while the tile is in the first-level cache
      activate(part.activation, rows, given, corner, rowC, part.factor,
               part.rowFactor);
  };
  const int64_t size = depth * tiles.columns;
  if (getPackedSize<T>(depth, n) * static_cast<int64_t>(sizeof(T)) <=
      maxKeptBytes) {
    // All of B stays in the second-level cache. C is written row by row, which
    // memory serves faster than columns.
    for (int64_t t = 0; t < numTiles; ++t)
      for (int64_t j = 0; j < n; j += tiles.columns)
        multiplyAt(t, j);
    return;
  }
  for (int64_t j = 0; j < n; j += tiles.columns)
    for (int64_t t = 0; t < numTiles; ++t) {
      // Weights come from memory, so each tile prefetches a part of the next
      // panel.
      if (j + tiles.columns < n)
        for (int64_t at = size * t / numTiles; at < size * (t + 1) / numTiles;
             at += 64 / sizeof(T))
          __builtin_prefetch(getPanel(j + tiles.columns) + at);
      multiplyAt(t, j);
    }
}

/// Like multiplyBlock, for a block of A that is stored by columns. It copies
/// the block first, so that a tile's elements share cache lines and pages.
template <typename T>
[[gnu::noinline]] static void
multiplyColumns(const TileSet<T> &tiles, int64_t height, int64_t n,
                int64_t begin, int64_t depth, Matrix<const T> a, Packed<T> b,
                T *c, int64_t rowC, const Epilogue<T> &epilogue) {
  alignas(64) T block[blockRows * maxDepth];
  for (int64_t p = 0; p < depth; ++p)
    std::copy_n(&a.at(0, p), height, block + p * height);
  multiplyBlock(tiles, height, n, begin, depth, {block, 1, height}, b, c, rowC,
                epilogue);
}

template <typename T>
void tprt::multiplyPacked(int64_t m, int64_t n, int64_t k, Matrix<const T> a,
                          Packed<T> b, T *c, int64_t rowC,
                          const Epilogue<T> &epilogue) {
  const TileSet<T> &tiles = getTiles<T>();
  // Every block reads all of B, so there are few blocks, of about equal height.
  int64_t numBlocks = (m + blockRows - 1) / blockRows;
  for (int64_t i = 0; i < numBlocks; ++i) {
    int64_t top = m * i / numBlocks, begin = 0;
    int64_t height = m * (i + 1) / numBlocks - top;
    T *block = c + top * rowC;
    const Epilogue<T> whole = epilogue.at(top, 0);
    do {
      int64_t depth = std::min(maxDepth, k - begin);
      Epilogue<T> part = whole;
      if (begin > 0) { // add to the sums so far
        part.bias = part.rowBias = nullptr;
        part.addend = block;
        part.rowAddend = rowC;
      }
      if (begin + depth < k) {
        part.activation = TPRT_NO_ACTIVATION;
        part.factor = nullptr;
      }
      bool isByColumns = a.row == 1 && a.col != 1;
      (isByColumns ? multiplyColumns<T>
                   : multiplyBlock<T>)(tiles, height, n, begin, depth,
                                       {&a.at(top, begin), a.row, a.col}, b,
                                       block, rowC, part);
      begin += depth;
    } while (begin < k);
  }
}

#define TPRT_INSTANTIATE(T)                                                    \
  template int64_t tprt::getPanelColumns<T>();                                 \
  template int64_t tprt::getPackedSize<T>(int64_t, int64_t);                   \
  template void tprt::pack<T>(Matrix<const T>, int64_t, int64_t, T *);         \
  template void tprt::multiplyPacked<T>(int64_t, int64_t, int64_t,             \
                                        Matrix<const T>, Packed<T>, T *,       \
                                        int64_t, const Epilogue<T> &);
TPRT_INSTANTIATE(float)
TPRT_INSTANTIATE(double)
