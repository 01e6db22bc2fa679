//===- Tiles.cpp - Products of small and packed matrices ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Tiles.h"

#include "cpu/Activation.h"
#include "cpu/Panels.h"
#include "cpu/TileSets.h"
#include "support/Division.h"
#include "support/Multiversion.h"

#include <algorithm>
#include <utility>

using namespace tprt;

/// The most rows of A per block, which has to stay in the second-level cache.
static constexpr int64_t blockRows = 264;

/// Rows of A that are a multiple of this apart share few sets of the first-level
/// cache, and push each other out.
static constexpr int64_t crowdedStride = 1024;

/// What keeps the rows of a copy from that, in elements of 16 bits.
static constexpr int64_t rowPadding = 32;

/// The size up to which B stays in the second-level cache while A is read.
static constexpr int64_t maxKeptBytes = 1 << 19;

template <typename S>
int64_t tprt::getPanelColumns() {
  return getTiles<S>().columns;
}

template <typename S>
int64_t tprt::getPackedSize(int64_t k, int64_t n) {
  int64_t columns = getPanelColumns<S>();
  return alignTo(n, columns) * padDepth<S>(k);
}

template <typename S>
void tprt::pack(Matrix<const S> source, int64_t k, int64_t n, S *packed) {
  const TileSet<S> &tiles = getTiles<S>();
  for (int64_t j = 0; j < n; j += tiles.columns)
    tiles.packPanel({source.from(0, j), source.row, source.col}, k,
                    std::min(tiles.columns, n - j),
                    packed + j * padDepth<S>(k));
}

/// Computes the last columns of C, which are fewer than a tile has.
template <typename S>
static void multiplyEdge(const TileSet<S> &tiles, int64_t rows, int64_t given,
                         const Tile<S> &tile) {
  using T = SumOf<S>;
  constexpr int64_t width = 128 / sizeof(T);
  alignas(64) T sums[maxTileRows * width] = {}, bias[width] = {};
  Tile<S> whole = tile;
  whole.c = sums;
  whole.rowC = width;
  if (tile.epilogue.bias) {
    std::copy_n(tile.epilogue.bias, given, bias);
    whole.epilogue.bias = bias;
  }
  if (const T *addend = tile.epilogue.addend) {
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(addend + i * tile.epilogue.rowAddend, given,
                  sums + i * width);
    whole.epilogue.addend = sums;
    whole.epilogue.rowAddend = width;
  }
  bool isNarrow = given <= tiles.columns / 2;
  (isNarrow ? tiles.narrowFunctions : tiles.functions)[rows](whole);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(sums + i * width, given, tile.c + i * tile.rowC);
}

namespace {

/// The product of `height` rows and n columns, over `depth` terms, the first of
/// which is row `begin` of B. `epilogue` is for these rows and terms: the first
/// terms have the biases and the addend, the last ones the rest.
template <typename S>
struct BlockProduct {
  using T = SumOf<S>;
  const TileSet<S> &tiles;
  int64_t height, n, begin, depth;
  Left a;
  Packed<S> b;
  T *c;
  int64_t rowC;
  const Epilogue<T> &epilogue;

  /// Computes the rows from `top` on of `given` columns from j on, by a tile of
  /// `function`, or one of fewer columns.
  TPRT_INLINE void multiplyAt(TileFunction<S> function, int64_t top,
                              int64_t rows, int64_t j, int64_t given,
                              int64_t columns, int64_t ahead) const {
    Tile<S> tile{rows,
                 padDepth<S>(depth) / panelTerms<S>,
                 {a.data + top * a.row, a.row, a.step},
                 b.at(begin, j).data,
                 epilogue.at(top, j),
                 c + top * rowC + j,
                 rowC,
                 padDepth<S>(b.rows) * tiles.columns,
                 ahead};
    if (given == columns)
      function(tile);
    else
      multiplyEdge(tiles, rows, given, tile);
    bool isChanged =
        epilogue.factor || (epilogue.activation != TPRT_NO_ACTIVATION &&
                            epilogue.activation != TPRT_RELU);
    if (isChanged) // while the tile is in the first-level cache
      activate(epilogue.activation, rows, given, tile.c, rowC,
               tile.epilogue.factor, tile.epilogue.rowFactor);
  }

  /// One tile of rows: each reads several panels, which come from memory.
  void multiplyLow() const {
    int64_t numPanels = tiles.lowPanels[height];
    const int64_t size = padDepth<S>(depth) * tiles.columns;
    const int64_t nextPanel = padDepth<S>(b.rows) * tiles.columns;
    // What is read after these panels' terms: their next ones, or those of the
    // next panels.
    const int64_t ahead = begin + depth < b.rows
                              ? size
                              : numPanels * nextPanel - begin * tiles.columns;
    for (int64_t j = 0, columns; j < n; j += columns) {
      bool hasPanels = numPanels * tiles.columns <= n - j;
      columns = (hasPanels ? numPanels : 1) * tiles.columns;
      multiplyAt(
          (hasPanels ? tiles.lowFunctions[height] : tiles.functions[height]),
          /*top=*/0, height, j, std::min(columns, n - j), columns, ahead);
    }
  }

