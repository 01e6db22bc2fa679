//===- PredictTraffic.cpp - Memory traffic of kernels ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The addresses that a kernel touches depend on its threads' numbers and loops,
// hardly ever on data. So the pass executes the index arithmetic, block by
// block and for all threads of a block at once, and counts what loads and
// stores would touch in sectors of 32 bytes:
//
// - requested: the sectors that each access of a warp touches. Caches serve
//   these.
// - moved: sectors that come from memory or go there. A sector that was touched
//   before is still in the cache if all blocks that run at the same time have
//   since brought in no more than the cache's size.
// - least: each sector that is read before it is written, once, and each one
//   that is written, once.
//
// An index that was loaded from memory is assumed to equal its position, as if
// indices didn't repeat. Floats aren't computed.
//
//===----------------------------------------------------------------------===//

#include "CodeGen/Loops/Buffers.h"
#include "ThreadLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Remarks.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TP/Elements.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PREDICTTRAFFIC
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

constexpr int64_t kSectorBytes = 32;
constexpr int64_t kBankBytes = 4, kNumBanks = 32;
/// The assumed device, about an H100: half of its second-level cache, which
/// holds what is read again; its multiprocessors; and the threads of each.
constexpr int64_t kCacheBytes = 25 << 20;
constexpr int64_t kProcessors = 132, kThreadsPerProcessor = 2048;

/// The number of groups of neighboring blocks to run if there are too many
/// blocks to run all.
constexpr int64_t kGroups = 32;

struct Traffic {
  int64_t least = 0, moved = 0, requested = 0; ///< bytes
  /// Passes over the banks of shared memory, and the least possible number.
  int64_t sharedPasses = 0, leastSharedPasses = 0;
};

/// The sectors of one buffer, and when they were touched last.
class Sectors {
public:
  struct Sector {
    uint32_t block = 0, time = 0;
    bool isRead = false, isWritten = false;
  };
  Sector &operator[](int64_t number) {
    auto &page = pages[number / kPageSize];
    if (page.empty())
      page.resize(kPageSize);
    return page[number % kPageSize];
  }
  explicit Sectors(int64_t bytes)
      : pages(llvm::divideCeil(bytes, kSectorBytes * kPageSize)) {}

private:
  static constexpr int64_t kPageSize = 4096;
  std::vector<std::vector<Sector>> pages;
};

/// One number for each thread of a block.
using Lanes = std::vector<int64_t>;

class Interpreter {
public:
  Interpreter(gpu::GPUFuncOp kernel, int64_t maxBlocks)
      : kernel(kernel), numBlocks(kernel.getKnownGridSizeAttr()[0]),
        numThreads(kernel.getKnownBlockSizeAttr()[0]),
        numRun(std::min(numBlocks, maxBlocks)) {
    int64_t resident = kProcessors * (kThreadsPerProcessor / numThreads);
    numConcurrent = std::min(numBlocks, resident);
    for (BlockArgument argument : kernel.getArguments()) {
      auto type = dyn_cast<MemRefType>(argument.getType());
      bytes.push_back(type ? getTensorBytes(type) : 0);
      sectors.emplace_back(bytes.back());
    }
  }

  void run() {
    Lanes everyone(numThreads, 1);
    // Neighbors share what they read, so run groups of them. Not all blocks
    // are alike, so spread the groups over the grid.
    int64_t groups = numRun < numBlocks ? std::min(numRun, kGroups) : 1;
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t i = 0; i < numRun / groups; ++i) {
        block = group * numBlocks / groups + i;
        run(kernel.getBody().front(), everyone);
      }
    numRun = groups * (numRun / groups);
  }

  /// The traffic of all blocks, estimated from those that have run.
  Traffic getTraffic() const {
    auto scale = [&](int64_t count) { return count * numBlocks / numRun; };
    return {scale(traffic.least), scale(traffic.moved),
            scale(traffic.requested), scale(traffic.sharedPasses),
            scale(traffic.leastSharedPasses)};
  }

