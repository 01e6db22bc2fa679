//===- CostModel.cpp - Costs of per-rank programs -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Cost/CostModel.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::tp;

//===----------------------------------------------------------------------===//
// Work of an op
//===----------------------------------------------------------------------===//

/// Code generation unrolls at most this many iterations.
static constexpr int64_t kMaxIterations = 4096;

static int64_t getNumBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrIndexOrFloat())
    return 0;
  return getTensorBytes(tensor);
}

static int64_t countElements(TypeRange types) {
  int64_t elements = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      elements += tensor.getNumElements();
  return elements;
}

namespace {

/// How an op uses its factors.
enum class OpClass {
  Relabelling, ///< the operand's elements, in another order or shape
  Lookup,      ///< elements that an index selects
  Contraction, ///< sums of products
  Map,         ///< every element of the result on its own
  Rows,        ///< all others: reductions, softmax, norms
};

using FactorSet = llvm::SmallBitVector;

class RuleWork {
public:
  RuleWork(Operation *op, const ShardingRule &rule) : op(op), rule(rule) {
    for (const TensorFactors &operand : rule.operands)
      operands.push_back(getSet(operand));
    kept = FactorSet(rule.factors.size());
    for (const TensorFactors &result : rule.results)
      kept |= getSet(result);
  }

  OpClass classify() {
    if (isRelabelling())
      return OpClass::Relabelling;
    if (isLookup())
      return OpClass::Lookup;
    if (rule.flops)
      return OpClass::Contraction;
    countSteps();
    if (numSums > 0)
      return OpClass::Contraction;
    bool isMap = llvm::all_of(rule.factors, [](const Factor &factor) {
      return factor.kind == FactorKind::Parallel;
    });
    return isMap ? OpClass::Map : OpClass::Rows;
  }

  /// The FLOPs of a contraction; call classify first.
  double getFlops() const { return rule.flops.value_or(flops); }
  /// The smallest of m, n and k of its products; 0 if it isn't known.
  double getSmallestExtent() const { return smallestExtent; }
  /// Whether it consists of several contractions.
  bool isChain() const {
    return rule.flops ? rule.windows.empty() : numSums > 1;
  }

  /// The number of elements that arithmetic other than contractions goes over.
  double getElements() const {
    FactorSet all = kept;
    for (const FactorSet &operand : operands)
      all |= operand;
    return getSize(all);
  }

private:
  FactorSet getSet(const TensorFactors &tensor) {
    FactorSet set(rule.factors.size());
    for (const DimFactors &dim : tensor)
      for (unsigned factor : dim)
        set.set(factor);
    return set;
  }

  double getSize(const FactorSet &set) const {
    double size = 1;
    for (unsigned factor : set.set_bits())
      size *= rule.factors[factor].size;
    return size;
  }

  static SmallVector<unsigned> flatten(const TensorFactors &tensor) {
    SmallVector<unsigned> list;
    for (const DimFactors &dim : tensor)
      llvm::append_range(list, dim);
    return list;
  }

  /// Whether both sides have the same factors, but not the same dimensions.
  bool isRelabelling() const {
    if (rule.operands.size() != 1 || rule.results.size() != 1 ||
        !rule.windows.empty() || rule.operands[0] == rule.results[0] ||
        countElements(op->getOperandTypes()) !=
            countElements(op->getResultTypes()))
      return false;
    SmallVector<unsigned> from = flatten(rule.operands[0]);
    SmallVector<unsigned> to = flatten(rule.results[0]);
    llvm::sort(from);
    llvm::sort(to);
    return from == to;
  }

  static bool isIndex(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getElementType().isInteger() &&
           !type.getElementType().isInteger(1);
  }

  bool isLookup() const {
    for (auto [index, set] : llvm::enumerate(operands)) {
      if (!isIndex(op->getOperand(index)))
        continue;
      bool hasOthers = false, isCovered = false;
      for (auto [other, otherSet] : llvm::enumerate(operands)) {
        if (isIndex(op->getOperand(other)))
          continue;
        hasOthers = true;
        FactorSet missing = set;
        isCovered |= missing.reset(otherSet).none();
      }
      if (hasOthers && !isCovered)
        return true;
    }
    return false;
  }

