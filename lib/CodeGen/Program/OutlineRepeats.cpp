//===- OutlineRepeats.cpp - Functions of ops that a program repeats -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/NNToLinalg/LookupLowering.h"
#include "CodeGen/NNToLinalg/TrainingLowering.h"
#include "Origin.h"
#include "PassBuffers.h"
#include "RepeatedOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "tp/Sharding/Propagation/OpClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <map>

namespace mlir::tp {
#define GEN_PASS_DEF_OUTLINEREPEATS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Consecutive ops that may become one call.
struct Sequence {
  ArrayRef<Operation *> ops;
  /// What is read, in the order of first use, and its number; without
  /// parameters that are updated.
  llvm::MapVector<Value, size_t> inputs;
  /// By the tensors of parameters: the results that are their next values.
  llvm::MapVector<Value, OpResult> updates;
  SmallVector<OpResult> outputs; ///< needed outside
  /// The ids of the collectives, and their numbers.
  llvm::MapVector<int64_t, size_t> collectives;
  SmallVector<Origin> origins;
  /// Equal for sequences that one function may replace.
  std::vector<size_t> signature;
};

/// The number of `key`, which is the next one if it is new.
template <typename Key>
size_t getNumber(llvm::MapVector<Key, size_t> &numbers, Key key) {
  return numbers.try_emplace(key, numbers.size()).first->second;
}

/// Whether sequences clone `op`, which takes no operands, instead of taking its
/// result.
bool isCloned(Operation *op) {
  return op && op->getNumOperands() == 0 &&
         (op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op));
}

/// Whether a function may take `type` as a buffer.
bool isTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() > 0 &&
         !tensor.getEncoding();
}

/// Whether `op` may be part of a sequence.
bool isPlain(Operation *op) {
  if (isa_and_present<bufferization::BufferizationDialect>(op->getDialect()))
    return false;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return captured.empty();
}

/// The discardable attributes that say what `op` computes.
DictionaryAttr getMeaning(Operation *op) {
  DictionaryAttr all = op->getDiscardableAttrDictionary();
  if (!all.contains(kFqnAttr) && !all.contains(kPassAttr))
    return all;
  NamedAttrList attributes(all);
  attributes.erase(kFqnAttr);
  attributes.erase(kPassAttr);
  return attributes.getDictionary(op->getContext());
}

/// The ops of a program that calls may replace.
class Outliner {
public:
  Outliner(func::FuncOp program, Value rank, bool onDevice)
      : program(program), rank(rank), onDevice(onDevice),
        builder(program.getContext()),
        symbols(program->getParentOfType<ModuleOp>()) {}

  /// Returns the number of sequences that became calls.
  unsigned outline(size_t minSaved);

private:
  SmallVector<RepeatedOps> find(size_t minSaved);
  void hoistInputParts();
  void sinkCheapOps();
  void noteVaryingConstants(const RepeatedOps &repeated);
  std::optional<Sequence> describe(size_t begin, size_t period);
  bool describeOperands(Operation *op, size_t begin, Sequence &sequence);
  bool describeResults(Operation *op, size_t begin, Sequence &sequence);
  Operation *getUserOutside(OpOperand &use, const Sequence &sequence,
                            size_t begin);
  func::FuncOp build(const Sequence &sequence);
  void call(func::FuncOp function, const Sequence &sequence);

  func::FuncOp program;
  Value rank;
  bool onDevice;
  OpBuilder builder;
  SymbolTable symbols;
  std::vector<Operation *> ops;
  DenseMap<Operation *, size_t> indices;
  std::vector<unsigned> classes;
  /// The operands that are other constants in other sequences of the same
  /// repetition. Functions take them as buffers.
  DenseSet<OpOperand *> varyingConstants;
  /// What cuts inputs into several parts, such as microbatches. Each sequence
  /// may need another part, so they belong to none.
  DenseSet<Operation *> inputParts;
  OpClasses opClasses;
  DenseMap<std::pair<unsigned, Attribute>, unsigned> classesWithAttributes;

