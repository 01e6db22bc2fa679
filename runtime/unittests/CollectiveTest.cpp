//===- CollectiveTest.cpp - Collectives against their definitions ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Ranks.h"
#include "TestUtils.h"

#include <cmath>

using namespace tprt;
using namespace tprt::test;

static void store(Dtype dtype, std::byte *data, int64_t index, double value) {
  float single = static_cast<float>(value);
  int64_t integer = static_cast<int64_t>(value);
  std::byte *at = data + index * byteWidth(dtype);
  if (dtype == Dtype::F64)
    std::memcpy(at, &value, 8);
  else if (dtype == Dtype::F32)
    std::memcpy(at, &single, 4);
  else if (isFloat(dtype))
    convertFromF32(dtype, &single, at, 1);
  else // little-endian: the low bytes
    std::memcpy(at, &integer, byteWidth(dtype));
}

/// The element at `index` of rank r's operand: small integers, exact in every
/// type, different for every rank.
static double operandElement(Dtype dtype, int64_t rank, int64_t index) {
  if (dtype == Dtype::I1)
    return (rank + index) % 3 == 0;
  return 1 + (rank * 5 + index * 3) % 7;
}

namespace {

/// A shape's index, and the flat position of an index.
Shape unravel(int64_t flat, const Shape &shape) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d])
    index[d] = flat % shape[d];
  return index;
}
int64_t ravel(const Shape &index, const Shape &shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    flat = flat * shape[d] + index[d];
  return flat;
}

} // namespace

static double combine(Reduction reduction, double a, double b) {
  switch (reduction) {
  case Reduction::Max:
    return std::max(a, b);
  case Reduction::Min:
    return std::min(a, b);
  case Reduction::Product:
    return a * b;
  default:
    return a + b;
  }
}

/// Turns an index along `dim` of the blocks one after the other into the block
/// that it falls into and the index there.
static int64_t locate(const std::vector<int64_t> &group,
                      const std::vector<Shape> &shapes, int64_t dim,
                      int64_t &index) {
  size_t p = 0;
  while (index >= shapes[group[p]][dim])
    index -= shapes[group[p++]][dim];
  return p;
}

/// How many indices along `dim` the blocks before `position` have.
static int64_t countBefore(const std::vector<int64_t> &group,
                           const std::vector<Shape> &shapes, int64_t dim,
                           int64_t position) {
  int64_t before = 0;
  for (int64_t p = 0; p < position; ++p)
    before += shapes[group[p]][dim];
  return before;
}

/// The definition: element `index` of the result at `position` of the group.
static double expectedElement(const Collective &c,
                              const std::vector<int64_t> &group,
                              int64_t position, int64_t index) {
  int64_t n = group.size();
  Shape at = unravel(index, c.resultShapes[group[position]]);
  auto operand = [&](int64_t p, const Shape &where) {
    return operandElement(c.dtype, group[p],
                          ravel(where, c.operandShapes[group[p]]));
  };
  switch (c.kind) {
  case CollectiveKind::AllGather: {
    int64_t p = locate(group, c.operandShapes, c.dim, at[c.dim]);
    return operand(p, at);
  }
  case CollectiveKind::ReduceScatter:
    at[c.dim] += countBefore(group, c.resultShapes, c.dim, position);
    [[fallthrough]];
  case CollectiveKind::AllReduce: {
    double value = operand(0, at);
    for (int64_t p = 1; p < n; ++p)
      value = combine(c.reduction, value, operand(p, at));
    if (c.reduction == Reduction::Avg)
      value = isFloat(c.dtype) ? value / n : std::trunc(value / n);
    return value;
  }
  case CollectiveKind::AllToAll: {
    int64_t p = locate(group, c.operandShapes, c.concatDim, at[c.concatDim]);
    at[c.splitDim] += countBefore(group, c.resultShapes, c.splitDim, position);
    return operand(p, at);
  }
  case CollectiveKind::Permute:
    return operand(c.source[position], at);
  case CollectiveKind::Broadcast:
    return operand(c.root, at);
  case CollectiveKind::Exchange:
  case CollectiveKind::Halo:
  case CollectiveKind::Transfer:
    for (const Transfer &t : c.transfers[group[position]]) {
      Shape where = at;
      bool isInside = true;
      for (size_t d = 0; d < at.size(); ++d) {
        isInside &= at[d] >= t.dst[d] && at[d] < t.dst[d] + t.size[d];
        where[d] += t.src[d] - t.dst[d];
      }
      if (isInside)
        return operandElement(c.dtype, t.from,
                              ravel(where, c.operandShapes[t.from]));
    }
  }
  ADD_FAILURE() << "an element comes from nowhere";
  return 0;
}

