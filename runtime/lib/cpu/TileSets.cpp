//===- TileSets.cpp - Tiles of each instruction set -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/TileSets.h"

#include "cpu/InstructionSet.h"
#include "cpu/Panels.h"
#include "support/Multiversion.h"

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace tprt;

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
#define TPRT_AMX_TARGET target("avx512f,amx-tile,amx-bf16")
#define TPRT_AMX __attribute__((TPRT_AMX_TARGET))

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

/// The shapes of AMX's registers, as ldtilecfg reads them.
struct alignas(64) RegisterShapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  RegisterShapes() {
    std::fill_n(rowBytes, 8, 64);
    std::fill_n(rows, 8, 16);
  }
};

/// Tiles of bf16 in AMX's registers, each of which has 16 rows of 64 bytes:
/// 0 to 3 for the sums of 32 rows and columns, 4 and 5 for A, 6 and 7 for B.
///
/// tdpbf16ps adds up the first and the second products of 16 pairs apart, and
/// then their sum to the result. Low tiles do the same without AMX's registers,
/// whose loads hide less of the memory's latency.
struct AmxBf16 : Avx512 {
  static constexpr int registerRows = 16, tileRows = 2 * registerRows;
  static constexpr int stepsAtOnce = 16, maxLowRows = 2;
  /// As many as registers have room for.
  static constexpr int countLowPanels(int rows) { return 4 / rows; }

  using Vector = Vectors<float, 64>::Register;
  using VectorInMemory = Vectors<float, 64>::Memory;

  /// Where tiles of sums are read from and written to; rows are `row` elements
  /// apart.
  struct Sums {
    const float *data;
    int64_t row;
  };
  struct MutableSums {
    float *data;
    int64_t row;
  };

  /// Calls visit(first row, its tile, std::integral_constant) for groups of
  /// eight rows, whose sums fit into vector registers, and for the rest one by
  /// one.
  template <typename S, typename Visit>
  TPRT_AMX TPRT_INLINE static void forEachGroup(const Tile<S> &tile,
                                                Visit visit) {
    constexpr int group = 8;
    Tile<S> part = tile;
    for (int64_t i = 0; i < tile.rows;) {
      part.epilogue = tile.epilogue.at(i, 0);
      part.c = tile.c + i * tile.rowC;
      if (i + group <= tile.rows) {
        visit(i, part, std::integral_constant<int, group>());
        i += group;
      } else {
        visit(i, part, std::integral_constant<int, 1>());
        ++i;
      }
    }
  }

