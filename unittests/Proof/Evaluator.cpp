//===- Evaluator.cpp - Programs over doubles ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Evaluator.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

namespace {

double max(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
double min(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}

double reduce(ReductionKind kind, double a, double b) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg:
    return a + b;
  case ReductionKind::Max:
    return max(a, b);
  case ReductionKind::Min:
    return min(a, b);
  case ReductionKind::Product:
    return a * b;
  }
  llvm_unreachable("unknown reduction");
}

double cast(double value, Type from, Type to) {
  if (auto type = dyn_cast<FloatType>(to)) {
    if (type.getWidth() >= 32)
      return value;
    APFloat rounded(value);
    bool losesInfo = false;
    rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    return rounded.convertToDouble();
  }
  if (to.isInteger(1))
    return value != 0;
  unsigned width = to.getIntOrFloatBitWidth();
  if (isa<FloatType>(from)) {
    // To small integers by way of those of 32 bits.
    double bound = std::ldexp(1.0, std::max(width, 32u) - 1);
    value = std::isnan(value)
                ? 0
                : std::trunc(std::min(std::max(value, -bound), bound - 1));
  }
  double count = std::ldexp(1.0, width);
  double low = to.isUnsignedInteger() ? 0 : -count / 2;
  // Integers wrap; those of 64 bits here are small.
  if (width == 64)
    return value;
  double wrapped = std::fmod(value - low, count);
  return wrapped + (wrapped < 0 ? count : 0) + low;
}

bool compare(nn::ComparePredicate predicate, double a, double b) {
  switch (predicate) {
  case nn::ComparePredicate::EQ:
    return a == b;
  case nn::ComparePredicate::NE:
    return a != b;
  case nn::ComparePredicate::LT:
    return a < b;
  case nn::ComparePredicate::LE:
    return a <= b;
  case nn::ComparePredicate::GT:
    return a > b;
  case nn::ComparePredicate::GE:
    return a >= b;
  }
  llvm_unreachable("unknown predicate");
}

double getNumber(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  APInt value = mlir::cast<IntegerAttr>(attribute).getValue();
  return value.getBitWidth() == 1 ? static_cast<double>(value.getZExtValue())
                                  : static_cast<double>(value.getSExtValue());
}

/// One rank's, or the model's, values.
class State {
public:
  DenseMap<Value, Array> values;
  MeshOp mesh;
  int64_t rank = 0;
  std::function<Array(nn::ParameterOp)> getParameter;

  const Array &get(Value value) const { return values.find(value)->second; }

  /// False where an index is out of range.
  bool run(Operation *op) {
    isInRange = true;
    Array result = compute(op);
    if (op->getNumResults() == 1)
      values[op->getResult(0)] = std::move(result);
    return isInRange;
  }

private:
  bool isInRange = true;

  Shape getShape(Operation *op) const {
    auto type = mlir::cast<RankedTensorType>(op->getResult(0).getType());
    return Shape(type.getShape().begin(), type.getShape().end());
  }
  Array map(Operation *op, double (*function)(double)) {
    Array result = get(op->getOperand(0));
    for (double &each : result.data)
      each = function(each);
    return result;
  }
  template <typename Function>
  Array zip(Operation *op, Function function) {
    const Array &a = get(op->getOperand(0)), &b = get(op->getOperand(1));
    return generate(getShape(op), [&](const Shape &index) {
      return function(getBroadcast(a, index), getBroadcast(b, index));
    });
  }
  double look(Operation *op, const Array &table, Shape index, size_t dim,
              double at) {
    int64_t bound = table.shape[dim];
    if (auto whole = op->getAttrOfType<IntegerAttr>(kIndexBoundAttr))
      bound = whole.getInt();
    if (!(at >= 0 && at < bound)) {
      isInRange = false;
      return 0;
    }
    // Another rank's row isn't reported: the first one is read in its place.
    index[dim] = at < table.shape[dim] ? at : 0;
    return table.data[ravel(index, table.shape)];
  }

  Array compute(Operation *op);
  Array computeReduction(nn::ReduceOp op);
  Array computeAttention(nn::AttentionOp op);
};

