//===- Faults.cpp - Changes of one place of a program ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Faults.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

namespace {

Attribute getChanged(Attribute attribute, int64_t by) {
  Builder b(attribute.getContext());
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    if (integer.getType().isInteger(64))
      return b.getI64IntegerAttr(integer.getInt() + by);
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute);
      list && list.size() > 1) {
    SmallVector<int64_t> values(list.asArrayRef());
    std::rotate(values.begin(),
                values.begin() + (by > 0 ? 1 : values.size() - 1),
                values.end());
    return b.getDenseI64ArrayAttr(values);
  }
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute);
      dense && dense.isSplat()) {
    if (auto value = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>()))
      return DenseElementsAttr::get(
          dense.getType(),
          Attribute(
              b.getFloatAttr(value.getType(), value.getValueAsDouble() + by)));
    auto value = cast<IntegerAttr>(dense.getSplatValue<Attribute>());
    if (!value.getType().isInteger(1))
      return DenseElementsAttr::get(
          dense.getType(),
          Attribute(b.getIntegerAttr(value.getType(), value.getInt() + by)));
  }
  return {};
}

/// Other axes of the mesh, and the same in another order.
SmallVector<AxisListAttr> getOtherAxes(AxisListAttr axes, MeshOp mesh) {
  MLIRContext *context = mesh.getContext();
  SmallVector<AxisListAttr> others;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i)
    others.push_back(AxisListAttr::get(
        context, AxisRefAttr::get(context, mesh.getAxisName(i))));
  SmallVector<AxisRefAttr> reversed(llvm::reverse(axes.getAxes()));
  others.push_back(AxisListAttr::get(context, reversed, axes.getSegments()));
  llvm::erase(others, axes);
  return others;
}

/// Puts the op's clone after it and lets all others use that.
void apply(Operation *op, Value before, Operation *after) {
  Value result = op->getResult(0);
  result.replaceAllUsesExcept(after->getResult(0), after);
  (void)before;
}

void addOperandFaults(Operation *op, std::vector<Fault> &faults) {
  // The nearest values of one type.
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    Type type = op->getOperand(i).getType();
    int distance = 0, found = 0;
    for (Operation *other = op->getPrevNode(); other && found < 2;
         other = other->getPrevNode()) {
      ++distance;
      if (other->getNumResults() != 1 ||
          other->getResult(0) == op->getOperand(i) ||
          other->getResult(0).getType() != type)
        continue;
      ++found;
      faults.push_back({"operand", [i, distance](Operation *op) {
                          Operation *other = op;
                          for (int k = 0; k < distance; ++k)
                            other = other->getPrevNode();
                          op->setOperand(i, other->getResult(0));
                        }});
    }
    for (unsigned j = i + 1; j < op->getNumOperands(); ++j)
      if (op->getOperand(j).getType() == type &&
          op->getOperand(j) != op->getOperand(i))
        faults.push_back({"swap operands", [i, j](Operation *op) {
                            Value a = op->getOperand(i), b = op->getOperand(j);
                            op->setOperand(i, b);
                            op->setOperand(j, a);
                          }});
  }
}

void addWholeOpFaults(Operation *op, std::vector<Fault> &faults) {
  if (op->getNumResults() != 1)
    return;
  Type type = op->getResult(0).getType();
  std::string suffix = isa<CollectiveOpInterface>(op) ? " collective" : " op";
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (op->getOperand(i).getType() == type)
      faults.push_back({"drop" + suffix, [i](Operation *op) {
                          op->getResult(0).replaceAllUsesWith(
                              op->getOperand(i));
                          op->erase();
                        }});
  if (op->getNumOperands() && op->getOperand(0).getType() == type)
    faults.push_back({"repeat" + suffix, [](Operation *op) {
                        OpBuilder b(op->getContext());
                        b.setInsertionPointAfter(op);
                        Operation *again = b.clone(*op);
                        again->setOperand(0, op->getResult(0));
                        apply(op, op->getResult(0), again);
                      }});
  // An addition that is moved before the reduction of one of its operands.
  if (isa<nn::AddOp>(op))
    for (unsigned i = 0; i < 2; ++i)
      if (isa_and_nonnull<AllReduceOp, ReduceScatterOp>(
              op->getOperand(i).getDefiningOp()))
        faults.push_back(
            {"bias on every rank", [i](Operation *op) {
               Operation *reduce = op->getOperand(i).getDefiningOp();
               Value part = reduce->getOperand(0);
               op->setOperand(i, part);
               op->getResult(0).replaceAllUsesWith(reduce->getResult(0));
               reduce->setOperand(0, op->getResult(0));
               reduce->moveAfter(op);
             }});
  if (isa<AllReduceOp>(op))
    faults.push_back({"broadcast for a reduction", [](Operation *op) {
                        auto reduce = cast<AllReduceOp>(op);
                        OpBuilder b(op);
                        auto broadcast = BroadcastOp::create(
                            b, op->getLoc(), reduce.getType(),
                            reduce.getInput(), b.getI64IntegerAttr(0),
                            reduce.getMeshAttr(), reduce.getAxes(),
                            StringAttr(), StringAttr(), IntegerAttr());
                        op->replaceAllUsesWith(broadcast);
                        op->erase();
                      }});
  if (auto gather = dyn_cast<AllGatherOp>(op)) {
    // The group's blocks in another order.
    faults.push_back(
        {"swapped gather order", [](Operation *op) {
           auto gather = cast<AllGatherOp>(op);
           MeshOp mesh = lookupMesh(op, gather.getMeshAttr());
           int64_t size = mesh.getAxesSize(gather.getAxes().getAxes());
           auto source = llvm::to_vector(llvm::seq<int64_t>(0, size));
           std::swap(source[0], source[1]);
           OpBuilder b(op);
           auto permute = PermuteOp::create(
               b, op->getLoc(), gather.getInput().getType(), gather.getInput(),
               b.getDenseI64ArrayAttr(source), gather.getMeshAttr(),
               gather.getAxes(), StringAttr(), StringAttr(), IntegerAttr());
           op->setOperand(0, permute);
         }});
  }
}