  /// Adds the products of 16 steps, of more than 16 rows where `isTall`.
  template <bool isTall, int numVectors>
  TPRT_AMX TPRT_INLINE static void
  addProducts(const std::byte *left, int64_t rowLeft, const std::byte *panel) {
    constexpr int rowPanel = tileBytes * 2 / sizeof(float) * sizeof(BFloat16);
    _tile_loadd(6, panel, rowPanel);
    _tile_loadd(4, left, rowLeft);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (numVectors > 1) {
      _tile_loadd(7, panel + 64, rowPanel);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (isTall) {
      _tile_loadd(5, left + registerRows * rowLeft, rowLeft);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (numVectors > 1)
        _tile_dpbf16ps(3, 5, 7);
    }
  }

  template <bool isTall, int numVectors, typename S>
  TPRT_AMX TPRT_INLINE static void multiplyRows(const Tile<S> &tile, Sums from,
                                                MutableSums to) {
    constexpr int panelStep = tileBytes / sizeof(float) * 2;
    RegisterShapes shapes;
    const int low = isTall ? registerRows : tile.rows;
    shapes.rows[0] = shapes.rows[1] = shapes.rows[4] = low;
    if (isTall)
      shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = tile.rows - low;
    asm volatile("" ::: "memory"); // the intrinsics don't say what they read
    _tile_loadconfig(&shapes);
    const int64_t rowFrom = from.row * sizeof(float);
    const float *lower = from.data + registerRows * from.row;
    _tile_loadd(0, from.data, rowFrom);
    if constexpr (numVectors > 1)
      _tile_loadd(1, from.data + 16, rowFrom);
    if constexpr (isTall) {
      _tile_loadd(2, lower, rowFrom);
      if constexpr (numVectors > 1)
        _tile_loadd(3, lower + 16, rowFrom);
    }
    auto *panel = reinterpret_cast<const std::byte *>(tile.panel);
    const int64_t whole = tile.steps / stepsAtOnce * stepsAtOnce;
    for (int64_t p = 0; p < whole; p += stepsAtOnce)
      addProducts<isTall, numVectors>(tile.left.data + p * tile.left.step,
                                      tile.left.row,
                                      panel + p * panelStep * sizeof(S));
    if (whole < tile.steps) { // the last ones, with zeros after them
      const int64_t rest = tile.steps - whole;
      alignas(64) std::byte lastLeft[tileRows][64] = {};
      alignas(64) S lastPanel[stepsAtOnce * panelStep] = {};
      for (int64_t i = 0; i < tile.rows; ++i)
        std::memcpy(lastLeft[i],
                    tile.left.data + i * tile.left.row + whole * tile.left.step,
                    rest * tile.left.step);
      std::memcpy(lastPanel, tile.panel + whole * panelStep,
                  rest * panelStep * sizeof(S));
      asm volatile("" ::: "memory");
      addProducts<isTall, numVectors>(
          lastLeft[0], sizeof(lastLeft[0]),
          reinterpret_cast<const std::byte *>(lastPanel));
    }
    const int64_t rowTo = to.row * sizeof(float);
    float *lowerTo = to.data + registerRows * to.row;
    _tile_stored(0, to.data, rowTo);
    if constexpr (numVectors > 1)
      _tile_stored(1, to.data + 16, rowTo);
    if constexpr (isTall) {
      _tile_stored(2, lowerTo, rowTo);
      if constexpr (numVectors > 1)
        _tile_stored(3, lowerTo + 16, rowTo);
    }
    _tile_release();
    asm volatile("" ::: "memory");
  }

  /// Sums that are added to nothing but their bias or their addend start from
  /// it.
  static bool startsFromAddend(const Epilogue<float> &epilogue) {
    return epilogue.addend && !epilogue.bias && !epilogue.rowBias &&
           !epilogue.rowScale;
  }

  template <typename S, int numVectors>
  TPRT_AMX static void multiply(const Tile<S> &given) {
    Tile<S> tile = given;
    Epilogue<float> &epilogue = tile.epilogue;
    alignas(64) static constexpr float zeros[numVectors * 16] = {};
    alignas(64) float sums[tileRows][numVectors * 16];
    Sums from{zeros, 0};
    if (startsFromAddend(epilogue)) {
      from = {epilogue.addend, epilogue.rowAddend};
      epilogue.addend = nullptr;
    } else if (epilogue.bias) {
      from = {epilogue.bias, 0};
    } else if (epilogue.rowBias && !epilogue.rowScale) {
      for (int64_t i = 0; i < tile.rows; ++i)
        std::fill_n(sums[i], numVectors * 16, epilogue.rowBias[i]);
      from = {sums[0], numVectors * 16};
    }
    const bool isComplete = !epilogue.rowScale && !epilogue.addend &&
                            epilogue.activation != TPRT_RELU;
    MutableSums to = isComplete ? MutableSums{tile.c, tile.rowC}
                                : MutableSums{sums[0], numVectors * 16};
    for (int64_t i = 0; i < tile.rows; ++i) // has time to arrive
      for (int v = 0; v < numVectors; ++v)
        __builtin_prefetch(tile.c + i * tile.rowC + v * 16, /*write*/ 1);
    if (tile.rows > registerRows)
      multiplyRows<true, numVectors>(tile, from, to);
    else
      multiplyRows<false, numVectors>(tile, from, to);
    if (isComplete)
      return;
    forEachGroup(tile, [&](int64_t first, const Tile<S> &part, auto rows)
                           __attribute__((always_inline, TPRT_AMX_TARGET)) {
                             Vector group[rows()][numVectors];
                             for (int i = 0; i < rows(); ++i)
                               for (int v = 0; v < numVectors; ++v)
                                 group[i][v] =
                                     *reinterpret_cast<VectorInMemory *>(
                                         &sums[first + i][v * 16]);
                             storeSums(part, group);
                           });
  }

  template <typename S, int rows, int panels>
  __attribute__((target("avx512f,avx512bf16"))) static void
  multiplyLow(const Tile<S> &given) {
    Tile<S> tile = given; // which stores to C don't change
    using Pairs = Vectors<uint32_t, 64>::Register;
    using PairsInMemory = Vectors<uint32_t, 64>::Memory;
    constexpr int all = tileVectors * panels, width = 32;
    constexpr uint32_t firstOfPair = 0xffff;
    Vector sums[rows][all];
    startSums(tile, sums);
    if (startsFromAddend(tile.epilogue)) {
      for (int i = 0; i < rows; ++i)
        for (int v = 0; v < all; ++v)
          sums[i][v] = *reinterpret_cast<const VectorInMemory *>(
              tile.epilogue.addend + i * tile.epilogue.rowAddend + v * 16);
      tile.epilogue.addend = nullptr;
    }
    for (int64_t begin = 0; begin < tile.steps; begin += stepsAtOnce) {
      const int64_t end = std::min(begin + stepsAtOnce, tile.steps);
      Vector first[rows][all] = {}, second[rows][all] = {};
      for (int64_t p = begin; p < end; ++p) {
        Pairs right[all];
        for (int v = 0; v < all; ++v) {
          const S *from = tile.panel + v / tileVectors * tile.nextPanel +
                          (p * tileVectors + v % tileVectors) * width;
          if constexpr (panels > 1)
            __builtin_prefetch(from + tile.ahead, 0, 2);
          right[v] = *reinterpret_cast<const PairsInMemory *>(from);
        }
        for (int i = 0; i < rows; ++i) {
          uint32_t left;
          std::memcpy(&left,
                      tile.left.data + i * tile.left.row + p * tile.left.step,
                      sizeof(left));
          // The other element is 0 on both sides, so that its product is 0.
          auto add =
              [&](Vector &sum, Pairs pairs, uint32_t mask)
                  __attribute__((always_inline, target("avx512f,avx512bf16"))) {
                    sum = _mm512_dpbf16_ps(
                        sum,
                        reinterpret_cast<__m512bh>(Pairs{} + (left & mask)),
                        reinterpret_cast<__m512bh>(pairs & mask));
                  };
          for (int v = 0; v < all; ++v) {
            add(first[i][v], right[v], firstOfPair);
            add(second[i][v], right[v], ~firstOfPair);
          }
        }
      }
      for (int i = 0; i < rows; ++i)
        for (int v = 0; v < all; ++v)
          sums[i][v] =
              flush(flush(sums[i][v]) + flush(first[i][v] + second[i][v]));
    }
    storeSums(tile, sums);
  }

  /// Replaces denormal numbers by 0.
  __attribute__((target("avx512f,avx512bf16"))) TPRT_INLINE static Vector
  flush(Vector x) {
    return _mm512_dpbf16_ps(x, __m512bh{}, __m512bh{});
  }
};
} // namespace
#endif

