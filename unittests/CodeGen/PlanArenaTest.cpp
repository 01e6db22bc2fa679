//===- PlanArenaTest.cpp - Buffers that live at once don't overlap --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans the arenas of random programs: short ones and long ones, with buffers
// that live for a few ops and some that live for most of the program.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// What uses a buffer first and last, and where the buffer is.
struct Placed {
  int64_t first, last, begin, end;
};

/// A program of `numOps` calls, each of which uses two buffers.
std::string writeProgram(std::mt19937 &random, int numOps) {
  std::string text = "func.func private @use(memref<?xi8>, memref<?xi8>)\n"
                     "func.func @main() {\n";
  int numBuffers = numOps / 2 + 2;
  for (int i = 0; i < numBuffers; ++i) {
    std::string number = std::to_string(i),
                type = "memref<" + std::to_string(1 + random() % 4096) + "xi8>";
    text += "%b" + number + " = memref.alloc() : " + type + "\n%v" + number +
            " = memref.cast %b" + number + " : " + type + " to memref<?xi8>\n";
  }
  auto choose = [&](int op) {
    int near = op / 2 + static_cast<int>(random() % 9) - 4;
    return random() % 32 == 0 ? static_cast<int>(random() % numBuffers)
                              : std::clamp(near, 0, numBuffers - 1);
  };
  for (int op = 0; op < numOps; ++op)
    text += "call @use(%v" + std::to_string(choose(op)) + ", %v" +
            std::to_string(choose(op)) +
            ") : (memref<?xi8>, memref<?xi8>) -> ()\n";
  return text + "return\n}\n";
}

SmallVector<Placed> listPlaced(func::FuncOp program) {
  DenseMap<Operation *, int64_t> numbers;
  for (Operation &op : program.getBody().front())
    numbers[&op] = numbers.size();
  SmallVector<Placed> placed;
  for (auto view : program.getOps<memref::ViewOp>()) {
    APInt offset;
    EXPECT_TRUE(matchPattern(view.getByteShift(), m_ConstantInt(&offset)));
    Placed each{std::numeric_limits<int64_t>::max(), -1, offset.getSExtValue(),
                offset.getSExtValue() + view.getType().getNumElements()};
    for (Operation *cast : view->getUsers())
      for (Operation *user : cast->getUsers()) {
        each.first = std::min(each.first, numbers[user]);
        each.last = std::max(each.last, numbers[user]);
      }
    placed.push_back(each);
  }
  return placed;
}

TEST(PlanArena, BuffersThatLiveAtOnceDontOverlap) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, memref::MemRefDialect,
                  tprt::TPRTDialect>();
  MLIRContext context(registry);
  std::mt19937 random(0);
  for (int numOps : {1, 2, 7, 60, 127, 128, 129, 255, 256, 257, 700, 1500}) {
    auto module =
        parseSourceString<ModuleOp>(writeProgram(random, numOps), &context);
    ASSERT_TRUE(module);
    PassManager passes(&context);
    passes.addPass(createPlanArena());
    ASSERT_TRUE(succeeded(passes.run(*module)));
    auto bytes = getManifest(*module).getAs<IntegerAttr>("arena_bytes");
    ASSERT_TRUE(bytes);
    SmallVector<Placed> placed =
        listPlaced(module->lookupSymbol<func::FuncOp>("main"));
    EXPECT_GE(placed.size(), size_t(numOps / 2 + 2));
    for (auto [i, x] : llvm::enumerate(placed)) {
      EXPECT_LE(x.end, bytes.getInt());
      for (const Placed &y : ArrayRef(placed).drop_front(i + 1))
        EXPECT_FALSE(x.first <= y.last && y.first <= x.last &&
                     x.begin < y.end && y.begin < x.end)
            << numOps << " ops: bytes " << x.begin << " to " << x.end
            << " and bytes " << y.begin << " to " << y.end;
    }
  }
}

} // namespace