void addAttributeFaults(Operation *op, MeshOp mesh,
                        std::vector<Fault> &faults) {
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  if (!properties)
    return;
  auto set = [](Operation *op, StringRef name, Attribute value) {
    NamedAttrList list(cast<DictionaryAttr>(op->getPropertiesAsAttribute()));
    list.set(name, value);
    (void)op->setPropertiesFromAttribute(list.getDictionary(op->getContext()),
                                         nullptr);
  };
  for (NamedAttribute attribute : properties) {
    std::string name = attribute.getName().str();
    if (name == "bytes")
      continue;
    for (int64_t by : {-1, 1})
      if (Attribute changed = getChanged(attribute.getValue(), by))
        faults.push_back({"attribute " + name,
                          [=](Operation *op) { set(op, name, changed); }});
    if (auto axes = dyn_cast<AxisListAttr>(attribute.getValue()))
      for (AxisListAttr other : getOtherAxes(axes, mesh))
        faults.push_back(
            {"wrong group", [=](Operation *op) { set(op, name, other); }});
    if (auto fqn = dyn_cast<StringAttr>(attribute.getValue());
        fqn && isa<nn::ParameterOp>(op))
      faults.push_back(
          {"parameter", [=](Operation *op) {
             set(op, name,
                 StringAttr::get(op->getContext(),
                                 fqn.getValue() == "w1" ? "w2" : "w1"));
           }});
  }
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Max,
                               ReductionKind::Product, ReductionKind::Avg})
      if (kind != reduce.getKind())
        faults.push_back({"reduction", [kind](Operation *op) {
                            cast<AllReduceOp>(op).setKind(kind);
                          }});
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    for (nn::ReduceKind kind : {nn::ReduceKind::Sum, nn::ReduceKind::Mean})
      if (kind != reduce.getKind())
        faults.push_back({"reduction of an op", [kind](Operation *op) {
                            cast<nn::ReduceOp>(op).setKind(kind);
                          }});
  if (auto compare = dyn_cast<nn::CompareOp>(op))
    for (unsigned i = 0; i <= nn::getMaxEnumValForComparePredicate(); ++i)
      if (auto predicate = nn::symbolizeComparePredicate(i);
          predicate && *predicate != compare.getPredicate())
        faults.push_back({"comparison", [=](Operation *op) {
                            cast<nn::CompareOp>(op).setPredicate(*predicate);
                          }});
}

/// Changes of a function that others run on other ranks.
void addRankFaults(func::FuncOp function, std::vector<Fault> &faults) {
  auto ranks = function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
  if (!ranks)
    return;
  faults.push_back({"ranks", [](Operation *op) {
                      op->setAttr(kRanksAttr,
                                  DenseI64ArrayAttr::get(op->getContext(), {}));
                    }});
  faults.push_back({"ranks", [](Operation *op) {
                      auto next =
                          dyn_cast_or_null<func::FuncOp>(op->getNextNode());
                      auto other =
                          next ? next : cast<func::FuncOp>(op->getPrevNode());
                      Attribute own = op->getAttr(kRanksAttr);
                      op->setAttr(kRanksAttr, other->getAttr(kRanksAttr));
                      other->setAttr(kRanksAttr, own);
                    }});
}

} // namespace