/// The formulas of docs/Artifact.md.
static int64_t expectedBytes(const Collective &c,
                             const std::vector<int64_t> &group,
                             int64_t position) {
  int64_t width = byteWidth(c.dtype), n = group.size(), rank = group[position];
  int64_t operand = numElements(c.operandShapes[rank]) * width;
  int64_t result = numElements(c.resultShapes[rank]) * width;
  switch (c.kind) {
  case CollectiveKind::AllGather:
    return result - operand;
  case CollectiveKind::ReduceScatter:
    return (n - 1) * result;
  case CollectiveKind::AllToAll: {
    Shape own = c.resultShapes[rank];
    own[c.concatDim] = c.operandShapes[rank][c.concatDim];
    return result - numElements(own) * width;
  }
  case CollectiveKind::Permute:
    return c.source[position] == position ? 0 : result;
  case CollectiveKind::Broadcast:
    return position == c.root ? 0 : result;
  case CollectiveKind::AllReduce: {
    int64_t total = numElements(c.operandShapes[rank]);
    int64_t chunk = (total + n - 1) / n;
    int64_t own = std::min((position + 1) * chunk, total) -
                  std::min(position * chunk, total);
    return width * (own * (n - 1) + total - own);
  }
  case CollectiveKind::Exchange:
  case CollectiveKind::Halo:
  case CollectiveKind::Transfer: {
    int64_t bytes = 0;
    for (const Transfer &t : c.transfers[rank])
      bytes += t.from == rank ? 0 : numElements(t.size) * width;
    return bytes;
  }
  }
  return 0;
}

/// One rank's operand and result of a collective. Where `inPlace`, a rank whose
/// operand and result have one shape uses one buffer.
struct Buffers {
  int64_t operands, results; ///< elements
  std::shared_ptr<std::byte> src, dst;

  Buffers(const Collective &c, int64_t rank, bool inPlace)
      : operands(numElements(c.operandShapes[rank])),
        results(numElements(c.resultShapes[rank])),
        src(allocateAligned(operands * byteWidth(c.dtype))),
        dst(inPlace && c.operandShapes[rank] == c.resultShapes[rank]
                ? src
                : allocateAligned(results * byteWidth(c.dtype))) {
    for (int64_t i = 0; i < operands; ++i)
      store(c.dtype, src.get(), i, operandElement(c.dtype, rank, i));
  }

  Call getCall(const Collective &c, int64_t id) const {
    int64_t width = byteWidth(c.dtype);
    return {id, src.get(), operands * width, dst.get(), results * width};
  }

  /// Checks values and bytes.
  void check(const Collective &c, int64_t id, int64_t rank,
             int64_t bytes) const {
    const std::vector<int64_t> &group = *c.getGroup(rank);
    int64_t position =
        std::find(group.begin(), group.end(), rank) - group.begin();
    EXPECT_EQ(bytes, expectedBytes(c, group, position)) << describe(c);
    for (int64_t i = 0; i < results; ++i) {
      double expected = expectedElement(c, group, position, i);
      std::byte rounded[8];
      store(c.dtype, rounded, 0, expected);
      ASSERT_EQ(loadAsDouble(c.dtype, dst.get(), i),
                loadAsDouble(c.dtype, rounded, 0))
          << describe(c) << " rank " << rank << " element " << i;
    }
  }
};

