//===- Executor.cpp - Execution over exact numbers ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Executor.h"
#include "ReferenceGraph.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "tp/CodeGen/NNToLinalg/NNToLinalg.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

bool exact::advance(SmallVectorImpl<int64_t> &index, ArrayRef<int64_t> shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i])
      return true;
    index[i] = 0;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Session
//===----------------------------------------------------------------------===//

LogicalResult Session::fail(Operation *op, const Twine &text) {
  if (error.empty()) {
    error = text.str();
    errorLoc = op->getLoc();
  }
  return failure();
}

LogicalResult Session::spend(Operation *op, int64_t operations) {
  budget -= operations;
  return budget >= 0 ? success()
                     : fail(op, "it takes more scalar operations than "
                                "'max-operations' allows");
}

LogicalResult Session::keepInRange(Operation *op, int64_t &index,
                                   int64_t bound) {
  if (index >= 0 && index < bound)
    return success();
  if (bound <= 0)
    return fail(op, "no index is in range");
  outOfRange.push_back({op, bound, index});
  index = 0;
  return success();
}

func::FuncOp Session::getLowered(Operation *op) {
  Builder builder(context);
  auto type =
      FunctionType::get(context, op->getOperandTypes(), op->getResultTypes());
  Attribute properties = op->getPropertiesAsAttribute();
  Attribute key = builder.getArrayAttr(
      {builder.getStringAttr(op->getName().getStringRef()),
       properties ? properties : op->getDiscardableAttrDictionary(),
       TypeAttr::get(type)});
  auto [it, inserted] = byOp.try_emplace(key);
  if (!inserted || !isa_and_nonnull<nn::NNDialect>(op->getDialect()))
    return it->second;
  if (!lowered)
    lowered = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder atEnd = OpBuilder::atBlockEnd(lowered->getBody());
  auto function = func::FuncOp::create(atEnd, op->getLoc(),
                                       "f" + std::to_string(byOp.size()), type);
  OpBuilder body = OpBuilder::atBlockEnd(function.addEntryBlock());
  Operation *clone = body.clone(*op);
  // Operands that are the same value here may differ for another op.
  clone->setOperands(function.getArguments());
  func::ReturnOp::create(body, op->getLoc(), clone->getResults());
  convertNNToLinalg(function);
  bool isLowered = true;
  function.walk([&](Operation *inner) {
    isLowered &= !isa<nn::NNDialect>(inner->getDialect());
  });
  if (isLowered)
    it->second = function;
  return it->second;
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

Machine::Machine(Session &session, func::FuncOp function, int64_t rank,
                 ArrayRef<Datum> arguments)
    : session(session), rank(rank) {
  (void)enterBlock(function.getBody().front(), nullptr, arguments);
}

SmallVector<Datum> Machine::getAll(ValueRange range) const {
  return llvm::map_to_vector(range, [&](Value value) { return get(value); });
}

LogicalResult Machine::assign(ValueRange range, ArrayRef<Datum> data) {
  for (auto [value, datum] : llvm::zip_equal(range, data))
    values[value] = datum;
  return success();
}

LogicalResult Machine::enterBlock(Block &block, Operation *owner,
                                  ArrayRef<Datum> arguments) {
  (void)assign(block.getArguments(), arguments);
  session.entered.insert(&block);
  frames.push_back({block.begin(), owner});
  return success();
}

Machine::Status Machine::run(const Datum *received) {
  if (collective) {
    values[collective->getResult(0)] = *received;
    collective = nullptr;
  }
  while (!frames.empty()) {
    Operation *op = &*frames.back().next++;
    if (op->getNumResults() &&
        llvm::all_of(op->getResults(), [&](Value v) { return has(v); }) &&
        frames.size() == 1)
      continue;
    if (isa<CollectiveOpInterface>(op)) {
      collective = op;
      return Status::Waiting;
    }
    if (failed(op->hasTrait<OpTrait::IsTerminator>() ? leave(op)
               : isa<scf::ForOp, scf::IfOp, scf::WhileOp, func::CallOp>(op)
                   ? enter(op)
                   : evaluate(op)))
      return Status::Failed;
  }
  return Status::Finished;
}

LogicalResult Machine::enter(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) {
        int64_t lower = get(loop.getLowerBound()).scalar.getInt();
        int64_t upper = get(loop.getUpperBound()).scalar.getInt();
        int64_t step = get(loop.getStep()).scalar.getInt();
        SmallVector<Datum> carried = getAll(loop.getInitArgs());
        if (step <= 0)
          return session.fail(op, "its step isn't positive");
        if (lower >= upper)
          return assign(op->getResults(), carried);
        carried.insert(carried.begin(),
                       Datum{nullptr, {static_cast<uint64_t>(lower)}});
        if (failed(enterBlock(*loop.getBody(), op, carried)))
          return failure();
        frames.back().induction = lower;
        frames.back().upper = upper;
        frames.back().step = step;
        return success();
      })
      .Case([&](scf::IfOp branch) {
        Region &region = get(branch.getCondition()).scalar.bits
                             ? branch.getThenRegion()
                             : branch.getElseRegion();
        return region.empty() ? success() : enterBlock(region.front(), op, {});
      })
      .Case([&](scf::WhileOp loop) {
        return enterBlock(loop.getBefore().front(), op,
                          getAll(loop.getInits()));
      })
      .Case([&](func::CallOp call) {
        auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
            op, call.getCalleeAttr());
        if (!callee || callee.isExternal())
          return session.fail(op, "the called function has no body");
        if (frames.size() > 100)
          return session.fail(op, "calls are nested too deeply");
        return enterBlock(callee.getBody().front(), op,
                          getAll(op->getOperands()));
      });
}