std::vector<Fault> mlir::tp::test::getFaults(Operation *op, MeshOp mesh) {
  std::vector<Fault> faults;
  if (auto function = dyn_cast<func::FuncOp>(op)) {
    addRankFaults(function, faults);
    return faults;
  }
  addOperandFaults(op, faults);
  addWholeOpFaults(op, faults);
  addAttributeFaults(op, mesh, faults);
  llvm::append_range(faults, getBlockFaults(op, mesh));
  return faults;
}

namespace {

/// Puts what `build` makes of the op's result in place of it.
template <typename Build>
auto insertAfter(Build build) {
  return [build](Operation *op) {
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    Operation *before = op;
    Value changed = build(b, op->getLoc(), result);
    SmallPtrSet<Operation *, 4> built;
    for (Operation *each = changed.getDefiningOp(); each != before;
         each = each->getPrevNode())
      built.insert(each);
    result.replaceUsesWithIf(changed, [&](OpOperand &use) {
      return !built.contains(use.getOwner());
    });
  };
}

Value makeSplat(OpBuilder &b, Location loc, RankedTensorType type,
                double value) {
  Attribute element =
      isa<FloatType>(type.getElementType())
          ? Attribute(b.getFloatAttr(type.getElementType(), value))
          : Attribute(b.getIntegerAttr(type.getElementType(),
                                       static_cast<int64_t>(value)));
  return nn::ConstantOp::create(b, loc, type,
                                DenseElementsAttr::get(type, element));
}

void addResultFaults(Operation *op, MeshOp mesh, std::vector<Fault> &faults) {
  auto type = op->getNumResults() == 1
                  ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                  : RankedTensorType();
  if (!type || !isa<nn::NNDialect, TPDialect>(op->getDialect()))
    return;
  auto add = [&](std::string kind, auto build) {
    faults.push_back({std::move(kind), insertAfter(build)});
  };
  using Values = OpBuilder &;
  Type element = type.getElementType();
  if (isa<FloatType>(element)) {
    auto wholes = type.clone(IntegerType::get(op->getContext(), 64));
    auto bools = type.clone(IntegerType::get(op->getContext(), 1));
    add("insert truncation", [=](Values b, Location loc, Value value) -> Value {
      Value whole = nn::CastOp::create(b, loc, wholes, value);
      return nn::CastOp::create(b, loc, type, whole);
    });
    add("insert cast to boolean",
        [=](Values b, Location loc, Value value) -> Value {
          Value whole = nn::CastOp::create(b, loc, bools, value);
          return nn::CastOp::create(b, loc, type, whole);
        });
    add("insert floor", [=](Values b, Location loc, Value value) -> Value {
      return nn::FloorOp::create(b, loc, type, value);
    });
    add("insert relu", [=](Values b, Location loc, Value value) -> Value {
      return nn::ReluOp::create(b, loc, type, value);
    });
    add("insert abs", [=](Values b, Location loc, Value value) -> Value {
      return nn::AbsOp::create(b, loc, type, value);
    });
    for (double bound : {1.0, 1e-3})
      add("insert clamp", [=](Values b, Location loc, Value value) -> Value {
        return nn::MaximumOp::create(b, loc, type, value,
                                     makeSplat(b, loc, type, -bound));
      });
  }
  if (element.isInteger(1))
    add("insert not", [=](Values b, Location loc, Value value) -> Value {
      return nn::LogicalNotOp::create(b, loc, type, value);
    });
  if (element.isInteger(64) && !isa<ShardOffsetOp>(op))
    add("insert maximum with 1",
        [=](Values b, Location loc, Value value) -> Value {
          return nn::MaximumOp::create(b, loc, type, value,
                                       makeSplat(b, loc, type, 1));
        });
  // Elements in the reverse order, along one dimension.
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t size = type.getDimSize(dim);
    if (size < 2)
      continue;
    add("reverse", [=](Values b, Location loc, Value value) -> Value {
      SmallVector<int64_t> order(llvm::reverse(llvm::seq<int64_t>(0, size)));
      auto list = RankedTensorType::get({size}, b.getI64Type());
      Value index = nn::ConstantOp::create(
          b, loc, list, DenseElementsAttr::get(list, ArrayRef(order)));
      return nn::IndexSelectOp::create(b, loc, type, value, index, dim);
    });
  }
  // The values of other ranks.
  for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
    auto axis = AxisRefAttr::get(op->getContext(), mesh.getAxisName(i));
    int64_t size = mesh.getAxisSize(axis);
    if (size < 2 || type.getRank() == 0)
      continue;
    auto symbol = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
    auto axes = AxisListAttr::get(op->getContext(), axis);
    add("insert permute", [=](Values b, Location loc, Value value) -> Value {
      SmallVector<int64_t> source;
      for (int64_t rank = 0; rank < size; ++rank)
        source.push_back((rank + 1) % size);
      return PermuteOp::create(b, loc, type, value,
                               b.getDenseI64ArrayAttr(source), symbol, axes,
                               StringAttr(), StringAttr(), IntegerAttr());
    });
  }
}

