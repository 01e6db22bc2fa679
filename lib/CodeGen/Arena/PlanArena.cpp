//===- PlanArena.cpp - One arena for all buffers --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program is straight-line code, so a buffer's life is an interval of op
// numbers. A call counts as the ops of the function that it calls, so buffers
// live as long as if the ops were in the program. Placing intervals in as
// little memory as possible is NP-hard (dynamic storage allocation). The pass
// places buffers one by one, each into the tightest gap. It starts with those
// that live when the most bytes do, largest first. For neural networks, the
// arena is then not much larger than the most bytes that live at once. The pass
// tries other orders too. If the arena is still larger than these bytes, the
// next attempt starts with the buffers that ended up on top, because they are
// hard to place.
//
//===----------------------------------------------------------------------===//

#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Program/Origin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/ArenaUse.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include <numeric>

namespace mlir::tp {
#define GEN_PASS_DEF_PLANARENA
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// The times for which what lives is described, at most.
constexpr int64_t kMaxTimes = 256;

/// Attempts at a smaller arena from each order.
constexpr int kMaxAttempts = 15;

/// Numbers of the first and last op that use a buffer.
struct Life {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;

  bool isEmpty() const { return last < 0; }
  void add(Life other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  Life shiftedBy(int64_t count) const { return {first + count, last + count}; }
  bool meets(Life other) const {
    return first <= other.last && other.first <= last;
  }
};

struct Buffer {
  memref::AllocOp alloc;
  /// The call of the function that has the buffer; null for the program's own.
  tprt::CallOp call;
  int64_t bytes;
  Life life;
  int64_t offset = 0;
};

/// The buffers of a program or of a function that it calls.
struct Function {
  SmallVector<Buffer> buffers;
  SmallVector<Life> arguments;
  int64_t numOps = 0;
};

/// The buffers' numbers, in the order in which they are placed.
using Order = SmallVector<unsigned>;

/// The buffers that have a place, and those among them that live at some time.
/// Most buffers of a long program don't live at the same time as another one,
/// so looking at all of them would take quadratic time.
class PlacedBuffers {
public:
  explicit PlacedBuffers(int64_t numOps)
      : stride(llvm::divideCeil(std::max<int64_t>(numOps, 1), kNumWindows)),
        windows(kNumWindows) {}

  void insert(const Buffer *buffer) {
    auto [first, last] = buffer->life;
    insert(all, buffer);
    // A window overlaps the next one.
    for (int64_t i = std::max<int64_t>(first / stride - 1, 0);
         i <= last / stride; ++i)
      insert(windows[i], buffer);
  }

  /// By offset: at least all those that live when `life` lasts.
  ArrayRef<const Buffer *> getCandidates(Life life) const {
    int64_t window = life.first / stride;
    return life.last < (window + 2) * stride ? windows[window] : all;
  }

private:
  static constexpr int64_t kNumWindows = 128;
  using Buffers = SmallVector<const Buffer *, 0>; ///< by offset

  static void insert(Buffers &buffers, const Buffer *buffer) {
    buffers.insert(llvm::upper_bound(buffers, buffer,
                                     [](const Buffer *x, const Buffer *y) {
                                       return x->offset < y->offset;
                                     }),
                   buffer);
  }

