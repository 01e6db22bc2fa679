//===- RulesTest.cpp - Every rule, by enumeration -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Over one mesh dimension, each operand of an op is whole, split along one of
// its dimensions or Partial, and so is the result. For small instances of every
// op of nn, and of some upstream ones, all such placements are tried:
//
// - sound: where the rule of an op allows a placement, what its partition hook
//   builds computes, executed, the blocks of what the op computes;
// - complete: where the op on local blocks, unchanged, computes these, its rule
//   allows it. What rules leave out on purpose is listed here, with the reason.
//
//===----------------------------------------------------------------------===//

#include "BlockAlgebra.h"
#include "ProofTest.h"
#include "RuleInstances.h"
#include "SplitSearch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Proof/Equivalence.h"
#include "tp/Sharding/SplitInference.h"
#include "tp/Transforms/Sums.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

namespace {

class RulesTest : public ProofTest {
protected:
  /// The mesh, and the function of one op.
  OwningOpRef<ModuleOp> parse(const Instance &instance, int64_t ranks) {
    StringRef types = StringRef(instance.signature).split("-> ").second;
    types.consume_front("(");
    types.consume_back(")");
    std::string text = "tp.mesh @mesh(t = " + std::to_string(ranks) +
                       ")\nfunc.func @f" + instance.signature +
                       " {\n  %r:" + std::to_string(instance.numResults) +
                       " = " + instance.op + "\n  return ";
    for (unsigned i = 0; i < instance.numResults; ++i)
      text += (i ? ", %r#" : "%r#") + std::to_string(i);
    text += " : " + types.str() + "\n}\n";
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module;
  }

  ShardingAttr getWhole(RankedTensorType type) {
    return ShardingAttr::getReplicated(FlatSymbolRefAttr::get(&context, "mesh"),
                                       type.getRank());
  }
  /// Whole, split along each dimension, Partial(sum) of numbers.
  SmallVector<ShardingAttr> getPlacements(RankedTensorType type) {
    AxisRefAttr axis = AxisRefAttr::get(&context, "t");
    SmallVector<ShardingAttr> placements = {getWhole(type)};
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      placements.push_back(getWhole(type).withShard(axis, dim));
    if (!type.getElementType().isInteger(1))
      placements.push_back(
          getWhole(type).withPartial(axis, ReductionKind::Sum));
    return placements;
  }

  /// All choices of one placement per operand.
  void forEachPlacement(Operation *op,
                        function_ref<void(ArrayRef<ShardingAttr>)> visit) {
    SmallVector<SmallVector<ShardingAttr>> choices;
    for (Type type : op->getOperandTypes())
      choices.push_back(getPlacements(cast<RankedTensorType>(type)));
    SmallVector<ShardingAttr> chosen(choices.size());
    auto choose = [&](auto &&choose, size_t index) -> void {
      if (index == choices.size())
        return visit(chosen);
      for (ShardingAttr placement : choices[index]) {
        chosen[index] = placement;
        choose(choose, index + 1);
      }
    };
    choose(choose, 0);
  }

  static void
  setPlacement(ShardingAttr sharding, Type global,
               function_ref<void(StringRef, Attribute)> setAttribute) {
    setAttribute(kShardingAttr, sharding);
    setAttribute(kGlobalTypeAttr, TypeAttr::get(global));
  }

  /// Whether the programs of all ranks that `build` makes, of the local
  /// operands and for the local result type, compute the blocks. Nullopt where
  /// a program isn't valid.
  using Build = function_ref<FailureOr<SmallVector<Value>>(
      OpBuilder &, ValueRange, TypeRange, int64_t rank)>;
  std::optional<bool> isEquivalent(Operation *op, MeshOp mesh,
                                   ArrayRef<ShardingAttr> operands,
                                   ArrayRef<ShardingAttr> results,
                                   Build build) {
    auto reference = op->getParentOfType<func::FuncOp>();
    OwningOpRef<ModuleOp> module = ModuleOp::create(mesh.getLoc());
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    b.clone(*mesh);
    SmallVector<Program> programs;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      SmallVector<Type> types;
      for (auto [type, sharding] :
           llvm::zip_equal(op->getOperandTypes(), operands))
        types.push_back(
            getLocalType(cast<RankedTensorType>(type), sharding, mesh, rank));
      SmallVector<Type> local;
      for (auto [type, sharding] :
           llvm::zip_equal(op->getResultTypes(), results))
        local.push_back(
            getLocalType(cast<RankedTensorType>(type), sharding, mesh, rank));
      auto function =
          func::FuncOp::create(b, op->getLoc(), "f" + std::to_string(rank),
                               FunctionType::get(&context, types, local));
      function->setAttr(kRanksAttr, DenseI64ArrayAttr::get(&context, rank));
      for (auto [index, sharding] : llvm::enumerate(operands))
        setPlacement(sharding, op->getOperand(index).getType(),
                     [&](StringRef name, Attribute value) {
                       function.setArgAttr(index, name, value);
                     });
      for (auto [index, sharding] : llvm::enumerate(results))
        setPlacement(sharding, op->getResult(index).getType(),
                     [&](StringRef name, Attribute value) {
                       function.setResultAttr(index, name, value);
                     });
      OpBuilder body = OpBuilder::atBlockEnd(function.addEntryBlock());
      auto values = build(body, function.getArguments(), local, rank);
      if (failed(values))
        return std::nullopt;
      func::ReturnOp::create(body, op->getLoc(), *values);
      programs.push_back({function, {rank}});
    }
    if (failed(verify(*module)))
      return std::nullopt;
    EquivalenceOptions options;
    options.prove = false;
    return checkEquivalence(reference, programs, mesh, options).verdict ==
           Verdict::Tested;
  }

