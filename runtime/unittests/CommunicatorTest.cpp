//===- CommunicatorTest.cpp - Collectives against their definitions ------===//

#include "tprt/Communicator.h"

#include "TestUtils.h"

#include <cmath>
#include <numeric>
#include <thread>

using namespace tprt;
using namespace tprt::test;
using std::chrono::milliseconds;

static Manifest makeManifest(int64_t worldSize,
                             std::vector<Collective> collectives) {
  Manifest manifest;
  manifest.worldSize = worldSize;
  manifest.collectives = std::move(collectives);
  return manifest;
}

static std::vector<int64_t> firstRanks(int64_t count) {
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Runs `body(communicator)` on a thread per rank; returns what each threw.
template <typename Body>
static std::vector<std::string> runRanks(const Manifest &manifest,
                                         const CommunicatorOptions &options,
                                         Body body) {
  auto communicators = makeLocalCommunicators(manifest, options);
  std::vector<std::string> errors(communicators.size());
  std::vector<std::thread> threads;
  for (auto &communicator : communicators)
    threads.emplace_back([&] {
      try {
        body(*communicator);
      } catch (const Error &error) {
        errors[communicator->getRank()] = error.what();
      }
      communicator->finish();
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

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

/// The definition: element `index` of the result at `position` of the group.
static double expectedElement(const Collective &c,
                              const std::vector<int64_t> &group,
                              int64_t position, int64_t index) {
  int64_t n = group.size();
  Shape at = unravel(index, c.resultShape);
  auto operand = [&](int64_t p, const Shape &where) {
    return operandElement(c.dtype, group[p], ravel(where, c.operandShape));
  };
  switch (c.kind) {
  case CollectiveKind::AllGather: {
    int64_t size = c.operandShape[c.dim];
    int64_t p = at[c.dim] / size;
    at[c.dim] %= size;
    return operand(p, at);
  }
  case CollectiveKind::ReduceScatter:
    at[c.dim] += position * c.resultShape[c.dim];
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
    int64_t size = c.resultShape[c.concatDim] / n;
    int64_t p = at[c.concatDim] / size;
    at[c.concatDim] %= size;
    at[c.splitDim] += position * c.operandShape[c.splitDim] / n;
    return operand(p, at);
  }
  case CollectiveKind::Permute:
    return operand(c.source[position], at);
  case CollectiveKind::Broadcast:
    return operand(c.root, at);
  }
  return 0;
}

/// The formulas of docs/Artifact.md.
static int64_t expectedBytes(const Collective &c, int64_t n, int64_t position) {
  int64_t width = byteWidth(c.dtype);
  int64_t operand = numElements(c.operandShape) * width;
  int64_t result = numElements(c.resultShape) * width;
  switch (c.kind) {
  case CollectiveKind::AllGather:
    return (n - 1) * operand;
  case CollectiveKind::ReduceScatter:
    return (n - 1) * result;
  case CollectiveKind::AllToAll:
    return operand - operand / n;
  case CollectiveKind::Permute:
    return c.source[position] == position ? 0 : operand;
  case CollectiveKind::Broadcast:
    return position == c.root ? 0 : operand;
  case CollectiveKind::AllReduce: {
    int64_t total = numElements(c.operandShape);
    int64_t chunk = (total + n - 1) / n;
    int64_t own = std::min((position + 1) * chunk, total) -
                  std::min(position * chunk, total);
    return width * (own * (n - 1) + total - own);
  }
  }
  return 0;
}

/// Runs one collective, in place too where that is allowed, and checks values
/// and bytes on every rank.
static void check(const Collective &c, int64_t worldSize) {
  Manifest manifest = makeManifest(worldSize, {c});
  std::vector<bool> modes = {false};
  if (c.operandShape == c.resultShape)
    modes.push_back(true);
  for (bool inPlace : modes) {
    std::vector<std::string> errors =
        runRanks(manifest, {}, [&](Communicator &communicator) {
          int64_t rank = communicator.getRank();
          const std::vector<int64_t> *group = nullptr;
          int64_t position = 0;
          for (const auto &ranks : c.groups)
            for (size_t p = 0; p < ranks.size(); ++p)
              if (ranks[p] == rank) {
                group = &ranks;
                position = p;
              }
          int64_t width = byteWidth(c.dtype);
          int64_t operands = numElements(c.operandShape);
          int64_t results = numElements(c.resultShape);
          auto src = allocateAligned(operands * width);
          auto dst = inPlace ? src : allocateAligned(results * width);
          for (int repeat = 0; repeat < 2; ++repeat) {
            for (int64_t i = 0; i < operands; ++i)
              store(c.dtype, src.get(), i, operandElement(c.dtype, rank, i));
            int64_t bytes = communicator.run(0, src.get(), dst.get());
            if (!inPlace) // the operand may be overwritten at once
              std::memset(src.get(), 0xee, operands * width);
            EXPECT_EQ(bytes, expectedBytes(c, group->size(), position));
            for (int64_t i = 0; i < results; ++i) {
              double expected = expectedElement(c, *group, position, i);
              std::byte rounded[8];
              store(c.dtype, rounded, 0, expected);
              ASSERT_EQ(loadAsDouble(c.dtype, dst.get(), i),
                        loadAsDouble(c.dtype, rounded, 0))
                  << "rank " << rank << " element " << i;
            }
          }
        });
    for (const std::string &error : errors)
      EXPECT_EQ(error, "");
  }
}

struct Parameters {
  Dtype dtype;
  int64_t worldSize;
};

class CollectiveTest : public testing::TestWithParam<Parameters> {
protected:
  /// A collective of the whole world, and of two interleaved halves where there
  /// are.
  void checkGroups(
      Collective c, const std::function<Shape(int64_t)> &operand,
      const std::function<Shape(int64_t)> &result,
      const std::function<void(Collective &, int64_t)> &finish =
          [](Collective &, int64_t) {}) {
    int64_t worldSize = GetParam().worldSize;
    c.dtype = GetParam().dtype;
    std::vector<std::vector<std::vector<int64_t>>> groupings = {
        {firstRanks(worldSize)}};
    if (worldSize % 2 == 0) {
      std::vector<int64_t> even, odd;
      for (int64_t rank = 0; rank < worldSize; ++rank)
        (rank % 2 ? odd : even).insert((rank % 2 ? odd : even).begin(), rank);
      groupings.push_back({odd, even}); // in descending order too
    }
    for (const auto &groups : groupings) {
      c.groups = groups;
      int64_t n = groups.front().size();
      c.operandShape = operand(n);
      c.resultShape = result(n);
      finish(c, n);
      check(c, worldSize);
    }
  }
};

TEST_P(CollectiveTest, AllGather) {
  for (int64_t dim = 0; dim < 3; ++dim) {
    Collective c{.kind = CollectiveKind::AllGather, .dtype = {}};
    c.dim = dim;
    checkGroups(
        c, [](int64_t) { return Shape{2, 3, 4}; },
        [&](int64_t n) {
          Shape shape = {2, 3, 4};
          shape[dim] *= n;
          return shape;
        });
  }
}

static std::vector<Reduction> getReductions(Dtype dtype) {
  if (dtype == Dtype::I1)
    return {Reduction::Max, Reduction::Min, Reduction::Product};
  return {Reduction::Sum, Reduction::Avg, Reduction::Max, Reduction::Min,
          Reduction::Product};
}

TEST_P(CollectiveTest, ReduceScatter) {
  for (Reduction reduction : getReductions(GetParam().dtype))
    for (int64_t dim = 0; dim < 3; ++dim) {
      Collective c{.kind = CollectiveKind::ReduceScatter, .dtype = {}};
      c.reduction = reduction;
      c.dim = dim;
      checkGroups(
          c,
          [&](int64_t n) {
            Shape shape = {2, 3, 4};
            shape[dim] *= n;
            return shape;
          },
          [](int64_t) { return Shape{2, 3, 4}; });
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
      checkGroups(
          c, [&](int64_t) { return shape; }, [&](int64_t) { return shape; });
    }
}

TEST_P(CollectiveTest, AllToAll) {
  for (int64_t split = 0; split < 3; ++split)
    for (int64_t concat = 0; concat < 3; ++concat) {
      Collective c{.kind = CollectiveKind::AllToAll, .dtype = {}};
      c.splitDim = split;
      c.concatDim = concat;
      auto operand = [&](int64_t n) {
        Shape shape = {2, 3, 4};
        shape[split] *= n;
        return shape;
      };
      checkGroups(c, operand, [&](int64_t n) {
        Shape shape = operand(n);
        shape[split] /= n;
        shape[concat] *= n;
        return shape;
      });
    }
}

TEST_P(CollectiveTest, PermuteAndBroadcast) {
  auto shape = [](int64_t) { return Shape{3, 5}; };
  Collective permute{.kind = CollectiveKind::Permute, .dtype = {}};
  checkGroups(permute, shape, shape, [](Collective &c, int64_t n) {
    c.source.clear(); // a ring, whose last member keeps its own
    for (int64_t p = 0; p < n; ++p)
      c.source.push_back(p + 1 < n ? (p + 1) % (n - 1) : p);
  });
  Collective broadcast{.kind = CollectiveKind::Broadcast, .dtype = {}};
  checkGroups(broadcast, shape, shape,
              [](Collective &c, int64_t n) { c.root = n - 1; });
}

static std::vector<Parameters> makeParameters() {
  std::vector<Parameters> parameters;
  for (int32_t dtype = 0; dtype < numDtypes; ++dtype)
    for (int64_t worldSize = 1; worldSize <= 6; ++worldSize)
      parameters.push_back({static_cast<Dtype>(dtype), worldSize});
  return parameters;
}
INSTANTIATE_TEST_SUITE_P(Local, CollectiveTest,
                         testing::ValuesIn(makeParameters()),
                         [](const auto &info) {
                           return std::string(toString(info.param.dtype)) +
                                  "_" + std::to_string(info.param.worldSize) +
                                  "ranks";
                         });

/// Floating-point sums depend on their order: the definition's is the group's.
TEST(LocalCommunicator, SumsInGroupOrder) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.operandShape = c.resultShape = {3000};
  c.groups = {{2, 0, 1}};
  Manifest manifest = makeManifest(3, {c});
  auto element = [](int64_t rank, int64_t i) {
    return std::ldexp(1.0f + static_cast<float>(i) / 3000, rank * 20 - 10) *
           (rank == 1 ? -1.0f : 1.0f);
  };
  for (int repeat = 0; repeat < 20; ++repeat)
    runRanks(manifest, {}, [&](Communicator &communicator) {
      std::vector<float> data(3000);
      for (int64_t i = 0; i < 3000; ++i)
        data[i] = element(communicator.getRank(), i);
      auto *bytes = reinterpret_cast<std::byte *>(data.data());
      communicator.run(0, bytes, bytes);
      for (int64_t i = 0; i < 3000; ++i)
        ASSERT_EQ(data[i], (element(2, i) + element(0, i)) + element(1, i));
    });
}

TEST(LocalCommunicator, MaxPropagatesNaN) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.reduction = Reduction::Max;
  c.operandShape = c.resultShape = {2};
  c.groups = {{0, 1}};
  runRanks(makeManifest(2, {c}), {}, [&](Communicator &communicator) {
    float data[2] = {0, 0};
    data[communicator.getRank()] = NAN;
    auto *bytes = reinterpret_cast<std::byte *>(data);
    communicator.run(0, bytes, bytes);
    EXPECT_TRUE(std::isnan(data[0]) && std::isnan(data[1]));
  });
}

static Collective makeNamed(const std::string &fqn, int64_t worldSize) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.operandShape = c.resultShape = {4};
  c.groups = {firstRanks(worldSize)};
  c.fqn = fqn;
  return c;
}

