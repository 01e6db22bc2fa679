//===- Tiles.cpp - Products of small and packed matrices ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Tiles.h"

#include "cpu/Activation.h"
#include "cpu/Panels.h"
#include "support/Division.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace tprt;

/// Rows of A per block. A block of A has to stay in the second-level cache.
static constexpr int64_t blockRows = 264;

/// The size up to which B stays in the second-level cache while A is read.
static constexpr int64_t maxKeptBytes = 1 << 19;

namespace {

/// A block of A as tiles read it; strides count bytes. A step covers as many
/// adjacent terms as a panel has rows beside each other.
struct Left {
  const std::byte *data;
  int64_t row, step;
};

/// One tile: rows x columns elements of C = left * panel, over `steps` steps,
/// with the scale, the biases, the addend and, if it is relu, the activation of
/// `epilogue`, whose bias is as wide as the tile. Without a scale, the sums
/// start from the bias.
template <typename S>
struct Tile {
  using T = SumOf<S>;
  int64_t steps;
  Left left;
  const S *panel;
  Epilogue<T> epilogue;
  T *c;
  int64_t rowC;
  /// For a tile of several panels: the elements from one to the next, and from
  /// an element that is read to one that is to be prefetched.
  int64_t nextPanel = 0, ahead = 0;
};

template <typename S>
using TileFunction = void (*)(const Tile<S> &tile);

} // namespace

static constexpr int maxTileRows = 12;

/// The largest number of rows, in one tile, that several panels are multiplied
/// by at once. Memory then limits the time, and is read faster in several
/// streams.
static constexpr int maxLowRows = 6;
static constexpr int maxPanels = 4;

/// How many panels a low tile multiplies, where registers have room for
/// `tileRows` rows of one panel.
static constexpr int countPanels(int rows, int tileRows) {
  return std::clamp(tileRows / std::max(rows, 1), 1, maxPanels);
}

namespace {

/// The tiles of one instruction set, by their number of rows; tiles of half a
/// panel's columns; tiles of several panels; and the function that packs `given`
/// columns of B for them.
template <typename S>
struct TileSet {
  int64_t rows, columns;
  bool widensLeft; ///< A is converted to the type of the sums
  std::array<TileFunction<S>, maxTileRows + 1> functions, narrowFunctions;
  std::array<TileFunction<S>, maxLowRows + 1> lowFunctions;
  void (*packPanel)(Matrix<const S> source, int64_t k, int64_t given, S *panel);

  bool hasLowTile(int64_t height) const {
    return height <= std::min<int64_t>(maxLowRows, rows);
  }
};

} // namespace

