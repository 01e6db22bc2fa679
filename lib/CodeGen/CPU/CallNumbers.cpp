//===- CallNumbers.cpp - In what calls of a function differ ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallNumbers.h"
#include "CodeGen/Program/Origin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"

using namespace mlir;
using namespace mlir::tp;

MemRefType CallNumbers::getTableType(Builder &b, const Counts &counts) {
  int64_t count =
      counts.offsets + counts.marks + counts.collectives + counts.texts;
  // A global has at least one element.
  return MemRefType::get({std::max<int64_t>(count, 1)}, b.getI64Type());
}

LogicalResult CallNumbers::extendTables(ModuleOp module) {
  Builder b(module.getContext());
  for (func::FuncOp function : getProgramFunctions(module)) {
    if (!function->hasAttr(tprt::kRepeatedAttr))
      continue;
    Counts &counts = countsOf[function.getNameAttr()];
    function.walk([&](Operation *op) {
      if (auto mark = dyn_cast<tprt::MarkOp>(op))
        counts.marks = std::max<int64_t>(counts.marks, mark.getIndex() + 1);
      if (auto collective = dyn_cast<tprt::CollectiveCallOpInterface>(op))
        counts.collectives =
            std::max(counts.collectives, collective.getId() + 1);
      if (auto check = dyn_cast<tprt::CheckIndexOp>(op))
        addCheck(function, check, check.getWhat());
      if (auto site = dyn_cast<tprt::SiteOp>(op))
        addCheck(function, site, site.getWhat());
    });
    counts.texts = checksOf[function.getNameAttr()].size();
    SmallVector<BlockArgument> tables = getArguments(function, Role::Numbers);
    if (tables.empty()) {
      (void)function.insertArgument(
          function.getNumArguments(), getTableType(b, counts),
          b.getDictionaryAttr(b.getNamedAttr(
              kRoleAttr, b.getStringAttr(stringifyRole(Role::Numbers)))),
          function.getLoc());
      continue;
    }
    BlockArgument table = tables.front();
    counts.offsets = cast<MemRefType>(table.getType()).getNumElements();
    table.setType(getTableType(b, counts));
    function.setType(
        b.getFunctionType(function.getBody().getArgumentTypes(), {}));
  }
  WalkResult walked = module.walk([&](tprt::CallOp call) {
    return failed(check(call)) ? WalkResult::interrupt()
                               : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// The text of a check begins with the FQN of its op, if that has one.
void CallNumbers::addCheck(func::FuncOp function, Operation *check,
                           StringRef what) {
  std::vector<Check> &checks = checksOf[function.getNameAttr()];
  places[check] = checks.size();
  for (const Origin &origin : getOrigins(check))
    if (!origin.fqn.empty() && what.starts_with((origin.fqn + ": ").str())) {
      checks.push_back(
          {origin.position, what.drop_front(origin.fqn.size()).str()});
      return;
    }
  checks.push_back({/*position=*/-1, what.str()});
}

int64_t CallNumbers::getText(tprt::CallOp call, const Check &check) {
  std::string text = check.rest;
  if (check.position >= 0)
    text = cast<StringAttr>(call.getOrigins()[check.position]).str() + text;
  return getText(text);
}

int64_t CallNumbers::getText(StringRef text) {
  auto [entry, isNew] = textNumbers.try_emplace(text, texts.size());
  if (isNew)
    texts.push_back(text.str());
  return entry->second;
}

LogicalResult CallNumbers::check(tprt::CallOp call) {
  Counts counts = countsOf.lookup(call.getCalleeAttr().getAttr());
  auto checkList = [&](StringRef name, std::optional<ArrayRef<int64_t>> list,
                       int64_t count) -> LogicalResult {
    int64_t size = list ? list->size() : 0;
    if (size == count)
      return success();
    return call.emitOpError("lists ") << size << " " << name << ", but '"
                                      << call.getCallee() << "' has " << count;
  };
  if (failed(checkList("offsets", call.getOffsets(), counts.offsets)) ||
      failed(checkList("marks", call.getMarks(), counts.marks)))
    return failure();
  return checkList("collectives", call.getCollectives(), counts.collectives);
}

SmallVector<int64_t> CallNumbers::getNumbers(tprt::CallOp call) {
  ArrayRef<int64_t> none;
  SmallVector<int64_t> numbers(call.getOffsets().value_or(none));
  llvm::append_range(numbers, call.getMarks().value_or(none));
  llvm::append_range(numbers, call.getCollectives());
  for (const Check &check : checksOf[call.getCalleeAttr().getAttr()])
    numbers.push_back(getText(call, check));
  return numbers;
}

void CallNumbers::setFunction(func::FuncOp function) {
  SmallVector<BlockArgument> tables = getArguments(function, Role::Numbers);
  table = tables.empty() ? Value() : tables.front();
  counts = countsOf.lookup(function.getNameAttr());
}

Value CallNumbers::getNumber(OpBuilder &b, Location loc, int64_t number,
                             int64_t first) {
  Type i32 = b.getI32Type();
  if (!table)
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, number));
  Value index = arith::ConstantIndexOp::create(b, loc, first + number);
  Value entry = memref::LoadOp::create(b, loc, table, index);
  return arith::TruncIOp::create(b, loc, i32, entry);
}

Value CallNumbers::getMark(OpBuilder &b, Location loc, int64_t index) {
  return getNumber(b, loc, index, counts.offsets);
}

Value CallNumbers::getCollective(OpBuilder &b, Location loc, int64_t id) {
  return getNumber(b, loc, id, counts.offsets + counts.marks);
}

Value CallNumbers::getText(OpBuilder &b, Operation *check) {
  return getNumber(b, check->getLoc(), places.lookup(check),
                   counts.offsets + counts.marks + counts.collectives);
}

Value CallNumbers::getText(OpBuilder &b, tprt::CheckIndexOp check) {
  return table ? getText(b, check.getOperation()) : Value();
}

Value CallNumbers::getSite(OpBuilder &b, tprt::SiteOp site) {
  return table ? getText(b, site.getOperation())
               : arith::ConstantOp::create(
                     b, site.getLoc(),
                     b.getI32IntegerAttr(getText(site.getWhat())));
}