  /// Combines the operands one after the other; first those without new
  /// factors.
  void countSteps() {
    if (operands.empty())
      return;
    SmallVector<unsigned> waiting =
        llvm::to_vector(llvm::seq<unsigned>(1, operands.size()));
    FactorSet current = operands.front();
    while (!waiting.empty()) {
      auto next = llvm::find_if(waiting, [&](unsigned operand) {
        FactorSet added = operands[operand];
        return added.reset(current).none();
      });
      // An operand without new factors is multiplied or added elementwise.
      bool isProduct = next == waiting.end();
      if (isProduct)
        next = waiting.begin();
      FactorSet rows = current, columns = operands[*next];
      rows.reset(operands[*next]);
      columns.reset(current);
      current |= operands[*next];
      waiting.erase(next);
      FactorSet needed = kept;
      for (unsigned operand : waiting)
        needed |= operands[operand];
      FactorSet summed = current;
      summed.reset(needed);
      if (!isProduct || summed.none())
        continue;
      double extent =
          std::min({getSize(rows), getSize(columns), getSize(summed)});
      smallestExtent = numSums == 0 ? extent : std::min(smallestExtent, extent);
      ++numSums;
      flops += 2 * getSize(current);
      current &= needed;
    }
  }

  Operation *op;
  const ShardingRule &rule;
  SmallVector<FactorSet> operands;
  FactorSet kept; ///< factors of the results
  unsigned numSums = 0;
  double flops = 0, smallestExtent = 0;
};

/// The class of an op, by its rule; nullopt if it has none.
std::optional<OpClass> classify(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || op->getNumOperands() == 0)
    return std::nullopt;
  ShardingRule rule = interface.getShardingRule();
  return RuleWork(op, rule).classify();
}

} // namespace

/// Whether `op` is fused into its only user; relabellings between them are
/// skipped.
static bool isFusedIntoUser(Operation *op) {
  while (op->getNumResults() == 1 && op->getResult(0).hasOneUse()) {
    Operation *user = *op->getResult(0).user_begin();
    std::optional<OpClass> use = classify(user);
    if (!use)
      return false;
    if (*use != OpClass::Relabelling)
      return *use == OpClass::Map || *use == OpClass::Rows;
    op = user;
  }
  return false;
}

/// The op that computes `value`, with relabellings skipped; null for an
/// argument.
static Operation *getProducer(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && classify(op) == OpClass::Relabelling)
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// Whether row i of the op's scores doesn't see the columns after i: the
/// property `causal`.
static bool isCausal(Operation *op) {
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  Attribute causal = properties ? properties.get("causal") : Attribute();
  auto truth = dyn_cast_or_null<BoolAttr>(causal);
  return truth ? truth.getValue() : isa_and_nonnull<UnitAttr>(causal);
}

/// The share of the products of rows, the last but one dimension of the first
/// operand, and columns, that of the second one, that a causal mask hides.
static double getMaskedShare(Operation *op) {
  auto getLength = [&](unsigned operand) -> double {
    return cast<RankedTensorType>(op->getOperand(operand).getType())
        .getShape()
        .end()[-2];
  };
  double rows = getLength(0), columns = getLength(1);
  if (rows == 0 || columns == 0)
    return 0;
  // Rows from number `columns` on see all columns.
  double partial = std::min(rows, columns);
  return partial * (columns - (partial + 1) / 2) / (rows * columns);
}

OpWork tp::getWork(Operation *op, bool fuses) {
  OpWork work;
  work.element = Float32Type::get(op->getContext());
  if (op->getNumResults() > 0)
    if (auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType()))
      work.element = type.getElementType();
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (!llvm::any_of(op->getOperandTypes(), isTensor) ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      isa<RegionBranchOpInterface>(op)) {
    work.isFree = true;
    return work;
  }
  int64_t resultBytes = 0;
  for (Type type : op->getResultTypes())
    resultBytes += getNumBytes(type);
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface) { // at most moves data
    for (Type type : op->getOperandTypes())
      work.bytes += std::min(getNumBytes(type), resultBytes);
    work.bytes += resultBytes;
    return work;
  }
  ShardingRule rule = interface.getShardingRule();
  RuleWork ruleWork(op, rule);
  OpClass opClass = ruleWork.classify();
  if (opClass == OpClass::Relabelling) {
    work.isFree = true;
    return work;
  }
  if (opClass == OpClass::Contraction) {
    work.flops = ruleWork.getFlops();
    work.smallestExtent = ruleWork.getSmallestExtent();
    work.isChain = ruleWork.isChain();
    if (work.isChain && isCausal(op))
      work.maskedShare = getMaskedShare(op);
  } else if (opClass == OpClass::Lookup) {
    work.elements = countElements(op->getResultTypes());
  } else {
    work.elements = ruleWork.getElements();
  }

  bool reads = opClass != OpClass::Contraction && opClass != OpClass::Lookup;
  llvm::SmallPtrSet<Value, 4> seen;
  for (Value operand : op->getOperands()) {
    if (!seen.insert(operand).second)
      continue;
    Operation *producer = fuses && reads ? getProducer(operand) : nullptr;
    if (producer && classify(producer) == OpClass::Map &&
        isFusedIntoUser(producer))
      continue;
    int64_t bytes = getNumBytes(operand.getType());
    if (opClass == OpClass::Lookup || !rule.windows.empty())
      bytes = std::min(bytes, resultBytes);
    work.bytes += bytes;
  }
  work.isFree = fuses && opClass == OpClass::Map && isFusedIntoUser(op);
  if (!work.isFree)
    work.bytes += resultBytes;
  return work;
}

