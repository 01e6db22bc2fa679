//===- Convolution.cpp - Convolutions -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution is a product of its weight, one row for each output channel,
// and a matrix with a column for each window of the input. That matrix isn't
// built: tiles multiply packed panels of a few columns, and a panel is packed
// straight from the input.
//
//===----------------------------------------------------------------------===//

#include "cpu/Convolution.h"

#include "cpu/Activation.h"
#include "cpu/Tiles.h"
#include "support/Division.h"
#include "support/Parallel.h"
#include "tprt/Tensor.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace tprt;

/// The sizes, in elements, that a block's packed windows and its results should
/// have at most. The windows stay in the second-level cache.
static constexpr int64_t maxPacked = 1 << 17;
static constexpr int64_t maxResults = 1 << 17;

/// How many channels before its use an input is prefetched.
static constexpr int64_t prefetchedChannels = 4;

/// Panels are filled from several images if that saves at least this share.
static constexpr double leastSaving = 0.04;

static constexpr int dims = TPRT_CONVOLUTION_DIMS;

static int64_t multiply(const int64_t (&sizes)[dims]) {
  return sizes[0] * sizes[1] * sizes[2];
}

static void check(const tprt_convolution_args &args) {
  auto require = [](bool holds, const char *what) {
    if (!holds)
      throw executionError(std::string("tprt_convolution: ") + what);
  };
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  require(args.dtype >= TPRT_F32 && args.dtype <= TPRT_BF16,
          "dtype is not f32, f64, f16 or bf16");
  require(args.activation >= TPRT_NO_ACTIVATION && args.activation <= TPRT_SILU,
          "the activation is unknown");
  for (int64_t size :
       {args.batch, args.groups, args.in_channels, args.out_channels})
    require(size >= 0 && size <= limit, "a size is out of range");
  for (int d = 0; d < dims; ++d) {
    for (int64_t size :
         {args.size[d], args.window[d], args.count[d], args.padding[d]})
      require(size >= 0 && size <= limit, "a size is out of range");
    for (int64_t step : {args.stride[d], args.dilation[d]})
      require(step >= 1 && step <= limit, "a step is out of range");
  }
}

/// Merges spatial dimensions in which windows have one element each and follow
/// each other without gaps, into the last one.
static tprt_convolution_args mergeDims(tprt_convolution_args args) {
  auto isPlain = [&](int d) {
    return args.window[d] == 1 && args.stride[d] == 1 && args.padding[d] == 0 &&
           args.size[d] == args.count[d];
  };
  for (int merged = 1; merged < dims && isPlain(2) && isPlain(1); ++merged) {
    args.size[2] *= args.size[1];
    args.count[2] = args.size[2];
    for (int64_t *list : {args.size, args.window, args.count, args.stride,
                          args.padding, args.dilation}) {
      list[1] = list[0];
      list[0] = list == args.padding ? 0 : 1;
    }
  }
  return args;
}

namespace {

/// Columns of a panel whose windows follow each other along the last dimension.
struct Run {
  int64_t column, count;
  int64_t origin;      ///< of the first window's first element, in the input
  int64_t first[dims]; ///< the position of that element, which may be outside
};

/// Elements of the input that are columns of a row of a panel.
struct Copy {
  int64_t column, count, source;
};

/// A row of a panel: an element of a channel's windows.
struct PanelRow {
  size_t end;   ///< of its copies
  bool isWhole; ///< they fill the row
};

/// The copies of a panel, those of one row after another. They are the same in
/// all channels.
struct PanelCopies {
  std::vector<Copy> copies;
  std::vector<PanelRow> rows;
};

/// The columns of one group that are computed at a time. Columns are counted
/// from image to image.
struct Block {
  int64_t group, begin, count;
};

/// T is the type of the operands, F that of the sums.
template <typename T, typename F>
class Convolution {
public:
  Convolution(const tprt_convolution_args &args,
              const ConvolutionOperands &operands)
      : args(args), dtype(static_cast<Dtype>(args.dtype)),
        input(static_cast<const T *>(operands.input)),
        addend(static_cast<const T *>(operands.addend)),
        output(static_cast<T *>(operands.output)),
        numElements(multiply(args.window)), pitch(multiply(args.size)),
        numWindows(multiply(args.count)), depth(args.in_channels * numElements),
        panelColumns(getPanelColumns<F>()) {
    int64_t numChannels = args.groups * args.out_channels;
    weight = widen(static_cast<const T *>(operands.weight), numChannels * depth,
                   wideWeight);
    scale =
        widen(static_cast<const T *>(operands.scale), numChannels, wideScale);
    bias = widen(static_cast<const T *>(operands.bias), numChannels, wideBias);
    makeBlocks();
  }