/// How many panels a low tile multiplies, where registers have room for
/// `tileRows` rows of one panel.
static constexpr int countPanels(int rows, int tileRows) {
  constexpr int maxPanels = 4;
  return std::clamp(tileRows / rows, 1, maxPanels);
}

template <typename S, typename Set>
static TileSet<S> makeTiles() {
  constexpr int vectors = Set::tileVectors, rows = Set::tileRows;
  TileSet<S> set{.rows = rows,
                 .columns = Set::tileBytes / sizeof(SumOf<S>),
                 .widensLeft = Set::template widensLeft<S>,
                 .packPanel = Set::template pack<S>};
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((set.functions[i + 1] = Set::template multiply<S, i + 1, 1, vectors>),
     ...);
    ((set.narrowFunctions[i + 1] =
          Set::template multiply<S, i + 1, 1, vectors / 2>),
     ...);
  }(std::make_integer_sequence<int, rows>());
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((set.lowPanels[i + 1] = countPanels(i + 1, rows)), ...);
    ((set.lowFunctions[i + 1] =
          Set::template multiply<S, i + 1, countPanels(i + 1, rows), vectors>),
     ...);
  }(std::make_integer_sequence<int, std::min(rows, maxLowRows)>());
  return set;
}

#if defined(__x86_64__)
template <>
TileSet<BFloat16> makeTiles<BFloat16, AmxBf16>() {
  using S = BFloat16;
  TileSet<S> set{.rows = AmxBf16::tileRows,
                 .columns = AmxBf16::tileBytes / sizeof(float),
                 .widensLeft = false,
                 .readsRows = true,
                 .packPanel = AmxBf16::pack<S>};
  set.functions.fill(AmxBf16::multiply<S, AmxBf16::tileVectors>);
  set.narrowFunctions.fill(AmxBf16::multiply<S, AmxBf16::tileVectors / 2>);
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((set.lowPanels[i + 1] = AmxBf16::countLowPanels(i + 1)), ...);
    ((set.lowFunctions[i + 1] =
          AmxBf16::multiplyLow<S, i + 1, AmxBf16::countLowPanels(i + 1)>),
     ...);
  }(std::make_integer_sequence<int, AmxBf16::maxLowRows>());
  return set;
}
#endif

template <typename S>
const TileSet<S> &tprt::getTiles() {
  static const TileSet<S> tiles = [] {
    [[maybe_unused]] InstructionSet most = getInstructionSet();
#if defined(__x86_64__)
    if constexpr (std::is_same_v<S, BFloat16>) {
      if (most >= InstructionSet::AmxBf16)
        return makeTiles<S, AmxBf16>();
      if (most >= InstructionSet::Avx512Bf16)
        return makeTiles<S, Avx512Bf16>();
    }
    if (most >= InstructionSet::Avx512)
      return makeTiles<S, Avx512>();
    if (most >= InstructionSet::Avx2)
      return makeTiles<S, Avx2>();
#endif
    return makeTiles<S, Generic>();
  }();
  return tiles;
}

template const TileSet<float> &tprt::getTiles<float>();
template const TileSet<double> &tprt::getTiles<double>();
template const TileSet<Half> &tprt::getTiles<Half>();
template const TileSet<BFloat16> &tprt::getTiles<BFloat16>();
