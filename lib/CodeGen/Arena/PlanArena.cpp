//===- PlanArena.cpp - One arena for all buffers --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program is straight-line code, so a buffer's life is an interval of op
// numbers. Placing intervals in as little memory as possible is NP-hard
// (dynamic storage allocation). The pass places buffers one by one, each into
// the tightest gap. It starts with those that live when the most bytes do,
// largest first. For neural networks, the arena is then not much larger than
// the most bytes that live at once. The pass tries other orders too. If the
// arena is still larger than these bytes, the next attempt starts with the
// buffers that ended up on top, because they are hard to place.
//
//===----------------------------------------------------------------------===//

#include "CodeGen/Loops/Buffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Elements.h"
#include <numeric>

namespace mlir::tp {
#define GEN_PASS_DEF_PLANARENA
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Attempts at a smaller arena from each order.
constexpr int kMaxAttempts = 15;

struct Buffer {
  memref::AllocOp alloc;
  int64_t bytes;
  /// Numbers of the first and last op that use it.
  int64_t first, last;
  int64_t offset = 0;

  bool livesWith(const Buffer &other) const {
    return first <= other.last && other.first <= last;
  }
};

/// The buffers' numbers, in the order in which they are placed.
using Order = SmallVector<unsigned>;

/// Places the buffers one after the other; returns the end of the highest.
int64_t place(MutableArrayRef<Buffer> buffers, const Order &order) {
  SmallVector<Buffer *> placed; // by offset
  int64_t end = 0;
  for (unsigned number : order) {
    Buffer *buffer = &buffers[number];
    int64_t best = -1, bestGap = 0, top = 0;
    for (const Buffer *other : placed) {
      if (!buffer->livesWith(*other))
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
    placed.insert(llvm::upper_bound(placed, buffer,
                                    [](const Buffer *x, const Buffer *y) {
                                      return x->offset < y->offset;
                                    }),
                  buffer);
  }
  return end;
}

/// The bytes that live at each op.
SmallVector<int64_t> getLiveBytes(ArrayRef<Buffer> buffers) {
  SmallVector<int64_t> live;
  for (const Buffer &buffer : buffers) {
    if (static_cast<int64_t>(live.size()) < buffer.last + 2)
      live.resize(buffer.last + 2, 0);
    live[buffer.first] += buffer.bytes;
    live[buffer.last + 1] -= buffer.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

/// The most bytes that live at one time: no arena is smaller.
int64_t getMostLive(ArrayRef<Buffer> buffers) {
  SmallVector<int64_t> live = getLiveBytes(buffers);
  return live.empty() ? 0 : *llvm::max_element(live);
}

/// Gives every buffer its offset and returns the end of the highest.
int64_t place(SmallVectorImpl<Buffer> &buffers) {
  SmallVector<int64_t> live = getLiveBytes(buffers), pressure;
  for (const Buffer &buffer : buffers)
    pressure.push_back(*std::max_element(live.begin() + buffer.first,
                                         live.begin() + buffer.last + 1));
  using Key = std::pair<int64_t, int64_t>; // the largest comes first
  const std::function<Key(unsigned)> keys[] = {
      [&](unsigned i) { return Key(pressure[i], buffers[i].bytes); },
      [&](unsigned i) { return Key(buffers[i].bytes, 0); },
      [&](unsigned i) { return Key(-buffers[i].first, buffers[i].bytes); },
      [&](unsigned i) {
        const Buffer &buffer = buffers[i];
        return Key(buffer.bytes * (buffer.last - buffer.first + 1), 0);
      }};
  const int64_t least = getMostLive(buffers);
  int64_t best = std::numeric_limits<int64_t>::max();
  SmallVector<Buffer> placed;
  for (const auto &key : keys) {
    Order order = llvm::to_vector(llvm::seq<unsigned>(0, buffers.size()));
    llvm::stable_sort(order,
                      [&](unsigned x, unsigned y) { return key(x) > key(y); });
    for (int attempt = 0; attempt < kMaxAttempts && best > least; ++attempt) {
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
  void runOnOperation() override {
    SmallVector<func::FuncOp> programs = getEntryPrograms(getOperation());
    if (programs.empty())
      return;
    int64_t bytes = 0;
    for (func::FuncOp program : programs)
      bytes = std::max(bytes, plan(program));
    setManifestEntry(getOperation(), "arena_bytes",
                     Builder(&getContext()).getI64IntegerAttr(bytes));
  }

  /// Gives `program` an arena, and returns its size.
  int64_t plan(func::FuncOp program) {
    Block &body = program.getBody().front();
    SmallVector<Buffer> buffers = collect(body);
    int64_t bytes = place(buffers);

    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    auto arenaType = MemRefType::get({bytes}, builder.getI8Type());
    unsigned index = program.getNumArguments();
    (void)program.insertArgument(
        index, arenaType,
        builder.getDictionaryAttr(builder.getNamedAttr(
            kRoleAttr, builder.getStringAttr(stringifyRole(Role::Arena)))),
        program.getLoc());
    for (Buffer &buffer : buffers) {
      builder.setInsertionPoint(buffer.alloc);
      Location loc = buffer.alloc.getLoc();
      Value offset =
          arith::ConstantIndexOp::create(builder, loc, buffer.offset);
      Value view = memref::ViewOp::create(builder, loc, buffer.alloc.getType(),
                                          program.getArgument(index), offset,
                                          ValueRange());
      buffer.alloc.replaceAllUsesWith(view);
      buffer.alloc.erase();
    }
    remark::analysis(
        program.getLoc(),
        remark::RemarkOpts::name("Arena").category("tp-plan-arena"))
        << remark::metric("Buffers", static_cast<int64_t>(buffers.size()))
        << remark::metric("ArenaBytes", bytes)
        << remark::metric("LiveBytes", getMostLive(buffers));
    return bytes;
  }

  static SmallVector<Buffer> collect(Block &body) {
    DenseMap<Operation *, int64_t> numbers;
    for (auto [i, op] : llvm::enumerate(body))
      numbers[&op] = i;
    SmallVector<Buffer> buffers;
    for (auto alloc : body.getOps<memref::AllocOp>()) {
      int64_t bytes =
          llvm::alignTo(std::max<int64_t>(getTensorBytes(alloc.getType()), 1),
                        kBufferAlignment);
      Buffer buffer{alloc, bytes, std::numeric_limits<int64_t>::max(), -1};
      extend(buffer, alloc, body, numbers);
      if (buffer.last < 0)
        buffer.first = buffer.last = numbers[alloc];
      buffers.push_back(buffer);
    }
    return buffers;
  }

  /// Adds the uses of `value`, a view of the buffer, to its life.
  static void extend(Buffer &buffer, Value value, Block &body,
                     const DenseMap<Operation *, int64_t> &numbers) {
    for (Operation *user : value.getUsers()) {
      if (isa<ViewLikeOpInterface>(user) ||
          isa<memref::ExtractStridedMetadataOp>(user)) {
        extend(buffer, user->getResult(0), body, numbers);
        continue;
      }
      int64_t number = numbers.lookup(body.findAncestorOpInBlock(*user));
      buffer.first = std::min(buffer.first, number);
      buffer.last = std::max(buffer.last, number);
    }
  }
};

} // namespace
