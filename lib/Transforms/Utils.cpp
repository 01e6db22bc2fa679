//===- Utils.cpp - Helpers of transform passes ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Transforms/Utils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Programs.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;

static bool isTooLarge(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() ||
      llvm::is_contained(shaped.getShape(), 0))
    return false;
  int64_t elements = 1;
  for (int64_t size : shaped.getShape()) {
    if (size > kMaxTensorElements / elements)
      return true;
    elements *= size;
  }
  return false;
}

LogicalResult tp::checkSizes(ModuleOp module) {
  auto check = [](Location loc, TypeRange types) {
    auto it = llvm::find_if(types, isTooLarge);
    if (it == types.end())
      return WalkResult::advance();
    emitError(loc) << "a tensor has more than 2^"
                   << llvm::Log2_64(kMaxTensorElements) << " elements: " << *it;
    return WalkResult::interrupt();
  };
  WalkResult result = module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (check(op->getLoc(), block.getArgumentTypes()).wasInterrupted())
          return WalkResult::interrupt();
    return check(op->getLoc(), op->getResultTypes());
  });
  return failure(result.wasInterrupted());
}

FailureOr<MeshOp> tp::getMesh(ModuleOp module) {
  MeshOp mesh;
  for (MeshOp other : module.getOps<MeshOp>()) {
    if (mesh) {
      InFlightDiagnostic diag =
          other.emitError("a program is parallelized over one mesh");
      diag.attachNote(mesh.getLoc()) << "the other one is here";
      return diag;
    }
    mesh = other;
  }
  return mesh;
}

FailureOr<MeshOp> tp::getMesh(ModuleOp module, StringRef message) {
  FailureOr<MeshOp> mesh = getMesh(module);
  if (succeeded(mesh) && !*mesh)
    return module.emitError("no tp.mesh") << message;
  return mesh;
}

FailureOr<SmallVector<func::FuncOp>> tp::getRoots(ModuleOp module) {
  SymbolTableCollection symbols;
  DenseSet<Operation *> called;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](CallOpInterface call) {
      if (Operation *callee = call.resolveCallableInTable(&symbols))
        called.insert(callee);
    });
  SmallVector<func::FuncOp> roots;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && !called.contains(function))
      roots.push_back(function);
  if (roots.empty() && !module.getOps<func::FuncOp>().empty())
    return module.emitError("every function is called by another; recursion "
                            "can't be parallelized");
  return roots;
}

static DenseI64ArrayAttr getRanksAttr(func::FuncOp program) {
  return program->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
}

SmallVector<int64_t> tp::getRanksOf(func::FuncOp program, int64_t numRanks) {
  if (auto ranks = getRanksAttr(program))
    return llvm::to_vector(ranks.asArrayRef());
  return llvm::to_vector(llvm::seq(numRanks));
}

FailureOr<SmallVector<func::FuncOp>>
tp::getProgramsByRank(ArrayRef<func::FuncOp> programs, int64_t numRanks) {
  SmallVector<func::FuncOp> byRank(numRanks);
  for (func::FuncOp program : programs) {
    Attribute attr = program->getAttr(kRanksAttr);
    SmallVector<int64_t> ranks = getRanksOf(program, numRanks);
    if (attr && (!isa<DenseI64ArrayAttr>(attr) || ranks.empty()))
      return program.emitError("'tp.ranks' must be a list of ranks, found ")
             << attr;
    for (int64_t rank : ranks) {
      if (rank < 0 || rank >= numRanks)
        return program.emitError("'@")
               << program.getName() << "' runs on rank " << rank
               << ", but the mesh has " << numRanks << " ranks";
      if (func::FuncOp first = byRank[rank]) {
        InFlightDiagnostic diagnostic = program.emitError("rank ")
                                        << rank << " runs both '@"
                                        << first.getName() << "' and '@"
                                        << program.getName() << "'";
        diagnostic.attachNote(first.getLoc()) << "the first is here";
        return diagnostic;
      }
      byRank[rank] = program;
    }
  }
  for (auto [rank, program] : llvm::enumerate(byRank))
    if (!program)
      return func::FuncOp(programs.front()).emitError()
             << "rank " << rank
             << " runs none of the programs: each rank needs one, and has it "
                "in 'tp.ranks'";
  return byRank;
}

FailureOr<SmallVector<SmallVector<func::FuncOp>>>
tp::getPrograms(ModuleOp module) {
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh))
    return failure();
  auto getSource = [](func::FuncOp program) {
    return program->getAttrOfType<FlatSymbolRefAttr>(kCopyOfAttr);
  };
  SymbolTable symbols(module);
  llvm::MapVector<Operation *, SmallVector<func::FuncOp>> programs;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && !getSource(function))
      programs[function].push_back(function);
  for (auto copy : module.getOps<func::FuncOp>())
    if (FlatSymbolRefAttr source = getSource(copy)) {
      if (copy.isExternal())
        return copy.emitError("is a copy of ") << source << " without a body";
      auto it = programs.find(symbols.lookup(source.getValue()));
      if (it == programs.end())
        return copy.emitError("is a copy of ")
               << source
               << ", which must be a function that has a body and isn't a "
               << "copy itself";
      it->second.push_back(copy);
    }
  // The stages of a pipeline have all ranks together.
  llvm::MapVector<Operation *, SmallVector<func::FuncOp>> wholes;
  for (auto &[function, group] : programs) {
    Operation *whole = function;
    if (auto first = function->getAttrOfType<FlatSymbolRefAttr>(kStageOfAttr)) {
      whole = symbols.lookup(first.getValue());
      if (!programs.contains(whole) || whole->hasAttr(kStageOfAttr))
        return function->emitError("is a stage of ")
               << first
               << ", which must be the function of the first stage, with a "
                  "body";
    }
    llvm::append_range(wholes[whole], group);
  }
  for (auto &[function, group] : wholes) {
    if (group.size() == 1 && !getRanksAttr(group.front()))
      continue;
    if (!*mesh)
      return group.front().emitError("has 'tp.ranks', but there is no tp.mesh");
    if (failed(getProgramsByRank(group, mesh->getNumRanks())))
      return failure();
  }
  SmallVector<SmallVector<func::FuncOp>> groups;
  for (auto &[function, group] : programs) {
    llvm::sort(MutableArrayRef(group).drop_front(), [](auto a, auto b) {
      return getRanksAttr(a)[0] < getRanksAttr(b)[0];
    });
    groups.push_back(std::move(group));
  }
  return groups;
}

llvm::MapVector<StringAttr, SmallVector<func::FuncOp>>
tp::joinStages(ArrayRef<SmallVector<func::FuncOp>> programs) {
  llvm::MapVector<StringAttr, SmallVector<func::FuncOp>> joined;
  for (ArrayRef<func::FuncOp> group : programs) {
    func::FuncOp function = group.front();
    auto first = function->getAttrOfType<FlatSymbolRefAttr>(kStageOfAttr);
    llvm::append_range(
        joined[first ? first.getAttr() : function.getSymNameAttr()], group);
  }
  return joined;
}
