//===- PartsTest.cpp - Movement over parts of mesh dimensions -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of random redistributions are proven, whatever parts they use.
//
// All chains of two reductions, and of two gathers, over parts of one mesh
// dimension, beside a value that is split by any part: what is proven is right,
// and what is right, over parts that don't overlap, is proven. Of 6 ranks,
// x:(1)2 and x:(3)2 don't make up x.
//
//===----------------------------------------------------------------------===//

#include "ProofTest.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Proof/Equivalence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <random>

using namespace mlir;
using namespace mlir::tp;

namespace {

struct Part {
  int64_t begin, size;
  std::string print() const { return llvm::formatv("x:({0}){1}", begin, size); }
};

/// All parts of a mesh dimension of this size, but the whole.
std::vector<Part> getParts(int64_t whole) {
  std::vector<Part> parts;
  for (int64_t begin = 1; begin < whole; ++begin)
    for (int64_t size = 2; begin * size <= whole; ++size)
      if (whole % (begin * size) == 0 && size != whole)
        parts.push_back({begin, size});
  return parts;
}

/// The ranks that `rank` works together with, in order.
std::vector<int64_t> getGroup(int64_t whole, Part part, int64_t rank) {
  int64_t stride = whole / (part.begin * part.size);
  int64_t first = rank - rank / stride % part.size * stride;
  std::vector<int64_t> group;
  for (int64_t i = 0; i < part.size; ++i)
    group.push_back(first + i * stride);
  return group;
}

class PartsTest : public test::ProofTest {
protected:
  PartsTest() : ProofTest(MLIRContext::Threading::DISABLED) {}

  bool isProven(StringRef reference, StringRef program) {
    auto model = parseSourceString<ModuleOp>(reference, &context);
    auto ranks = parseSourceString<ModuleOp>(program, &context);
    EXPECT_TRUE(model && ranks) << program.str();
    return model && ranks && isProven(*model, *ranks);
  }

  bool isProven(ModuleOp model, ModuleOp ranks) {
    MeshOp mesh = *ranks.getOps<MeshOp>().begin();
    auto programs =
        getRanks(SmallVector<func::FuncOp>(ranks.getOps<func::FuncOp>()), mesh);
    EquivalenceOptions options;
    options.maxOperations = 0;
    return checkEquivalence(*model.getOps<func::FuncOp>().begin(), *programs,
                            mesh, options)
               .verdict == Verdict::Proven;
  }

