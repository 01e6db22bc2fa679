//===- ManifestCollectives.cpp - Collectives in the manifest --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rank's program has each collective once, with the rank's own shapes.
// This file compares them: every program, of the same stage of a pipeline, must
// have the same collective, and the blocks must fit together within each group.
//
//===----------------------------------------------------------------------===//

#include "ManifestCollectives.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/SparseRows.h"
#include "tp/Sharding/RankClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/ScopedPrinter.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// One collective as each rank's program has it.
struct Collective {
  /// By program; null in those of other stages of a pipeline.
  SmallVector<CollectiveOpInterface> byProgram;
  /// By rank: the index of its program.
  ArrayRef<unsigned> programOf;

  CollectiveOpInterface getOp(int64_t rank) const {
    return byProgram[programOf[rank]];
  }
  /// That of the first rank that takes part.
  CollectiveOpInterface getFirst() const {
    return byProgram[*llvm::find_if(
        programOf, [&](unsigned program) { return !!byProgram[program]; })];
  }
  /// Whether a rank starts it, and waits for it later.
  bool isStarted() {
    return llvm::any_of(byProgram, [](CollectiveOpInterface op) {
      return op && isa<StartOp>(op->getParentOp());
    });
  }
  /// Shapes are empty on ranks that don't take part.
  SmallVector<int64_t> getOperandShape(int64_t rank) {
    CollectiveOpInterface op = getOp(rank);
    return op ? getShape(op->getOperand(0)) : getNone();
  }
  SmallVector<int64_t> getResultShape(int64_t rank) {
    CollectiveOpInterface op = getOp(rank);
    return op ? getShape(op->getResult(0)) : getNone();
  }
  /// The groups of ranks that take part.
  SmallVector<SmallVector<int64_t>> getGroups(MeshOp mesh) {
    auto groups = mesh.getGroups(getFirst().getAxes().getAxes());
    if (auto transfer = dyn_cast<TransferOp>(getFirst().getOperation()))
      for (SmallVector<int64_t> &group : groups)
        group = {group[transfer.getFrom()], group[transfer.getTo()]};
    llvm::erase_if(groups, [&](ArrayRef<int64_t> group) {
      return llvm::any_of(group, [&](int64_t rank) { return !getOp(rank); });
    });
    return groups;
  }

private:
  static SmallVector<int64_t> getShape(Value value) {
    return llvm::to_vector(cast<RankedTensorType>(value.getType()).getShape());
  }
  SmallVector<int64_t> getNone() {
    return SmallVector<int64_t>(getShape(getFirst()->getResult(0)).size(), 0);
  }
};

/// "[0, 2]"
std::string toText(ArrayRef<int64_t> numbers) {
  return ("[" +
          llvm::join(llvm::map_range(
                         numbers, [](int64_t n) { return std::to_string(n); }),
                     ", ") +
          "]");
}

/// Reports the first difference between the sequences of two programs.
LogicalResult checkSameSequence(RankedProgram &program, RankedProgram &first) {
  constexpr StringLiteral kWhy =
      ": the ranks would wait for each other forever";
  StringRef name = program.function.getName();
  StringRef firstName = first.function.getName();
  for (auto [i, op, other] :
       llvm::zip_first(llvm::seq<size_t>(std::min(program.collectives.size(),
                                                  first.collectives.size())),
                       program.collectives, first.collectives)) {
    std::string text;
    llvm::raw_string_ostream os(text);
    DictionaryAttr found = getMeaning(op), required = getMeaning(other);
    if (op->getName() != other->getName()) {
      os << "collective " << i << " of '@" << name << "' is '" << op->getName()
         << "', that of '@" << firstName << "' is '" << other->getName() << "'";
    } else if (found != required) {
      auto differs = [&](NamedAttribute entry) {
        return found.get(entry.getName()) != required.get(entry.getName());
      };
      auto entry = llvm::find_if(found, differs);
      StringAttr attr = entry != found.end()
                            ? entry->getName()
                            : llvm::find_if(required, differs)->getName();
      auto print = [&](DictionaryAttr attributes, StringRef program) {
        if (Attribute value = attributes.get(attr))
          os << value;
        else
          os << "nothing";
        os << " in '@" << program << "'";
      };
      os << "collective " << i << ", '" << op->getName() << "', has "
         << attr.getValue() << " ";
      print(found, name);
      os << " and ";
      print(required, firstName);
    } else {
      continue;
    }
    InFlightDiagnostic diagnostic = op.emitError() << text << kWhy;
    diagnostic.attachNote(other.getLoc()) << "the other one is here";
    return diagnostic;
  }
  size_t found = program.collectives.size(),
         required = first.collectives.size();
  if (found == required)
    return success();
  InFlightDiagnostic diagnostic = program.function.emitError("'@")
                                  << name << "' has " << found
                                  << " collectives, '@" << firstName << "' has "
                                  << required << kWhy;
  auto surplus = found > required ? program.collectives[required]
                                  : first.collectives[found];
  diagnostic.attachNote(surplus.getLoc())
      << "the first that only one of them has";
  return diagnostic;
}