  /// Whether a function has its own clone of what an op reads. On a device, what
  /// the runtime reads is copied there, once for all calls.
  bool isOwnConstant(OpOperand &use) const {
    Operation *producer = use.get().getDefiningOp();
    if (!isCloned(producer) || varyingConstants.contains(&use))
      return false;
    DenseElementsAttr values;
    return !onDevice || !isTensor(use.get().getType()) ||
           !matchPattern(producer, m_Constant(&values)) || values.isSplat() ||
           countContractions(use.getOwner()) == 0;
  }

  unsigned getClass(Operation *op) {
    bool isNew;
    auto key = std::pair(opClasses.get(op, isNew), Attribute(getMeaning(op)));
    return classesWithAttributes.try_emplace(key, classesWithAttributes.size())
        .first->second;
  }
};

} // namespace

/// Adds what `op` reads; false if no function can take it.
bool Outliner::describeOperands(Operation *op, size_t begin,
                                Sequence &sequence) {
  std::vector<size_t> &signature = sequence.signature;
  for (OpOperand &use : op->getOpOperands()) {
    Value operand = use.get();
    Operation *producer = operand.getDefiningOp();
    if (isOwnConstant(use)) {
      llvm::append_values(signature, size_t(0), size_t(getClass(producer)));
      llvm::append_range(sequence.origins, getOrigins(producer));
      continue;
    }
    auto it = indices.find(producer);
    if (it != indices.end() && it->second >= begin &&
        it->second < begin + sequence.ops.size()) {
      llvm::append_values(signature, size_t(1), it->second - begin,
                          size_t(cast<OpResult>(operand).getResultNumber()));
    } else if (operand == rank) {
      signature.push_back(2);
    } else {
      if (!isTensor(operand.getType()) ||
          isa_and_present<tprt::CollectiveStartOp>(producer))
        return false;
      llvm::append_values(
          signature, size_t(3), getNumber(sequence.inputs, operand),
          size_t(nnlinalg::getInputName(operand).getAsOpaquePointer()));
    }
  }
  return true;
}

/// The op of the block that a use belongs to; null if it is one of `sequence`.
Operation *Outliner::getUserOutside(OpOperand &use, const Sequence &sequence,
                                    size_t begin) {
  Operation *user =
      program.getBody().front().findAncestorOpInBlock(*use.getOwner());
  auto it = indices.find(user);
  bool isInside = it != indices.end() && it->second >= begin &&
                  it->second < begin + sequence.ops.size();
  return isInside ? nullptr : user;
}

/// Adds what of `op`'s results is needed outside; false if no function can give
/// it.
bool Outliner::describeResults(Operation *op, size_t begin,
                               Sequence &sequence) {
  std::vector<size_t> &signature = sequence.signature;
  for (OpResult result : op->getResults()) {
    SmallVector<Operation *> users;
    for (OpOperand &use : result.getUses())
      if (Operation *user = getUserOutside(use, sequence, begin))
        users.push_back(user);
    if (users.empty())
      continue;
    if (!isTensor(result.getType()) || isa<tprt::CollectiveStartOp>(op))
      return false;
    auto write =
        dyn_cast<bufferization::MaterializeInDestinationOp>(users.front());
    if (users.size() > 1 || !write ||
        !write.getDest().getDefiningOp<bufferization::ToTensorOp>()) {
      llvm::append_values(signature, size_t(4),
                          size_t(result.getResultNumber()));
      sequence.outputs.push_back(result);
      continue;
    }
    Value parameter = write.getDest();
    if (!sequence.updates.try_emplace(parameter, result).second)
      return false;
    llvm::append_values(signature, size_t(5), size_t(result.getResultNumber()),
                        getNumber(sequence.inputs, parameter));
  }
  return true;
}