LogicalResult Machine::leave(Operation *terminator) {
  Frame frame = frames.pop_back_val();
  SmallVector<Datum> yielded = getAll(terminator->getOperands());
  auto finish = [&](ArrayRef<Datum> data) {
    return assign(frame.owner->getResults(), data);
  };
  if (!frame.owner) {
    results = std::move(yielded);
    return success();
  }
  if (failed(session.spend(terminator, 1)))
    return failure();
  if (auto loop = dyn_cast<scf::ForOp>(frame.owner)) {
    int64_t next = frame.induction + frame.step;
    if (next >= frame.upper)
      return finish(yielded);
    yielded.insert(yielded.begin(),
                   Datum{nullptr, {static_cast<uint64_t>(next)}});
    if (failed(enterBlock(*loop.getBody(), loop, yielded)))
      return failure();
    frames.back().induction = next;
    frames.back().upper = frame.upper;
    frames.back().step = frame.step;
    return success();
  }
  if (auto loop = dyn_cast<scf::WhileOp>(frame.owner)) {
    if (!isa<scf::ConditionOp>(terminator))
      return enterBlock(loop.getBefore().front(), loop, yielded);
    ArrayRef<Datum> passed = ArrayRef(yielded).drop_front();
    if (!yielded.front().scalar.bits)
      return finish(passed);
    return enterBlock(loop.getAfter().front(), loop, passed);
  }
  return finish(yielded);
}

LogicalResult Machine::evaluateScalars(Operation *op, const ScalarCode &code) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Datum> operands = getAll(op->getOperands());
  SmallVector<Scalar> row(operands.size());
  if (!type) {
    for (auto [i, operand] : llvm::enumerate(operands))
      row[i] = operand.scalar;
    values[op->getResult(0)] = {nullptr, code.function(row.data(), code)};
    return session.spend(op, 1);
  }
  std::shared_ptr<Tensor> result = makeTensor(type);
  if (failed(session.spend(op, result->data.size())))
    return failure();
  for (size_t element = 0; element < result->data.size(); ++element) {
    for (auto [i, operand] : llvm::enumerate(operands))
      row[i] = operand.tensor->data[element];
    result->data[element] = code.function(row.data(), code);
  }
  values[op->getResult(0)] = {result, {}};
  return success();
}