LogicalResult checkShape(Collective &collective, StringRef what, int64_t rank,
                         ArrayRef<int64_t> group, ArrayRef<int64_t> found,
                         ArrayRef<int64_t> required) {
  if (found == required)
    return success();
  CollectiveOpInterface op = collective.getOp(rank);
  return op.emitError("'") << op->getName() << "' has " << what << " of shape "
                           << toText(found) << " on rank " << rank
                           << ", expected " << toText(required)
                           << " among ranks " << toText(group);
}

/// Checks that the members' operands have one shape, except along the dimension
/// in which they are joined, and their results, except along the one that is
/// cut.
LogicalResult checkGroup(Collective &collective, const Dataflow &flow,
                         ArrayRef<int64_t> group) {
  SmallVector<int64_t> operand(collective.getOperandShape(group.front()));
  for (int64_t rank : group)
    if (collective.getOperandShape(rank).size() != operand.size() ||
        collective.getResultShape(rank).size() != operand.size())
      return collective.getOp(rank).emitError("'")
             << collective.getFirst()->getName() << "' has "
             << collective.getResultShape(rank).size() << " dimensions on rank "
             << rank << ", expected " << operand.size() << " among ranks "
             << toText(group);
  if (flow.getSource(0) && !flow.cut) {
    for (auto [position, rank] : llvm::enumerate(group))
      if (failed(checkShape(
              collective, "a result", rank, group,
              collective.getResultShape(rank),
              collective.getOperandShape(group[*flow.getSource(position)]))))
        return failure();
    return success();
  }

  SmallVector<int64_t> result = operand;
  auto sum = [&](auto getShape, int64_t dim) {
    int64_t size = 0;
    for (int64_t rank : group)
      size += (collective.*getShape)(rank)[dim];
    return size;
  };
  if (flow.joined)
    result[*flow.joined] = sum(&Collective::getOperandShape, *flow.joined);
  for (int64_t rank : group) {
    SmallVector<int64_t> foundOperand = collective.getOperandShape(rank);
    SmallVector<int64_t> foundResult = collective.getResultShape(rank);
    if (flow.joined)
      operand[*flow.joined] = foundOperand[*flow.joined];
    if (flow.cut)
      result[*flow.cut] = foundResult[*flow.cut];
    if (failed(checkShape(collective, "an operand", rank, group, foundOperand,
                          operand)) ||
        failed(checkShape(collective, "a result", rank, group, foundResult,
                          result)))
      return failure();
  }
  if (!flow.cut)
    return success();
  int64_t size = sum(&Collective::getResultShape, *flow.cut);
  if (size == operand[*flow.cut])
    return success();
  return collective.getOp(group.front()).emitError("'")
         << collective.getFirst()->getName() << "' cuts " << operand[*flow.cut]
         << " indices of dimension " << *flow.cut << " into blocks of " << size
         << " in all, among ranks " << toText(group);
}

/// Checks that operand and result have the shapes of the blocks of their
/// shardings.
LogicalResult checkExchange(Collective &collective, MeshOp mesh) {
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    CollectiveOpInterface op = collective.getOp(rank);
    if (!op)
      continue;
    auto exchange = cast<ExchangeOp>(op.getOperation());
    for (auto [value, sharding] : {std::pair<Value, ShardingAttr>(
                                       exchange.getInput(), exchange.getFrom()),
                                   {exchange.getResult(), exchange.getTo()}}) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> required =
          getBlockShape(getBlock(exchange.getShape(), sharding, mesh, rank));
      if (type.getShape() != ArrayRef(required))
        return op.emitError("'tp.exchange' has a block of shape ")
               << toText(type.getShape()) << " on rank " << rank
               << ", expected " << toText(required) << " for " << sharding;
    }
  }
  return success();
}