Array State::computeAttention(nn::AttentionOp op) {
  const Array &query = get(op.getQuery()), &key = get(op.getKey()),
              &value = get(op.getValue());
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  return generate(getShape(op), [&](const Shape &index) {
    size_t rank = index.size();
    Shape row = index, column = index;
    if (rank >= 4)
      column[rank - 3] /= query.shape[rank - 3] / key.shape[rank - 3];
    auto at = [&](const Array &array, Shape &place, int64_t last) {
      place.back() = last;
      return array.data[ravel(place, array.shape)];
    };
    double sum = 0, total = 0;
    for (int64_t j = 0; j < key.shape[rank - 2]; ++j) {
      double score = 0;
      column[rank - 2] = j;
      for (int64_t d = 0; d < key.shape.back(); ++d)
        score += at(query, row, d) * at(key, column, d);
      score *= op.getScale().convertToDouble();
      if (op.getMask()) {
        row.back() = j;
        double mask = getBroadcast(get(op.getMask()), row);
        bool isAdded = !mlir::cast<RankedTensorType>(op.getMask().getType())
                            .getElementType()
                            .isInteger(1);
        score = isAdded ? score + mask : mask != 0 ? score : lowest;
      }
      if (op.getCausal() && j > index[rank - 2])
        score = lowest;
      sum += std::exp(score);
      total += std::exp(score) * at(value, column, index.back());
    }
    return sum == 0 ? 0 : total / sum;
  });
}

Array State::computeReduction(nn::ReduceOp op) {
  const Array &in = get(op.getInput());
  bool isMean = op.getKind() == nn::ReduceKind::Mean;
  Shape kept = in.shape;
  int64_t number = 1;
  for (int64_t dim : op.getDims()) {
    number *= in.shape[dim];
    kept[dim] = 1;
  }
  Array result = make(kept);
  std::vector<bool> begun(result.data.size());
  for (size_t at = 0; at < in.data.size(); ++at) {
    Shape index = unravel(at, in.shape);
    for (int64_t dim : op.getDims())
      index[dim] = 0;
    int64_t to = ravel(index, kept);
    double &own = result.data[to], each = in.data[at];
    if (!begun[to])
      own = each;
    else if (op.getKind() == nn::ReduceKind::Max)
      own = max(own, each);
    else if (op.getKind() == nn::ReduceKind::Min)
      own = min(own, each);
    else if (op.getKind() == nn::ReduceKind::Product)
      own *= each;
    else
      own += each;
    begun[to] = true;
  }
  if (isMean)
    for (double &each : result.data)
      each /= number;
  result.shape = getShape(op);
  return result;
}