/// Runs collective `id` and checks it on this rank.
static void check(Communicator &communicator, const Collective &c, int64_t id,
                  bool inPlace) {
  Buffers buffers(c, communicator.getRank(), inPlace);
  Call call = buffers.getCall(c, id);
  int64_t bytes = runCollective(communicator, id, call.src, call.srcBytes,
                                call.dst, call.dstBytes);
  if (call.src != call.dst) // the operand may be overwritten at once
    std::memset(buffers.src.get(), 0xee, call.srcBytes);
  buffers.check(c, id, communicator.getRank(), bytes);
}

/// Starts the collectives from `begin` to `end`, waits for them in another
/// order on every rank, and checks them.
static void checkStarted(Communicator &communicator,
                         const std::vector<Collective> &collectives,
                         size_t begin, size_t end) {
  int64_t rank = communicator.getRank();
  std::vector<Buffers> buffers;
  std::vector<Call> calls;
  std::vector<size_t> order;
  for (size_t id = begin; id < end; ++id) {
    bool inPlace =
        collectives[id].kind == CollectiveKind::AllReduce && id % 2 == 0;
    buffers.emplace_back(collectives[id], rank, inPlace);
    calls.push_back(buffers.back().getCall(collectives[id], id));
    order.push_back(id - begin);
  }
  std::rotate(order.begin(), order.begin() + rank % order.size(), order.end());
  if (rank % 3 == 1)
    std::reverse(order.begin(), order.end());
  std::vector<int64_t> bytes = startCollectives(communicator, calls, order);
  for (size_t i = 0; i < calls.size(); ++i)
    buffers[i].check(collectives[begin + i], begin + i, rank, bytes[i]);
}

/// The sizes of `total` in `count` blocks: ceil(total / count), the last ones
/// shorter or empty.
static std::vector<int64_t> chunkSizes(int64_t total, int64_t count) {
  int64_t chunk = (total + count - 1) / count;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(std::clamp<int64_t>(total - i * chunk, 0, chunk));
  return sizes;
}

/// Ways to cut a dimension into `count` blocks: even, the last one shorter, the
/// last ones empty, all of them empty, and anyhow.
static std::vector<std::vector<int64_t>> makeCuts(int64_t count) {
  std::vector<int64_t> anyhow;
  for (int64_t i = 0; i < count; ++i)
    anyhow.push_back(i * 3 % 4);
  return {chunkSizes(2 * count, count), chunkSizes(2 * count - 1, count),
          chunkSizes(std::max<int64_t>(1, count / 2), count),
          chunkSizes(0, count), anyhow};
}

static int64_t sum(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
}

struct Parameters {
  const Backend *backend;
  Dtype dtype;
  int64_t worldSize;
};

/// The end of the test's name.
static void PrintTo(const Parameters &parameters, std::ostream *os) {
  *os << parameters.backend->name << '_' << toString(parameters.dtype) << '_'
      << parameters.worldSize << "ranks";
}

class CollectiveTest : public testing::TestWithParam<Parameters> {
protected:
  int64_t worldSize = GetParam().worldSize;
  std::vector<Collective> collectives;

  /// Runs the collectives, each into other memory and in place; then starts
  /// some at a time.
  void TearDown() override {
    std::vector<std::string> errors = runRanks(
        makeManifest(worldSize, collectives), {},
        [&](Communicator &communicator) {
          for (size_t id = 0; id < collectives.size(); ++id)
            for (bool inPlace : {false, true})
              check(communicator, collectives[id], id, inPlace);
        },
        GetParam().backend);
    EXPECT_EQ(errors, std::vector<std::string>(worldSize));
    for (Collective &collective : collectives)
      collective.isStarted = true;
    constexpr size_t numUnderWay = 5;
    errors = runRanks(
        makeManifest(worldSize, collectives), {},
        [&](Communicator &communicator) {
          for (size_t id = 0; id < collectives.size(); id += numUnderWay)
            checkStarted(communicator, collectives, id,
                         std::min(id + numUnderWay, collectives.size()));
        },
        GetParam().backend);
    EXPECT_EQ(errors, std::vector<std::string>(worldSize));
  }