/// Checks that the boxes of `rank` lie in the operands that they are taken from
/// and fill its result.
LogicalResult checkTransfers(Collective &collective, int64_t rank,
                             ArrayRef<Transfer> transfers) {
  CollectiveOpInterface op = collective.getOp(rank);
  SmallVector<int64_t> result = collective.getResultShape(rank);
  int64_t filled = 0;
  for (const Transfer &transfer : transfers) {
    SmallVector<int64_t> operand = collective.getOperandShape(transfer.source);
    bool fits = operand.size() == result.size();
    for (size_t dim = 0; fits && dim < operand.size(); ++dim)
      fits = transfer.sourceOffset[dim] + transfer.size[dim] <= operand[dim];
    if (!fits)
      return op.emitError("'")
             << op->getName() << "' takes " << toText(transfer.size)
             << " elements from " << toText(transfer.sourceOffset)
             << " on for rank " << rank << ", but rank " << transfer.source
             << " has an operand of shape " << toText(operand);
    filled += llvm::product_of(transfer.size);
  }
  if (filled == llvm::product_of(result))
    return success();
  return op.emitError("'") << op->getName() << "' gives rank " << rank << " "
                           << filled << " elements, and its result of shape "
                           << toText(result) << " has "
                           << llvm::product_of(result);
}

class Describer {
public:
  Describer(MeshOp mesh) : mesh(mesh), b(mesh.getContext()) {}

  /// docs/Artifact.md's COLLECTIVE.
  FailureOr<Attribute> describe(Collective &collective) {
    // Those of equal layers differ only in their origin.
    WordList numbers;
    for (CollectiveOpInterface op : collective.byProgram)
      numbers.push_back(op ? 1 + interner.insert(op).first : 0);
    auto [number, isNew] = lists.insert(numbers);
    if (isNew) {
      FailureOr<NamedAttrList> entries = describeAll(collective);
      if (failed(entries))
        return failure();
      known.push_back(std::move(*entries));
    }
    NamedAttrList entries = known[number];
    CollectiveOpInterface op = collective.getFirst();
    entries.append("fqn", b.getStringAttr(op.getOriginFqn()));
    entries.append("reason", b.getStringAttr(op.getOriginReason()));
    if (collective.isStarted())
      entries.append("started", b.getBoolAttr(true));
    if (op->hasAttr(kSparseRowsAttr))
      entries.append("sparse_rows", b.getBoolAttr(true));
    return Attribute(entries.getDictionary(b.getContext()));
  }

private:
  /// The entries that say what it does.
  FailureOr<NamedAttrList> describeAll(Collective &collective) {
    CollectiveOpInterface op = collective.getFirst();
    std::optional<Dataflow> flow = op.getDataflow();
    SmallVector<Attribute> groups, axes, operandShapes, resultShapes, transfers;
    auto exchange = dyn_cast<ExchangeOp>(op.getOperation());
    if (exchange && failed(checkExchange(collective, mesh)))
      return failure();
    for (ArrayRef<int64_t> group : collective.getGroups(mesh)) {
      if (flow && failed(checkGroup(collective, *flow, group)))
        return failure();
      groups.push_back(b.getDenseI64ArrayAttr(group));
    }
    for (AxisRefAttr axis : op.getAxes()) {
      std::string name;
      llvm::raw_string_ostream os(name);
      axis.printAxis(os);
      axes.push_back(b.getStringAttr(name));
    }
    SmallVector<int64_t> bytes;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      operandShapes.push_back(
          b.getDenseI64ArrayAttr(collective.getOperandShape(rank)));
      resultShapes.push_back(
          b.getDenseI64ArrayAttr(collective.getResultShape(rank)));
      CollectiveOpInterface own = collective.getOp(rank);
      bytes.push_back(own ? own.getReceivedBytes(rank, mesh) : 0);
      if (flow)
        continue;
      SmallVector<Transfer> boxes;
      if (own) {
        boxes = own.getTransfers(rank, mesh);
        if (failed(checkTransfers(collective, rank, boxes)))
          return failure();
      }
      transfers.push_back(describeTransfers(boxes));
    }
    Type element =
        cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    std::string dtype =
        llvm::to_string(element.isIndex() ? b.getI64Type() : element);

