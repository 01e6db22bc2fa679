//===- ExecuteTensors.cpp - linalg and tensor ops over exact numbers ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Executor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "tp/Dialect/TP/Intervals.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

namespace {
/// The body of a structured op as a list of steps on slots.
class Body {
public:
  Body(Session &session, Block &block, GetDatum get)
      : session(session), get(get) {
    for (BlockArgument argument : block.getArguments())
      slots[argument] = numSlots++;
    numArguments = numSlots;
    isValid = succeeded(add(block, steps, yielded));
  }

  bool isValid;
  /// The number of slots for arguments, and the slots of the yielded values.
  unsigned numArguments = 0;
  SmallVector<unsigned> yielded;
  int64_t getNumSteps() const { return steps.size() + 1; }

  SmallVector<Scalar> makeSlots() const {
    SmallVector<Scalar> values(numSlots);
    for (auto [slot, value] : constants)
      values[slot] = value;
    return values;
  }
  void run(MutableArrayRef<Scalar> values, ArrayRef<int64_t> loops) const {
    runSteps(steps, values, loops);
  }

private:
  struct Step {
    enum Kind { Code, Index, Extract, For } kind;
    ScalarCode code = {};
    unsigned result = 0;
    int64_t loop = 0; // Index
    SmallVector<unsigned, 3> operands;
    std::shared_ptr<const Tensor> tensor; // Extract
    // For: bounds are operands; carried values have slots of their own.
    std::vector<Step> inner;
    SmallVector<unsigned, 3> carried, yielded, results;
  };

  LogicalResult add(Block &block, std::vector<Step> &steps,
                    SmallVectorImpl<unsigned> &yielded) {
    for (Operation &inner : block.without_terminator()) {
      Step step;
      if (failed(build(&inner, step)))
        return failure();
      if (step.kind != Step::Code || step.code.function)
        steps.push_back(std::move(step));
    }
    for (Value value : block.getTerminator()->getOperands())
      yielded.push_back(getSlot(value));
    return success();
  }

  unsigned getSlot(Value value) {
    auto [it, inserted] = slots.try_emplace(value, numSlots);
    if (inserted) {
      // A captured value is the same for all elements.
      constants.push_back({numSlots, get(value).scalar});
      ++numSlots;
    }
    return it->second;
  }