/// A vector in a register, and one in memory, which needs no alignment.
template <typename T, int bytes>
struct Vectors {
  typedef T Register __attribute__((vector_size(bytes)));
  typedef T Memory
      __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

/// A loop over the sums of a tile. It is unrolled early, so that they stay in
/// registers.
#define TPRT_FOR_SUMS(I, V)                                                    \
  _Pragma("GCC unroll 12") for (int I = 0; I < rows; ++I)                      \
      _Pragma("GCC unroll 12") for (int V = 0; V < numVectors; ++V)

template <int rows, int numVectors, typename Vector, typename S>
TPRT_INLINE void startSums(const Tile<S> &tile,
                           Vector (&sums)[rows][numVectors]) {
  using T = SumOf<S>;
  using Memory = typename Vectors<T, sizeof(Vector)>::Memory;
  constexpr int width = sizeof(Vector) / sizeof(T);
  const Epilogue<T> &epilogue = tile.epilogue;
  const T *init = epilogue.bias;
  const T *rowInit = epilogue.rowScale ? nullptr : epilogue.rowBias;
  TPRT_FOR_SUMS(i, v) {
    sums[i][v] = init      ? *reinterpret_cast<const Memory *>(init + v * width)
                 : rowInit ? Vector{} + rowInit[i]
                           : Vector{};
  }
  // C and the addend may be in memory, and have time to arrive.
  for (int i = 0; i < rows; ++i)
    for (int at = 0; at < numVectors * width; at += 64 / sizeof(T)) {
      __builtin_prefetch(tile.c + i * tile.rowC + at, /*write*/ 1);
      if (epilogue.addend)
        __builtin_prefetch(epilogue.addend + i * epilogue.rowAddend + at);
    }
}

template <int rows, int numVectors, typename Vector, typename S>
TPRT_INLINE void storeSums(const Tile<S> &tile,
                           Vector (&sums)[rows][numVectors]) {
  using T = SumOf<S>;
  using Memory = typename Vectors<T, sizeof(Vector)>::Memory;
  constexpr int width = sizeof(Vector) / sizeof(T);
  const Epilogue<T> &epilogue = tile.epilogue;
  const T *rowScale = epilogue.rowScale, *rowBias = epilogue.rowBias;
  if (rowScale) {
    TPRT_FOR_SUMS(i, v) {
      sums[i][v] = sums[i][v] * rowScale[i] + (rowBias ? rowBias[i] : T(0));
    }
  }
  if (const T *addend = epilogue.addend) {
    TPRT_FOR_SUMS(i, v) {
      sums[i][v] += *reinterpret_cast<const Memory *>(
          addend + i * epilogue.rowAddend + v * width);
    }
  }
  if (epilogue.activation == TPRT_RELU) {
    TPRT_FOR_SUMS(i, v) {
      sums[i][v] = sums[i][v] <= 0 ? Vector{} : sums[i][v]; // NaN stays
    }
  }
  TPRT_FOR_SUMS(i, v) {
    *reinterpret_cast<Memory *>(tile.c + i * tile.rowC + v * width) =
        sums[i][v];
  }
}

#undef TPRT_FOR_SUMS

/// Loads a vector's elements of one step, widened, one vector for each row.
template <typename Vector, typename S>
TPRT_INLINE void loadStep(const S *from, Vector (&rows)[panelTerms<S>]) {
  using Memory = typename Vectors<SumOf<S>, sizeof(Vector)>::Memory;
  constexpr int width = sizeof(Vector) / sizeof(SumOf<S>);
  if constexpr (std::is_same_v<S, BFloat16>) {
    using Words = Vectors<uint32_t, sizeof(Vector)>;
    typename Words::Register pairs =
        *reinterpret_cast<const typename Words::Memory *>(from);
    rows[0] = reinterpret_cast<Vector>(pairs << 16);
    rows[1] = reinterpret_cast<Vector>(pairs & 0xffff0000);
  } else if constexpr (std::is_same_v<S, Half>) {
    typedef Half Halves
        __attribute__((vector_size(width * 2), aligned(2), may_alias));
    rows[0] = __builtin_convertvector(*reinterpret_cast<const Halves *>(from),
                                      Vector);
  } else {
    rows[0] = *reinterpret_cast<const Memory *>(from);
  }
}

/// A tile of the first `numVectors` vectors of `panels` panels, which have
/// `panelVectors`.
template <typename S, int bytes, int panelVectors, int rows, int panels,
          int numVectors>
TPRT_INLINE void multiplyTile(Tile<S> tile) {
  using T = SumOf<S>;
  using Vector = typename Vectors<T, bytes>::Register;
  constexpr int terms = panelTerms<S>, all = numVectors * panels;
  constexpr int width = bytes / sizeof(T) * terms;
  Vector sums[rows][all];
  startSums(tile, sums);
  for (int64_t p = 0; p < tile.steps; ++p) {
    Vector right[all][terms];
    for (int v = 0; v < all; ++v) {
      const S *from = tile.panel + v / numVectors * tile.nextPanel +
                      (p * panelVectors + v % numVectors) * width;
      if constexpr (panels > 1)
        __builtin_prefetch(from + tile.ahead, 0, 2);
      loadStep(from, right[v]);
    }
    for (int i = 0; i < rows; ++i) {
      auto *left = reinterpret_cast<const T *>(
          tile.left.data + i * tile.left.row + p * tile.left.step);
      for (int t = 0; t < terms; ++t)
        for (int v = 0; v < all; ++v)
          sums[i][v] += left[t] * right[v][t];
    }
  }
  storeSums(tile, sums);
}

/// The tiles of an instruction set: registers for rows * vectors sums, for a
/// row of the panel, and for an element of A.
#define TPRT_TILES(NAME, TARGET, BYTES, VECTORS, ROWS)                         \
  namespace {                                                                  \
  struct NAME {                                                                \
    static constexpr int tileRows = ROWS, tileVectors = VECTORS;               \
    static constexpr int tileBytes = BYTES * VECTORS;                          \
    template <typename S>                                                      \
    static constexpr bool widensLeft = sizeof(S) < sizeof(SumOf<S>);           \
    template <typename S, int rows, int panels, int vectors>                   \
    TARGET static void multiply(const Tile<S> &tile) {                         \
      multiplyTile<S, BYTES, VECTORS, rows, panels, vectors>(tile);            \
    }                                                                          \
    template <typename S>                                                      \
    TARGET static void pack(Matrix<const S> source, int64_t k, int64_t given,  \
                            S *panel) {                                        \
      packPanel<S, tileBytes / sizeof(SumOf<S>)>(source, k, given, panel);     \
    }                                                                          \
  };                                                                           \
  }

TPRT_TILES(Generic, , 16, 2, 4)
#if defined(__x86_64__)
TPRT_TILES(Avx2, __attribute__((target("avx2,fma,f16c"))), 32, 2, 6)
TPRT_TILES(Avx512, __attribute__((target("avx512f"))), 64, 2, 12)

namespace {
/// Tiles of bf16 that multiply pairs of elements without widening them.
struct Avx512Bf16 : Avx512 {
  template <typename S>
  static constexpr bool widensLeft = false;
  template <typename S, int rows, int panels, int numVectors>
  __attribute__((target("avx512f,avx512bf16"))) static void
  multiply(const Tile<S> &given) {
    const Tile<S> tile = given; // which stores to C don't change
    using Vector = Vectors<float, 64>::Register;
    using Pairs = Vectors<uint32_t, 64>::Register;
    using PairsInMemory = Vectors<uint32_t, 64>::Memory;
    constexpr int all = numVectors * panels, width = 32;
    Vector sums[rows][all];
    startSums(tile, sums);
    for (int64_t p = 0; p < tile.steps; ++p) {
      Pairs right[all];
      for (int v = 0; v < all; ++v) {
        const S *from = tile.panel + v / numVectors * tile.nextPanel +
                        (p * tileVectors + v % numVectors) * width;
        if constexpr (panels > 1)
          __builtin_prefetch(from + tile.ahead, 0, 2);
        right[v] = *reinterpret_cast<const PairsInMemory *>(from);
      }
      for (int i = 0; i < rows; ++i) {
        uint32_t left;
        std::memcpy(&left,
                    tile.left.data + i * tile.left.row + p * tile.left.step,
                    sizeof(left));
        for (int v = 0; v < all; ++v)
          sums[i][v] = _mm512_dpbf16_ps(
              sums[i][v], reinterpret_cast<__m512bh>(Pairs{} + left),
              reinterpret_cast<__m512bh>(right[v]));
      }
    }
    storeSums(tile, sums);
  }
};
} // namespace
#endif

template <typename S, typename Set>
static TileSet<S> makeTiles() {
  TileSet<S> set{Set::tileRows,
                 Set::tileBytes / sizeof(SumOf<S>),
                 Set::template widensLeft<S>,
                 {},
                 {},
                 {},
                 Set::template pack<S>};
  constexpr int vectors = Set::tileVectors;
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((set.functions[i + 1] = Set::template multiply<S, i + 1, 1, vectors>),
     ...);
    ((set.narrowFunctions[i + 1] =
          Set::template multiply<S, i + 1, 1, vectors / 2>),
     ...);
  }(std::make_integer_sequence<int, Set::tileRows>());
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((set.lowFunctions[i + 1] =
          Set::template multiply<S, i + 1, countPanels(i + 1, Set::tileRows),
                                 vectors>),
     ...);
  }(std::make_integer_sequence<int, maxLowRows>());
  return set;
}