    // Fields that the kind doesn't have are there too.
    auto own = [&](StringRef name, Attribute otherwise) -> NamedAttribute {
      Attribute attr = op->getInherentAttr(name).value_or(Attribute());
      return {name, attr ? attr : otherwise};
    };
    Attribute zero = b.getI64IntegerAttr(0);
    ReductionKind reduction =
        flow && flow->reduction ? *flow->reduction : ReductionKind::Sum;
    SmallVector<NamedAttribute> entries = {
        {"kind", b.getStringAttr(op.getCollectiveKind())},
        {"reduction", b.getStringAttr(stringifyReductionKind(reduction))},
        {"dtype", b.getStringAttr(dtype)},
        {"operand_shapes", b.getArrayAttr(operandShapes)},
        {"result_shapes", b.getArrayAttr(resultShapes)},
        own("dim", zero),
        own("split_dim", zero),
        own("concat_dim", zero),
        own("root", zero),
        own("source", b.getDenseI64ArrayAttr({})),
        {"groups", b.getArrayAttr(groups)},
        {"axes", b.getArrayAttr(axes)},
        {"bytes_by_rank", b.getDenseI64ArrayAttr(bytes)}};
    if (!flow)
      entries.push_back({"transfers", b.getArrayAttr(transfers)});
    return NamedAttrList(entries);
  }

  Attribute describeTransfers(ArrayRef<Transfer> boxes) {
    SmallVector<Attribute> transfers;
    for (const Transfer &transfer : boxes)
      transfers.push_back(b.getDictionaryAttr(
          {{"from", b.getI64IntegerAttr(transfer.source)},
           {"src", b.getDenseI64ArrayAttr(transfer.sourceOffset)},
           {"dst", b.getDenseI64ArrayAttr(transfer.offset)},
           {"size", b.getDenseI64ArrayAttr(transfer.size)}}));
    return b.getArrayAttr(transfers);
  }

  MeshOp mesh;
  Builder b;
  CollectiveInterner interner;
  /// Of collectives, by their numbers in all programs.
  ListInterner lists;
  SmallVector<NamedAttrList> known;
};

} // namespace

FailureOr<ArrayAttr>
tp::describeCollectives(MutableArrayRef<RankedProgram> programs, MeshOp mesh) {
  SmallVector<unsigned> programOf(mesh.getNumRanks());
  for (auto [i, program] : llvm::enumerate(programs))
    for (int64_t rank : program.ranks)
      programOf[rank] = i;
  SmallVector<Collective> collectives;
  auto add = [&]() -> int64_t {
    collectives.push_back(
        {SmallVector<CollectiveOpInterface>(programs.size()), programOf});
    return collectives.size() - 1;
  };
  // Programs of one stage have the same collectives. A transfer is the n-th one
  // between two stages in the programs of both; the receiver's counts.
  llvm::MapVector<Attribute, RankedProgram *> firstOfStage;
  std::map<std::tuple<int64_t, int64_t, size_t>, int64_t> transfers;
  auto forEachTransfer = [&](RankedProgram &program, bool isSent, auto visit) {
    std::map<std::pair<int64_t, int64_t>, size_t> counts;
    for (auto [i, op] : llvm::enumerate(program.collectives))
      if (auto transfer = dyn_cast<TransferOp>(op.getOperation())) {
        std::pair<int64_t, int64_t> channel(transfer.getFrom(),
                                            transfer.getTo());
        size_t number = counts[channel]++;
        if (transfer.isSent() == isSent)
          visit(i, std::tuple_cat(channel, std::make_tuple(number)));
      }
  };
  for (RankedProgram &program : programs) {
    RankedProgram *&first = firstOfStage[program.function->getAttr(kStageAttr)];
    if (first) {
      if (failed(checkSameSequence(program, *first)))
        return failure();
      program.ids = first->ids;
      continue;
    }
    first = &program;
    for (CollectiveOpInterface op : program.collectives) {
      auto transfer = dyn_cast<TransferOp>(op.getOperation());
      program.ids.push_back(transfer && transfer.isSent() ? -1 : add());
    }
    forEachTransfer(program, /*isSent=*/false, [&](size_t i, auto key) {
      transfers[key] = program.ids[i];
    });
  }
  for (auto [index, program] : llvm::enumerate(programs)) {
    std::optional<size_t> unmatched;
    forEachTransfer(program, /*isSent=*/true, [&](size_t i, auto key) {
      if (auto found = transfers.find(key); found != transfers.end())
        program.ids[i] = found->second;
      else
        unmatched = i;
    });
    if (unmatched)
      return program.collectives[*unmatched].emitError(
          "sends a value that no stage receives");
    for (auto [id, op] : llvm::zip_equal(program.ids, program.collectives))
      collectives[id].byProgram[index] = op;
  }
  for (Collective &collective : collectives)
    if (isa<TransferOp>(collective.getFirst()) &&
        collective.getGroups(mesh).empty())
      return collective.getFirst().emitError(
          "receives a value that no stage sends");
  SmallVector<Attribute> entries;
  Describer describer(mesh);
  for (Collective &collective : collectives) {
    FailureOr<Attribute> entry = describer.describe(collective);
    if (failed(entry))
      return failure();
    entries.push_back(*entry);
  }
  return ArrayAttr::get(programs.front().function.getContext(), entries);
}