template <typename From, typename To>
void addReplacement(Operation *op, std::vector<Fault> &faults) {
  if (!isa<From>(op))
    return;
  faults.push_back({(op->getName().stripDialect() + " to " +
                     To::getOperationName().rsplit('.').second)
                        .str(),
                    [](Operation *op) {
                      OpBuilder b(op);
                      auto other =
                          To::create(b, op->getLoc(), op->getResultTypes(),
                                     op->getOperands());
                      op->replaceAllUsesWith(other);
                      op->erase();
                    }});
}

/// Other elements of a constant.
void addConstantFaults(nn::ConstantOp op, std::vector<Fault> &faults) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || dense.empty())
    return;
  Type element = dense.getElementType();
  auto change = [&](bool all, std::function<Attribute(Attribute)> to) {
    faults.push_back(
        {"constant", [=](Operation *op) {
           SmallVector<Attribute> values(dense.getValues<Attribute>());
           for (Attribute &each :
                MutableArrayRef(values).take_front(all ? values.size() : 1))
             each = to(each);
           cast<nn::ConstantOp>(op).setValueAttr(
               DenseElementsAttr::get(dense.getType(), values));
         }});
  };
  for (bool all : {true, false}) {
    if (element.isInteger(1)) {
      change(all, [](Attribute value) -> Attribute {
        return BoolAttr::get(value.getContext(),
                             cast<IntegerAttr>(value).getValue().isZero());
      });
      continue;
    }
    for (double by : {-1.0, 1.0, 0.5, 1e-3}) {
      if (!isa<FloatType>(element) && by != std::round(by))
        continue;
      change(all, [=](Attribute value) -> Attribute {
        if (auto number = dyn_cast<FloatAttr>(value))
          return FloatAttr::get(element, number.getValueAsDouble() + by);
        return IntegerAttr::get(element, cast<IntegerAttr>(value).getInt() +
                                             static_cast<int64_t>(by));
      });
    }
  }
}

} // namespace

std::vector<Fault> mlir::tp::test::getValueFaults(Operation *op, MeshOp mesh) {
  std::vector<Fault> faults;
  if (auto where = dyn_cast<nn::WhereOp>(op);
      where && where.getLhs().getType() == where.getRhs().getType())
    faults.push_back({"swap choices", [](Operation *op) {
                        Value a = op->getOperand(1), b = op->getOperand(2);
                        op->setOperand(1, b);
                        op->setOperand(2, a);
                      }});
  // The last one of those that are equal.
  if (auto argmax = dyn_cast<nn::ArgMaxOp>(op))
    faults.push_back(
        {"ties of argmax", [](Operation *op) {
           auto argmax = cast<nn::ArgMaxOp>(op);
           auto type = argmax.getInput().getType();
           int64_t dim = argmax.getDim();
           int64_t size = type.getDimSize(dim);
           OpBuilder b(op);
           Location loc = op->getLoc();
           SmallVector<int64_t> order(
               llvm::reverse(llvm::seq<int64_t>(0, size)));
           auto list = RankedTensorType::get({size}, b.getI64Type());
           Value index = nn::ConstantOp::create(
               b, loc, list, DenseElementsAttr::get(list, ArrayRef(order)));
           Value reversed = nn::IndexSelectOp::create(
               b, loc, type, argmax.getInput(), index, dim);
           op->setOperand(0, reversed);
           b.setInsertionPointAfter(op);
           Value last =
               makeSplat(b, loc, cast<RankedTensorType>(argmax.getType()),
                         static_cast<double>(size - 1));
           Value found =
               nn::SubOp::create(b, loc, argmax.getType(), last, argmax);
           argmax.getResult().replaceAllUsesExcept(found,
                                                   found.getDefiningOp());
         }});
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    addConstantFaults(constant, faults);
  addReplacement<nn::MaximumOp, nn::MinimumOp>(op, faults);
  addReplacement<nn::MinimumOp, nn::MaximumOp>(op, faults);
  addReplacement<nn::FloorOp, nn::CeilOp>(op, faults);
  addReplacement<nn::CeilOp, nn::FloorOp>(op, faults);
  addReplacement<nn::LogicalAndOp, nn::LogicalOrOp>(op, faults);
  addReplacement<nn::LogicalOrOp, nn::LogicalXorOp>(op, faults);
  addReplacement<nn::LogicalXorOp, nn::LogicalOrOp>(op, faults);
  addReplacement<nn::ReluOp, nn::AbsOp>(op, faults);
  addReplacement<nn::TanhOp, nn::SigmoidOp>(op, faults);
  addResultFaults(op, mesh, faults);
  llvm::append_range(faults, getCastFaults(op));
  return faults;
}
