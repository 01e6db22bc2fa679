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

/// One tile: rows x columns elements of C = a * panel, over `depth` terms. The
/// sums start from `init`, a row of the tile's width, from `rowInit`, a column
/// of its height, or from zero if both are null. If `addend`, which may be C,
/// isn't null, it is added to them.
template <typename T>
using TileFunction = void (*)(int64_t depth, const T *a, int64_t rowA,
                              int64_t colA, const T *panel, const T *init,
                              const T *rowInit, T *c, int64_t rowC,
                              const T *addend, int64_t rowAddend);

static constexpr int maxTileRows = 12;

namespace {

/// The tiles of one instruction set, by their number of rows, and the function
/// that packs `given` columns of B for them.
template <typename T>
struct TileSet {
  int64_t rows, columns;
  std::array<TileFunction<T>, maxTileRows + 1> functions;
  void (*packPanel)(Matrix<const T> source, int64_t k, int64_t given, T *panel);
};

} // namespace

template <typename T, int vectorBytes, int numVectors, int rows>
TPRT_INLINE void multiplyTile(int64_t depth, const T *a, int64_t rowA,
                              int64_t colA, const T *panel, const T *init,
                              const T *rowInit, T *c, int64_t rowC,
                              const T *addend, int64_t rowAddend) {
  typedef T Vector
      __attribute__((vector_size(vectorBytes), aligned(alignof(T)), may_alias));
  constexpr int width = vectorBytes / sizeof(T);
  Vector sums[rows][numVectors];
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < numVectors; ++v)
      sums[i][v] = init ? *reinterpret_cast<const Vector *>(init + v * width)
                   : rowInit ? Vector{} + rowInit[i]
                             : Vector{};
  for (int64_t p = 0; p < depth; ++p) {
    Vector right[numVectors];
    for (int v = 0; v < numVectors; ++v)
      right[v] = *reinterpret_cast<const Vector *>(
          panel + (p * numVectors + v) * width);
    for (int i = 0; i < rows; ++i) {
      T left = a[i * rowA + p * colA];
      for (int v = 0; v < numVectors; ++v)
        sums[i][v] += left * right[v];
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < numVectors; ++v) {
      Vector &to = *reinterpret_cast<Vector *>(c + i * rowC + v * width);
      to = addend ? *reinterpret_cast<const Vector *>(addend + i * rowAddend +
                                                      v * width) +
                        sums[i][v]
                  : sums[i][v];
    }
}

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
  template <typename T, int rows>                                              \
  TARGET static void NAME##Tile(int64_t depth, const T *a, int64_t rowA,       \
                                int64_t colA, const T *panel, const T *init,   \
                                const T *rowInit, T *c, int64_t rowC,          \
                                const T *addend, int64_t rowAddend) {          \
    multiplyTile<T, BYTES, VECTORS, rows>(depth, a, rowA, colA, panel, init,   \
                                          rowInit, c, rowC, addend,            \
                                          rowAddend);                          \
  }                                                                            \
  template <typename T>                                                        \
  TARGET static void NAME##PackPanel(Matrix<const T> source, int64_t k,        \
                                     int64_t given, T *panel) {                \
    packPanel<T, BYTES / sizeof(T) * VECTORS>(source, k, given, panel);        \
  }                                                                            \
  template <typename T>                                                        \
  static TileSet<T> NAME##Tiles() {                                            \
    TileSet<T> set{ROWS, BYTES / sizeof(T) * VECTORS, {}, NAME##PackPanel<T>}; \
    [&]<int... i>(std::integer_sequence<int, i...>) {                          \
      ((set.functions[i + 1] = NAME##Tile<T, i + 1>), ...);                    \
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
static void multiplyEdge(TileFunction<T> function, int64_t rows,
                         int64_t columns, int64_t given, int64_t depth,
                         Matrix<const T> a, const T *panel, const T *init,
                         const T *rowInit, T *c, int64_t rowC, const T *addend,
                         int64_t rowAddend) {
  alignas(64) T tile[maxTileRows * 128 / sizeof(T)];
  function(depth, a.data, a.row, a.col, panel, init, rowInit, tile, columns,
           /*addend=*/nullptr, 0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < given; ++j) {
      T sum = tile[i * columns + j];
      c[i * rowC + j] = addend ? addend[i * rowAddend + j] + sum : sum;
    }
}

/// Computes `height` rows of the product, over `depth` terms, the first of
/// which is row `begin` of B. `epilogue` is for these rows and terms: the first
/// terms have the biases and the addend, the last ones the rest.
template <typename T>
static void multiplyBlock(const TileSet<T> &tiles, int64_t height, int64_t n,
                          int64_t begin, int64_t depth, Matrix<const T> a,
                          Packed<T> b, T *c, int64_t rowC,
                          const Epilogue<T> &epilogue) {
  alignas(64) T init[128 / sizeof(T)] = {};
  bool isChanged = epilogue.activation != TPRT_NO_ACTIVATION || epilogue.factor;
  // Tiles of about equal height, because a low one at the end would be slow.
  int64_t numTiles = (height + tiles.rows - 1) / tiles.rows;
  const int64_t size = depth * tiles.columns;
  for (int64_t j = 0; j < n; j += tiles.columns) {
    const T *panel = b.data + j * b.rows + begin * tiles.columns;
    int64_t given = std::min(tiles.columns, n - j);
    if (epilogue.bias)
      std::copy_n(epilogue.bias + j, given, init);
    for (int64_t t = 0; t < numTiles; ++t) {
      int64_t top = height * t / numTiles;
      int64_t rows = height * (t + 1) / numTiles - top;
      // Weights come from memory, so each tile prefetches a part of the next
      // panel.
      if (j + tiles.columns < n) {
        const T *next = panel + b.rows * tiles.columns;
        for (int64_t at = size * t / numTiles; at < size * (t + 1) / numTiles;
             at += 64 / sizeof(T))
          __builtin_prefetch(next + at);
      }
      Matrix<const T> block{&a.at(top, 0), a.row, a.col};
      Epilogue<T> part = epilogue.at(top, j);
      const T *start = part.bias ? init : nullptr;
      T *corner = c + top * rowC + j;
      TileFunction<T> function = tiles.functions[rows];
      if (given == tiles.columns)
        function(depth, block.data, a.row, a.col, panel, start, part.rowBias,
                 corner, rowC, part.addend, part.rowAddend);
      else
        multiplyEdge(function, rows, tiles.columns, given, depth, block, panel,
                     start, part.rowBias, corner, rowC, part.addend,
                     part.rowAddend);
      if (isChanged) // while the tile is in the first-level cache
        activate(part.activation, rows, given, corner, rowC, part.factor,
                 part.rowFactor);
    }
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