  void run(GemmState &state) {
    double operations = 2.0 * args.batch * args.groups * args.out_channels *
                        static_cast<double>(numWindows) * depth;
    int64_t numBlocks = blocks.size(),
            numThreads = state.countThreads(operations, numBlocks);
    for (int64_t thread = 0; thread < numThreads; ++thread)
      state.getHelper(thread);
    parallelFor(numThreads, numThreads, [&](int64_t thread) {
      int64_t end = numBlocks * (thread + 1) / numThreads;
      for (int64_t i = numBlocks * thread / numThreads; i < end; ++i)
        compute(blocks[i], state.getHelper(thread));
    });
  }

private:
  /// `count` elements as F, in `wide` if they have to be converted. Null if
  /// `data` is.
  const F *widen(const T *data, int64_t count, std::vector<F> &wide) {
    if constexpr (std::is_same_v<T, F>) {
      return data;
    } else {
      if (!data)
        return nullptr;
      wide.resize(count);
      convertToF32(dtype, data, wide.data(), count);
      return wide.data();
    }
  }

  void makeBlocks() {
    auto countPanels = [&](int64_t columns) {
      return divideCeil(columns, panelColumns);
    };
    double apart = static_cast<double>(args.batch) * countPanels(numWindows),
           together = countPanels(args.batch * numWindows);
    bool mixesImages = together < apart * (1 - leastSaving);
    int64_t most =
        std::min(maxPacked / std::max<int64_t>(depth, 1),
                 maxResults / std::max<int64_t>(args.out_channels, 1));
    most = std::max<int64_t>(most / panelColumns, 1) * panelColumns;
    int64_t part = mixesImages ? args.batch * numWindows : numWindows;
    for (int64_t group = 0; group < args.groups; ++group)
      for (int64_t begin = 0; begin < args.batch * numWindows; begin += part)
        for (int64_t at = 0; at < part; at += most)
          blocks.push_back({group, begin + at, std::min(most, part - at)});
  }

  /// Where the result of a column and of the group's first channel is.
  int64_t getOutputOffset(int64_t group, int64_t column) const {
    return (column / numWindows * args.groups + group) * args.out_channels *
               numWindows +
           column % numWindows;
  }

  std::vector<Run> getRuns(int64_t group, int64_t begin, int64_t count) const {
    std::vector<Run> runs;
    const int64_t *counts = args.count;
    for (int64_t column = 0; column < count;) {
      int64_t image = (begin + column) / numWindows,
              window = (begin + column) % numWindows;
      int64_t position[dims] = {window / (counts[1] * counts[2]),
                                window / counts[2] % counts[1],
                                window % counts[2]};
      Run run;
      run.column = column;
      run.count = std::min(counts[2] - position[2], count - column);
      for (int d = 0; d < dims; ++d)
        run.first[d] = position[d] * args.stride[d] - args.padding[d];
      run.origin = (image * args.groups + group) * args.in_channels * pitch +
                   getOffset(run.first);
      runs.push_back(run);
      column += run.count;
    }
    return runs;
  }

  /// Of an element of an image, from the position 0.
  int64_t getOffset(const int64_t (&position)[dims]) const {
    return (position[0] * args.size[1] + position[1]) * args.size[2] +
           position[2];
  }

