//===- CallBuffers.cpp - Where the buffers of calls are -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallBuffers.h"
#include "CodeGen/Loops/Buffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"

using namespace mlir;
using namespace mlir::tp;

/// The buffer that `buffer`, which is dense, is a view of, and the bytes between
/// their beginnings.
static std::pair<Value, int64_t> getBase(Value buffer) {
  int64_t bytes = 0;
  while (Operation *op = buffer.getDefiningOp()) {
    if (isa<memref::CastOp, memref::CollapseShapeOp, memref::ExpandShapeOp>(
            op)) {
      buffer = op->getOperand(0);
      continue;
    }
    auto view = dyn_cast<memref::ViewOp>(op);
    std::optional<int64_t> shift =
        view ? getConstantIntValue(view.getByteShift()) : std::nullopt;
    if (!shift)
      break;
    bytes += *shift;
    buffer = view.getSource();
  }
  return {buffer, bytes};
}

void CallBuffers::setProgram(OpBuilder &b, func::FuncOp program, Value arena) {
  places.clear();
  own.clear();
  tables = {};
  hasArena = !!arena;
  SmallVector<tprt::CallOp> calls(program.getOps<tprt::CallOp>());
  if (calls.empty())
    return;
  (void)program.insertArgument(
      1, LLVM::LLVMPointerType::get(b.getContext()), // behind the context
      b.getDictionaryAttr(b.getNamedAttr(
          kRoleAttr, b.getStringAttr(stringifyRole(Role::Tables)))),
      program.getLoc());
  tables = program.getArgument(1);
  for (auto [table, role] :
       {std::pair(AddressTable::Inputs, Role::Input),
        std::pair(AddressTable::Parameters, Role::Parameter),
        std::pair(AddressTable::Outputs, Role::Output)})
    for (auto [i, argument] : llvm::enumerate(getArguments(program, role)))
      places[argument] = {table, static_cast<int64_t>(i)};
  auto addOwn = [&](Value base) {
    if (places
            .try_emplace(base, Place{AddressTable::Own,
                                     static_cast<int64_t>(own.size())})
            .second)
      own.insert(base);
  };
  if (arena)
    addOwn(arena);
  for (tprt::CallOp call : calls)
    for (Value buffer : call->getOperands().drop_front())
      addOwn(getBase(buffer).first);
  fillOwnTable(b, program);
}

void CallBuffers::fillOwnTable(OpBuilder &b, func::FuncOp program) {
  Location loc = program.getLoc();
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  b.setInsertionPointToStart(&program.getBody().front());
  auto getSlot = [&](Value table, int64_t index) {
    return LLVM::GEPOp::create(b, loc, ptr, ptr, table,
                               LLVM::GEPArg(static_cast<int32_t>(index)));
  };
  Value size = arith::ConstantOp::create(
      b, loc, b.getI64IntegerAttr(std::max<int64_t>(own.size(), 1)));
  Value table = LLVM::AllocaOp::create(b, loc, ptr, ptr, size, /*alignment=*/8);
  LLVM::StoreOp::create(
      b, loc, table, getSlot(tables, static_cast<int64_t>(AddressTable::Own)));
  for (auto [i, buffer] : llvm::enumerate(own)) {
    OpBuilder::InsertionGuard guard(b);
    if (Operation *producer = buffer.getDefiningOp())
      b.setInsertionPointAfter(producer);
    LLVM::StoreOp::create(b, loc, getPointer(b, buffer), getSlot(table, i));
  }
}

SmallVector<int64_t> CallBuffers::describe(tprt::CallOp call) const {
  SmallVector<int64_t> numbers;
  auto add = [&](Place place, int64_t bytes) {
    llvm::append_values(numbers, static_cast<int64_t>(place.table), place.index,
                        bytes);
  };
  for (Value buffer : call->getOperands().drop_front()) {
    auto [base, bytes] = getBase(buffer);
    add(places.at(base), bytes);
  }
  if (hasArena)
    add(places.at(own.front()), 0);
  return numbers;
}

void CallBuffers::eraseUnusedArguments(func::FuncOp program) const {
  if (!tables)
    return;
  // Views that only calls used.
  IRRewriter rewriter(program.getContext());
  (void)runRegionDCE(rewriter, program->getRegions());
  BitVector unused(program.getNumArguments());
  SmallVector<DictionaryAttr> attributes;
  Builder b(program.getContext());
  for (BlockArgument argument : program.getArguments()) {
    NamedAttrList named(program.getArgAttrDict(argument.getArgNumber()));
    auto place = places.find(argument);
    if (place != places.end() && place->second.table != AddressTable::Own) {
      if (argument.use_empty())
        unused.set(argument.getArgNumber());
      named.set(kPlaceAttr, b.getI64IntegerAttr(place->second.index));
    }
    attributes.push_back(named.getDictionary(b.getContext()));
  }
  program.setAllArgAttrs(attributes);
  (void)program.eraseArguments(unused);
}