  LogicalResult build(Operation *inner, Step &step) {
    if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
      step.kind = Step::Code; // none
      slots[constant] = numSlots;
      constants.push_back({numSlots++, getConstant(constant.getValue())});
      return success();
    }
    if (auto loop = dyn_cast<scf::ForOp>(inner))
      return buildFor(loop, step);
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      step.kind = Step::Index;
      step.loop = index.getDim();
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      step.kind = Step::Extract;
      step.tensor = get(extract.getTensor()).tensor;
      for (Value i : extract.getIndices())
        step.operands.push_back(getSlot(i));
    } else if (auto code = compile(inner, session.meaning)) {
      step.kind = Step::Code;
      step.code = *code;
      for (Value operand : inner->getOperands())
        step.operands.push_back(getSlot(operand));
    } else {
      return session.fail(inner, "'" + inner->getName().getStringRef() +
                                     "' can't be executed in a body");
    }
    step.result = slots[inner->getResult(0)] = numSlots++;
    return success();
  }

  LogicalResult buildFor(scf::ForOp loop, Step &step) {
    step.kind = Step::For;
    step.operands = {getSlot(loop.getLowerBound()),
                     getSlot(loop.getUpperBound()), getSlot(loop.getStep())};
    for (Value init : loop.getInitArgs())
      step.operands.push_back(getSlot(init));
    for (BlockArgument argument : loop.getBody()->getArguments())
      step.carried.push_back(slots[argument] = numSlots++);
    if (failed(add(*loop.getBody(), step.inner, step.yielded)))
      return failure();
    for (Value result : loop.getResults())
      step.results.push_back(slots[result] = numSlots++);
    return success();
  }

  static void runSteps(ArrayRef<Step> steps, MutableArrayRef<Scalar> values,
                       ArrayRef<int64_t> loops) {
    for (const Step &step : steps)
      switch (step.kind) {
      case Step::Code: {
        Scalar operands[8];
        for (auto [i, slot] : llvm::enumerate(step.operands))
          operands[i] = values[slot];
        values[step.result] = step.code.function(operands, step.code);
        break;
      }
      case Step::Index:
        values[step.result] = {static_cast<uint64_t>(loops[step.loop])};
        break;
      case Step::Extract: {
        int64_t position = 0;
        bool inside = true;
        for (auto [size, slot] :
             llvm::zip_equal(step.tensor->shape, step.operands)) {
          inside &= values[slot].bits < static_cast<uint64_t>(size);
          position = position * size + values[slot].getInt();
        }
        values[step.result] = inside ? step.tensor->data[position] : Scalar();
        break;
      }
      case Step::For:
        runFor(step, values, loops);
        break;
      }
  }

  static void runFor(const Step &step, MutableArrayRef<Scalar> values,
                     ArrayRef<int64_t> loops) {
    auto at = [&](unsigned i) { return values[step.operands[i]].getInt(); };
    int64_t upper = at(1), by = std::max<int64_t>(at(2), 1);
    SmallVector<Scalar> state;
    for (unsigned slot : ArrayRef(step.operands).drop_front(3))
      state.push_back(values[slot]);
    for (int64_t i = at(0); i < upper; i += by) {
      values[step.carried[0]] = {static_cast<uint64_t>(i)};
      for (size_t k = 0; k < state.size(); ++k)
        values[step.carried[k + 1]] = state[k];
      runSteps(step.inner, values, loops);
      for (size_t k = 0; k < state.size(); ++k)
        state[k] = values[step.yielded[k]];
    }
    for (size_t k = 0; k < state.size(); ++k)
      values[step.results[k]] = state[k];
  }

  Session &session;
  GetDatum get;
  DenseMap<Value, unsigned> slots;
  unsigned numSlots = 0;
  std::vector<std::pair<unsigned, Scalar>> constants;
  std::vector<Step> steps;
};

/// The position in a tensor that an indexing map gives: an affine function of
/// the loops.
struct Position {
  int64_t start = 0;
  SmallVector<int64_t> perLoop;
};
} // namespace

static std::optional<Position> getPosition(AffineMap map,
                                           ArrayRef<int64_t> shape) {
  Position position;
  position.perLoop.assign(map.getNumDims(), 0);
  SmallVector<int64_t> strides = computeStrides(shape),
                       zero(map.getNumDims(), 0);
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides)) {
    bool linear = true;
    expr.walk([&](AffineExpr e) {
      linear &= e.getKind() == AffineExprKind::Add ||
                e.getKind() == AffineExprKind::Mul ||
                e.getKind() == AffineExprKind::Constant ||
                e.getKind() == AffineExprKind::DimId;
    });
    if (!linear)
      return std::nullopt;
    AffineMap one = AffineMap::get(map.getNumDims(), 0, expr);
    int64_t base = one.compose(zero)[0];
    position.start += base * stride;
    for (unsigned loop = 0; loop < map.getNumDims(); ++loop) {
      SmallVector<int64_t> unit = zero;
      unit[loop] = 1;
      position.perLoop[loop] += (one.compose(unit)[0] - base) * stride;
    }
  }
  return position;
}