  void multiply() const {
    if (tiles.hasLowTile(height))
      return multiplyLow();
    // Tiles of about equal height, because a low one at the end would be slow.
    int64_t numTiles = divideCeil(height, tiles.rows);
    auto multiplyTileAt = [&](int64_t t,
                              int64_t j) __attribute__((always_inline)) {
      int64_t top = height * t / numTiles;
      int64_t rows = height * (t + 1) / numTiles - top;
      multiplyAt(tiles.functions[rows], top, rows, j,
                 std::min(tiles.columns, n - j), tiles.columns, /*ahead=*/0);
    };
    if (getPackedSize<S>(depth, n) * static_cast<int64_t>(sizeof(S)) <=
        maxKeptBytes) {
      // All of B stays in the second-level cache. C is written row by row,
      // which memory serves faster than columns.
      for (int64_t t = 0; t < numTiles; ++t)
        for (int64_t j = 0; j < n; j += tiles.columns)
          multiplyTileAt(t, j);
      return;
    }
    const int64_t size = padDepth<S>(depth) * tiles.columns;
    for (int64_t j = 0; j < n; j += tiles.columns)
      for (int64_t t = 0; t < numTiles; ++t) {
        // Weights come from memory, so each tile prefetches a part of the next
        // panel.
        if (j + tiles.columns < n)
          for (int64_t at = size * t / numTiles; at < size * (t + 1) / numTiles;
               at += 64 / sizeof(S))
            __builtin_prefetch(b.at(begin, j + tiles.columns).data + at);
        multiplyTileAt(t, j);
      }
  }
};

} // namespace

/// Copies a rows x columns matrix that is stored by columns, `next` elements
/// apart, to rows that are `row` elements apart.
TPRT_MULTIVERSION static void transposeHalves(int64_t rows, int64_t columns,
                                              const uint16_t *source,
                                              int64_t next, uint16_t *to,
                                              int64_t row) {
  constexpr int width = 16;
  typedef uint16_t Vector __attribute__((vector_size(2 * width)));
  typedef uint16_t Unaligned
      __attribute__((vector_size(2 * width), aligned(2), may_alias));
  const int64_t wholeRows = rows / width * width;
  const int64_t wholeColumns = columns / width * width;
  for (int64_t i = 0; i < wholeRows; i += width)
    for (int64_t j = 0; j < wholeColumns; j += width) {
      Vector square[width];
      for (int v = 0; v < width; ++v)
        square[v] =
            *reinterpret_cast<const Unaligned *>(source + (j + v) * next + i);
      transpose<width / 2>(square, std::make_integer_sequence<int, width>());
      for (int v = 0; v < width; ++v)
        *reinterpret_cast<Unaligned *>(to + (i + v) * row + j) = square[v];
    }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < wholeRows ? wholeColumns : 0; j < columns; ++j)
      to[i * row + j] = source[j * next + i];
}

/// Copies a block of A in the form that tiles read, with elements of type L.
template <typename L, typename S>
static Left copyLeft(Matrix<const S> a, int64_t height, int64_t depth,
                     bool byRows, L *block) {
  constexpr int64_t terms = panelTerms<S>, element = sizeof(L);
  const int64_t padded = padDepth<S>(depth) + (byRows ? rowPadding : 0);
  auto copy = [&](const S *from, int64_t count, L *to) {
    if constexpr (std::is_same_v<L, S>)
      std::copy_n(from, count, to);
    else
      convertToF32(std::is_same_v<S, Half> ? Dtype::F16 : Dtype::BF16, from, to,
                   count);
  };
  const bool isByColumns = a.row == 1 && a.col != 1;
  if (isByColumns && !byRows) {
    // Elements of a tile share cache lines and pages.
    for (int64_t p = 0; p < padded; ++p) {
      L *to = block + p / terms * terms * height + p % terms;
      if (terms == 1)
        copy(a.from(0, p), height, to);
      else
        for (int64_t i = 0; i < height; ++i)
          to[i * terms] = p < depth ? castElement<L>(a.at(i, p)) : L{};
    }
    return {reinterpret_cast<std::byte *>(block), terms * element,
            height * terms * element};
  }
  const bool isTransposed =
      isByColumns && std::is_same_v<L, S> && sizeof(S) == sizeof(uint16_t);
  if (isTransposed)
    transposeHalves(height, depth, reinterpret_cast<const uint16_t *>(a.data),
                    a.col, reinterpret_cast<uint16_t *>(block), padded);
  for (int64_t i = 0; i < height; ++i) {
    L *row = block + i * padded;
    if (a.col == 1)
      copy(a.from(i, 0), depth, row);
    else if (!isTransposed)
      for (int64_t p = 0; p < depth; ++p)
        row[p] = castElement<L>(a.at(i, p));
    std::fill(row + depth, row + padded, L{});
  }
  return {reinterpret_cast<std::byte *>(block), padded * element,
          terms * element};
}