private:
  void run(Block &ops, const Lanes &isActive) {
    for (Operation &op : ops)
      run(&op, isActive);
  }

  void run(Operation *op, const Lanes &isActive) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](scf::ForOp loop) { runFor(loop, isActive); })
        .Case([&](scf::IfOp branch) { runIf(branch, isActive); })
        .Case([&](memref::LoadOp load) {
          touch(load.getMemRef(), load.getIndices(), load.getType(), 1,
                /*isWrite=*/false, isActive);
          if (load.getType().isIntOrIndex())
            lanes[load] = getAddress(load.getMemRef(), load.getIndices());
        })
        .Case([&](vector::LoadOp load) {
          VectorType type = load.getVectorType();
          touch(load.getBase(), load.getIndices(), type.getElementType(),
                type.getNumElements(), /*isWrite=*/false, isActive);
          if (type.getElementType().isIntOrIndex())
            lanes[load] = getAddress(load.getBase(), load.getIndices());
        })
        .Case([&](vector::ExtractOp extract) {
          if (extract.getType().isIntOrIndex()) {
            Lanes result = get(extract.getSource());
            for (int64_t &lane : result)
              lane += extract.getStaticPosition().front();
            lanes[extract] = std::move(result);
          }
        })
        .Case([&](memref::StoreOp store) {
          touch(store.getMemRef(), store.getIndices(),
                store.getValue().getType(), 1, /*isWrite=*/true, isActive);
        })
        .Case([&](vector::StoreOp store) {
          VectorType type = store.getVectorType();
          touch(store.getBase(), store.getIndices(), type.getElementType(),
                type.getNumElements(), /*isWrite=*/true, isActive);
        })
        .Default([&](Operation *op) { evaluate(op); });
  }

  void runIf(scf::IfOp branch, const Lanes &isActive) {
    Lanes condition = get(branch.getCondition());
    for (bool isThen : {true, false}) {
      Region &region = isThen ? branch.getThenRegion() : branch.getElseRegion();
      Lanes some(numThreads);
      for (int64_t i = 0; i < numThreads; ++i)
        some[i] = isActive[i] && (condition[i] != 0) == isThen;
      if (region.empty() || !llvm::is_contained(some, 1))
        continue;
      run(region.front(), some);
      assign(branch.getResults(), region.front().getTerminator()->getOperands(),
             some);
    }
  }

  void runFor(scf::ForOp loop, const Lanes &isActive) {
    Lanes iv = get(loop.getLowerBound());
    const Lanes end = get(loop.getUpperBound()), step = get(loop.getStep());
    assign(loop.getRegionIterArgs(), loop.getInitArgs(), isActive);
    while (true) {
      Lanes some(numThreads);
      bool isAny = false;
      for (int64_t i = 0; i < numThreads; ++i)
        isAny |= some[i] = isActive[i] && iv[i] < end[i];
      if (!isAny)
        break;
      lanes[loop.getInductionVar()] = iv;
      run(*loop.getBody(), some);
      assign(loop.getRegionIterArgs(),
             loop.getBody()->getTerminator()->getOperands(), some);
      for (int64_t i = 0; i < numThreads; ++i)
        iv[i] += step[i];
    }
    assign(loop.getResults(), loop.getRegionIterArgs(), isActive);
  }

  /// Assigns `from` to `to` in the threads of `some`.
  void assign(ValueRange to, ValueRange from, const Lanes &some) {
    SmallVector<Lanes> values;
    for (Value value : from)
      values.push_back(value.getType().isIntOrIndex() ? get(value) : Lanes());
    for (auto [target, value] : llvm::zip_equal(to, values)) {
      if (value.empty())
        continue;
      Lanes &result = lanes[target];
      result.resize(numThreads);
      for (int64_t i = 0; i < numThreads; ++i)
        if (some[i])
          result[i] = value[i];
    }
  }

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  /// The value in each thread; 1 if it isn't computed, because it depends on
  /// floats.
  const Lanes &get(Value value) {
    Lanes &result = lanes[value];
    if (result.empty()) {
      APInt constant;
      result.assign(numThreads, matchPattern(value, m_ConstantInt(&constant))
                                    ? constant.getSExtValue()
                                    : 1);
    }
    return result;
  }

  template <typename FunctionT>
  void compute(Operation *op, FunctionT function) {
    const Lanes x = get(op->getOperand(0)), y = get(op->getOperand(1));
    Lanes &result = lanes[op->getResult(0)];
    result.resize(numThreads);
    for (int64_t i = 0; i < numThreads; ++i)
      result[i] = function(x[i], y[i]);
  }

  void evaluate(Operation *op) {
    if (op->getNumResults() != 1 ||
        !op->getResult(0).getType().isIntOrIndex() ||
        op->hasTrait<OpTrait::ConstantLike>())
      return;
    auto byZero = [](int64_t y) { return y == 0 ? 1 : y; };
    llvm::TypeSwitch<Operation *>(op)
        .Case<gpu::ThreadIdOp>([&](auto) {
          Lanes &result = lanes[op->getResult(0)];
          result.resize(numThreads);
          for (int64_t i = 0; i < numThreads; ++i)
            result[i] = i;
        })
        .Case<gpu::BlockIdOp>(
            [&](auto) { lanes[op->getResult(0)].assign(numThreads, block); })
        .Case<arith::AddIOp>([&](auto) { compute(op, std::plus<int64_t>()); })
        .Case<arith::SubIOp>([&](auto) { compute(op, std::minus<int64_t>()); })
        .Case<arith::MulIOp>(
            [&](auto) { compute(op, std::multiplies<int64_t>()); })
        .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>([&](auto) {
          compute(op, [&](int64_t x, int64_t y) { return x / byZero(y); });
        })
        .Case<arith::RemUIOp, arith::RemSIOp>([&](auto) {
          compute(op, [&](int64_t x, int64_t y) { return x % byZero(y); });
        })
        .Case<arith::MinUIOp, arith::MinSIOp>([&](auto) {
          compute(op, [](int64_t x, int64_t y) { return std::min(x, y); });
        })
        .Case<arith::MaxUIOp, arith::MaxSIOp>([&](auto) {
          compute(op, [](int64_t x, int64_t y) { return std::max(x, y); });
        })
        .Case<arith::AndIOp>(
            [&](auto) { compute(op, std::bit_and<int64_t>()); })
        .Case<arith::OrIOp>([&](auto) { compute(op, std::bit_or<int64_t>()); })
        .Case<arith::XOrIOp>(
            [&](auto) { compute(op, std::bit_xor<int64_t>()); })
        .Case<arith::ShLIOp>([&](auto) {
          compute(op, [](int64_t x, int64_t y) { return x << (y & 63); });
        })
        .Case<arith::ShRUIOp, arith::ShRSIOp>([&](auto) {
          compute(op, [](int64_t x, int64_t y) { return x >> (y & 63); });
        })
        .Case<arith::CmpIOp>([&](arith::CmpIOp compare) {
          unsigned width =
              compare.getLhs().getType().isIndex()
                  ? 64
                  : compare.getLhs().getType().getIntOrFloatBitWidth();
          compute(op, [&](int64_t x, int64_t y) -> int64_t {
            return arith::applyCmpPredicate(compare.getPredicate(),
                                            APInt(width, x, true, true),
                                            APInt(width, y, true, true));
          });
        })
        .Case<arith::SelectOp>([&](arith::SelectOp select) {
          const Lanes condition = get(select.getCondition());
          const Lanes x = get(select.getTrueValue()),
                      y = get(select.getFalseValue());
          Lanes &result = lanes[select];
          result.resize(numThreads);
          for (int64_t i = 0; i < numThreads; ++i)
            result[i] = condition[i] ? x[i] : y[i];
        })
        .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
              arith::ExtUIOp, arith::TruncIOp>([&](auto) {
          Lanes value = get(op->getOperand(0));
          lanes[op->getResult(0)] = std::move(value);
        });
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// For each thread, the distance from the start of `buffer`'s root, in
  /// elements.
  Lanes getAddress(Value buffer, ValueRange indices) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    Lanes address(numThreads, 0);
    if (failed(type.getStridesAndOffset(strides, offset)))
      return address;
    for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
      const Lanes &values = get(index);
      for (int64_t i = 0; i < numThreads; ++i)
        address[i] += values[i] * stride;
    }
    auto addOffset = [&](OpFoldResult offset) {
      if (auto value = dyn_cast<Value>(offset)) {
        const Lanes &values = get(value);
        for (int64_t i = 0; i < numThreads; ++i)
          address[i] += values[i];
      } else {
        for (int64_t &lane : address)
          lane += *getConstantIntValue(offset);
      }
    };
    if (auto cast = buffer.getDefiningOp<memref::ReinterpretCastOp>())
      addOffset(cast.getMixedOffsets().front());
    return address;
  }

  void touch(Value buffer, ValueRange indices, Type element, int64_t count,
             bool isWrite, const Lanes &isActive) {
    Lanes address = getAddress(buffer, indices);
    int64_t width = getElementBytes(element);
    for (int64_t &lane : address)
      lane *= width;
    // A team's buffer in shared memory starts at the team's part.
    Value root = buffer;
    while (auto view = root.getDefiningOp<ViewLikeOpInterface>()) {
      if (auto part = dyn_cast<memref::ViewOp>(view.getOperation())) {
        const Lanes &start = get(part.getByteShift());
        for (int64_t i = 0; i < numThreads; ++i)
          address[i] += start[i];
      }
      root = view.getViewSource();
    }
    auto argument = dyn_cast<BlockArgument>(root);
    if (!argument || argument.getOwner() != &kernel.getBody().front())
      return; // a register, or a constant
    if (argument.getArgNumber() >= kernel.getNumArguments())
      touchShared(address, width * count, isActive);
    else
      touchGlobal(argument.getArgNumber(), address, width * count, isWrite,
                  isActive);
  }

  void touchGlobal(unsigned buffer, const Lanes &address, int64_t width,
                   bool isWrite, const Lanes &isActive) {
    SmallVector<int64_t, 64> touched;
    for (int64_t warp = 0; warp < numThreads; warp += kWarpSize) {
      touched.clear();
      for (int64_t i = warp, end = std::min(warp + kWarpSize, numThreads);
           i < end; ++i) {
        if (!isActive[i] || address[i] < 0 ||
            address[i] + width > bytes[buffer])
          continue;
        for (int64_t sector = address[i] / kSectorBytes;
             sector <= (address[i] + width - 1) / kSectorBytes; ++sector)
          if (touched.empty() || (touched.back() != sector &&
                                  !llvm::is_contained(touched, sector)))
            touched.push_back(sector);
      }
      traffic.requested += touched.size() * kSectorBytes;
      for (int64_t sector : touched)
        move(sectors[buffer][sector], isWrite);
    }
  }

  void move(Sectors::Sector &sector, bool isWrite) {
    bool isNew = !sector.isRead && !sector.isWritten;
    int64_t between = (time - sector.time) * kSectorBytes;
    if (sector.block == block)
      between *= numConcurrent;
    bool isCached = !isNew && between <= kCacheBytes;
    if (isWrite) {
      // It stays in the cache until it goes to memory, once.
      if (!sector.isWritten)
        traffic.least += kSectorBytes;
      if (!sector.isWritten || !isCached)
        traffic.moved += kSectorBytes;
      sector.isWritten = true;
    } else {
      if (isNew)
        traffic.least += kSectorBytes;
      if (!isCached)
        traffic.moved += kSectorBytes;
      sector.isRead = true;
    }
    if (!isCached)
      ++time;
    sector.block = block;
    sector.time = time;
  }

  /// 128 bytes move in one pass, unless two of their words are in one bank.
  void touchShared(const Lanes &address, int64_t width, const Lanes &isActive) {
    int64_t words = std::max<int64_t>(width / kBankBytes, 1),
            group = std::max<int64_t>(kWarpSize / words, 1);
    for (int64_t first = 0; first < numThreads; first += group) {
      SmallVector<SmallVector<int64_t, 4>, kNumBanks> banks(kNumBanks);
      size_t passes = 0;
      for (int64_t i = first, end = std::min(first + group, numThreads);
           i < end; ++i)
        for (int64_t w = 0; isActive[i] && w < words; ++w) {
          int64_t word = address[i] / kBankBytes + w;
          auto &bank = banks[word % kNumBanks];
          if (!llvm::is_contained(bank, word))
            bank.push_back(word);
          passes = std::max(passes, bank.size());
        }
      traffic.sharedPasses += passes;
      traffic.leastSharedPasses += passes > 0;
    }
  }

  gpu::GPUFuncOp kernel;
  int64_t numBlocks, numThreads, numRun, numConcurrent, block = 0;
  /// The number of sectors that have come into the cache.
  uint32_t time = 0;
  std::vector<int64_t> bytes; ///< by argument
  std::vector<Sectors> sectors;
  DenseMap<Value, Lanes> lanes;
  Traffic traffic;
};