  /// The whole world; where there are, two interleaved halves, in descending
  /// order too; the rows and the columns of a mesh.
  std::vector<std::vector<std::vector<int64_t>>> makeGroupings() const {
    std::vector<std::vector<std::vector<int64_t>>> groupings = {
        {firstRanks(worldSize)}};
    if (worldSize % 2 != 0 || worldSize < 4)
      return groupings;
    std::vector<std::vector<int64_t>> halves(2), rows(2),
        columns(worldSize / 2);
    for (int64_t rank = 0; rank < worldSize; ++rank) {
      halves[rank % 2].insert(halves[rank % 2].begin(), rank);
      rows[rank / (worldSize / 2)].push_back(rank);
      columns[rank % (worldSize / 2)].push_back(rank);
    }
    groupings.insert(groupings.end(), {halves, rows, columns});
    return groupings;
  }

  /// Adds the collective for all groupings. setShapes(operand, result, group
  /// number, position, group size) gives the shapes of one member; of a
  /// permute, the results have the shapes of what they get.
  template <typename SetShapes>
  void addForGroups(Collective c, SetShapes setShapes) {
    c.dtype = GetParam().dtype;
    for (const auto &groups : makeGroupings()) {
      c.groups = groups;
      c.operandShapes.assign(worldSize, {});
      c.resultShapes.assign(worldSize, {});
      int64_t n = groups.front().size();
      for (size_t g = 0; g < groups.size(); ++g)
        for (int64_t p = 0; p < n; ++p)
          setShapes(c.operandShapes[groups[g][p]], c.resultShapes[groups[g][p]],
                    g, p, n);
      if (c.kind == CollectiveKind::Permute) {
        c.source.clear(); // a ring, whose last member keeps its own
        for (int64_t p = 0; p < n; ++p)
          c.source.push_back(p + 1 < n ? (p + 1) % (n - 1) : p);
        for (const std::vector<int64_t> &group : groups)
          for (int64_t p = 0; p < n; ++p)
            c.resultShapes[group[p]] = c.operandShapes[group[c.source[p]]];
      }
      if (c.kind == CollectiveKind::Broadcast)
        c.root = n - 1;
      collectives.push_back(c);
    }
  }
};

TEST_P(CollectiveTest, AllGather) {
  for (int64_t dim = 0; dim < 3; ++dim)
    for (size_t cut = 0; cut < makeCuts(1).size(); ++cut) {
      Collective c{.kind = CollectiveKind::AllGather, .dtype = {}};
      c.dim = dim;
      addForGroups(c, [&](Shape &operand, Shape &result, int64_t group,
                          int64_t position, int64_t n) {
        operand = result = {2, 3 + group, 2};
        operand[dim] = makeCuts(n)[cut][position];
        result[dim] = sum(makeCuts(n)[cut]);
      });
    }
}

static std::vector<Reduction> getReductions(Dtype dtype) {
  if (dtype == Dtype::I1)
    return {Reduction::Max, Reduction::Min, Reduction::Product};
  std::vector<Reduction> reductions;
  for (Reduction reduction : {Reduction::Sum, Reduction::Avg, Reduction::Max,
                              Reduction::Min, Reduction::Product})
    if (canReduce(reduction, dtype))
      reductions.push_back(reduction);
  return reductions;
}