  /// Beside %v, %w is split by `beside` and gathered.
  std::string getProgram(int64_t whole, StringRef local, StringRef placement,
                         StringRef global, Part beside, StringRef body) {
    return llvm::formatv(
        R"(tp.mesh @mesh(x = {0})
func.func @main(%v: {1} {{tp.name = "v", tp.global_type = {3}, tp.sharding = #tp.sharding{2}},
                %w: tensor<1xf32> {{tp.name = "w", tp.global_type = tensor<{5}xf32>, tp.sharding = #tp.sharding<@mesh, [{{{4}}]>})
    -> ({3} {{tp.name = "r", tp.global_type = {3}, tp.sharding = #tp.sharding<@mesh, [{{}]>}, tensor<{5}xf32> {{tp.name = "s", tp.global_type = tensor<{5}xf32>, tp.sharding = #tp.sharding<@mesh, [{{}]>}) {{
{6}
  %g = tp.all_gather %w dim 0 over @mesh {{{4}} : tensor<1xf32> -> tensor<{5}xf32>
  return %b, %g : {3}, tensor<{5}xf32>
})",
        whole, local, placement, global, beside.print(), beside.size, body);
  }

  std::string getReference(StringRef global, Part beside) {
    return llvm::formatv(
        R"(func.func @main(%v: {0} {{tp.name = "v"}, %w: tensor<{1}xf32> {{tp.name = "w"}) -> ({0} {{tp.name = "r"}, tensor<{1}xf32> {{tp.name = "s"}) {{
  return %v, %w : {0}, tensor<{1}xf32>
})",
        global, beside.size);
  }

  /// A program may be right although its parts overlap; it needn't be proven.
  void expect(bool isRight, Part first, Part second,
              const std::string &reference, const std::string &program) {
    ++(isRight ? numRight : numWrong);
    bool proven = isProven(reference, program);
    if (!isRight)
      EXPECT_FALSE(proven) << program;
    else if (!getAxis(first).overlaps(getAxis(second)))
      EXPECT_TRUE(proven) << program;
  }

  AxisRefAttr getAxis(Part part) {
    return AxisRefAttr::get(&context, "x", part.begin, part.size);
  }

  int64_t numRight = 0, numWrong = 0;
};

TEST_F(PartsTest, Reductions) {
  for (int64_t whole : {6, 8, 12}) {
    std::vector<Part> parts = getParts(whole);
    for (Part first : parts)
      for (Part second : parts) {
        // How often each rank has each one's contribution.
        std::vector<std::vector<int64_t>> counts(
            whole, std::vector<int64_t>(whole, 0));
        for (int64_t rank = 0; rank < whole; ++rank)
          counts[rank][rank] = 1;
        for (Part part : {first, second}) {
          auto before = counts;
          for (int64_t rank = 0; rank < whole; ++rank)
            for (int64_t i = 0; i < whole; ++i) {
              counts[rank][i] = 0;
              for (int64_t other : getGroup(whole, part, rank))
                counts[rank][i] += before[other][i];
            }
        }
        bool isRight = llvm::all_of(counts, [](const auto &list) {
          return llvm::all_of(list, [](int64_t count) { return count == 1; });
        });
        std::string body = llvm::formatv(
            "  %a = tp.all_reduce sum %v over @mesh {{{0}} : tensor<2xf32>\n"
            "  %b = tp.all_reduce sum %a over @mesh {{{1}} : tensor<2xf32>",
            first.print(), second.print());
        for (Part beside : parts)
          expect(isRight, first, second, getReference("tensor<2xf32>", beside),
                 getProgram(whole, "tensor<2xf32>",
                            "<@mesh, [{}], partial = {x: sum}>",
                            "tensor<2xf32>", beside, body));
      }
  }
  EXPECT_GT(numRight, 0);
  EXPECT_GT(numWrong, 0);
}

TEST_F(PartsTest, Gathers) {
  for (int64_t whole : {6, 8, 12}) {
    std::vector<Part> parts = getParts(whole);
    std::string global = llvm::formatv("tensor<{0}xf32>", whole);
    for (Part first : parts)
      for (Part second : parts) {
        if (first.size * second.size != whole)
          continue;
        std::vector<std::vector<int64_t>> held(whole);
        for (int64_t rank = 0; rank < whole; ++rank)
          held[rank] = {rank};
        for (Part part : {first, second}) {
          auto before =
              std::exchange(held, std::vector<std::vector<int64_t>>(whole));
          for (int64_t rank = 0; rank < whole; ++rank)
            for (int64_t other : getGroup(whole, part, rank))
              llvm::append_range(held[rank], before[other]);
        }
        bool isRight = llvm::all_of(held, [](const auto &list) {
          return llvm::is_sorted(list) &&
                 llvm::all_of(llvm::enumerate(list), [](auto each) {
                   return each.value() == int64_t(each.index());
                 });
        });
        std::string body = llvm::formatv(
            "  %a = tp.all_gather %v dim 0 over @mesh {{{0}} : tensor<1xf32> "
            "-> tensor<{2}xf32>\n"
            "  %b = tp.all_gather %a dim 0 over @mesh {{{1}} : "
            "tensor<{2}xf32> -> tensor<{3}xf32>",
            first.print(), second.print(), first.size, whole);
        for (Part beside : parts)
          expect(isRight, first, second, getReference(global, beside),
                 getProgram(whole, "tensor<1xf32>", "<@mesh, [{x}]>", global,
                            beside, body));
      }
  }
  EXPECT_GT(numRight, 0);
  EXPECT_GT(numWrong, 0);
}

/// Several in one program, by collectives only, often in other shapes: sizes
/// need not divide, and parts of one value need not nest with another's.
TEST_F(PartsTest, RandomRedistributions) {
  const char *given = std::getenv("TP_REDISTRIBUTION_SEED");
  unsigned seed = given ? std::atoi(given) : 8;
  std::mt19937 random(seed);
  auto pick = [&](size_t n) { return static_cast<int64_t>(random() % n); };
  using Mesh = std::vector<std::pair<std::string, int64_t>>;
  const Mesh meshes[] = {{{"x", 4}, {"y", 3}},
                         {{"x", 8}, {"y", 2}},
                         {{"x", 6}, {"y", 2}},
                         {{"x", 2}, {"y", 2}, {"z", 3}},
                         {{"x", 12}}};
  const int64_t sizes[] = {1, 2, 5, 7, 8, 12, 13, 24};
  for (int i = 0; i < 50; ++i) {
    const Mesh &mesh = meshes[pick(std::size(meshes))];
    // Each mesh dimension as it is, or in parts of prime size in any order.
    auto drawAxes = [&] {
      std::vector<std::string> axes;
      for (const auto &[name, size] : mesh) {
        std::vector<int64_t> primes;
        for (int64_t rest = size, prime = 2; rest > 1; ++prime)
          for (; rest % prime == 0; rest /= prime)
            primes.push_back(prime);
        std::shuffle(primes.begin(), primes.end(), random);
        if (primes.size() == 1 || pick(2)) {
          axes.push_back(name);
          continue;
        }
        int64_t begin = 1;
        for (int64_t prime : primes) {
          axes.push_back(llvm::formatv("{0}:({1}){2}", name, begin, prime));
          begin *= prime;
        }
      }
      std::shuffle(axes.begin(), axes.end(), random);
      return axes;
    };
    auto drawSharding = [&](size_t rank) {
      std::vector<std::string> dims(rank);
      for (const std::string &axis : drawAxes())
        if (pick(4)) {
          std::string &dim = dims[pick(rank)];
          dim += (dim.empty() ? "" : ", ") + axis;
        }
      return "{tp.sharding = #tp.sharding<@mesh, [{" +
             llvm::join(dims, "}, {") + "}]>}";
    };
    std::vector<std::string> arguments, values, types, results;
    for (int value = 0; value < 6; ++value) {
      std::string type = "tensor<";
      size_t rank = 1 + pick(3);
      for (size_t dim = 0; dim < rank; ++dim)
        type += std::to_string(sizes[pick(std::size(sizes))]) + "x";
      types.push_back(type + "f32>");
      values.push_back("%a" + std::to_string(value));
      arguments.push_back(values.back() + ": " + types.back() + " " +
                          drawSharding(rank));
      results.push_back(types.back() + " " + drawSharding(rank));
    }
    std::vector<std::string> axes;
    for (const auto &[name, size] : mesh)
      axes.push_back(name + " = " + std::to_string(size));
    std::string text = "tp.mesh @mesh(" + llvm::join(axes, ", ") +
                       ")\nfunc.func @main(" + llvm::join(arguments, ", ") +
                       ") -> (" + llvm::join(results, ", ") + ") { return " +
                       llvm::join(values, ", ") + " : " +
                       llvm::join(types, ", ") + " }";
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    auto model = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> ranks = model->clone();
    ParallelizeOptions options;
    options.oneShot = false;
    PassManager passes(&context);
    buildParallelizePipeline(passes, options);
    ASSERT_TRUE(succeeded(passes.run(*ranks)));
    EXPECT_TRUE(isProven(*model, *ranks));
  }
}

/// The parts of an axis make up all of it, whatever is asked for.
TEST_F(PartsTest, CutsMakeUpTheWhole) {
  for (int64_t whole : {6, 8, 12, 36}) {
    auto module = parseSourceString<ModuleOp>(
        llvm::formatv("tp.mesh @mesh(x = {0})", whole).str(), &context);
    MeshOp mesh = *module->getOps<MeshOp>().begin();
    auto getAxis = [&](Part part) {
      return tp::getPart(mesh, "x", part.begin, part.begin * part.size);
    };
    std::vector<Part> parts = getParts(whole);
    parts.push_back({1, whole});
    for (Part axis : parts)
      for (Part a : parts)
        for (Part b : parts) {
          SmallVector<AxisRefAttr> cut =
              cutParts(mesh, getAxis(axis), {getAxis(a), getAxis(b)});
          EXPECT_EQ(mergeParts(mesh, cut),
                    SmallVector<AxisRefAttr>{getAxis(axis)});
          for (AxisRefAttr part : cut)
            EXPECT_GT(mesh.getAxisSize(part), 1);
        }
  }
}

} // namespace