  /// Appends the copies of `run` for one element of its windows.
  void addCopies(const Run &run, const int64_t (&element)[dims],
                 std::vector<Copy> &copies) const {
    int64_t step[dims];
    for (int d = 0; d < dims; ++d)
      step[d] = element[d] * args.dilation[d];
    for (int d = 0; d < dims - 1; ++d)
      if (run.first[d] + step[d] < 0 || run.first[d] + step[d] >= args.size[d])
        return;
    // The first window in which the element lies at or behind `position`.
    int64_t first = run.first[dims - 1] + step[dims - 1],
            stride = args.stride[dims - 1];
    auto findWindow = [&](int64_t position) {
      int64_t distance = position - first;
      return distance <= 0 ? 0
                           : std::min(divideCeil(distance, stride), run.count);
    };
    int64_t begin = findWindow(0), end = findWindow(args.size[dims - 1]);
    if (begin < end)
      copies.push_back({run.column + begin, end - begin,
                        run.origin + getOffset(step) + begin * stride});
  }

  /// The copies of `count` columns of windows, from column `begin` on.
  PanelCopies getCopies(int64_t group, int64_t begin, int64_t count) const {
    std::vector<Run> runs = getRuns(group, begin, count);
    PanelCopies panel;
    int64_t element[dims];
    for (element[0] = 0; element[0] < args.window[0]; ++element[0])
      for (element[1] = 0; element[1] < args.window[1]; ++element[1])
        for (element[2] = 0; element[2] < args.window[2]; ++element[2]) {
          size_t first = panel.copies.size();
          for (const Run &run : runs)
            addCopies(run, element, panel.copies);
          int64_t copied = 0;
          for (size_t i = first; i < panel.copies.size(); ++i)
            copied += panel.copies[i].count;
          panel.rows.push_back({panel.copies.size(), copied == panelColumns});
        }
    return panel;
  }

  /// Packs the windows of a block. Each channel is packed for all panels before
  /// the next one: the input may be in memory, and is read in order.
  void pack(const Block &block, F *packed) const {
    std::vector<PanelCopies> panels;
    for (int64_t j = 0; j < block.count; j += panelColumns)
      panels.push_back(getCopies(block.group, block.begin + j,
                                 std::min(panelColumns, block.count - j)));
    const T *image = input;
    for (int64_t c = 0; c < args.in_channels; ++c, image += pitch) {
      F *row = packed + c * numElements * panelColumns;
      for (const PanelCopies &panel : panels) {
        packChannel(panel, image, row);
        row += depth * panelColumns;
      }
    }
  }

  void packChannel(const PanelCopies &panel, const T *image, F *row) const {
    const Copy *copy = panel.copies.data();
    for (const PanelRow &which : panel.rows) {
      if (!which.isWhole)
        std::fill_n(row, panelColumns, F(0));
      for (const Copy *end = panel.copies.data() + which.end; copy != end;
           ++copy) {
        const T *from = image + copy->source;
        load(from, copy->count, row + copy->column);
        if (&which == panel.rows.data()) // others have about the same elements
          prefetch(from + prefetchedChannels * pitch,
                   copy->count * args.stride[dims - 1]);
      }
      row += panelColumns;
    }
  }

  /// Prefetches `count` elements, which needn't exist.
  static void prefetch(const T *data, int64_t count) {
    for (int64_t i = 0; i < count; i += 64 / sizeof(T))
      __builtin_prefetch(data + i);
  }

  /// Copies elements that are `stride` apart.
  static void gather(const T *from, int64_t stride, int64_t count, T *to) {
    if (stride == 1)
      std::copy_n(from, count, to);
    else if (stride == 2) // vectorized
      for (int64_t i = 0; i < count; ++i)
        to[i] = from[i * 2];
    else
      for (int64_t i = 0; i < count; ++i)
        to[i] = from[i * stride];
  }

  /// Loads elements, the last dimension's stride apart.
  void load(const T *from, int64_t count, F *to) const {
    const int64_t stride = args.stride[dims - 1];
    if constexpr (std::is_same_v<T, F>) {
      gather(from, stride, count, to);
    } else {
      T gathered[128];
      if (stride != 1)
        gather(from, stride, count, gathered);
      convertToF32(dtype, stride == 1 ? from : gathered, to, count);
    }
  }

