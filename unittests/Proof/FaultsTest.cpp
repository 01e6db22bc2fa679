//===- FaultsTest.cpp - Planted faults are caught -------------------------===//
//
// Per-rank programs are changed in one place at a time: an operand, an
// attribute, an op that is left out, done twice or moved, a rank that runs
// another's program. Whether a change is a fault is found by execution over
// exact integers; each one that is must be found by rules and block algebra,
// which execute nothing. The two share no code but the IR.
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "ProofTest.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Proof/Equivalence.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// A change of one place. Gets the op in a copy of the module.
struct Fault {
  std::string kind;
  std::function<void(Operation *)> plant;
};

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
  if (auto sharding = op->getAttrOfType<ShardingAttr>(kShardingAttr)) {
    // Another block of the parameter, of the same type.
    SmallVector<AxisListAttr> dims(sharding.getDims());
    std::rotate(dims.begin(), dims.begin() + 1, dims.end());
    auto rotated = ShardingAttr::get(op->getContext(), sharding.getMesh(), dims,
                                     sharding.getPartial());
    if (rotated != sharding)
      faults.push_back({"block of a parameter", [=](Operation *op) {
                          op->setAttr(kShardingAttr, rotated);
                        }});
  }
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

std::vector<Fault> getFaults(Operation *op, MeshOp mesh) {
  std::vector<Fault> faults;
  if (auto function = dyn_cast<func::FuncOp>(op)) {
    addRankFaults(function, faults);
    return faults;
  }
  addOperandFaults(op, faults);
  addWholeOpFaults(op, faults);
  addAttributeFaults(op, mesh, faults);
  return faults;
}

class FaultsTest : public test::ProofTest {
protected:
  /// What is done to the collectives by request.
  enum class Form { Plain, Joined, InChunks, OnBlocks };

  OwningOpRef<ModuleOp> parallelize(ModuleOp model, Form form) {
    OwningOpRef<ModuleOp> ranks = model.clone();
    PassManager passes(&context);
    ParallelizeOptions options;
    if (form == Form::Joined)
      options.bucketBytes = 1 << 20;
    if (form == Form::OnBlocks)
      options.sequenceParallel = true;
    if (form == Form::InChunks) {
      options.overlap = true;
      options.chunks = 2;
    }
    buildParallelizePipeline(passes, options);
    passes.addPass(createLowerStartWait());
    EXPECT_TRUE(succeeded(passes.run(*ranks)));
    return ranks;
  }

  static int64_t countCollectives(ModuleOp ranks) {
    int64_t count = 0;
    ranks.walk([&](CollectiveOpInterface) { ++count; });
    return count;
  }

  Verdict check(ModuleOp ranks, ModuleOp model, bool prove,
                std::string *reason = nullptr) {
    MeshOp mesh = *ranks.getOps<MeshOp>().begin();
    SmallVector<func::FuncOp> functions(ranks.getOps<func::FuncOp>());
    auto programs = getRanks(functions, mesh);
    if (failed(programs))
      return prove ? Verdict::Unproven : Verdict::Different;
    EquivalenceOptions options;
    options.prove = prove;
    options.maxOperations = prove ? 0 : options.maxOperations;
    auto result = checkEquivalence(*model.getOps<func::FuncOp>().begin(),
                                   *programs, mesh, options);
    if (reason)
      *reason = result.mismatch ? result.mismatch->reason : result.reason;
    return result.verdict;
  }
};

TEST_F(FaultsTest, AreCaught) {
  int64_t numFaults = 0, numHarmless = 0, numNotProven = 0;
  std::map<Form, int64_t> numModels;
  llvm::MapVector<StringRef, int64_t> byKind;
  std::vector<std::string> kinds;
  llvm::StringMap<int64_t> caught;
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  auto plantAll = [&](const test::Model &each, Form form) {
    SCOPED_TRACE(each.name);
    auto model = parseSourceString<ModuleOp>(each.text, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> ranks = parallelize(*model, form);
    if (form != Form::Plain &&
        countCollectives(*ranks) ==
            countCollectives(*parallelize(*model, Form::Plain)))
      return;
    ++numModels[form];
    std::string reason;
    ASSERT_EQ(check(*ranks, *model, /*prove=*/true, &reason), Verdict::Proven)
        << reason;
    ASSERT_EQ(check(*ranks, *model, /*prove=*/false, &reason),
              Verdict::Executed)
        << reason;

    MeshOp mesh = *ranks->getOps<MeshOp>().begin();
    SmallVector<Operation *> ops;
    ranks->walk([&](Operation *op) { ops.push_back(op); });
    for (auto [index, op] : llvm::enumerate(ops)) {
      if (isa<ModuleOp, MeshOp>(op))
        continue;
      for (const Fault &fault : getFaults(op, mesh)) {
        OwningOpRef<ModuleOp> copy = ranks->clone();
        SmallVector<Operation *> copies;
        copy->walk([&](Operation *op) { copies.push_back(op); });
        fault.plant(copies[index]);
        // What no program can be is caught by the verifier.
        if (failed(verify(*copy)))
          continue;
        Verdict proof = check(*copy, *model, /*prove=*/true);
        Verdict execution = check(*copy, *model, /*prove=*/false);
        std::string text;
        llvm::raw_string_ostream os(text);
        os << fault.kind << " at ";
        op->print(os, OpPrintingFlags().skipRegions());
        if (execution == Verdict::Different) {
          ++numFaults;
          ++caught[fault.kind];
          EXPECT_NE(proof, Verdict::Proven) << text;
        } else {
          EXPECT_TRUE(execution == Verdict::Executed ||
                      proof != Verdict::Proven)
              << "not executed, yet proven: " << text;
          ++numHarmless;
          numNotProven += proof != Verdict::Proven;
        }
      }
    }
  };
  for (const test::Model &each : test::kModels)
    for (Form form :
         {Form::Plain, Form::Joined, Form::InChunks, Form::OnBlocks})
      plantAll(each, form);
  EXPECT_GE(numModels[Form::Joined], 2);
  EXPECT_GE(numModels[Form::InChunks], 1);
  EXPECT_GE(numModels[Form::OnBlocks], 2);
  for (auto &kind : caught)
    llvm::outs() << kind.second << " " << kind.first() << "\n";
  llvm::outs() << numFaults << " faults, all caught; " << numHarmless
               << " changes change nothing, of which " << numNotProven
               << " aren't proven\n";
  EXPECT_GE(numFaults, 200);
  for (StringRef kind :
       {"drop collective", "wrong group", "swapped gather order",
        "bias on every rank", "attribute start", "ranks", "operand",
        "swap operands", "reduction", "comparison", "attribute size",
        "attribute dim"})
    EXPECT_GT(caught.lookup(kind), 0) << kind.str();
}

} // namespace