TEST_P(CollectiveTest, ReduceScatter) {
  for (Reduction reduction : getReductions(GetParam().dtype))
    for (int64_t dim = 0; dim < 3; ++dim)
      for (size_t cut = 0; cut < makeCuts(1).size(); ++cut) {
        Collective c{.kind = CollectiveKind::ReduceScatter, .dtype = {}};
        c.reduction = reduction;
        c.dim = dim;
        addForGroups(c, [&](Shape &operand, Shape &result, int64_t group,
                            int64_t position, int64_t n) {
          operand = result = {2, 3 + group, 2};
          operand[dim] = sum(makeCuts(n)[cut]);
          result[dim] = makeCuts(n)[cut][position];
        });
      }
}

TEST_P(CollectiveTest, AllReduce) {
  // Fewer elements than ranks, chunks that don't come out even, several blocks
  // of the reduction, none at all.
  for (Reduction reduction : getReductions(GetParam().dtype))
    for (const Shape &shape :
         {Shape{}, Shape{2}, Shape{3, 7}, Shape{2, 2500}, Shape{0, 3}}) {
      Collective c{.kind = CollectiveKind::AllReduce, .dtype = {}};
      c.reduction = reduction;
      addForGroups(c, [&](Shape &operand, Shape &result, int64_t group, int64_t,
                          int64_t) {
        operand = shape;
        if (!shape.empty())
          operand.back() += group;
        result = operand;
      });
    }
}

TEST_P(CollectiveTest, AllToAll) {
  for (int64_t split = 0; split < 3; ++split)
    for (int64_t concat = 0; concat < 3; ++concat)
      for (size_t cut = 0; cut < makeCuts(1).size(); ++cut) {
        if (split == concat)
          continue;
        Collective c{.kind = CollectiveKind::AllToAll, .dtype = {}};
        c.splitDim = split;
        c.concatDim = concat;
        addForGroups(c, [&](Shape &operand, Shape &result, int64_t group,
                            int64_t position, int64_t n) {
          std::vector<int64_t> joined = makeCuts(n)[cut];
          std::vector<int64_t> parts = chunkSizes(2 * n + 1, n);
          operand = result = {2 + group, 2 + group, 2 + group};
          operand[concat] = joined[position];
          operand[split] = sum(parts);
          result[concat] = sum(joined);
          result[split] = parts[position];
        });
      }
}

TEST_P(CollectiveTest, PermuteAndBroadcast) {
  auto setEqual = [](Shape &operand, Shape &result, int64_t group, int64_t,
                     int64_t) { operand = result = {3, 5 * group}; };
  auto setUnequal = [](Shape &operand, Shape &, int64_t group, int64_t position,
                       int64_t) { operand = {3, group + position}; };
  addForGroups({.kind = CollectiveKind::Permute, .dtype = {}}, setEqual);
  addForGroups({.kind = CollectiveKind::Permute, .dtype = {}}, setUnequal);
  addForGroups({.kind = CollectiveKind::Broadcast, .dtype = {}}, setEqual);
}

/// A rank's box of a 7x5 tensor: ranks form a grid of rows x columns.
static std::pair<Shape, Shape> getBox(int64_t rank, int64_t rows,
                                      int64_t columns) {
  std::vector<int64_t> heights = chunkSizes(7, rows);
  std::vector<int64_t> widths = chunkSizes(5, columns);
  int64_t row = rank / columns, column = rank % columns;
  return {
      {std::accumulate(heights.begin(), heights.begin() + row, int64_t(0)),
       std::accumulate(widths.begin(), widths.begin() + column, int64_t(0))},
      {heights[row], widths[column]}};
}