FailureOr<SmallVector<Datum>>
exact::evaluateLinalg(Session &session, linalg::LinalgOp op, GetDatum get) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  if (!op.hasPureTensorSemantics() ||
      llvm::any_of(loops, ShapedType::isDynamic))
    return session.fail(op, "only static shapes of tensors can be executed");
  Body body(session, op->getRegion(0).front(), get);
  if (!body.isValid)
    return failure();
  SmallVector<Position> positions;
  SmallVector<const Scalar *> inputs;
  SmallVector<Datum> data;
  SmallVector<Scalar> scalars(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    data.push_back(get(operand.get()));
    if (!data.back().tensor) {
      scalars[operand.getOperandNumber()] = data.back().scalar;
      inputs.push_back(&scalars[operand.getOperandNumber()]);
      positions.push_back({0, SmallVector<int64_t>(loops.size(), 0)});
      continue;
    }
    auto position = getPosition(op.getMatchingIndexingMap(&operand),
                                data.back().tensor->shape);
    if (!position)
      return session.fail(op, "its indexing maps aren't affine");
    positions.push_back(*position);
    inputs.push_back(data.back().tensor->data.data());
  }
  unsigned numInputs = op.getNumDpsInputs();
  SmallVector<std::shared_ptr<Tensor>> outputs;
  for (size_t i = numInputs; i < data.size(); ++i)
    outputs.push_back(std::make_shared<Tensor>(*data[i].tensor));
  int64_t points = llvm::product_of(loops);
  if (failed(session.spend(op, points * body.getNumSteps())))
    return failure();

  SmallVector<Scalar> slots = body.makeSlots();
  SmallVector<int64_t> index(loops.size(), 0);
  if (points)
    do {
      auto locate = [&](size_t operand) {
        int64_t at = positions[operand].start;
        for (size_t loop = 0; loop < loops.size(); ++loop)
          at += positions[operand].perLoop[loop] * index[loop];
        return at;
      };
      for (size_t i = 0; i < numInputs; ++i)
        slots[i] = inputs[i][locate(i)];
      SmallVector<int64_t, 2> at;
      for (size_t i = 0; i < outputs.size(); ++i) {
        at.push_back(locate(numInputs + i));
        slots[numInputs + i] = outputs[i]->data[at.back()];
      }
      body.run(slots, index);
      for (size_t i = 0; i < outputs.size(); ++i)
        outputs[i]->data[at[i]] = slots[body.yielded[i]];
    } while (advance(index, loops));
  return llvm::map_to_vector(
      outputs, [](const std::shared_ptr<Tensor> &t) { return Datum{t, {}}; });
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

std::shared_ptr<Tensor> exact::makeTensor(RankedTensorType type) {
  auto tensor = std::make_shared<Tensor>();
  tensor->shape.assign(type.getShape().begin(), type.getShape().end());
  tensor->data.resize(type.getNumElements());
  return tensor;
}

Datum exact::take(const Datum &from, int64_t dim,
                  ArrayRef<Interval> positions) {
  auto result = std::make_shared<Tensor>();
  ArrayRef<int64_t> shape = from.tensor->shape;
  result->shape.assign(shape.begin(), shape.end());
  result->shape[dim] = getSize(positions);
  int64_t outer = llvm::product_of(shape.take_front(dim));
  int64_t inner = llvm::product_of(shape.drop_front(dim + 1));
  for (int64_t i = 0; i < outer; ++i)
    for (Interval interval : positions) {
      auto begin = from.tensor->data.begin() +
                   (i * shape[dim] + interval.offset) * inner;
      result->data.insert(result->data.end(), begin,
                          begin + interval.size * inner);
    }
  return {result, {}};
}

Datum exact::concat(ArrayRef<Datum> parts, int64_t dim) {
  auto result = std::make_shared<Tensor>();
  result->shape = parts.front().tensor->shape;
  result->shape[dim] = 0;
  for (const Datum &part : parts)
    result->shape[dim] += part.tensor->shape[dim];
  int64_t outer = llvm::product_of(ArrayRef(result->shape).take_front(dim));
  for (int64_t i = 0; i < outer; ++i)
    for (const Datum &part : parts) {
      int64_t size = part.tensor->data.size() / std::max<int64_t>(outer, 1);
      auto begin = part.tensor->data.begin() + i * size;
      result->data.insert(result->data.end(), begin, begin + size);
    }
  return {result, {}};
}