/// For a block of A that tiles can't read where it is.
template <typename S>
[[gnu::noinline]] static void
multiplyCopied(const TileSet<S> &tiles, int64_t height, int64_t n,
               int64_t begin, int64_t depth, Matrix<const S> a, Packed<S> b,
               SumOf<S> *c, int64_t rowC, const Epilogue<SumOf<S>> &epilogue) {
  alignas(64) SumOf<S> block[blockRows * (sumDepth + rowPadding)];
  Left left = tiles.widensLeft
                  ? copyLeft(a, height, depth, tiles.readsRows, block)
                  : copyLeft(a, height, depth, tiles.readsRows,
                             reinterpret_cast<S *>(block));
  BlockProduct<S>{tiles, height, n, begin, depth, left, b, c, rowC, epilogue}
      .multiply();
}

/// Computes `height` rows of the product, block by block of terms.
template <typename S>
static void multiplyRows(const TileSet<S> &tiles, int64_t height, int64_t n,
                         int64_t k, Matrix<const S> a, Packed<S> b, SumOf<S> *c,
                         int64_t rowC, const Epilogue<SumOf<S>> &epilogue) {
  int64_t begin = 0;
  do {
    int64_t depth = std::min(sumDepth, k - begin);
    Epilogue<SumOf<S>> part = epilogue;
    if (begin > 0) { // add to the sums so far
      part.bias = part.rowBias = nullptr;
      part.addend = c;
      part.rowAddend = rowC;
    }
    if (begin + depth < k) {
      part.activation = TPRT_NO_ACTIVATION;
      part.factor = nullptr;
    }
    Matrix<const S> block{a.from(0, begin), a.row, a.col};
    constexpr int64_t terms = panelTerms<S>, element = sizeof(S);
    bool isByColumns = a.row == 1 && a.col != 1;
    bool isUsable = !tiles.widensLeft && !isByColumns &&
                    (terms == 1 || (a.col == 1 && depth % terms == 0)) &&
                    !(tiles.readsRows && height > maxLowRows &&
                      a.row * element % crowdedStride == 0);
    if (isUsable)
      BlockProduct<S>{tiles,
                      height,
                      n,
                      begin,
                      depth,
                      {reinterpret_cast<const std::byte *>(block.data),
                       a.row * element, a.col * terms * element},
                      b,
                      c,
                      rowC,
                      part}
          .multiply();
    else
      multiplyCopied<S>(tiles, height, n, begin, depth, block, b, c, rowC,
                        part);
    begin += depth;
  } while (begin < k);
}

template <typename S>
void tprt::multiplyPacked(int64_t m, int64_t n, int64_t k, Matrix<const S> a,
                          Packed<S> b, SumOf<S> *c, int64_t rowC,
                          const Epilogue<SumOf<S>> &epilogue) {
  if (m == 0)
    return;
  const TileSet<S> &tiles = getTiles<S>();
  if (tiles.hasLowTile(m)) {
    // Each panel is read from its beginning to its end.
    int64_t columns = tiles.lowPanels[m] * tiles.columns;
    for (int64_t j = 0; j < n; j += columns)
      multiplyRows(tiles, m, std::min(columns, n - j), k, a, b.at(0, j), c + j,
                   rowC, epilogue.at(0, j));
    return;
  }
  // Every block reads all of B, so there are few blocks, of about equal height.
  int64_t numBlocks = divideCeil(m, blockRows / tiles.rows * tiles.rows);
  for (int64_t i = 0; i < numBlocks; ++i) {
    int64_t top = m * i / numBlocks;
    int64_t height = m * (i + 1) / numBlocks - top;
    multiplyRows<S>(tiles, height, n, k, {a.from(top, 0), a.row, a.col}, b,
                    c + top * rowC, rowC, epilogue.at(top, 0));
  }
}

#define TPRT_INSTANTIATE(S)                                                    \
  template int64_t tprt::getPanelColumns<S>();                                 \
  template int64_t tprt::getPackedSize<S>(int64_t, int64_t);                   \
  template void tprt::pack<S>(Matrix<const S>, int64_t, int64_t, S *);         \
  template void tprt::multiplyPacked<S>(                                       \
      int64_t, int64_t, int64_t, Matrix<const S>, Packed<S>, SumOf<S> *,       \
      int64_t, const Epilogue<SumOf<S>> &);
TPRT_INSTANTIATE(float)
TPRT_INSTANTIATE(double)
TPRT_INSTANTIATE(Half)
TPRT_INSTANTIATE(BFloat16)
