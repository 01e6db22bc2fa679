//===- Collectives.cpp - Helpers of rewrites of collectives ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Collectives.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;

/// Set while programs are rewritten: the numbers of the original collectives
/// that this one replaces.
static constexpr StringLiteral kOriginsAttr = "tp.origins";

SmallVector<CollectiveOpInterface>
collectives::getCollectives(func::FuncOp program) {
  SmallVector<CollectiveOpInterface> list;
  program.walk([&](CollectiveOpInterface op) { list.push_back(op); });
  return list;
}

DictionaryAttr collectives::getMeaning(Operation *op) {
  NamedAttrList attrs(op->getDiscardableAttrDictionary());
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    attrs.append(properties.begin(), properties.end());
  for (StringRef name :
       {StringRef("fqn"), StringRef("reason"), StringRef("bytes"),
        StringRef(kFqnAttr), StringRef(kOriginsAttr)})
    attrs.erase(name);
  return attrs.getDictionary(op->getContext());
}

int64_t collectives::getAnyRank(func::FuncOp program) {
  auto ranks = program->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
  return ranks ? ranks[0] : 0;
}

std::optional<int64_t> collectives::getWholeDim(const TensorFactors &tensor,
                                                unsigned factor) {
  int64_t found = -1;
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    if (!llvm::is_contained(factors, factor))
      continue;
    if (factors.size() != 1 || found != -1)
      return std::nullopt;
    found = dim;
  }
  return found;
}

void collectives::inherit(CollectiveOpInterface to,
                          ArrayRef<CollectiveOpInterface> from) {
  Builder b(to.getContext());
  auto join = [&](StringRef name, StringRef separator, auto getText) {
    llvm::SmallSetVector<StringRef, 4> texts;
    for (CollectiveOpInterface op : from)
      if (StringRef text = getText(op); !text.empty())
        texts.insert(text);
    if (!texts.empty())
      to->setAttr(name, b.getStringAttr(llvm::join(texts, separator)));
  };
  join("fqn", ", ", [](CollectiveOpInterface op) { return op.getOriginFqn(); });
  join("reason", "; ",
       [](CollectiveOpInterface op) { return op.getOriginReason(); });
  SmallVector<int64_t> origins;
  for (CollectiveOpInterface op : from)
    if (auto own = op->getAttrOfType<DenseI64ArrayAttr>(kOriginsAttr))
      llvm::append_range(origins, own.asArrayRef());
  if (!origins.empty())
    to->setAttr(kOriginsAttr, b.getDenseI64ArrayAttr(origins));
  setCollectiveBytes(to, lookupMesh(to, to.getMeshAttr()));
}

void collectives::remarkRewrite(Operation *op, StringRef name, StringRef what) {
  remark::passed(op->getLoc(), remark::RemarkOpts::name(name).category(
                                   "tp-optimize-collectives"))
      << remark::add("{0}", what.str());
}

Operation *collectives::getAncestor(Block *block, Operation *op) {
  return block->findAncestorOpInBlock(*op);
}

bool collectives::collectOfParameters(
    Value value, llvm::SmallSetVector<Operation *, 8> &ops) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (ops.contains(op))
    return true;
  if (!isa<ParameterOpInterface>(op)) {
    if (!isSpeculatable(op) || op->getNumRegions() || op->getNumOperands() == 0)
      return false;
    for (Value operand : op->getOperands())
      if (!collectOfParameters(operand, ops))
        return false;
  }
  ops.insert(op);
  return true;
}

/// Whether two programs issue the same collectives. Shapes may differ.
static bool isInStep(func::FuncOp a, func::FuncOp b) {
  return llvm::equal(
      collectives::getCollectives(a), collectives::getCollectives(b),
      [](Operation *x, Operation *y) {
        return x->getName() == y->getName() &&
               x->getAttr(kOriginsAttr) == y->getAttr(kOriginsAttr) &&
               collectives::getMeaning(x) == collectives::getMeaning(y);
      });
}

static bool areInStep(ArrayRef<func::FuncOp> programs) {
  return llvm::all_of(programs.drop_front(), [&](func::FuncOp program) {
    return isInStep(programs.front(), program);
  });
}

LogicalResult
collectives::rewriteInStep(ArrayRef<func::FuncOp> programs,
                           function_ref<LogicalResult(func::FuncOp)> rewrite) {
  if (programs.size() == 1)
    return rewrite(programs.front());
  // Programs that didn't match before are left alone; tp-verify-collectives
  // says why.
  if (!areInStep(programs))
    return success();
  SmallVector<OwningOpRef<func::FuncOp>> originals;
  for (func::FuncOp program : programs) {
    originals.emplace_back(program.clone());
    Builder b(program.getContext());
    for (auto [i, op] : llvm::enumerate(getCollectives(program)))
      op->setAttr(kOriginsAttr, b.getDenseI64ArrayAttr(i));
    if (failed(rewrite(program)))
      return failure();
  }
  if (!areInStep(programs))
    for (auto [program, original] : llvm::zip_equal(programs, originals))
      program->getRegion(0).takeBody(original->getBody());
  for (func::FuncOp program : programs)
    for (CollectiveOpInterface op : getCollectives(program))
      op->removeAttr(kOriginsAttr);
  return success();
}