//===----------------------------------------------------------------------===//
// tensor ops
//===----------------------------------------------------------------------===//

/// Offsets, sizes and strides of a slice as numbers.
static SmallVector<int64_t> getNumbers(ArrayRef<OpFoldResult> list,
                                       GetDatum get) {
  return llvm::map_to_vector(list, [&](OpFoldResult number) {
    if (auto constant = getConstantIntValue(number))
      return *constant;
    return get(cast<Value>(number)).scalar.getInt();
  });
}

/// Calls `visit` with the row-major position of each element of the slice in
/// the whole tensor. If an offset is out of range, which needs other inputs,
/// the slice begins at 0 in that dimension.
static LogicalResult visitSlice(Session &session,
                                OffsetSizeAndStrideOpInterface op,
                                ArrayRef<int64_t> whole, GetDatum get,
                                function_ref<void(int64_t)> visit) {
  SmallVector<int64_t> offsets = getNumbers(op.getMixedOffsets(), get);
  SmallVector<int64_t> sizes = getNumbers(op.getMixedSizes(), get);
  SmallVector<int64_t> strides = getNumbers(op.getMixedStrides(), get);
  for (auto [offset, size, stride, extent] :
       llvm::zip_equal(offsets, sizes, strides, whole))
    if (size &&
        failed(session.keepInRange(op, offset, extent - (size - 1) * stride)))
      return failure();
  if (llvm::product_of(sizes) == 0)
    return success();
  SmallVector<int64_t> index(sizes.size(), 0), steps = computeStrides(whole);
  do {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at += (offsets[i] + index[i] * strides[i]) * steps[i];
    visit(at);
  } while (advance(index, sizes));
  return success();
}

/// The position of an element in a tensor of this shape.
static FailureOr<int64_t> getPosition(Session &session, Operation *op,
                                      ArrayRef<int64_t> shape,
                                      ValueRange indices, GetDatum get) {
  int64_t at = 0;
  for (auto [size, index] : llvm::zip_equal(shape, indices)) {
    int64_t i = get(index).scalar.getInt();
    if (failed(session.keepInRange(op, i, size)))
      return failure();
    at = at * size + i;
  }
  return at;
}

static FailureOr<Datum> evaluate(Session &session, arith::ConstantOp op,
                                 GetDatum) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type)
    return Datum{nullptr, getConstant(op.getValue())};
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense)
    return session.fail(op, "its value can't be read");
  auto result = makeTensor(type);
  if (dense.isSplat() && !result->data.empty())
    llvm::fill(result->data, getConstant(dense.getSplatValue<Attribute>()));
  else
    llvm::transform(dense.getValues<Attribute>(), result->data.begin(),
                    getConstant);
  return Datum{result, {}};
}

static FailureOr<Datum> evaluate(Session &, tensor::EmptyOp op, GetDatum) {
  return Datum{makeTensor(op.getType()), {}};
}

static FailureOr<Datum> evaluate(Session &, tensor::SplatOp op, GetDatum get) {
  auto result = makeTensor(op.getType());
  llvm::fill(result->data, get(op.getInput()).scalar);
  return Datum{result, {}};
}

static FailureOr<Datum> evaluate(Session &, tensor::FromElementsOp op,
                                 GetDatum get) {
  auto result = makeTensor(op.getType());
  llvm::transform(op.getElements(), result->data.begin(),
                  [&](Value element) { return get(element).scalar; });
  return Datum{result, {}};
}

static FailureOr<Datum> evaluate(Session &, tensor::DimOp op, GetDatum get) {
  int64_t dim = get(op.getIndex()).scalar.getInt();
  int64_t size = get(op.getSource()).tensor->shape[dim];
  return Datum{nullptr, {static_cast<uint64_t>(size)}};
}