template <typename S>
static const TileSet<S> &getTiles() {
  static const TileSet<S> tiles = [] {
#if defined(__x86_64__)
    if constexpr (std::is_same_v<S, BFloat16>)
      if (__builtin_cpu_supports("avx512bf16"))
        return makeTiles<S, Avx512Bf16>();
    if (__builtin_cpu_supports("avx512f"))
      return makeTiles<S, Avx512>();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
      return makeTiles<S, Avx2>();
#endif
    return makeTiles<S, Generic>();
  }();
  return tiles;
}

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
    Tile<S> tile{padDepth<S>(depth) / panelTerms<S>,
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
    int64_t numPanels = countPanels(height, tiles.rows);
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

/// Copies a block of A in the form that tiles read, with elements of type L.
template <typename L, typename S>
static Left copyLeft(Matrix<const S> a, int64_t height, int64_t depth,
                     L *block) {
  constexpr int64_t terms = panelTerms<S>, element = sizeof(L);
  const int64_t padded = padDepth<S>(depth);
  auto copy = [&](const S *from, int64_t count, L *to) {
    if constexpr (std::is_same_v<L, S>)
      std::copy_n(from, count, to);
    else
      convertToF32(std::is_same_v<S, Half> ? Dtype::F16 : Dtype::BF16, from, to,
                   count);
  };
  if (a.row == 1 && a.col != 1) {
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
  for (int64_t i = 0; i < height; ++i) {
    L *row = block + i * padded;
    if (a.col == 1)
      copy(a.from(i, 0), depth, row);
    else
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
  alignas(64) SumOf<S> block[blockRows * sumDepth];
  Left left = tiles.widensLeft
                  ? copyLeft(a, height, depth, block)
                  : copyLeft(a, height, depth, reinterpret_cast<S *>(block));
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
                    (terms == 1 || (a.col == 1 && depth % terms == 0));
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
    int64_t columns = countPanels(m, tiles.rows) * tiles.columns;
    for (int64_t j = 0; j < n; j += columns)
      multiplyRows(tiles, m, std::min(columns, n - j), k, a, b.at(0, j), c + j,
                   rowC, epilogue.at(0, j));
    return;
  }
  // Every block reads all of B, so there are few blocks, of about equal height.
  int64_t numBlocks = divideCeil(m, blockRows);
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