/// Every grid of ranks to every other one, at once.
TEST_P(CollectiveTest, Exchange) {
  for (int64_t rows = 1; rows <= worldSize; ++rows)
    for (int64_t toRows = 1; toRows <= worldSize; ++toRows) {
      if (worldSize % rows != 0 || worldSize % toRows != 0)
        continue;
      Collective c{.kind = CollectiveKind::Exchange, .dtype = GetParam().dtype};
      c.groups = {firstRanks(worldSize)};
      for (int64_t rank = 0; rank < worldSize; ++rank) {
        auto [offset, size] = getBox(rank, toRows, worldSize / toRows);
        std::vector<Transfer> &transfers = c.transfers.emplace_back();
        for (int64_t from = 0; from < worldSize; ++from) {
          auto [begin, extent] = getBox(from, rows, worldSize / rows);
          Transfer transfer{from, {0, 0}, {0, 0}, {0, 0}};
          for (int64_t d = 0; d < 2; ++d) {
            int64_t first = std::max(begin[d], offset[d]);
            int64_t end = std::min(begin[d] + extent[d], offset[d] + size[d]);
            transfer.size[d] = std::max<int64_t>(0, end - first);
            transfer.src[d] = first - begin[d];
            transfer.dst[d] = first - offset[d];
          }
          if (numElements(transfer.size) > 0)
            transfers.push_back(transfer);
          if (rank == 0)
            c.operandShapes.push_back(extent);
        }
        c.resultShapes.push_back(size);
      }
      collectives.push_back(c);
    }
}

/// In place, ranks swap halves of their blocks: every rank reads what others
/// write.
TEST_P(CollectiveTest, ExchangeInPlace) {
  Collective c{.kind = CollectiveKind::Exchange, .dtype = GetParam().dtype};
  c.groups = {firstRanks(worldSize)};
  c.operandShapes = c.resultShapes = std::vector<Shape>(worldSize, Shape{2, 6});
  for (int64_t rank = 0; rank < worldSize; ++rank)
    c.transfers.push_back({{rank, {0, 0}, {0, 0}, {2, 2}},
                           {(rank + 1) % worldSize, {0, 0}, {0, 2}, {2, 4}}});
  collectives.push_back(c);
}

/// Ranks hold three columns and two of padding; each gets its own three and two
/// more at either end, from one neighbor and, where there is one, from the rank
/// itself.
TEST_P(CollectiveTest, Halo) {
  Collective c{.kind = CollectiveKind::Halo, .dtype = GetParam().dtype};
  c.groups = {firstRanks(worldSize)};
  c.operandShapes.assign(worldSize, {2, 5});
  c.resultShapes.assign(worldSize, {2, 7});
  for (int64_t rank = 0; rank < worldSize; ++rank) {
    bool isFirst = rank == 0, isLast = rank == worldSize - 1;
    c.transfers.push_back(
        {{isFirst ? rank : rank - 1, {0, isFirst ? 3 : 1}, {0, 0}, {2, 2}},
         {rank, {0, 0}, {0, 2}, {2, 3}},
         {isLast ? rank : rank + 1, {0, isLast ? 3 : 0}, {0, 5}, {2, 2}}});
  }
  collectives.push_back(c);
}

/// The last rank receives what the first one sends, and the other way round;
/// the others have nothing.
TEST_P(CollectiveTest, Transfer) {
  for (bool isBackward : {false, true, false}) {
    Collective c{.kind = CollectiveKind::Transfer, .dtype = GetParam().dtype};
    c.groups = {firstRanks(worldSize)};
    c.operandShapes.assign(worldSize, {0, 0});
    c.resultShapes = c.operandShapes;
    c.transfers.resize(worldSize);
    int64_t from = isBackward ? worldSize - 1 : 0, to = worldSize - 1 - from;
    c.operandShapes[from] = c.resultShapes[to] = {2, 3};
    c.transfers[to] = {{from, {0, 0}, {0, 0}, {2, 3}}};
    collectives.push_back(c);
  }
}

static std::vector<Parameters> makeParameters() {
  std::vector<Parameters> parameters;
  for (const Backend *backend : getBackendsHere())
    for (int32_t dtype = 0; dtype < numDtypes; ++dtype)
      for (int64_t worldSize : getWorldSizes(*backend))
        parameters.push_back({backend, static_cast<Dtype>(dtype), worldSize});
  return parameters;
}
INSTANTIATE_TEST_SUITE_P(Backends, CollectiveTest,
                         testing::ValuesIn(makeParameters()),
                         testing::PrintToStringParamName());