/// Many more ranks than cores, many rounds: ends, and soon.
TEST(LocalCommunicator, OversubscribedRanks) {
  Manifest manifest = makeManifest(24, {makeNamed("mlp", 24)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        float data[4];
        auto *bytes = reinterpret_cast<std::byte *>(data);
        for (int round = 0; round < 100; ++round) {
          std::fill_n(data, 4, 1.0f);
          communicator.run(0, bytes, bytes);
          ASSERT_EQ(data[3], 24.0f);
        }
      });
  EXPECT_EQ(errors, std::vector<std::string>(24));
}

TEST(LocalCommunicator, AbortReleasesTheOthers) {
  Manifest manifest = makeManifest(3, {makeNamed("mlp", 3)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        if (communicator.getRank() == 1) {
          std::this_thread::sleep_for(milliseconds(20));
          communicator.abort("rank 1 failed: out of luck");
          return;
        }
        communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "rank 1 failed: out of luck");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2], "rank 1 failed: out of luck");
}

TEST(LocalCommunicator, AbortIsSeenLater) {
  Manifest manifest = makeManifest(1, {makeNamed("mlp", 1)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.abort("first");
        communicator.abort("second");
        communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "first");
}

TEST(LocalCommunicator, TimeoutNamesWhoWaitsWhere) {
  Manifest manifest =
      makeManifest(2, {makeNamed("mlp", 2), makeNamed("attention", 2)});
  CommunicatorOptions options;
  options.timeout = milliseconds(50);
  std::vector<std::string> errors =
      runRanks(manifest, options, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.run(0, data, data);
        if (communicator.getRank() == 1)
          std::this_thread::sleep_for(milliseconds(500));
        communicator.run(1, data, data);
      });
  for (const std::string &error : errors)
    EXPECT_EQ(error,
              "no progress for 0.05 s: rank 0 waits in collective 1 "
              "(all_reduce of 'attention'); rank 1 computes after collective "
              "0 (all_reduce of 'mlp')");
}

TEST(LocalCommunicator, EndedRankIsNamedAtOnce) {
  Manifest manifest = makeManifest(2, {makeNamed("mlp", 2)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        if (communicator.getRank() == 0)
          communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "rank 1 has ended while others wait for it: rank 0 "
                       "waits in collective 0 (all_reduce of 'mlp'); rank 1 "
                       "has ended");
}

TEST(LocalCommunicator, DifferentOrderIsNoticed) {
  Manifest manifest =
      makeManifest(2, {makeNamed("mlp", 2), makeNamed("attention", 2)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.run(communicator.getRank(), data, data);
      });
  EXPECT_TRUE(contains(errors[0], "the ranks' programs don't match: rank "));
  EXPECT_TRUE(contains(errors[0], "collective 0 (all_reduce of 'mlp')"));
  EXPECT_TRUE(contains(errors[1], "collective 1 (all_reduce of 'attention')"));
}

TEST(LocalCommunicator, RankWithoutGroup) {
  Collective c = makeNamed("mlp", 1);
  std::vector<std::string> errors =
      runRanks(makeManifest(2, {c}), {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1],
            "rank 1 is in no group of collective 0 (all_reduce of 'mlp')");
}