/// None if the ops can't become a call.
std::optional<Sequence> Outliner::describe(size_t begin, size_t period) {
  Sequence sequence;
  sequence.ops = ArrayRef(ops).slice(begin, period);
  for (auto [offset, op] : llvm::enumerate(sequence.ops)) {
    sequence.signature.push_back(classes[begin + offset]);
    if (!isPlain(op) || !describeOperands(op, begin, sequence) ||
        !describeResults(op, begin, sequence))
      return std::nullopt;
    if (auto collective = dyn_cast<tprt::CollectiveCallOpInterface>(op))
      sequence.signature.push_back(
          getNumber(sequence.collectives, collective.getId()));
    llvm::append_range(sequence.origins, getOrigins(op));
    sequence.signature.push_back(sequence.origins.size());
  }
  // Each origin once, where it occurs first.
  llvm::SmallDenseSet<int64_t> known;
  llvm::erase_if(sequence.origins, [&](const Origin &origin) {
    return !known.insert(origin.position).second;
  });
  sequence.signature.push_back(sequence.origins.size());
  sequence.inputs.remove_if([&](const auto &input) {
    return sequence.updates.contains(input.first);
  });
  return sequence;
}

/// The function for `sequence` and those that are like it.
func::FuncOp Outliner::build(const Sequence &sequence) {
  Location loc = sequence.ops.front()->getLoc();
  auto function = func::FuncOp::create(
      loc, "layer", builder.getFunctionType(TypeRange(), {}));
  function.setPrivate();
  function->setAttr(tprt::kRepeatedAttr, builder.getUnitAttr());
  Block *body = function.addEntryBlock();
  SmallVector<DictionaryAttr> attributes{
      builder.getDictionaryAttr(builder.getNamedAttr(
          kRoleAttr, builder.getStringAttr(stringifyRole(Role::Rank))))};
  IRMapping mapping;
  mapping.map(rank, body->addArgument(rank.getType(), loc));
  auto addBuffer = [&](Value tensor, StringAttr name = {}) {
    NamedAttrList named;
    if (name)
      named.set(kNameAttr, name);
    attributes.push_back(named.getDictionary(builder.getContext()));
    auto type = cast<RankedTensorType>(tensor.getType());
    return body->addArgument(
        MemRefType::get(type.getShape(), type.getElementType()), loc);
  };
  builder.setInsertionPointToEnd(body);
  auto read = [&](Value tensor, bool writable) {
    // Errors about indices name the input.
    Value buffer = addBuffer(tensor, nnlinalg::getInputName(tensor));
    mapping.map(tensor, bufferization::ToTensorOp::create(
                            builder, loc, tensor.getType(), buffer,
                            /*restrict=*/true, writable));
    return buffer;
  };
  for (Value input : llvm::make_first_range(sequence.inputs))
    read(input, /*writable=*/false);
  SmallVector<Value> updated;
  for (Value parameter : llvm::make_first_range(sequence.updates))
    updated.push_back(read(parameter, /*writable=*/true));

  IRMapping constants;
  for (Operation *op : sequence.ops) {
    for (OpOperand &use : op->getOpOperands())
      if (isOwnConstant(use) && !constants.contains(use.get()))
        builder.clone(*use.get().getDefiningOp(), constants);
    Operation *clone = builder.clone(*op, mapping);
    for (OpOperand &use : op->getOpOperands())
      if (isOwnConstant(use))
        clone->setOperand(use.getOperandNumber(), constants.lookup(use.get()));
    if (auto collective = dyn_cast<tprt::CollectiveCallOpInterface>(op))
      cast<tprt::CollectiveCallOpInterface>(clone).setId(
          sequence.collectives.lookup(collective.getId()));
  }
  for (OpResult output : sequence.outputs)
    bufferization::MaterializeInDestinationOp::create(
        builder, output.getLoc(), TypeRange(), mapping.lookup(Value(output)),
        addBuffer(output), /*restrict=*/true, /*writable=*/true);
  // Written into the tensor that was read, so that bufferization treats both as
  // one buffer.
  for (auto [update, buffer] : llvm::zip_equal(sequence.updates, updated)) {
    auto [parameter, value] = update;
    Value written = bufferization::MaterializeInDestinationOp::create(
                        builder, value.getLoc(), mapping.lookup(Value(value)),
                        mapping.lookup(parameter))
                        .getResult();
    bufferization::MaterializeInDestinationOp::create(
        builder, value.getLoc(), TypeRange(), written, buffer,
        /*restrict=*/true, /*writable=*/true);
  }
  func::ReturnOp::create(builder, loc);
  function.setType(builder.getFunctionType(body->getArgumentTypes(), {}));
  function.setAllArgAttrs(attributes);

  // In the function, the position of an origin is the one in the calls' lists.
  DenseMap<int64_t, int64_t> positions;
  for (auto [i, origin] : llvm::enumerate(sequence.origins))
    positions[origin.position] = i;
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](DictionaryAttr entry) -> std::optional<Attribute> {
        auto position = entry.getAs<IntegerAttr>("position");
        auto it =
            position ? positions.find(position.getInt()) : positions.end();
        if (it == positions.end())
          return std::nullopt;
        NamedAttrList moved(entry);
        moved.set("position", builder.getI64IntegerAttr(it->second));
        return moved.getDictionary(builder.getContext());
      });
  replacer.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/false,
                                        /*replaceLocs=*/true,
                                        /*replaceTypes=*/false);
  symbols.insert(function);
  return function;
}