  /// A window is 2 * `stride` ops long, and the next one begins `stride` later.
  int64_t stride;
  Buffers all;
  std::vector<Buffers> windows; ///< those that live in each
};

/// Places the buffers one after the other; returns the end of the highest.
int64_t place(MutableArrayRef<Buffer> buffers, const Order &order) {
  int64_t numOps = 0;
  for (const Buffer &buffer : buffers)
    numOps = std::max(numOps, buffer.life.last + 1);
  PlacedBuffers placed(numOps);
  int64_t end = 0;
  for (unsigned number : order) {
    Buffer *buffer = &buffers[number];
    int64_t best = -1, bestGap = 0, top = 0;
    for (const Buffer *other : placed.getCandidates(buffer->life)) {
      if (!buffer->life.meets(other->life))
        continue;
      int64_t gap = other->offset - top;
      if (gap >= buffer->bytes && (best < 0 || gap < bestGap)) {
        best = top;
        bestGap = gap;
      }
      top = std::max(top, other->offset + other->bytes);
    }
    buffer->offset = best < 0 ? top : best;
    end = std::max(end, buffer->offset + buffer->bytes);
    placed.insert(buffer);
  }
  return end;
}

/// The bytes that live at each op.
SmallVector<int64_t> getLiveBytes(ArrayRef<Buffer> buffers) {
  SmallVector<int64_t> live;
  for (const Buffer &buffer : buffers) {
    if (static_cast<int64_t>(live.size()) < buffer.life.last + 2)
      live.resize(buffer.life.last + 2, 0);
    live[buffer.life.first] += buffer.bytes;
    live[buffer.life.last + 1] -= buffer.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

/// The largest of consecutive numbers (a sparse table: those of 1, 2, 4 ...
/// numbers from each one on).
class RangeMaximum {
public:
  explicit RangeMaximum(SmallVector<int64_t> values) {
    levels.push_back(std::move(values));
    for (size_t half = 1; 2 * half <= levels.front().size(); half *= 2) {
      ArrayRef<int64_t> last = levels.back();
      levels.push_back(llvm::map_to_vector(
          llvm::zip(last.drop_back(half), last.drop_front(half)),
          [](auto pair) {
            return std::max(std::get<0>(pair), std::get<1>(pair));
          }));
    }
  }

  /// Of the numbers from `first` to `last`, with both.
  int64_t get(int64_t first, int64_t last) const {
    unsigned level = llvm::Log2_64(last - first + 1);
    return std::max(levels[level][first],
                    levels[level][last + 1 - (int64_t(1) << level)]);
  }

private:
  std::vector<SmallVector<int64_t>> levels;
};

/// The most bytes that live at one time: no arena is smaller.
int64_t getMostLive(ArrayRef<Buffer> buffers) {
  SmallVector<int64_t> live = getLiveBytes(buffers);
  return live.empty() ? 0 : *llvm::max_element(live);
}

/// Gives every buffer its offset and returns the end of the highest.
int64_t place(SmallVectorImpl<Buffer> &buffers) {
  const RangeMaximum live(getLiveBytes(buffers));
  SmallVector<int64_t> pressure;
  for (const Buffer &buffer : buffers)
    pressure.push_back(live.get(buffer.life.first, buffer.life.last));
  using Key = std::pair<int64_t, int64_t>; // the largest comes first
  const std::function<Key(unsigned)> keys[] = {
      [&](unsigned i) { return Key(pressure[i], buffers[i].bytes); },
      [&](unsigned i) { return Key(buffers[i].bytes, 0); },
      [&](unsigned i) { return Key(-buffers[i].life.first, buffers[i].bytes); },
      [&](unsigned i) {
        const auto &[first, last] = buffers[i].life;
        return Key(buffers[i].bytes * (last - first + 1), 0);
      }};
  const int64_t least = getMostLive(buffers);
  int64_t best = std::numeric_limits<int64_t>::max();
  SmallVector<Buffer> placed;
  for (const auto &key : keys) {
    Order order = llvm::to_vector(llvm::seq<unsigned>(0, buffers.size()));
    llvm::stable_sort(order,
                      [&](unsigned x, unsigned y) { return key(x) > key(y); });
    SmallVector<Order> tried;
    for (int attempt = 0; attempt < kMaxAttempts && best > least; ++attempt) {
      if (llvm::is_contained(tried, order))
        break;
      tried.push_back(order);
      int64_t end = place(MutableArrayRef<Buffer>(buffers), order);
      if (end < best) {
        best = end;
        placed.assign(buffers.begin(), buffers.end());
      }
      Order next, rest;
      for (unsigned i : order)
        (buffers[i].offset + buffers[i].bytes == end ? next : rest)
            .push_back(i);
      llvm::append_range(next, rest);
      order = std::move(next);
    }
  }
  if (!placed.empty())
    buffers = std::move(placed);
  return buffers.empty() ? 0 : best;
}

class PlanArena : public tp::impl::PlanArenaBase<PlanArena> {
public:
  using PlanArenaBase::PlanArenaBase;

private:
  void runOnOperation() override {
    SmallVector<func::FuncOp> programs = getEntryPrograms(getOperation());
    if (programs.empty())
      return;
    functions.clear();
    int64_t bytes = 0;
    SmallVector<SmallVector<Buffer>> placed;
    func::FuncOp largest;
    for (func::FuncOp program : programs) {
      placed.push_back(std::move(collect(program).buffers));
      int64_t own = plan(program, placed.back());
      if (own > bytes) {
        bytes = own;
        largest = program;
      }
    }
    if (describe && largest)
      getOperation()->setAttr(
          kArenaUseAttr,
          describeUse(largest,
                      placed[llvm::find(programs, largest) - programs.begin()])
              .toAttr(&getContext()));
    Builder builder(&getContext());
    setManifestEntry(getOperation(), "arena_bytes",
                     builder.getI64IntegerAttr(bytes));
    type = MemRefType::get({bytes}, builder.getI8Type());
    for (auto [program, buffers] : llvm::zip_equal(programs, placed))
      useArena(program, buffers);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (auto it = functions.find(function); it != functions.end())
        useArena(function, it->second);
  }

  /// Places the buffers of `program`, and returns the size of its arena.
  static int64_t plan(func::FuncOp program, SmallVectorImpl<Buffer> &buffers) {
    int64_t bytes = place(buffers);
    remark::analysis(
        program.getLoc(),
        remark::RemarkOpts::name("Arena").category("tp-plan-arena"))
        << remark::metric("Buffers", static_cast<int64_t>(buffers.size()))
        << remark::metric("ArenaBytes", bytes)
        << remark::metric("LiveBytes", getMostLive(buffers));
    return bytes;
  }

  /// An op of a function that `call` calls or, if that is null, of a program.
  struct Source {
    Operation *op;
    tprt::CallOp call;
  };

  /// The ops of `program` by their numbers, those of called functions in the
  /// place of the call.
  SmallVector<Source> listOps(func::FuncOp program) {
    SmallVector<Source> ops;
    for (Operation &op : program.getBody().front()) {
      auto call = dyn_cast<tprt::CallOp>(op);
      if (!call) {
        ops.push_back({&op, {}});
        continue;
      }
      auto function =
          getOperation().lookupSymbol<func::FuncOp>(call.getCalleeAttr());
      for (Operation &inner : function.getBody().front())
        ops.push_back({&inner, call});
    }
    return ops;
  }

  /// The module and the name of the last op of the model that a source computes;
  /// both are empty if there is none.
  static std::pair<StringRef, StringRef> getName(const Source &source) {
    SmallVector<Origin> origins = getOrigins(source.op);
    if (origins.empty())
      return {};
    return {origins.back().getFqn(source.call), origins.back().op};
  }

  /// What lives at up to kMaxTimes times, and at the peak.
  ArenaUse describeUse(func::FuncOp program, ArrayRef<Buffer> buffers) {
    SmallVector<Source> ops = listOps(program);
    SmallVector<int64_t> live = getLiveBytes(buffers);
    live.resize(ops.size(), 0);
    ArenaUse use;
    use.numOps = live.size();
    use.peak = llvm::max_element(live) - live.begin();
    const int64_t length = llvm::divideCeil(use.numOps, kMaxTimes);
    for (int64_t begin = 0; begin < use.numOps; begin += length) {
      auto range = ArrayRef(live).slice(begin).take_front(length);
      int64_t op = begin + (llvm::max_element(range) - range.begin());
      use.times.push_back({op, live[op], getName(ops[op]).first});
    }
    for (const Buffer &buffer : buffers) {
      const auto [first, last] = buffer.life;
      if (use.peak < first || use.peak > last)
        continue;
      auto [fqn, op] = getName(ops[first]);
      use.values.push_back({buffer.bytes, fqn, op, first, last});
    }
    return use;
  }

  /// The new last argument of `function`.
  static BlockArgument addArgument(func::FuncOp function, Type type,
                                   Role role) {
    Builder builder(function.getContext());
    (void)function.insertArgument(
        function.getNumArguments(), type,
        builder.getDictionaryAttr(builder.getNamedAttr(
            kRoleAttr, builder.getStringAttr(stringifyRole(role)))),
        function.getLoc());
    return function.getArguments().back();
  }

  static void replace(OpBuilder &builder, memref::AllocOp alloc, Value arena,
                      Value offset) {
    Value view = memref::ViewOp::create(
        builder, alloc.getLoc(), alloc.getType(), arena, offset, ValueRange());
    alloc.replaceAllUsesWith(view);
    alloc.erase();
  }

  /// Gives `program` an arena, and its calls the offsets of their buffers.
  void useArena(func::FuncOp program, ArrayRef<Buffer> buffers) {
    OpBuilder builder(&getContext());
    Value arena = addArgument(program, type, Role::Arena);
    llvm::MapVector<Operation *, SmallVector<int64_t>> offsets;
    for (auto call : program.getOps<tprt::CallOp>())
      offsets[call];
    for (const Buffer &buffer : buffers) {
      if (buffer.call) {
        offsets[buffer.call].push_back(buffer.offset);
        continue;
      }
      memref::AllocOp alloc = buffer.alloc;
      builder.setInsertionPoint(alloc);
      Value offset = arith::ConstantIndexOp::create(builder, alloc.getLoc(),
                                                    buffer.offset);
      replace(builder, alloc, arena, offset);
    }
    for (auto &[call, list] : offsets)
      cast<tprt::CallOp>(call).setOffsets(list);
  }

  /// Lets a function that is called read the offsets of its buffers.
  void useArena(func::FuncOp function, const Function &called) {
    OpBuilder builder(&getContext());
    Value arena = addArgument(function, type, Role::Arena);
    int64_t count = called.buffers.size();
    Value numbers =
        addArgument(function, MemRefType::get({count}, builder.getI64Type()),
                    Role::Numbers);
    for (auto [i, buffer] : llvm::enumerate(called.buffers)) {
      memref::AllocOp alloc = buffer.alloc;
      Location loc = alloc.getLoc();
      builder.setInsertionPoint(alloc);
      Value index = arith::ConstantIndexOp::create(builder, loc, i);
      Value number = memref::LoadOp::create(builder, loc, numbers, index);
      Value offset = arith::IndexCastOp::create(builder, loc,
                                                builder.getIndexType(), number);
      replace(builder, alloc, arena, offset);
    }
  }

  /// The function that `call` calls.
  const Function &getCalled(tprt::CallOp call) {
    auto function =
        getOperation().lookupSymbol<func::FuncOp>(call.getCalleeAttr());
    auto it = functions.find(function);
    if (it == functions.end())
      it = functions.try_emplace(function, collect(function)).first;
    return it->second;
  }

  Function collect(func::FuncOp function) {
    Block &body = function.getBody().front();
    Function result;
    DenseMap<Operation *, int64_t> numbers;
    for (Operation &op : body) {
      numbers[&op] = result.numOps;
      auto call = dyn_cast<tprt::CallOp>(op);
      result.numOps += call ? getCalled(call).numOps : 1;
    }
    for (BlockArgument argument : body.getArguments())
      extend(result.arguments.emplace_back(), argument, body, numbers);
    for (Operation &op : body) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
        int64_t bytes =
            llvm::alignTo(std::max<int64_t>(getTensorBytes(alloc.getType()), 1),
                          kBufferAlignment);
        Life life;
        extend(life, alloc, body, numbers);
        if (life.isEmpty())
          life = {numbers[alloc], numbers[alloc]};
        result.buffers.push_back({alloc, {}, bytes, life});
      } else if (auto call = dyn_cast<tprt::CallOp>(op)) {
        for (const Buffer &buffer : getCalled(call).buffers)
          result.buffers.push_back({buffer.alloc, call, buffer.bytes,
                                    buffer.life.shiftedBy(numbers[call])});
      }
    }
    return result;
  }

  /// Adds the uses of `value`, a buffer or a view of it, to the buffer's life.
  void extend(Life &life, Value value, Block &body,
              const DenseMap<Operation *, int64_t> &numbers) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<ViewLikeOpInterface>(user) ||
          isa<memref::ExtractStridedMetadataOp>(user)) {
        extend(life, user->getResult(0), body, numbers);
        continue;
      }
      int64_t number = numbers.lookup(body.findAncestorOpInBlock(*user));
      auto call = dyn_cast<tprt::CallOp>(user);
      if (!call) {
        life.add({number, number});
        continue;
      }
      Life inside = getCalled(call).arguments[use.getOperandNumber()];
      if (!inside.isEmpty())
        life.add(inside.shiftedBy(number));
    }
  }

  /// Those that calls name.
  DenseMap<Operation *, Function> functions;
  MemRefType type; ///< of the arena
};

} // namespace