Array State::compute(Operation *op) {
  return TypeSwitch<Operation *, Array>(op)
      .Case([&](nn::ParameterOp op) { return getParameter(op); })
      .Case([&](nn::ConstantOp op) {
        Array result = make(getShape(op));
        for (auto [i, each] :
             llvm::enumerate(mlir::cast<DenseElementsAttr>(op.getValue())
                                 .getValues<Attribute>()))
          result.data[i] = getNumber(each);
        return result;
      })
      .Case([&](nn::IotaOp op) {
        return generate(getShape(op), [&](const Shape &index) {
          return op.getStart().convertToDouble() +
                 op.getStep().convertToDouble() * index[op.getDim()];
        });
      })
      .Case([&](nn::NegOp op) { return map(op, [](double x) { return -x; }); })
      .Case([&](nn::AbsOp op) {
        return map(op, [](double x) { return std::abs(x); });
      })
      .Case([&](nn::ExpOp op) {
        return map(op, [](double x) { return std::exp(x); });
      })
      .Case([&](nn::LogOp op) {
        return map(op, [](double x) { return std::log(x); });
      })
      .Case([&](nn::TanhOp op) {
        return map(op, [](double x) { return std::tanh(x); });
      })
      .Case([&](nn::SqrtOp op) {
        return map(op, [](double x) { return std::sqrt(x); });
      })
      .Case([&](nn::RsqrtOp op) {
        return map(op, [](double x) { return 1 / std::sqrt(x); });
      })
      .Case([&](nn::SiluOp op) {
        return map(op, [](double x) { return x / (1 + std::exp(-x)); });
      })
      .Case([&](nn::SigmoidOp op) {
        return map(op, [](double x) { return 1 / (1 + std::exp(-x)); });
      })
      .Case([&](nn::ReluOp op) {
        return map(op, [](double x) { return max(x, 0); });
      })
      .Case([&](nn::FloorOp op) {
        return map(op, [](double x) { return std::floor(x); });
      })
      .Case([&](nn::CeilOp op) {
        return map(op, [](double x) { return std::ceil(x); });
      })
      .Case([&](nn::LogicalNotOp op) {
        return map(op, [](double x) { return double(x == 0); });
      })
      .Case([&](nn::CastOp op) {
        Array result = get(op.getInput());
        Type from = op.getInput().getType().getElementType(),
             to = op.getType().getElementType();
        for (double &each : result.data)
          each = cast(each, from, to);
        return result;
      })
      .Case([&](nn::AddOp op) {
        return zip(op, [](double a, double b) { return a + b; });
      })
      .Case([&](nn::SubOp op) {
        return zip(op, [](double a, double b) { return a - b; });
      })
      .Case([&](nn::MulOp op) {
        return zip(op, [](double a, double b) { return a * b; });
      })
      .Case([&](nn::DivOp op) {
        return zip(op, [](double a, double b) { return a / b; });
      })
      .Case([&](nn::MaximumOp op) { return zip(op, max); })
      .Case([&](nn::MinimumOp op) { return zip(op, min); })
      .Case([&](nn::LogicalAndOp op) {
        return zip(op, [](double a, double b) { return double(a && b); });
      })
      .Case([&](nn::LogicalOrOp op) {
        return zip(op, [](double a, double b) { return double(a || b); });
      })
      .Case([&](nn::LogicalXorOp op) {
        return zip(op, [](double a, double b) { return double(a != b); });
      })
      .Case([&](nn::CompareOp op) {
        return zip(op, [&](double a, double b) {
          return double(compare(op.getPredicate(), a, b));
        });
      })
      .Case([&](nn::WhereOp op) {
        const Array &c = get(op.getCondition()), &a = get(op.getLhs()),
                    &b = get(op.getRhs());
        return generate(getShape(op), [&](const Shape &index) {
          return getBroadcast(getBroadcast(c, index) ? a : b, index);
        });
      })
      .Case([&](nn::LinearOp op) {
        const Array &a = get(op.getInput()), &w = get(op.getWeight());
        return generate(getShape(op), [&](Shape index) {
          int64_t column = index.back();
          double sum = 0;
          for (int64_t k = 0; k < w.shape[1]; ++k) {
            index.back() = k;
            sum +=
                a.data[ravel(index, a.shape)] * w.data[column * w.shape[1] + k];
          }
          return sum;
        });
      })
      .Case([&](nn::MatmulOp op) {
        const Array &a = get(op.getLhs()), &b = get(op.getRhs());
        return generate(getShape(op), [&](const Shape &index) {
          double sum = 0;
          for (int64_t k = 0; k < a.shape.back(); ++k) {
            Shape left = index, right = index;
            left[left.size() - 1] = k;
            right[right.size() - 2] = k;
            sum += getBroadcast(a, left) * getBroadcast(b, right);
          }
          return sum;
        });
      })
      .Case([&](nn::EmbeddingOp op) {
        const Array &ids = get(op.getIndices()), &table = get(op.getWeight());
        return generate(getShape(op), [&](const Shape &index) {
          Shape at(index.begin(), index.end() - 1);
          return look(op, table, {0, index.back()}, 0,
                      ids.data[ravel(at, ids.shape)]);
        });
      })
      .Case([&](nn::GatherOp op) {
        const Array &in = get(op.getInput()), &ids = get(op.getIndex());
        return generate(getShape(op), [&](const Shape &index) {
          return look(op, in, index, op.getDim(),
                      ids.data[ravel(index, ids.shape)]);
        });
      })
      .Case([&](nn::IndexSelectOp op) {
        const Array &in = get(op.getInput()), &ids = get(op.getIndex());
        return generate(getShape(op), [&](const Shape &index) {
          return look(op, in, index, op.getDim(), ids.data[index[op.getDim()]]);
        });
      })
      .Case([&](nn::SoftmaxOp op) {
        const Array &in = get(op.getInput());
        Array result = in;
        Shape rest = in.shape;
        int64_t dim = op.getDim(), size = rest[dim];
        rest[dim] = 1;
        for (int64_t at = 0; at < count(rest); ++at) {
          Shape index = unravel(at, rest);
          auto element = [&](Array &of, int64_t i) -> double & {
            index[dim] = i;
            return of.data[ravel(index, of.shape)];
          };
          double largest = element(result, 0), sum = 0;
          for (int64_t i = 1; i < size; ++i)
            largest = max(largest, element(result, i));
          for (int64_t i = 0; i < size; ++i)
            sum += element(result, i) = std::exp(element(result, i) - largest);
          for (int64_t i = 0; i < size; ++i)
            element(result, i) /= sum;
        }
        return result;
      })
      .Case([&](nn::ReduceOp op) { return computeReduction(op); })
      .Case([&](nn::AttentionOp op) { return computeAttention(op); })
      .Case([&](nn::RecomputeOp op) { return get(op.getInput()); })
      .Case([&](nn::ArgMaxOp op) {
        const Array &in = get(op.getInput());
        Shape rest = in.shape;
        rest[op.getDim()] = 1;
        Array result = generate(rest, [&](Shape index) {
          int64_t best = 0;
          double largest = in.data[ravel(index, in.shape)];
          for (int64_t i = 1; i < in.shape[op.getDim()]; ++i) {
            index[op.getDim()] = i;
            double each = in.data[ravel(index, in.shape)];
            if (!std::isnan(largest) && (each > largest || std::isnan(each))) {
              largest = each;
              best = i;
            }
          }
          return double(best);
        });
        result.shape = getShape(op);
        return result;
      })
      .Case([&](nn::ReshapeOp op) {
        return Array{getShape(op), get(op.getInput()).data};
      })
      .Case([&](nn::TransposeOp op) {
        const Array &in = get(op.getInput());
        return generate(getShape(op), [&](const Shape &index) {
          Shape from(index.size());
          for (auto [to, dim] : llvm::enumerate(op.getPermutation()))
            from[dim] = index[to];
          return in.data[ravel(from, in.shape)];
        });
      })
      .Case([&](nn::BroadcastOp op) {
        const Array &in = get(op.getInput());
        return generate(getShape(op), [&](const Shape &index) {
          return getBroadcast(in, index);
        });
      })
      .Case([&](nn::SliceOp op) {
        const Array &in = get(op.getInput());
        return generate(getShape(op), [&](Shape index) {
          index[op.getDim()] =
              op.getStart() + op.getStep() * index[op.getDim()];
          return in.data[ravel(index, in.shape)];
        });
      })
      .Case([&](nn::SliceScatterOp op) {
        Array result = get(op.getInput());
        const Array &source = get(op.getSource());
        for (auto [at, value] : llvm::enumerate(source.data)) {
          Shape index = unravel(at, source.shape);
          index[op.getDim()] =
              op.getStart() + op.getStep() * index[op.getDim()];
          result.data[ravel(index, result.shape)] = value;
        }
        return result;
      })
      .Case([&](nn::ConcatOp op) {
        SmallVector<Array> parts;
        for (Value each : op.getInputs())
          parts.push_back(get(each));
        return join(parts, op.getDim());
      })
      .Case([&](ShardOffsetOp op) {
        Interval block =
            getDimBlock(op.getSize(), op.getAxes(), mesh, rank).front();
        return Array{{}, {static_cast<double>(block.offset)}};
      })
      .Case([&](LocalSliceOp op) {
        const Array &in = get(op.getInput());
        Array result = takeAlong(
            in, op.getDim(),
            getDimBlock(in.shape[op.getDim()], op.getAxes(), mesh, rank));
        isInRange &= result.shape == getShape(op);
        return result;
      })
      .Case([&](RedistributeOp op) { return get(op.getInput()); })
      .Default([](Operation *op) -> Array {
        llvm::report_fatal_error("no meaning of '" +
                                 op->getName().getStringRef() + "'");
      });
}

