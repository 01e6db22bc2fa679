//===- Partition.cpp - Per-rank programs of global programs ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass checks every op's placements against its rule, which gives the op's
// split; the op's partition hook then builds its local form. A redistribution
// becomes the collectives that lead from one placement to the other.
//
//===----------------------------------------------------------------------===//

#include "FunctionPartitioner.h"
#include "RankGrouper.h"
#include "mlir/IR/SymbolTable.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PARTITION
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// The functions of `module` in sets that calls connect.
static SmallVector<SmallVector<func::FuncOp>> getConnected(ModuleOp module) {
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::MapVector<Operation *, SmallVector<func::FuncOp>> sets;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    classes.insert(function);
    function.walk([&](CallOpInterface call) {
      if (Operation *callee = call.resolveCallable())
        classes.unionSets(function, callee);
    });
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      sets[classes.getLeaderValue(function)].push_back(function);
  return llvm::map_to_vector(sets, [](auto &entry) { return entry.second; });
}

namespace {
struct Partition : tp::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> mesh =
        getMesh(module, " to partition over; declare one, or give "
                        "tp-parallelize or tp-apply-plan a plan (plan=FILE)");
    if (failed(mesh))
      return signalPassFailure();
    inlineModules(module);
    RedistributionPlanner planner(*mesh, {oneShot, memory});
    for (ArrayRef<func::FuncOp> functions : getConnected(module))
      if (failed(partitionTogether(functions, *mesh, planner)))
        return signalPassFailure();
  }

  /// Functions that call each other have programs for the same ranks.
  LogicalResult partitionTogether(ArrayRef<func::FuncOp> functions, MeshOp mesh,
                                  RedistributionPlanner &planner) {
    RankGrouper grouper(mesh, planner);
    for (func::FuncOp function : functions) {
      if (!function.getBody().hasOneBlock())
        return function.emitError(
            "only functions of one block can be partitioned");
      if (failed(grouper.add(function)))
        return failure();
    }
    auto programs = grouper.getGroups();
    // Each further program is a copy of the function, inserted behind it.
    SymbolTable symbols(getOperation());
    SmallVector<DenseMap<Operation *, func::FuncOp>> copies(programs.size());
    for (func::FuncOp function : functions) {
      func::FuncOp last = function;
      copies[0][function] = function;
      for (size_t i = 1; i < programs.size(); ++i) {
        func::FuncOp copy = function.clone();
        symbols.insert(copy, std::next(Block::iterator(last)));
        copies[i][function] = last = copy;
      }
    }
    for (auto [callees, ranks] : llvm::zip_equal(copies, programs))
      for (func::FuncOp function : functions) {
        func::FuncOp copy = callees.lookup(function);
        if (programs.size() > 1)
          copy->setAttr(kRanksAttr,
                        DenseI64ArrayAttr::get(&getContext(), ranks));
        if (copy != function)
          copy->setAttr(kCopyOfAttr, FlatSymbolRefAttr::get(function));
        if (failed(
                FunctionPartitioner(copy, mesh, ranks.front(), planner, callees)
                    .run()))
          return failure();
      }
    // A function on its own calls no other.
    if (functions.size() == 1)
      return success();
    for (auto &callees : copies)
      for (auto &[original, copy] : callees) {
        if (copy.isPrivate())
          continue;
        SmallVector<Attribute> certificates;
        collectCertificates(copy, certificates);
        if (!certificates.empty())
          copy->setAttr(kRedistributionsAttr,
                        ArrayAttr::get(&getContext(), certificates));
      }
    return success();
  }

  /// Collects those of `function` and, once per call, those of its callees.
  void collectCertificates(func::FuncOp function,
                           SmallVectorImpl<Attribute> &certificates) {
    if (auto own = function->getAttrOfType<ArrayAttr>(kRedistributionsAttr))
      llvm::append_range(certificates, own);
    function.walk([&](CallOpInterface call) {
      if (auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable()))
        collectCertificates(callee, certificates);
    });
  }
};
} // namespace
