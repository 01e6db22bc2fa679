//===- TileSets.h - Tiles of each instruction set ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is the part of a product whose sums stay in registers. Each
// instruction set has its own; which one is used depends on the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CPU_TILESETS_H
#define TPRT_LIB_CPU_TILESETS_H

#include "cpu/Tiles.h"

#include <array>
#include <cstddef>

namespace tprt {

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
  int64_t rows, steps;
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

/// The most rows of a tile of any set, and of a low tile.
inline constexpr int maxTileRows = 32, maxLowRows = 6;

/// The tiles of one instruction set, by their number of rows; tiles of half a
/// panel's columns; low tiles, whose few rows are multiplied by several panels
/// at once, because memory then limits the time, and is read faster in several
/// streams; and the function that packs `given` columns of B for them.
template <typename S>
struct TileSet {
  int64_t rows, columns;
  bool widensLeft;        ///< A is converted to the type of the sums
  bool readsRows = false; ///< the steps of a row of A must be adjacent
  std::array<TileFunction<S>, maxTileRows + 1> functions{}, narrowFunctions{};
  std::array<TileFunction<S>, maxLowRows + 1> lowFunctions{}; ///< null: none
  std::array<int, maxLowRows + 1> lowPanels{}; ///< that a low tile multiplies
  void (*packPanel)(Matrix<const S> source, int64_t k, int64_t given, S *panel);

  bool hasLowTile(int64_t height) const {
    return height <= maxLowRows && lowFunctions[height];
  }
};

/// The tiles of the instruction set that getInstructionSet() says.
template <typename S>
const TileSet<S> &getTiles();

} // namespace tprt

#endif // TPRT_LIB_CPU_TILESETS_H