/// Replaces `sequence` by a call.
void Outliner::call(func::FuncOp function, const Sequence &sequence) {
  // A constant may stand between the ops.
  SmallVector<Value> inputs(llvm::make_first_range(sequence.inputs));
  for (Value input : inputs)
    if (Operation *producer = input.getDefiningOp(); isCloned(producer))
      producer->moveBefore(&program.getBody().front().front());
  builder.setInsertionPoint(sequence.ops.front());
  SmallVector<Value> updated, results, inits;
  for (auto [parameter, value] : sequence.updates) {
    updated.push_back(parameter);
    results.push_back(value);
  }
  for (OpResult output : sequence.outputs) {
    auto type = cast<RankedTensorType>(output.getType());
    inits.push_back(tensor::EmptyOp::create(
        builder, output.getLoc(), type.getShape(), type.getElementType()));
    results.push_back(output);
  }
  SmallVector<StringRef> origins = llvm::map_to_vector(
      sequence.origins, [](const Origin &origin) { return origin.fqn; });
  auto call = tprt::CallOp::create(
      builder, sequence.ops.front()->getLoc(), TypeRange(ValueRange(results)),
      function.getName(), rank, inputs, updated, inits,
      builder.getStrArrayAttr(origins),
      SmallVector<int64_t>(llvm::make_first_range(sequence.collectives)),
      DenseI64ArrayAttr(), DenseI64ArrayAttr());
  for (auto [result, value] : llvm::zip_equal(results, call.getResults()))
    result.replaceAllUsesWith(value);
  for (Operation *op : llvm::reverse(sequence.ops))
    op->erase();
}

/// Lists the program's ops, and finds the sequences that repeat.
SmallVector<RepeatedOps> Outliner::find(size_t minSaved) {
  ops.clear();
  indices.clear();
  classes.clear();
  opClasses = {};
  classesWithAttributes.clear();
  for (Operation &op : program.getBody().front().without_terminator()) {
    if (isCloned(&op) || inputParts.contains(&op))
      continue;
    indices[&op] = ops.size();
    ops.push_back(&op);
  }
  // What the collectives' numbers are doesn't matter to the classes.
  SmallVector<std::pair<tprt::CollectiveCallOpInterface, int64_t>> ids;
  for (Operation *op : ops)
    if (auto collective = dyn_cast<tprt::CollectiveCallOpInterface>(op)) {
      ids.push_back({collective, collective.getId()});
      collective.setId(0);
    }
  for (Operation *op : ops)
    classes.push_back(getClass(op));
  SmallVector<RepeatedOps> found = findRepeatedOps(ops, classes, minSaved);
  for (auto [collective, id] : ids)
    collective.setId(id);
  return found;
}

