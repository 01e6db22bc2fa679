//===- PlanArena.cpp - one arena for all buffers --------------------------===//
//
// The program is straight-line code, so that a buffer's life is an interval of
// op numbers. Placing intervals in as little memory as possible is NP-hard
// (dynamic storage allocation). Largest first into the tightest gap comes close
// to the most bytes that live at once for what neural networks do; two other
// orders are tried besides.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "tp/Conversion/Manifest.h"
#include "tp/Conversion/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PLANARENA
#include "tp/Conversion/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

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

/// Places the buffers one after the other, those first that `isBefore` others;
/// returns the end of the highest.
int64_t place(MutableArrayRef<Buffer> buffers,
              function_ref<bool(const Buffer *, const Buffer *)> isBefore) {
  SmallVector<Buffer *> order;
  for (Buffer &buffer : buffers)
    order.push_back(&buffer);
  llvm::stable_sort(order, isBefore);
  SmallVector<Buffer *> placed; // by offset
  int64_t end = 0;
  for (Buffer *buffer : order) {
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

/// The best of three orders: largest first, first used first, most bytes times
/// life first.
int64_t place(SmallVectorImpl<Buffer> &buffers) {
  auto area = [](const Buffer *buffer) {
    return buffer->bytes * (buffer->last - buffer->first + 1);
  };
  const std::function<bool(const Buffer *, const Buffer *)> orders[] = {
      [](auto *x, auto *y) { return x->bytes > y->bytes; },
      [](auto *x, auto *y) {
        return std::pair(x->first, -x->bytes) < std::pair(y->first, -y->bytes);
      },
      [&](auto *x, auto *y) { return area(x) > area(y); }};
  int64_t best = std::numeric_limits<int64_t>::max();
  SmallVector<Buffer> placed;
  for (const auto &order : orders) {
    SmallVector<Buffer> attempt(buffers.begin(), buffers.end());
    if (int64_t end = place(attempt, order); end < best) {
      best = end;
      placed = std::move(attempt);
    }
  }
  buffers = std::move(placed);
  return best;
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
          llvm::alignTo(std::max<int64_t>(getBufferBytes(alloc.getType()), 1),
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

  static int64_t getMostLive(ArrayRef<Buffer> buffers) {
    int64_t most = 0;
    for (const Buffer &at : buffers) {
      int64_t live = 0;
      for (const Buffer &buffer : buffers)
        if (buffer.first <= at.first && at.first <= buffer.last)
          live += buffer.bytes;
      most = std::max(most, live);
    }
    return most;
  }
};

} // namespace