static void walkExecuted(Region &region,
                         function_ref<void(Operation *)> callback) {
  for (Block &block : region)
    for (Operation &op : block) {
      callback(&op);
      if (!isa<RegionBranchOpInterface, StartOp>(op))
        continue;
      int64_t count = 1;
      if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
        if (std::optional<APInt> known = loop.getStaticTripCount())
          count = known->getLimitedValue(kMaxIterations);
      for (int64_t i = 0; i < count; ++i)
        for (Region &inner : op.getRegions())
          walkExecuted(inner, callback);
    }
}

void tp::walkExecuted(func::FuncOp function,
                      function_ref<void(Operation *)> callback) {
  ::walkExecuted(function.getBody(), callback);
}

//===----------------------------------------------------------------------===//
// Seconds
//===----------------------------------------------------------------------===//

Cost &Cost::operator+=(const Cost &other) {
  count += other.count;
  flops += other.flops;
  bytes += other.bytes;
  seconds += other.seconds;
  return *this;
}

CostModel::CostModel(const Machine &machine, MeshOp mesh)
    : machine(machine), mesh(mesh), share(1),
      memoryBandwidth(machine.memoryBandwidth) {
  int64_t perNode = mesh.getNumRanks();
  if (machine.links.front().ranks > 0)
    perNode = std::min(perNode, machine.links.front().ranks);
  if (machine.nodeDevices > 0)
    share = std::max(1.0, static_cast<double>(perNode) / machine.nodeDevices);
  if (machine.nodeMemoryBandwidth > 0)
    memoryBandwidth =
        std::min(memoryBandwidth, machine.nodeMemoryBandwidth / perNode);
}

static double getContractionSeconds(const OpWork &work,
                                    const Machine &machine) {
  const Efficiency &efficiency = machine.efficiency;
  double seconds = work.flops / machine.getFlops(work.element);
  if (work.isChain && efficiency.attention > 0)
    return seconds * (1 - work.maskedShare) / efficiency.attention;
  seconds /= efficiency.contraction;
  if (work.smallestExtent > 0)
    seconds *= 1 + efficiency.halfExtent / work.smallestExtent;
  return seconds;
}

/// `share` ranks run on a device, and a rank has this memory bandwidth.
static double getSeconds(const OpWork &work, const Machine &machine,
                         double share, double memoryBandwidth) {
  // A fused op still computes, but its user has the traffic and the launch.
  double compute = getContractionSeconds(work, machine) +
                   work.elements / machine.elementwise;
  double memory = work.bytes / (memoryBandwidth * machine.efficiency.memory);
  return std::max(share * compute, memory) +
         (work.isFree ? 0 : share * machine.launch);
}

double tp::getSeconds(const OpWork &work, const Machine &machine) {
  return ::getSeconds(work, machine, /*share=*/1, machine.memoryBandwidth);
}

double CostModel::getSeconds(const OpWork &work) const {
  return ::getSeconds(work, machine, share, memoryBandwidth);
}

CostModel::GroupLinks CostModel::getGroupLinks(ArrayRef<int64_t> group,
                                               int64_t rank) const {
  GroupLinks links;
  links.within.assign(machine.links.size(), 0);
  for (int64_t member : group) {
    size_t link = machine.getLink(rank, member);
    links.outermost = std::max(links.outermost, link);
    for (size_t i = link + 1; i < links.within.size(); ++i)
      ++links.within[i];
  }
  return links;
}

size_t CostModel::getOutermostLink(CollectiveOpInterface op, int64_t rank) {
  return getGroupLinks(mesh.getGroupOf(rank, op.getAxes().getAxes()), rank)
      .outermost;
}

