//===- MapKernelsToGPU.cpp - Kernels over blocks and threads --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Buffers.h"
#include "GPUKernel.h"
#include "RowLayout.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_MAPKERNELSTOGPU
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class MapKernelsToGPU : public tp::impl::MapKernelsToGPUBase<MapKernelsToGPU> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    checks.clear();
    OpBuilder atEnd = OpBuilder::atBlockEnd(module.getBody());
    kernels = gpu::GPUModuleOp::create(atEnd, module.getLoc(), "kernels");
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    builder.getUnitAttr());

    llvm::MapVector<Operation *, GPUKernel> mapped; // by func.func
    for (func::FuncOp program : getProgramFunctions(module)) {
      SmallVector<Operation *> ops;
      program.walk([&](Operation *op) { ops.push_back(op); });
      for (Operation *op : ops) {
        OpBuilder b(op);
        if (auto call = dyn_cast<func::CallOp>(op)) {
          auto function = module.lookupSymbol<func::FuncOp>(call.getCallee());
          auto [it, isNew] = mapped.try_emplace(function);
          if (isNew && failed(map(function, it->second)))
            return signalPassFailure();
          it->second.launch(b, call.getLoc(), call.getOperands());
          op->erase();
        } else if (auto check = dyn_cast<tprt::CheckIndexOp>(op);
                   check && isOnHost(op)) {
          launchCheck(b, check);
          op->erase();
        } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
          tprt::FillOp::create(b, op->getLoc(), store.getValue(),
                               getElement(b, store));
          op->erase();
        } else if (!isOnHost(op)) {
          return fail(op);
        }
      }
    }
    for (auto &[function, kernel] : mapped)
      function->erase();

    // Turn views into strides and offsets, and these into arithmetic.
    RewritePatternSet expand(&getContext());
    memref::populateExpandStridedMetadataPatterns(expand);
    if (failed(applyPatternsGreedily(kernels, std::move(expand))))
      return signalPassFailure();
    RewritePatternSet affine(&getContext());
    populateAffineToStdConversionPatterns(affine);
    if (failed(applyPatternsGreedily(kernels, std::move(affine))))
      signalPassFailure();
  }

  void fail(Operation *op) {
    op->emitOpError("can't be lowered for CUDA: it touches the device's memory "
                    "outside of a kernel");
    signalPassFailure();
  }

  /// The element that `op` writes, as a buffer.
  static Value getElement(OpBuilder &b, memref::StoreOp op) {
    MemRefType type = op.getMemRefType();
    if (type.getRank() == 0)
      return op.getMemRef();
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(op.getIndices()),
                              ones(type.getRank(), b.getIndexAttr(1));
    auto elementType = memref::SubViewOp::inferRankReducedResultType(
        {}, type, offsets, ones, ones);
    return memref::SubViewOp::create(b, op.getLoc(), elementType,
                                     op.getMemRef(), offsets, ones, ones);
  }

  /// Whether the host may run `op`, or hand it to the runtime.
  static bool isOnHost(Operation *op) {
    auto isConstant = [](Value value) {
      return getRootBuffer(value).getDefiningOp<memref::GetGlobalOp>() !=
             nullptr;
    };
    auto isTable = [](Value value) { // of what a call differs in
      auto argument = dyn_cast<BlockArgument>(value);
      auto function =
          argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
                   : nullptr;
      return function &&
             getRole(function, argument.getArgNumber()) == Role::Numbers;
    };
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return isConstant(load.getMemRef()) || isTable(load.getMemRef());
    if (isa_and_present<tprt::TPRTDialect>(op->getDialect()))
      return llvm::none_of(op->getOperands(), [&](Value operand) {
        return isa<MemRefType>(operand.getType()) && isConstant(operand);
      });
    return isa<ViewLikeOpInterface, memref::GetGlobalOp, func::FuncOp,
               func::ReturnOp, RegionBranchOpInterface,
               RegionBranchTerminatorOpInterface,
               memref::ExtractStridedMetadataOp>(op) ||
           isMemoryEffectFree(op);
  }

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  LogicalResult map(func::FuncOp function, GPUKernel &kernel) {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> named;
    function.walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::GenericOp>(op))
        named.push_back(op);
    });
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      if (failed(linalg::generalizeNamedOp(rewriter, op)))
        return op.emitOpError("can't be lowered for CUDA: it has no loops");
    }

    Operation *root = nullptr;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isRepeated(&op) || isa<memref::AllocaOp>(op))
        continue;
      if (root || !isa<linalg::GenericOp, scf::ForOp>(op))
        return op.emitOpError("can't be lowered for CUDA in this place");
      root = &op;
    }
    if (!root)
      return function.emitOpError("has nothing to run");

    kernel = GPUKernel::create(kernels, function.getLoc(), function.getName(),
                               function.getArgumentTypes());
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (StringRef name : {LLVM::LLVMDialect::getNoAliasAttrName(),
                             LLVM::LLVMDialect::getAlignAttrName()})
        if (Attribute attr = function.getArgAttr(i, name))
          kernel.function.setArgAttr(i, name, attr);
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.function.getBody().front());
    IRMapping mapping;
    for (auto [from, to] :
         llvm::zip(function.getArguments(), kernel.function.getArguments()))
      mapping.map(from, from.getType().isIndex()
                            ? arith::IndexCastOp::create(b, from.getLoc(),
                                                         b.getIndexType(), to)
                                  .getResult()
                            : Value(to));
    LogicalResult result = failure();
    if (auto generic = dyn_cast<linalg::GenericOp>(root);
        generic && llvm::product_of(generic.getStaticLoopRanges()) ==
                       countParallel(generic))
      result = mapElementwise(b, generic, kernel, mapping);
    else if (generic || root->walk([](linalg::GenericOp) {
                              return WalkResult::interrupt();
                            })
                            .wasInterrupted())
      result = mapRows(b, root, kernel, mapping);
    else
      result = mapLoops(b, cast<scf::ForOp>(root), kernel, mapping);
    if (failed(result))
      return failure();
    kernel.finish(b);
    return success();
  }

  static int64_t countParallel(linalg::GenericOp op) {
    int64_t count = 1;
    for (auto [size, iterator] :
         llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
      if (iterator == utils::IteratorType::parallel)
        count *= size;
    return count;
  }

  /// Clones what comes before `root` in its block.
  void cloneBefore(OpBuilder &b, Operation *root, IRMapping &mapping) {
    for (Operation &op : *root->getBlock()) {
      if (&op == root)
        return;
      if (!isa<memref::AllocaOp>(op))
        cloneRepeated(b, &op, mapping);
    }
  }

  void cloneRepeated(OpBuilder &b, Operation *op, IRMapping &mapping) {
    if (auto constant = dyn_cast<memref::GetGlobalOp>(op)) {
      auto global =
          getOperation().lookupSymbol<memref::GlobalOp>(constant.getNameAttr());
      if (!kernels.lookupSymbol(constant.getNameAttr()))
        OpBuilder::atBlockBegin(kernels.getBody()).clone(*global);
    }
    b.clone(*op, mapping);
  }

  LogicalResult mapElementwise(OpBuilder &b, linalg::GenericOp op,
                               GPUKernel &kernel, IRMapping &mapping) {
    FailureOr<LoopPlan> plan =
        LoopPlan::get(op, llvm::SmallBitVector(op.getNumLoops()));
    if (failed(plan))
      return failure();
    plan->chooseTile();
    if (plan->tile)
      return mapTiles(b, *plan, kernel, mapping);
    kernel.setThreads(plan->getNumParts());
    cloneBefore(b, op, mapping);
    Team team;
    team.size = kernel.grid * kernel.block;
    team.thread = kernel.getGlobalThread(b, op.getLoc());
    ThreadLoops loops(b, kernel.function, team);
    return loops.write(*plan, SmallVector<Value>(op.getNumLoops()), mapping);
  }

  LogicalResult mapTiles(OpBuilder &b, const LoopPlan &plan, GPUKernel &kernel,
                         IRMapping &mapping) {
    Location loc = kernel.function.getLoc();
    kernel.block = GPUKernel::kMaxElementwiseBlock;
    for (const LoopPlan::Loop &loop : plan.getTiles())
      kernel.grid *= loop.size;
    cloneBefore(b, plan.op, mapping);
    Team team;
    team.size = kernel.block;
    team.thread = GPUKernel::getThread(b, loc);
    ThreadLoops(b, kernel.function, team)
        .writeTile(plan, gpu::BlockIdOp::create(b, loc, gpu::Dimension::x),
                   mapping);
    return success();
  }

  /// Whether each thread can have `buffer` to itself, in a register.
  static bool isRegister(memref::AllocaOp buffer) {
    std::function<bool(Value)> areOperands = [&](Value value) {
      return llvm::all_of(value.getUsers(), [&](Operation *user) {
        if (isa<ViewLikeOpInterface>(user))
          return areOperands(user->getResult(0));
        return isa<linalg::GenericOp>(user);
      });
    };
    return buffer.getType().getNumElements() == 1 && areOperands(buffer);
  }

  LogicalResult mapRows(OpBuilder &b, Operation *root, GPUKernel &kernel,
                        IRMapping &mapping) {
    Location loc = root->getLoc();
    FailureOr<KernelRows> rows = getKernelRows(root);
    if (failed(rows))
      return failure();
    int64_t sharedBytes = 0;
    for (auto buffer : root->getBlock()->getOps<memref::AllocaOp>())
      if (!isRegister(buffer))
        sharedBytes += llvm::alignTo(getTensorBytes(buffer.getType()), 16);
    // Partial sums take some shared memory too.
    constexpr int64_t kMaxBytes = kMaxSharedBytes - 4096;
    if (sharedBytes > kMaxBytes)
      return root->emitOpError("can't be lowered for CUDA: the buffers of a "
                               "row take ")
             << sharedBytes << " bytes of shared memory, which has "
             << kMaxBytes;
    RowLayout layout = chooseRowLayout(*rows, sharedBytes);
    for (; layout.teams > 1 && layout.teams * sharedBytes > kMaxBytes;
         layout.teams /= 2)
      layout.team *= 2;
    kernel.block = std::max(layout.team * layout.teams, kWarpSize);
    // A block has at least a whole warp, which may have room for more teams.
    layout.teams = kernel.block / layout.team;
    kernel.grid = llvm::divideCeil(layout.rows, layout.teams);

    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(b, loc, value).getResult();
    };
    Team team;
    team.size = layout.team;
    team.teams = layout.teams;
    team.isInterleaved = layout.isInterleaved;
    Value thread = GPUKernel::getThread(b, loc);
    Value row = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
    team.thread = thread;
    if (layout.teams > 1) {
      Value inner = constant(layout.isInterleaved ? layout.teams : layout.team);
      Value quotient = arith::DivUIOp::create(b, loc, thread, inner);
      Value remainder = arith::RemUIOp::create(b, loc, thread, inner);
      team.thread = layout.isInterleaved ? quotient : remainder;
      team.row = layout.isInterleaved ? remainder : quotient;
      row = arith::AddIOp::create(
          b, loc, arith::MulIOp::create(b, loc, row, constant(layout.teams)),
          team.row);
      if (layout.rows % layout.teams != 0) {
        // Threads without a row run on the last one, to take part in barriers.
        team.isActive = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                              row, constant(layout.rows));
        row = arith::MinUIOp::create(b, loc, row, constant(layout.rows - 1));
      }
    }

    ThreadLoops loops(b, kernel.function, team);
    for (auto buffer : root->getBlock()->getOps<memref::AllocaOp>()) {
      if (isRegister(buffer))
        loops.addRegister(buffer);
      else
        mapping.map(buffer.getResult(), loops.createShared(buffer.getType()));
    }
    for (auto buffer : root->getBlock()->getOps<memref::AllocaOp>())
      if (isRegister(buffer)) // its views need a source
        mapping.map(
            buffer.getResult(),
            memref::AllocaOp::create(b, loc, buffer.getType()).getResult());
    cloneBefore(b, root, mapping);
    SmallVector<Value> ivs(rows->sizes.size());
    for (int i = ivs.size() - 1; i >= 0; --i) {
      if (i == 0) {
        ivs[i] = row;
        break;
      }
      Value size = constant(rows->sizes[i]);
      ivs[i] = arith::RemUIOp::create(b, loc, row, size);
      row = arith::DivUIOp::create(b, loc, row, size);
    }
    if (auto op = dyn_cast<linalg::GenericOp>(root)) {
      SmallVector<Value> fixed(op.getNumLoops());
      for (auto [dim, iv] : llvm::zip_equal(rows->dims, ivs))
        fixed[dim] = iv;
      return loops.write(rows->plans.front(), fixed, mapping);
    }
    for (auto [loop, iv] : llvm::zip_equal(rows->loops, ivs))
      mapping.map(loop.getInductionVar(), iv);
    auto plan = rows->plans.begin();
    for (Operation &op : rows->loops.back().getBody()->without_terminator()) {
      if (!isa<linalg::GenericOp>(op)) {
        cloneRepeated(b, &op, mapping);
        continue;
      }
      SmallVector<Value> fixed(plan->op.getNumLoops());
      if (failed(loops.write(*plan++, fixed, mapping)))
        return failure();
    }
    return success();
  }

  /// Keeps loops in their order, except that a loop whose iterations touch
  /// different elements is spread over all threads.
  LogicalResult mapLoops(OpBuilder &b, scf::ForOp root, GPUKernel &kernel,
                         IRMapping &mapping) {
    SmallVector<Operation *> accesses; // of buffers that are written
    DenseSet<Value> written;
    root->walk([&](memref::StoreOp store) {
      written.insert(getRootBuffer(store.getMemRef()));
    });
    auto getBuffer = [](Operation *op) {
      auto load = dyn_cast<memref::LoadOp>(op);
      return load ? load.getMemRef() : cast<memref::StoreOp>(op).getMemRef();
    };
    auto getIndices = [](Operation *op) -> ValueRange {
      if (auto load = dyn_cast<memref::LoadOp>(op))
        return load.getIndices();
      return cast<memref::StoreOp>(op).getIndices();
    };
    root->walk([&](Operation *op) {
      if (isa<memref::LoadOp, memref::StoreOp>(op) &&
          written.contains(getRootBuffer(getBuffer(op))))
        accesses.push_back(op);
    });
    auto isSpreadable = [&](scf::ForOp loop) {
      DenseMap<Value, std::pair<Value, size_t>> positions; // by root
      for (Operation *op : accesses) {
        ValueRange indices = getIndices(op);
        auto it = llvm::find(indices, loop.getInductionVar());
        if (it == indices.end())
          return false;
        std::pair<Value, size_t> position(getBuffer(op), it - indices.begin());
        auto [known, isNew] =
            positions.try_emplace(getRootBuffer(position.first), position);
        if (!isNew && known->second != position)
          return false;
      }
      return getTripCount(loop) && loop.getNumResults() == 0;
    };
    SmallVector<scf::ForOp> nest;
    root->walk<WalkOrder::PreOrder>(
        [&](scf::ForOp loop) { nest.push_back(loop); });
    std::optional<size_t> spread;
    for (auto [i, loop] : llvm::enumerate(nest))
      if (isSpreadable(loop) &&
          (!spread || *getTripCount(loop) > *getTripCount(nest[*spread])))
        spread = i;
    if (!spread)
      return root.emitOpError(
          "can't be lowered for CUDA: no loop of the nest has iterations that "
          "are known to write different elements");

    Location loc = root.getLoc();
    kernel.setThreads(*getTripCount(nest[*spread]));
    cloneBefore(b, root, mapping);
    Value thread = kernel.getGlobalThread(b, loc);
    Value threads =
        arith::ConstantIndexOp::create(b, loc, kernel.grid * kernel.block);
    Operation *copy = b.clone(*root, mapping);
    size_t number = 0;
    copy->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      if (number++ != *spread)
        return;
      loop.setLowerBound(thread);
      loop.setStep(threads);
    });
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Index checks
  //===--------------------------------------------------------------------===//

  void launchCheck(OpBuilder &b, tprt::CheckIndexOp op) {
    Location loc = op.getLoc();
    std::string name;
    llvm::raw_string_ostream(name)
        << op.getIndices().getType() << ' ' << op.getIgnored().value_or(0)
        << ' ' << op.getIgnored().has_value();
    auto [it, isNew] = checks.try_emplace(name);
    if (isNew)
      it->second = createIndexCheck(
          kernels, "check_" + std::to_string(checks.size() - 1), op);
    Value record = tprt::ErrorRecordOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()));
    Value number = tprt::SiteOp::create(b, loc, op.getWhat());
    Value bound =
        arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(op.getBound()));
    it->second.launch(b, loc,
                      {getPointer(b, op.getIndices()), record, number, bound});
  }

  gpu::GPUModuleOp kernels;
  llvm::StringMap<GPUKernel> checks;
};

} // namespace