std::optional<Array> exchange(Operation *op, MeshOp mesh, int64_t rank,
                              ArrayRef<Array> operands) {
  auto axes = mlir::cast<CollectiveOpInterface>(op).getAxes();
  SmallVector<int64_t> group = mesh.getGroupOf(rank, axes.getAxes());
  SmallVector<Array> parts;
  for (int64_t member : group)
    parts.push_back(operands[member]);
  auto reduceAll = [&](ReductionKind kind) {
    Array sum = parts.front();
    for (const Array &part : ArrayRef(parts).drop_front())
      for (size_t i = 0; i < sum.data.size(); ++i)
        sum.data[i] = reduce(kind, sum.data[i], part.data[i]);
    if (kind == ReductionKind::Avg)
      for (double &each : sum.data)
        each /= parts.size();
    return sum;
  };
  auto slice = [&](const Array &whole, int64_t dim) {
    return takeAlong(whole, dim,
                     getDimBlock(whole.shape[dim], axes, mesh, rank));
  };
  return TypeSwitch<Operation *, std::optional<Array>>(op)
      .Case([&](AllGatherOp op) { return join(parts, op.getDim()); })
      .Case([&](AllReduceOp op) { return reduceAll(op.getKind()); })
      .Case([&](ReduceScatterOp op) {
        return slice(reduceAll(op.getKind()), op.getDim());
      })
      .Case([&](AllToAllOp op) {
        for (Array &part : parts)
          part = slice(part, op.getSplitDim());
        return join(parts, op.getConcatDim());
      })
      .Case([&](PermuteOp op) {
        return parts[op.getSource()[llvm::find(group, rank) - group.begin()]];
      })
      .Case([&](BroadcastOp op) { return parts[op.getRoot()]; })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace

std::optional<std::vector<Array>>
mlir::tp::test::evaluate(func::FuncOp function, const Values &values) {
  State state;
  state.getParameter = [&](nn::ParameterOp op) {
    return values.parameters.at(op.getFqn().str());
  };
  for (auto [argument, value] :
       llvm::zip_equal(function.getArguments(), values.arguments))
    state.values[argument] = value;
  for (Operation &op : function.getBody().front().without_terminator())
    if (!state.run(&op))
      return std::nullopt;
  std::vector<Array> results;
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    results.push_back(state.get(value));
  return results;
}

std::optional<std::vector<Array>>
mlir::tp::test::evaluateRanks(ArrayRef<func::FuncOp> programs, MeshOp mesh,
                              func::FuncOp reference, const Values &values) {
  int64_t numRanks = mesh.getNumRanks();
  std::vector<State> states(numRanks);
  std::vector<Block::iterator> next(numRanks);
  auto cut = [&](Array whole, ShardingAttr sharding, int64_t rank) {
    for (auto [dim, intervals] :
         llvm::enumerate(getBlock(whole.shape, sharding, mesh, rank)))
      whole = takeAlong(whole, dim, intervals);
    return whole;
  };
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    State &state = states[rank];
    func::FuncOp program = programs[rank];
    state.mesh = mesh;
    state.rank = rank;
    bool areKnown = true;
    program.walk([&](nn::ParameterOp op) {
      auto it = values.parameters.find(op.getFqn().str());
      areKnown &= it != values.parameters.end() &&
                  ArrayRef<int64_t>(
                      cut(it->second,
                          op->getAttrOfType<ShardingAttr>(kShardingAttr), rank)
                          .shape) == op.getType().getShape();
    });
    if (!areKnown)
      return std::nullopt;
    state.getParameter = [&, rank](nn::ParameterOp op) {
      return cut(values.parameters.at(op.getFqn().str()),
                 op->getAttrOfType<ShardingAttr>(kShardingAttr), rank);
    };
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      state.values[program.getArgument(i)] =
          cut(values.arguments[i], getArgSharding(program, i), rank);
    next[rank] = program.getBody().front().begin();
  }
  while (true) {
    std::vector<Operation *> waiting;
    std::vector<Array> operands;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      for (;; ++next[rank]) {
        Operation *op = &*next[rank];
        if (isa<CollectiveOpInterface>(op)) {
          waiting.push_back(op);
          operands.push_back(states[rank].get(op->getOperand(0)));
          break;
        }
        if (op->hasTrait<OpTrait::IsTerminator>())
          break;
        if (!states[rank].run(op))
          return std::nullopt;
      }
    if (waiting.empty())
      break;
    if (static_cast<int64_t>(waiting.size()) != numRanks)
      return std::nullopt;
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      if (waiting[rank]->getName() != waiting.front()->getName())
        return std::nullopt;
      auto result = exchange(waiting[rank], mesh, rank, operands);
      auto type =
          mlir::cast<RankedTensorType>(waiting[rank]->getResult(0).getType());
      if (!result || ArrayRef<int64_t>(result->shape) != type.getShape())
        return std::nullopt;
      states[rank].values[waiting[rank]->getResult(0)] = *result;
      ++next[rank];
    }
  }
  // The blocks put together again.
  std::vector<Array> results;
  for (unsigned i = 0; i < reference.getNumResults(); ++i) {
    auto type = mlir::cast<RankedTensorType>(reference.getResultTypes()[i]);
    Array whole = make(Shape(type.getShape().begin(), type.getShape().end()));
    std::vector<bool> isKnown(whole.data.size());
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      func::FuncOp program = programs[rank];
      Array block = states[rank].get(
          program.getBody().front().getTerminator()->getOperand(i));
      ShardingAttr sharding = getResultSharding(program, i);
      Array places = generate(whole.shape, [&](const Shape &index) {
        return double(ravel(index, whole.shape));
      });
      places = cut(places, sharding, rank);
      if (places.shape != block.shape)
        return std::nullopt;
      for (size_t at = 0; at < block.data.size(); ++at) {
        auto to = static_cast<size_t>(places.data[at]);
        if (isKnown[to] && !areEqual({Array{{}, {whole.data[to]}}},
                                     {Array{{}, {block.data[at]}}}))
          return std::nullopt;
        whole.data[to] = block.data[at];
        isKnown[to] = true;
      }
    }
    results.push_back(std::move(whole));
  }
  return results;
}