class PredictTraffic : public tp::impl::PredictTrafficBase<PredictTraffic> {
public:
  using PredictTrafficBase::PredictTrafficBase;

private:
  void runOnOperation() override {
    if (maxBlocks < 1) {
      getOperation().emitError("'max-blocks' must be at least 1, and is ")
          << maxBlocks;
      return signalPassFailure();
    }
    llvm::MapVector<Operation *, int64_t> launches;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      ++launches[SymbolTable::lookupNearestSymbolFrom(launch,
                                                      launch.getKernel())];
    });
    for (auto [op, count] : launches) {
      auto kernel = dyn_cast_or_null<gpu::GPUFuncOp>(op);
      if (!kernel) // compiled already
        continue;
      if (failed(verifySizes(kernel)))
        return signalPassFailure();
      Interpreter interpreter(kernel, maxBlocks);
      interpreter.run();
      Traffic traffic = interpreter.getTraffic();
      remark::analysis(kernel.getLoc(),
                       remark::RemarkOpts::name(kernel.getName())
                           .category("tp-predict-traffic"))
          << remark::metric("Blocks", kernel.getKnownGridSizeAttr()[0])
          << remark::metric("Launches", count)
          << remark::metric("LeastBytes", traffic.least)
          << remark::metric("LeastSharedPasses", traffic.leastSharedPasses)
          << remark::metric("MovedBytes", traffic.moved)
          << remark::metric("RequestedBytes", traffic.requested)
          << remark::metric("SharedPasses", traffic.sharedPasses)
          << remark::metric("Threads", kernel.getKnownBlockSizeAttr()[0]);
    }
    markAllAnalysesPreserved();
  }

  static LogicalResult verifySizes(gpu::GPUFuncOp kernel) {
    for (DenseI32ArrayAttr sizes :
         {kernel.getKnownGridSizeAttr(), kernel.getKnownBlockSizeAttr()})
      if (!sizes || sizes.size() != 3 || sizes[0] < 1 || sizes[1] != 1 ||
          sizes[2] != 1)
        return kernel.emitOpError("needs 'known_grid_size' and "
                                  "'known_block_size' of one dimension, as "
                                  "'tp-map-kernels-to-gpu' gives them");
    return success();
  }
};

} // namespace