LogicalResult Machine::evaluateLowered(Operation *op) {
  func::FuncOp function = session.getLowered(op);
  if (!function)
    return session.fail(op, "'" + op->getName().getStringRef() +
                                "' has no meaning that could be executed");
  size_t numBefore = session.outOfRange.size();
  Machine machine(session, function, rank, getAll(op->getOperands()));
  llvm::SaveAndRestore outer(session.meaning.partOf,
                             session.meaning.partOf ? session.meaning.partOf
                                                    : op);
  if (machine.run() != Status::Finished)
    return failure();
  // An index in the lowering counts as one of the op.
  for (size_t i = numBefore; i < session.outOfRange.size(); ++i)
    session.outOfRange[i].op = op;
  return assign(op->getResults(), machine.getResults());
}

static Datum makeScalarTensor(Scalar value) {
  auto tensor = std::make_shared<Tensor>();
  tensor->data.push_back(value);
  return {tensor, {}};
}

/// Checks the shape, because slices may differ between the ranks of a program.
LogicalResult Machine::slice(LocalSliceOp op) {
  Datum whole = get(op.getInput());
  int64_t dim = op.getDim(), size = whole.tensor->shape[dim];
  Datum part =
      take(whole, dim, getDimBlock(size, op.getAxes(), session.mesh, rank));
  if (int64_t found = part.tensor->shape[dim];
      found != op.getType().getDimSize(dim))
    return session.fail(op, "the slice of rank " + Twine(rank) + " has " +
                                Twine(found) + " elements along dimension " +
                                Twine(dim) + ", its type says " +
                                Twine(op.getType().getDimSize(dim)));
  values[op] = part;
  return success();
}

LogicalResult Machine::evaluate(Operation *op) {
  auto get = [&](Value value) { return this->get(value); };
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    auto computed = evaluateLinalg(session, linalgOp, get);
    if (failed(computed))
      return failure();
    return assign(op->getResults(), *computed);
  }
  if (auto computed = evaluateTensor(session, op, get)) {
    if (failed(*computed))
      return failure();
    values[op->getResult(0)] = **computed;
    return success();
  }
  if (auto code = compile(op, session.meaning))
    return evaluateScalars(op, *code);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    values[select] =
        get(get(select.getCondition()).scalar.bits ? select.getTrueValue()
                                                   : select.getFalseValue());
    return success();
  }
  // Placements don't change global values.
  if (isPlacementOnly(op)) {
    if (!session.meaning.isReference)
      return session.fail(op, "it places a whole value, but a rank's program "
                              "has only blocks");
    values[op->getResult(0)] = get(op->getOperand(0));
    return success();
  }
  if (isa<nn::ParameterOp>(op)) {
    Datum block = session.getParameter(op, rank);
    values[op->getResult(0)] = block;
    return block.tensor ? success()
                        : session.fail(op, "it isn't a block of a parameter of "
                                           "the reference");
  }
  if (auto offset = dyn_cast<ShardOffsetOp>(op)) {
    Interval block =
        getDimBlock(offset.getSize(), offset.getAxes(), session.mesh, rank)
            .front();
    values[offset] = makeScalarTensor({static_cast<uint64_t>(block.offset)});
    return success();
  }
  if (auto local = dyn_cast<LocalSliceOp>(op))
    return slice(local);
  if (auto check = dyn_cast<tprt::CheckIndexOp>(op)) {
    DenseSet<int64_t> found;
    for (Scalar index : get(check.getIndices()).tensor->data)
      if (index.bits >= static_cast<uint64_t>(check.getBound()) &&
          (!check.getIgnored() ||
           index.bits != static_cast<uint64_t>(*check.getIgnored())) &&
          found.insert(index.getInt()).second)
        session.outOfRange.push_back(
            {op, static_cast<int64_t>(check.getBound()), index.getInt()});
    return success();
  }
  return evaluateLowered(op);
}
