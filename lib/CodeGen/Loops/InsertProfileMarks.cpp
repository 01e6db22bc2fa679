//===- InsertProfileMarks.cpp - Marks between parts of a program ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Program/Origin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/Support/ScopedPrinter.h"

namespace mlir::tp {
#define GEN_PASS_DEF_INSERTPROFILEMARKS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// What an op of a program does.
struct Work {
  int64_t flops = 0;
  int64_t bytes = 0;         ///< read and written
  Type computedType;         ///< of a library's GEMMs
  StringRef function;        ///< that is called; empty for a kernel
  tprt::GemmOp product = {}; ///< if it is a GEMM
};

/// How often `op` runs each time that `root`, one of its ancestors, does.
int64_t countIterations(Operation *op, Operation *root) {
  int64_t count = 1;
  for (Operation *parent = op->getParentOp(); parent != root;
       parent = parent->getParentOp()) {
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      count *= loop.getStaticTripCount().value_or(APInt(64, 1)).getSExtValue();
    else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(parent))
      count *= llvm::product_of(linalgOp.getStaticLoopRanges());
  }
  return count;
}

/// Counts the work of a kernel's loops. A buffer that is read, or written,
/// several times is assumed to stay in a cache and counts once.
class KernelWork {
public:
  explicit KernelWork(func::FuncOp kernel) : kernel(kernel) {
    kernel.walk([&](Operation *op) { visit(op); });
  }

  Work get() {
    Work work;
    work.flops = flops;
    for (auto *bytes : {&read, &written})
      for (auto [buffer, count] : *bytes)
        work.bytes += std::min(count, getTensorBytes(buffer.getType()));
    return work;
  }

private:
  void visit(Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      for (OpOperand &operand : op->getOpOperands()) {
        bool isInit = linalgOp.isDpsInit(&operand);
        if (linalgOp.payloadUsesValueFromOperand(&operand))
          touch(read, operand.get(), op);
        if (isInit)
          touch(written, operand.get(), op);
      }
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      touch(read, load.getMemRef(), op, /*isElement=*/true);
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      touch(written, store.getMemRef(), op, /*isElement=*/true);
    } else if (isa_and_present<arith::ArithDialect, math::MathDialect>(
                   op->getDialect()) &&
               !op->hasTrait<OpTrait::ConstantLike>() &&
               !isa<CastOpInterface>(op) && op->getNumResults() == 1 &&
               isa<FloatType>(op->getResult(0).getType())) {
      flops += countIterations(op, kernel);
    }
  }

  void touch(llvm::MapVector<Value, int64_t> &bytes, Value buffer,
             Operation *op, bool isElement = false) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    Value root = getRootBuffer(buffer);
    if (!type || !isa<BlockArgument>(root)) // the kernel's stack
      return;
    int64_t once = isElement ? getElementBytes(type.getElementType())
                             : getTensorBytes(type);
    int64_t &most = bytes[root];
    most = std::max(most, once * countIterations(op, kernel));
  }

  func::FuncOp kernel;
  int64_t flops = 0;
  llvm::MapVector<Value, int64_t> read, written;
};

/// An op that gets a mark.
struct MarkedOp {
  Operation *op;
  Work work;
  SmallVector<Origin> origins;
  /// What its entry in the manifest says, however it is called.
  NamedAttrList entry;

  MarkedOp(Operation *op, const Work &work);
};

MarkedOp::MarkedOp(Operation *op, const Work &work)
    : op(op), work(work), origins(getOrigins(op)) {
  Builder b(op->getContext());
  SmallVector<StringRef> names;
  for (const Origin &origin : origins)
    if (names.empty() || names.back() != origin.op)
      names.push_back(origin.op);
  entry.set("op", b.getStringAttr(llvm::join(names, "+")));
  entry.set("kind", b.getStringAttr(work.function.empty() ? StringRef("kernel")
                                                          : work.function));
  entry.set("flops", b.getI64IntegerAttr(work.flops));
  entry.set("bytes", b.getI64IntegerAttr(work.bytes));
  if (work.computedType)
    entry.set("dtype", b.getStringAttr(llvm::to_string(work.computedType)));
}