/// Whether `op` only says in which order attention writes its result.
static bool isWrittenTransposed(Operation *op) {
  return isa<TransposeOpInterface>(op) &&
         countContractions(op->getOperand(0).getDefiningOp()) > 1;
}

static bool isMovement(Operation *op) {
  return op->getNumOperands() == 1 && op->getNumRegions() == 0 &&
         isa<ReshapeOpInterface, TransposeOpInterface, SliceOpInterface>(op) &&
         !isWrittenTransposed(op);
}

/// Integers, other than booleans, of which masks consist.
static bool isIntegers(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrIndex() && !element.isInteger(1) &&
         (!isa<ShapedType>(type) || isTensor(type));
}

/// Whether each element of the result needs at most one element of each operand.
static bool isElementwise(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return isa<arith::ArithDialect>(op->getDialect()) ||
           isa<tensor::ExtractOp, tensor::FromElementsOp>(op);
  ShardingRule rule = ruled.getShardingRule();
  llvm::SmallDenseSet<unsigned> factors;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (auto [dim, size] : llvm::zip_equal(rule.results[0], type.getShape())) {
    if (dim.size() != 1 && size != 1)
      return false;
    factors.insert_range(dim);
  }
  return llvm::all_of(rule.operands, [&](const TensorFactors &operand) {
    return llvm::all_of(operand, [&](const DimFactors &dim) {
      return llvm::all_of(
          dim, [&](unsigned factor) { return factors.contains(factor); });
    });
  });
}

/// The ops that compute `op`'s result from none of the program's inputs, if they
/// are elementwise arithmetic on integers, each counted once for each path to
/// it; 0 if they aren't, or if they are too many to be computed for each op that
/// reads the result.
static unsigned countGenerating(Operation *op, Value rank,
                                const DenseMap<Operation *, unsigned> &known) {
  constexpr unsigned most = 16;
  if (isCloned(op) || !isPure(op) || op->getNumRegions() != 0 ||
      op->getNumResults() != 1 || !isIntegers(op->getResult(0).getType()) ||
      !isElementwise(op))
    return 0;
  unsigned count = 1;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (operand == rank || isCloned(producer))
      continue;
    unsigned before = known.lookup(producer);
    if (!before)
      return 0;
    count += before;
  }
  return count <= most ? count : 0;
}

/// Moves them to the program's beginning, behind the reads of its arguments.
void Outliner::hoistInputParts() {
  Block &body = program.getBody().front();
  DenseMap<Value, Value> inputs; // by their parts, and by themselves
  DenseMap<Value, unsigned> numSlices;
  Block::iterator end = body.begin();
  for (; auto read = dyn_cast<bufferization::ToTensorOp>(*end); ++end) {
    auto argument = dyn_cast<BlockArgument>(read.getBuffer());
    if (argument && getRole(program, argument.getArgNumber()) == Role::Input)
      inputs[read] = read;
  }
  SmallVector<Operation *> parts;
  for (Operation &op : llvm::make_range(end, body.end())) {
    if (op.getNumOperands() != 1 || !inputs.contains(op.getOperand(0)) ||
        !isMovement(&op))
      continue;
    Value input = inputs.lookup(op.getOperand(0));
    inputs[op.getResult(0)] = input;
    numSlices[input] += isa<SliceOpInterface>(op);
    parts.push_back(&op);
  }
  for (Operation *part : parts)
    if (numSlices.lookup(inputs.lookup(part->getResult(0))) > 1) {
      if (part == &*end) // it is where it belongs
        ++end;
      else
        part->moveBefore(&body, end);
      inputParts.insert(part);
    }
}