double CostModel::getSeconds(CollectiveOpInterface op, int64_t rank) {
  SmallVector<int64_t> group = mesh.getGroupOf(rank, op.getAxes().getAxes());
  if (group.size() < 2)
    return 0;
  double bytes = op.getReceivedBytes(rank, mesh);

  GroupLinks links = getGroupLinks(group, rank);
  size_t outermost = links.outermost;
  const MeasuredCollective *nearest = nullptr;
  auto distance = [&](const MeasuredCollective &measured) {
    return std::abs(measured.ranks - static_cast<int64_t>(group.size()));
  };
  for (const MeasuredCollective &measured :
       machine.links[outermost].collectives)
    if (measured.kind == op.getCollectiveKind() &&
        (!nearest || distance(measured) < distance(*nearest)))
      nearest = &measured;
  if (nearest)
    return nearest->latency + bytes / nearest->bandwidth;

  double seconds = 0;
  if (!op.isRelayed()) {
    // Every source sends its part; sources on one link send one after the
    // other.
    SmallVector<int64_t> sources = op.getSources(rank, mesh);
    SmallVector<int64_t> perLink(machine.links.size(), 0);
    for (int64_t source : sources)
      ++perLink[machine.getLink(rank, source)];
    for (auto [link, count] : llvm::zip_equal(machine.links, perLink))
      if (count > 0)
        seconds +=
            link.latency + bytes * count / sources.size() / link.bandwidth;
    return seconds;
  }
  // Blocks travel over the outer links first, between corresponding members of
  // the link's domains, and then within the domains. Each link multiplies the
  // number of blocks that a rank holds.
  double phases = op.getNumPhases();
  double block = bytes / (group.size() - 1) / phases;
  double held = 1, members = group.size();
  for (size_t i = outermost + 1; i-- > 0;) {
    double inner = i > 0 ? links.within[i] : 1;
    double ratio = members / inner;
    members = inner;
    if (ratio <= 1)
      continue;
    const Link &link = machine.links[i];
    double steps =
        link.algorithm == LinkAlgorithm::Ring ? std::ceil(ratio) - 1 : 1;
    seconds += phases * (steps * link.latency +
                         (ratio - 1) * held * block / link.bandwidth);
    held *= ratio;
  }
  return seconds;
}

ArrayRef<int64_t> CostModel::getLinkKinds(AxisListAttr axes) {
  SmallVector<int64_t> &kinds = linkKinds[axes];
  if (!kinds.empty())
    return kinds;
  kinds.resize(mesh.getNumRanks());
  ListInterner interner;
  for (ArrayRef<int64_t> group : mesh.getGroups(axes.getAxes())) {
    // How many members are in the rank's domain of each link.
    SmallVector<WordList> counts(group.size(), {group.size()});
    for (const Link &link : ArrayRef(machine.links).drop_back()) {
      DenseMap<int64_t, Word> ofDomain;
      for (int64_t rank : group)
        ++ofDomain[rank / link.ranks];
      for (auto [list, rank] : llvm::zip_equal(counts, group))
        list.push_back(ofDomain[rank / link.ranks]);
    }
    for (auto [list, rank] : llvm::zip_equal(counts, group))
      kinds[rank] = interner.insert(list).first;
  }
  return kinds;
}

SmallVector<int64_t> CostModel::getSourceKinds(RankClasses &classes,
                                               CollectiveOpInterface op) {
  // Where ranks are in the mesh's order, a member of a group is at a distance
  // from the rank that follows from the rank's index; the links between two
  // ranks, from the distance and the rank's place in the outermost domain.
  if (mesh.getDevices())
    return llvm::to_vector(llvm::seq(mesh.getNumRanks()));
  int64_t domain = 1;
  for (const Link &link : machine.links)
    domain = std::max(domain, link.ranks);
  SmallVector<int64_t> kinds(classes.getIndices(getAxesOf(op)));
  for (auto [rank, kind] : llvm::enumerate(kinds))
    kind = kind * domain + rank % domain;
  return kinds;
}

void CostModel::splitByCost(RankClasses &classes, CollectiveOpInterface op,
                            ArrayRef<int64_t> ranks) {
  auto getKey = [&](int64_t rank) {
    return llvm::bit_cast<int64_t>(getSeconds(op, rank));
  };
  classes.splitByReceivedBytes(op, ranks);
  // Of a relayed one, the bytes and the links are all that counts.
  if (op.isRelayed())
    classes.split(ranks, getLinkKinds(op.getAxes()), getKey);
  else
    classes.split(ranks, getSourceKinds(classes, op), getKey);
}