  /// Whether the op's partition hook builds programs for `split` that compute
  /// the blocks.
  bool isSound(ShardingRuleOpInterface op, const OpSplit &split,
               ArrayRef<ShardingAttr> operands,
               ArrayRef<ShardingAttr> results) {
    return isEquivalent(op, split.mesh, operands, results,
                        [&](OpBuilder &b, ValueRange values, TypeRange types,
                            int64_t rank) {
                          OpSplit own = split;
                          own.rank = rank;
                          return op.partition(b, values, types, own);
                        })
        .value_or(false);
  }

  std::string print(Operation *op, ArrayRef<ShardingAttr> operands,
                    ArrayRef<ShardingAttr> results, MeshOp mesh) {
    std::string text = op->getName().getStringRef().str() + ":";
    for (ShardingAttr sharding : operands)
      text += " " + printPlacements(sharding, mesh);
    text += " ->";
    for (ShardingAttr sharding : results)
      text += " " + printPlacements(sharding, mesh);
    return text;
  }
};

TEST_F(RulesTest, CoverAllOps) {
  llvm::StringSet<> covered;
  for (StringRef name : kWithoutInstance)
    covered.insert(name);
  for (const Instance &instance : kInstances)
    covered.insert(StringRef(instance.op).split(' ').first);
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<ShardingRuleOpInterface>() &&
        isa<nn::NNDialect>(name.getDialect()))
      EXPECT_TRUE(covered.contains(name.getStringRef()))
          << name.getStringRef().str() << " has a rule and no instance";
}

/// Two ranks; three, over which the sizes are uneven and blocks empty; and one,
/// for which a hook builds what the op consists of.
TEST_F(RulesTest, AreSound) {
  int64_t numSplits = 0;
  for (const Instance &instance : kInstances)
    for (int64_t ranks : {1, 2, 3}) {
      OwningOpRef<ModuleOp> module = parse(instance, ranks);
      MeshOp mesh = *module->getOps<MeshOp>().begin();
      auto function = *module->getOps<func::FuncOp>().begin();
      Operation *op = &function.getBody().front().front();
      auto ruleOp = cast<ShardingRuleOpInterface>(op);
      BlockAlgebra algebra(mesh);
      forEachPlacement(op, [&](ArrayRef<ShardingAttr> operands) {
        std::string reason;
        for (const OpSplit &split :
             findSplits(ruleOp, mesh, algebra, operands,
                        {AxisRefAttr::get(&context, "t"), {}}, reason)) {
          SmallVector<ShardingAttr> results;
          for (unsigned i = 0; i < instance.numResults; ++i)
            results.push_back(
                getResultSharding(ruleOp.getShardingRule(), split, i));
          if (llvm::is_contained(results, nullptr))
            continue; // no placement describes the blocks
          ++numSplits;
          EXPECT_TRUE(isSound(ruleOp, split, operands, results))
              << print(op, operands, results, mesh) << " over " << ranks
              << " ranks, of\n"
              << instance.op;
        }
      });
    }
  llvm::outs() << numSplits << " splits are sound\n";
  EXPECT_GT(numSplits, 500);
}