class InsertProfileMarks
    : public tp::impl::InsertProfileMarksBase<InsertProfileMarks> {
  void runOnOperation() override {
    entries.clear();
    known.clear();
    DenseMap<Attribute, SmallVector<MarkedOp>> repeated; // by function
    for (func::FuncOp function : getProgramFunctions(getOperation()))
      if (function->hasAttr(tprt::kRepeatedAttr)) {
        SmallVector<MarkedOp> marked = getMarkedOps(function);
        for (auto [i, each] : llvm::enumerate(marked))
          insertMark(each.op, i);
        repeated[FlatSymbolRefAttr::get(function)] = std::move(marked);
      }
    for (func::FuncOp program : getEntryPrograms(getOperation())) {
      weights = getWeights(program);
      for (Operation &op : program.getBody().front()) {
        if (auto call = dyn_cast<tprt::CallOp>(op)) {
          SmallVector<int64_t> marks;
          for (const MarkedOp &each : repeated[call.getCalleeAttr()])
            marks.push_back(getEntry(describe(each, call)));
          call.setMarks(marks);
        } else if (std::optional<Work> work = getWork(&op)) {
          insertMark(&op, getEntry(describe(MarkedOp(&op, *work), {})));
        }
      }
    }
    setManifestEntry(getOperation(), "ops",
                     ArrayAttr::get(&getContext(), entries));
    setManifestEntry(getOperation(), "right_operands", findRightOperands());
  }

  /// The positions of the parameters that all programs read only as right
  /// operands of GEMMs.
  ArrayAttr findRightOperands() {
    SymbolTable symbols(getOperation());
    std::optional<BitVector> found;
    for (func::FuncOp program : getEntryPrograms(getOperation())) {
      BitVector own;
      for (Value argument : getArguments(program, Role::Parameter))
        own.push_back(isRightOperand(argument, symbols));
      if (found)
        *found &= own;
      else
        found = own;
    }
    Builder b(&getContext());
    SmallVector<Attribute> positions;
    if (found)
      for (unsigned position : found->set_bits())
        positions.push_back(b.getI64IntegerAttr(position));
    return b.getArrayAttr(positions);
  }

  static bool isRightOperand(Value buffer, const SymbolTable &symbols) {
    return llvm::all_of(buffer.getUses(), [&](OpOperand &use) {
      if (auto product = dyn_cast<tprt::GemmOp>(use.getOwner()))
        return &use == &product.getBMutable();
      if (auto call = dyn_cast<tprt::CallOp>(use.getOwner())) {
        auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
        return isRightOperand(callee.getArgument(use.getOperandNumber()),
                              symbols);
      }
      return isa<ViewLikeOpInterface>(use.getOwner()) &&
             llvm::all_of(use.getOwner()->getResults(), [&](Value view) {
               return isRightOperand(view, symbols);
             });
    });
  }

  SmallVector<MarkedOp> getMarkedOps(func::FuncOp function) {
    SmallVector<MarkedOp> marked;
    for (Operation &op : function.getBody().front())
      if (std::optional<Work> work = getWork(&op))
        marked.emplace_back(&op, *work);
    return marked;
  }

  static void insertMark(Operation *op, int64_t index) {
    OpBuilder b(op);
    tprt::MarkOp::create(b, op->getLoc(), index);
  }

  /// The index of `entry` in the manifest.
  int64_t getEntry(DictionaryAttr entry) {
    auto [it, isNew] = known.try_emplace(entry, entries.size());
    if (isNew)
      entries.push_back(entry);
    return it->second;
  }

  /// None for ops that take no time, and for collectives, which the manifest
  /// lists separately.
  std::optional<Work> getWork(Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto [it, isNew] = kernels.try_emplace(call.getCalleeAttr());
      if (isNew)
        it->second = KernelWork(getOperation().lookupSymbol<func::FuncOp>(
                                    call.getCallee()))
                         .get();
      return it->second;
    }
    if (auto call = dyn_cast<tprt::LibraryCallOpInterface>(op))
      return Work{call.getFlops(), call.getTouchedBytes(),
                  call.getComputedType(), op->getName().stripDialect(),
                  dyn_cast<tprt::GemmOp>(op)};
    if (auto check = dyn_cast<tprt::CheckIndexOp>(op))
      return Work{0, getTensorBytes(check.getIndices().getType()), Type(),
                  op->getName().stripDialect()};
    std::optional<Work> sum; // of a loop around library calls
    op->walk([&](tprt::LibraryCallOpInterface call) {
      int64_t count = countIterations(call, op->getParentOp());
      if (!sum)
        sum = Work{0, 0, call.getComputedType(), call->getName().stripDialect(),
                   dyn_cast<tprt::GemmOp>(call.getOperation())};
      sum->flops += count * call.getFlops();
      sum->bytes += count * call.getTouchedBytes();
    });
    return sum;
  }

  /// What a runtime needs to know to choose among several ways to compute a
  /// GEMM.
  DictionaryAttr describe(tprt::GemmOp product, tprt::CallOp call) {
    Builder b(&getContext());
    Value root = getRootBuffer(product.getB());
    auto argument = dyn_cast<BlockArgument>(root);
    if (call && argument && argument.getArgNumber() < call->getNumOperands())
      root = getRootBuffer(call->getOperand(argument.getArgNumber()));
    return b.getDictionaryAttr(
        {{"sizes", product.getSizesAttr()},
         {"batch", product.getBatchAttr()},
         {"a", product.getAStridesAttr()},
         {"b", product.getBStridesAttr()},
         {"c", product.getCStridesAttr()},
         {"weight", b.getBoolAttr(weights.contains(root))}});
  }

  /// The buffers of parameters that `program` doesn't update.
  DenseSet<Value> getWeights(func::FuncOp program) {
    DenseSet<Value> result;
    auto parameters =
        getManifest(getOperation()).getAs<ArrayAttr>("parameters");
    if (!parameters)
      return result;
    for (auto [argument, parameter] :
         llvm::zip(getArguments(program, Role::Parameter),
                   parameters.getAsRange<DictionaryAttr>()))
      if (!parameter.contains("updated"))
        result.insert(argument);
    return result;
  }

  /// The entry of an op of a program, or of a function that `call` calls.
  DictionaryAttr describe(const MarkedOp &marked, tprt::CallOp call) {
    StringRef fqn;
    // A kernel gets the last origin's FQN, because it computes the others for
    // that one. A call gets the first one's: the others are its epilogue.
    for (const Origin &origin : marked.origins)
      if (StringRef own = origin.getFqn(call);
          !own.empty() && (marked.work.function.empty() || fqn.empty()))
        fqn = own;
    NamedAttrList entry = marked.entry;
    entry.set("fqn", StringAttr::get(&getContext(), fqn));
    if (marked.work.product)
      entry.set("product", describe(marked.work.product, call));
    return entry.getDictionary(&getContext());
  }

  SmallVector<Attribute> entries;     ///< of the manifest
  DenseMap<Attribute, int64_t> known; ///< their indices
  DenseMap<Attribute, Work> kernels;
  DenseSet<Value> weights; ///< of the program that is marked
};

} // namespace