static FailureOr<Datum> evaluate(Session &session, tensor::ExtractOp op,
                                 GetDatum get) {
  Datum from = get(op.getTensor());
  auto at = getPosition(session, op, from.tensor->shape, op.getIndices(), get);
  if (failed(at))
    return failure();
  return Datum{nullptr, from.tensor->data[*at]};
}

static FailureOr<Datum> evaluate(Session &session, tensor::InsertOp op,
                                 GetDatum get) {
  auto result = std::make_shared<Tensor>(*get(op.getDest()).tensor);
  auto at = getPosition(session, op, result->shape, op.getIndices(), get);
  if (failed(at))
    return failure();
  result->data[*at] = get(op.getScalar()).scalar;
  return Datum{result, {}};
}

static FailureOr<Datum> evaluate(Session &session, tensor::ExtractSliceOp op,
                                 GetDatum get) {
  Datum from = get(op.getSource());
  auto result = makeTensor(op.getType());
  size_t next = 0;
  if (failed(visitSlice(session, op, from.tensor->shape, get, [&](int64_t at) {
        result->data[next++] = from.tensor->data[at];
      })))
    return failure();
  return Datum{result, {}};
}

static FailureOr<Datum> evaluate(Session &session, tensor::InsertSliceOp op,
                                 GetDatum get) {
  auto result = std::make_shared<Tensor>(*get(op.getDest()).tensor);
  Datum source = get(op.getSource());
  size_t next = 0;
  if (failed(visitSlice(session, op, result->shape, get, [&](int64_t at) {
        result->data[at] = source.tensor->data[next++];
      })))
    return failure();
  return Datum{result, {}};
}

static FailureOr<Datum> evaluate(Session &, tensor::ConcatOp op, GetDatum get) {
  return concat(llvm::map_to_vector(op.getInputs(), get), op.getDim());
}

static FailureOr<Datum> evaluate(Session &session, tensor::PadOp op,
                                 GetDatum get) {
  Value value = op.getConstantPaddingValue();
  if (!value)
    return session.fail(op, "it pads with no constant");
  Attribute constant;
  Scalar padding = matchPattern(value, m_Constant(&constant))
                       ? getConstant(constant)
                       : get(value).scalar;
  auto result = makeTensor(op.getType());
  llvm::fill(result->data, padding);
  Datum source = get(op.getSource());
  SmallVector<int64_t> low = getNumbers(op.getMixedLowPad(), get);
  SmallVector<int64_t> strides = computeStrides(result->shape);
  SmallVector<int64_t> index(low.size(), 0);
  size_t next = 0;
  if (!source.tensor->data.empty())
    do {
      int64_t at = 0;
      for (size_t i = 0; i < index.size(); ++i)
        at += (index[i] + low[i]) * strides[i];
      result->data[at] = source.tensor->data[next++];
    } while (advance(index, source.tensor->shape));
  return Datum{result, {}};
}

std::optional<FailureOr<Datum>>
exact::evaluateTensor(Session &session, Operation *op, GetDatum get) {
  using Result = std::optional<FailureOr<Datum>>;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (!tensor.hasStaticShape())
        return Result(session.fail(op, "only static shapes can be executed"));
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::ConstantOp, tensor::EmptyOp, tensor::SplatOp,
            tensor::FromElementsOp, tensor::DimOp, tensor::ExtractOp,
            tensor::InsertOp, tensor::ExtractSliceOp, tensor::InsertSliceOp,
            tensor::ConcatOp, tensor::PadOp>(
          [&](auto op) { return evaluate(session, op, get); })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ReshapeOp,
            tensor::CastOp>([&](auto op) {
        auto result = makeTensor(cast<RankedTensorType>(op.getType()));
        result->data = get(op->getOperand(0)).tensor->data;
        return Datum{result, {}};
      })
      .Default([](Operation *) -> Result { return std::nullopt; });
}