/// A factor whose segments are split, each on its own, over two ranks, where
/// canSplit() allows it.
TEST_F(RulesTest, SegmentsAreSound) {
  int64_t numSplits = 0;
  AxisRefAttr axis = AxisRefAttr::get(&context, "t");
  for (const Instance &instance : kInstances) {
    OwningOpRef<ModuleOp> module = parse(instance, 2);
    MeshOp mesh = *module->getOps<MeshOp>().begin();
    auto function = *module->getOps<func::FuncOp>().begin();
    Operation *op = &function.getBody().front().front();
    auto ruleOp = cast<ShardingRuleOpInterface>(op);
    ShardingRule rule = ruleOp.getShardingRule();
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      if (factor.size < 4 || factor.size % 2)
        continue;
      OpSplit split = getReplicatedSplit(rule, mesh);
      split.factorSegments[index] = {2, factor.size - 2};
      if (!canSplit(rule, split, index, axis))
        continue;
      split.factorAxes[index].push_back(axis);
      SmallVector<ShardingAttr> operands, results;
      for (unsigned i = 0; i < op->getNumOperands(); ++i)
        operands.push_back(getOperandSharding(rule, split, i));
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        results.push_back(getResultSharding(rule, split, i));
      if (llvm::is_contained(operands, nullptr) ||
          llvm::is_contained(results, nullptr))
        continue; // no placement describes the blocks
      ++numSplits;
      EXPECT_TRUE(isSound(ruleOp, split, operands, results))
          << print(op, operands, results, mesh) << ", of\n"
          << instance.op;
    }
  }
  llvm::outs() << numSplits << " splits of segments are sound\n";
  EXPECT_GT(numSplits, 100);
}

/// An op whose operands count once each is its first operand where the other
/// one is zero, and the other one too if it is commutative; and what is taken
/// apart is put together by the addition that belongs to it. Regrouped sums
/// rely on both.
TEST_F(RulesTest, SumsKeepWhatZeroIsAddedTo) {
  int64_t numSums = 0;
  for (const Instance &instance : kInstances) {
    OwningOpRef<ModuleOp> module = parse(instance, 1);
    MeshOp mesh = *module->getOps<MeshOp>().begin();
    auto function = *module->getOps<func::FuncOp>().begin();
    Operation *op = &function.getBody().front().front();
    auto ruleOp = cast<ShardingRuleOpInterface>(op);
    if (ruleOp.getShardingRule().numOnce == 0 || op->getNumRegions())
      continue;
    ASSERT_EQ(op->getNumOperands(), 2u) << instance.op;
    SmallVector<ShardingAttr> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getWhole(cast<RankedTensorType>(operand.getType())));
    ShardingAttr result =
        getWhole(cast<RankedTensorType>(op->getResult(0).getType()));
    unsigned numKept = op->hasTrait<OpTrait::IsCommutative>() ? 2 : 1;
    for (unsigned kept = 0; kept < numKept; ++kept) {
      ++numSums;
      // op(a, b) is a + op(0, b).
      auto equal = isEquivalent(
          op, mesh, operands, result,
          [&](OpBuilder &b, ValueRange values, TypeRange types,
              int64_t) -> FailureOr<SmallVector<Value>> {
            SmallVector<Value> others(values);
            others[kept] = nn::ConstantOp::create(
                b, op->getLoc(),
                cast<ElementsAttr>(b.getZeroAttr(values[kept].getType())));
            auto rest = clonePartitioned(op, b, others, types);
            if (failed(rest))
              return failure();
            return SmallVector<Value>{nn::AddOp::create(
                b, op->getLoc(), types[0], values[kept], rest->front())};
          });
      EXPECT_TRUE(equal && *equal) << instance.op;
    }
    // op(a, b) is a, and op(0, b) beside it.
    auto equal = isEquivalent(
        op, mesh, operands, result,
        [&](OpBuilder &b, ValueRange values, TypeRange types,
            int64_t) -> FailureOr<SmallVector<Value>> {
          const TensorBuilder &tensors = TensorBuilder::get(op);
          Value part = buildSum(b, tensors, op, {}, values[1],
                                cast<RankedTensorType>(values[1].getType()));
          return SmallVector<Value>{buildTotal(
              b, tensors, op, values[0], buildAddend(b, tensors, op, part),
              cast<RankedTensorType>(types[0]))};
        });
    EXPECT_TRUE(equal && *equal) << instance.op;
  }
  EXPECT_GE(numSums, 9);
}