/// Clones for each op that reads them: reshapes, transposes and slices, since
/// calls read in another order; and integers that a few ops compute from no
/// input, such as the indices of elements, which take less time to compute than
/// to read. So no function has to store them.
void Outliner::sinkCheapOps() {
  Block &body = program.getBody().front();
  DenseMap<Operation *, unsigned> generating;
  for (Operation &op : body)
    if (unsigned count = countGenerating(&op, rank, generating))
      generating[&op] = count;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (inputParts.contains(&op) ||
        (!isMovement(&op) && !generating.contains(&op)))
      continue;
    llvm::SmallSetVector<Operation *, 4> users;
    for (Operation *user : op.getUsers())
      users.insert(body.findAncestorOpInBlock(*user));
    for (Operation *user : users) {
      builder.setInsertionPoint(user);
      Value clone = builder.clone(op)->getResult(0);
      op.getResult(0).replaceUsesWithIf(clone, [&](OpOperand &use) {
        return user->isAncestor(use.getOwner());
      });
    }
    op.erase();
  }
}

void Outliner::noteVaryingConstants(const RepeatedOps &repeated) {
  ArrayRef<Operation *> all(ops);
  for (size_t offset = 0; offset < repeated.period; ++offset) {
    size_t first = repeated.begin + offset;
    for (unsigned i = 0; i < all[first]->getNumOperands(); ++i) {
      Operation *producer = all[first]->getOperand(i).getDefiningOp();
      if (!isCloned(producer) ||
          !nnlinalg::isCheapAtRunTime(all[first]->getOpOperand(i)))
        continue;
      SmallVector<OpOperand *> uses;
      bool varies = false;
      for (size_t repeat = 0; repeat < repeated.count; ++repeat) {
        Operation *op = all[first + repeat * repeated.period];
        Operation *other = op->getOperand(i).getDefiningOp();
        varies |= !isCloned(other) || getClass(other) != getClass(producer);
        uses.push_back(&op->getOpOperand(i));
      }
      if (varies)
        varyingConstants.insert_range(uses);
    }
  }
}

unsigned Outliner::outline(size_t minSaved) {
  hoistInputParts();
  if (find(minSaved).empty())
    return 0;
  sinkCheapOps();
  // Those of one function, in the order of the program. The layers of a
  // microbatch, for example, are like those of the others.
  std::vector<std::vector<Sequence>> functions;
  std::map<std::vector<size_t>, size_t> numbers; // by signature
  for (const RepeatedOps &repeated : find(minSaved)) {
    noteVaryingConstants(repeated);
    for (size_t i = 0; i < repeated.count; ++i) {
      auto sequence =
          describe(repeated.begin + i * repeated.period, repeated.period);
      if (!sequence)
        continue;
      auto [it, isNew] =
          numbers.try_emplace(sequence->signature, functions.size());
      if (isNew)
        functions.emplace_back();
      functions[it->second].push_back(std::move(*sequence));
    }
  }
  std::vector<std::pair<func::FuncOp, Sequence>> calls;
  for (std::vector<Sequence> &sequences : functions) {
    if ((sequences.size() - 1) * sequences.front().ops.size() < minSaved)
      continue;
    func::FuncOp function = build(sequences.front());
    for (Sequence &sequence : sequences)
      calls.push_back({function, std::move(sequence)});
  }
  // Go backwards: a sequence reads results of ops before it.
  llvm::sort(calls, [&](const auto &x, const auto &y) {
    return indices[x.second.ops.front()] > indices[y.second.ops.front()];
  });
  for (auto &[function, sequence] : calls)
    call(function, sequence);
  return calls.size();
}

namespace {

class OutlineRepeats : public tp::impl::OutlineRepeatsBase<OutlineRepeats> {
public:
  using OutlineRepeatsBase::OutlineRepeatsBase;

private:
  void runOnOperation() override {
    for (func::FuncOp program : getEntryPrograms(getOperation())) {
      SmallVector<BlockArgument> ranks = getArguments(program, Role::Rank);
      if (ranks.size() != 1) {
        program.emitError("has no rank argument: run tp-create-entry-point "
                          "first");
        return signalPassFailure();
      }
      numOutlined +=
          Outliner(program, ranks.front(), onDevice).outline(minSaved);
      passBuffersToCalls(program);
    }
  }
};

} // namespace