  void compute(const Block &block, GemmState &state) const {
    int64_t m = args.out_channels, n = block.count;
    bool isDirect =
        std::is_same_v<T, F> &&
        block.begin / numWindows == (block.begin + n - 1) / numWindows;
    int64_t packedSize = getPackedSize<F>(depth, n);
    constexpr int64_t width = sizeof(F) / sizeof(float);
    F *packed = reinterpret_cast<F *>(state.getFloats(
        (packedSize + (isDirect ? 0 : m * n + numWindows)) * width));
    pack(block, packed);

    Matrix<const F> left{weight + block.group * m * depth, depth, 1};
    Epilogue<F> epilogue;
    if (scale)
      epilogue.rowScale = scale + block.group * m;
    if (bias)
      epilogue.rowBias = bias + block.group * m;
    if constexpr (std::is_same_v<T, F>)
      if (isDirect) {
        int64_t offset = getOutputOffset(block.group, block.begin);
        epilogue.addend = addend ? addend + offset : nullptr;
        epilogue.rowAddend = numWindows;
        epilogue.activation = args.activation;
        multiplyPacked<F>(m, n, depth, left, {packed, depth}, output + offset,
                          numWindows, epilogue);
        return;
      }
    F *sums = packed + packedSize;
    multiplyPacked<F>(m, n, depth, left, {packed, depth}, sums, n, epilogue);
    store(block, sums, sums + m * n);
  }

  /// Writes the results of a block. `line` has room for those of an image's
  /// channel.
  void store(const Block &block, F *sums, F *line) const {
    int64_t m = args.out_channels, n = block.count;
    auto forEachPart = [&](auto visit) { // in one image
      for (int64_t j = 0; j < n;) {
        int64_t column = block.begin + j,
                count = std::min(n - j, numWindows - column % numWindows);
        visit(j, count, getOutputOffset(block.group, column));
        j += count;
      }
    };
    if (addend)
      forEachPart([&](int64_t first, int64_t count, int64_t offset) {
        for (int64_t i = 0; i < m; ++i) {
          const T *added = addend + offset + i * numWindows;
          F *row = sums + i * n + first;
          if constexpr (std::is_same_v<T, F>) {
            for (int64_t j = 0; j < count; ++j)
              row[j] += added[j];
          } else {
            convertToF32(dtype, added, line, count);
            for (int64_t j = 0; j < count; ++j)
              row[j] += line[j];
          }
        }
      });
    if (args.activation != TPRT_NO_ACTIVATION)
      activate(args.activation, m, n, sums, n, /*factor=*/nullptr, 0);
    forEachPart([&](int64_t first, int64_t count, int64_t offset) {
      for (int64_t i = 0; i < m; ++i) {
        const F *row = sums + i * n + first;
        T *result = output + offset + i * numWindows;
        if constexpr (std::is_same_v<T, F>)
          std::copy_n(row, count, result);
        else
          convertFromF32(dtype, row, result, count);
      }
    });
  }

  const tprt_convolution_args &args;
  Dtype dtype;
  const T *input, *addend;
  T *output;
  int64_t numElements; ///< of a window
  int64_t pitch;       ///< elements from channel to channel of the input
  int64_t numWindows;  ///< of an image
  int64_t depth;       ///< terms of a sum
  int64_t panelColumns;
  const F *weight, *scale, *bias;
  std::vector<F> wideWeight, wideScale, wideBias;
  std::vector<Block> blocks;
};

} // namespace

void tprt::convolution(const tprt_convolution_args &given,
                       const ConvolutionOperands &operands, GemmState &state) {
  check(given);
  tprt_convolution_args args = mergeDims(given);
  if (args.batch == 0 || args.groups == 0 || args.out_channels == 0 ||
      multiply(args.count) == 0)
    return;
  switch (static_cast<Dtype>(args.dtype)) {
  case Dtype::F32:
    return Convolution<float, float>(args, operands).run(state);
  case Dtype::F64:
    return Convolution<double, double>(args, operands).run(state);
  default: // f16 and bf16 are moved the same way
    return Convolution<BFloat16, float>(args, operands).run(state);
  }
}