/// Placements that would be right and that rules leave out.
struct Omission {
  StringRef placements, reason;
};
constexpr Omission kOmissions[] = {
    {"nn.cast: (Partial(sum)) -> (Partial(sum))",
     "from integers; a float rounds the whole sum otherwise than its parts"},
    {"nn.attention: (Replicate) (Replicate) (Shard(3)) -> (Shard(3))",
     "the scores of all of a head would be computed on each rank"},
    {"nn.attention: (Replicate) (Replicate) (Shard(2)) (Replicate) -> "
     "(Shard(2))",
     "as before"},
    {"nn.attention: (Replicate) (Replicate) (Shard(2)) -> (Shard(2))",
     "as before"},
    {"nn.attention: (Replicate) (Replicate) (Partial(sum)) -> (Partial(sum))",
     "as before, and the result is no smaller than the value"},
    {"nn.attention: (Replicate) (Replicate) (Partial(sum)) (Replicate) -> "
     "(Partial(sum))",
     "as before"},
    {"nn.attention: (Shard(2)) (Replicate) (Replicate) -> (Shard(2))",
     "rows of the query, which a causal mask counts from the first"},
    {"nn.attention: (Shard(1)) (Replicate) (Replicate) (Shard(0)) -> "
     "(Shard(1))",
     "as before"},
    {"nn.embedding: (Replicate) (Partial(sum)) -> (Partial(sum))",
     "tables are parameters, which are never Partial"},
    {"nn.layer_norm: (Replicate) (Partial(sum)) (Partial(sum)) -> "
     "(Partial(sum))",
     "weights are parameters, which are never Partial"},
    {"nn.rms_norm: (Replicate) (Partial(sum)) -> (Partial(sum))",
     "weights are parameters, which are never Partial"},
    {"nn.slice: (Shard(1)) -> (Shard(1))",
     "of every second element; right only where blocks begin at a multiple of "
     "the step"},
    {"nn.slice_scatter: (Shard(1)) (Shard(1)) -> (Shard(1))", "as before"},
    {"nn.scatter: (Partial(sum)) (Shard(0)) (Shard(0)) -> (Partial(sum))",
     "what is added to is zero as a rule, the same on all ranks"},
    {"nn.scatter: (Partial(sum)) (Shard(0)) (Shard(1)) -> (Partial(sum))",
     "as before"},
    {"nn.scatter: (Replicate) (Shard(0)) (Shard(0)) -> (Partial(max))",
     "maxima aren't worth a second form of the rule"},
    {"nn.cross_entropy: (Replicate) (Replicate) (Partial(sum)) -> "
     "(Partial(sum))",
     "weights of classes are never Partial"},
    {"nn.nll_loss: (Partial(sum)) (Replicate) -> (Partial(sum))",
     "what it takes is a logarithm's result, which is never Partial"},
    {"linalg.matmul: (Shard(1)) (Shard(0)) (Partial(sum)) -> (Partial(sum))",
     "what is added to is a fill as a rule, the same on all ranks"},
    {"linalg.batch_matmul: (Shard(2)) (Shard(1)) (Partial(sum)) -> "
     "(Partial(sum))",
     "as before"},
    {"linalg.transpose: (Replicate) (Partial(sum)) -> (Replicate)",
     "outputs that aren't read are tensor.empty"},
    {"linalg.transpose: (Partial(sum)) (Partial(sum)) -> (Partial(sum))",
     "as before"},
};

TEST_F(RulesTest, AreComplete) {
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  llvm::StringSet<> used;
  for (const Instance &instance : kInstances) {
    if (instance.numResults > 1)
      continue; // one placement doesn't say what the other results are
    OwningOpRef<ModuleOp> module = parse(instance, 2);
    MeshOp mesh = *module->getOps<MeshOp>().begin();
    auto function = *module->getOps<func::FuncOp>().begin();
    Operation *op = &function.getBody().front().front();
    auto ruleOp = cast<ShardingRuleOpInterface>(op);
    auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
    BlockAlgebra algebra(mesh);
    AxisRefAttr axis = AxisRefAttr::get(&context, "t");
    forEachPlacement(op, [&](ArrayRef<ShardingAttr> operands) {
      std::string reason;
      SmallVector<ShardingAttr> allowed;
      for (const OpSplit &split :
           findSplits(ruleOp, mesh, algebra, operands, {axis, {}}, reason))
        if (ShardingAttr result =
                getResultSharding(ruleOp.getShardingRule(), split, 0))
          allowed.push_back(result);
      bool isWhole = false;
      auto check = [&](ShardingAttr result) {
        if (llvm::any_of(allowed, [&](ShardingAttr other) {
              return algebra.isSame(resultType, result, other);
            }))
          return true;
        auto equal = isEquivalent(
            op, mesh, operands, result,
            [&](OpBuilder &b, ValueRange values, TypeRange types, int64_t) {
              return clonePartitioned(op, b, values, types);
            });
        if (!equal || !*equal)
          return false;
        std::string text = print(op, operands, result, mesh);
        used.insert(text);
        EXPECT_TRUE(llvm::any_of(kOmissions,
                                 [&](const Omission &omission) {
                                   return omission.placements == text;
                                 }))
            << "missing " << text << ", of\n"
            << instance.op;
        return true;
      };
      for (ShardingAttr result : getPlacements(resultType))
        isWhole |= check(result) && result == getWhole(resultType);
      // A whole value is its own maximum.
      if (isWhole || resultType.getElementType().isInteger(1))
        return;
      for (ReductionKind kind :
           {ReductionKind::Max, ReductionKind::Min, ReductionKind::Product})
        check(getWhole(resultType).withPartial(axis, kind));
    });
  }
  for (const Omission &omission : kOmissions)
    EXPECT_TRUE(used.contains(omission.placements))
        << "no instance shows that " << omission.placements.str()
        << " is left out";
}

} // namespace
