//===- TPOps.cpp - mesh, redistribution, collectives ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;

#include "tp/Dialect/TP/TPInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// custom<Axes>: {dp, tp}
//===----------------------------------------------------------------------===//

static ParseResult parseAxes(OpAsmParser &parser, AxisListAttr &axes) {
  FailureOr<AxisListAttr> parsed = AxisListAttr::parseAxes(parser);
  if (failed(parsed))
    return failure();
  axes = *parsed;
  return success();
}

static void printAxes(OpAsmPrinter &printer, Operation *, AxisListAttr axes) {
  axes.printAxes(printer.getStream());
}

#define GET_OP_CLASSES
#include "tp/Dialect/TP/TPOps.cpp.inc"

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  auto parseOne = [&]() -> ParseResult {
    std::string axis;
    int64_t size;
    if (parser.parseKeywordOrString(&axis) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    names.push_back(builder.getStringAttr(axis));
    sizes.push_back(size);
    return success();
  };
  SmallVector<int64_t> devices;
  auto parseDevice = [&]() -> ParseResult {
    return parser.parseInteger(devices.emplace_back());
  };
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("devices"))) {
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       parseDevice))
      return failure();
    result.addAttribute("devices", builder.getDenseI64ArrayAttr(devices));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute("axis_names", builder.getArrayAttr(names));
  result.addAttribute("axis_sizes", builder.getDenseI64ArrayAttr(sizes));
  return success();
}

void MeshOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  for (size_t i = 0; i < getNumAxes(); ++i) {
    if (i)
      printer << ", ";
    printer.printKeywordOrString(getAxisName(i));
    printer << " = " << getAxisSizes()[i];
  }
  printer << ")";
  if (getDevices()) {
    printer << " devices [";
    llvm::interleaveComma(*getDevices(), printer.getStream());
    printer << "]";
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"sym_name", "axis_names", "axis_sizes", "devices"});
}

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError() << "has " << getAxisNames().size() << " names and "
                         << getAxisSizes().size() << " sizes";
  if (getNumAxes() == 0)
    return emitOpError("needs at least one dimension");
  constexpr int64_t maxRanks = 65536;
  int64_t numRanks = 1;
  for (size_t i = 0; i < getNumAxes(); ++i) {
    if (!isa<StringAttr>(getAxisNames()[i]))
      return emitOpError("dimension names must be strings");
    if (getAxisSizes()[i] < 1)
      return emitOpError() << "dimension '" << getAxisName(i) << "' has size "
                           << getAxisSizes()[i] << "; at least 1 is needed";
    if (*getAxisIndex(getAxisName(i)) != i)
      return emitOpError() << "dimension '" << getAxisName(i)
                           << "' appears twice";
    if (getAxisSizes()[i] > maxRanks / numRanks)
      return emitOpError() << "has more than " << maxRanks << " ranks";
    numRanks *= getAxisSizes()[i];
  }
  std::optional<ArrayRef<int64_t>> devices = getDevices();
  if (!devices)
    return success();
  llvm::SmallBitVector seen(getNumRanks());
  if (static_cast<int64_t>(devices->size()) != getNumRanks())
    return emitOpError() << "has " << getNumRanks() << " positions, but "
                         << devices->size() << " devices";
  for (int64_t rank : *devices) {
    if (rank < 0 || rank >= getNumRanks())
      return emitOpError() << "device " << rank << " is out of range; the mesh "
                           << "has ranks 0 to " << getNumRanks() - 1;
    if (seen.test(rank))
      return emitOpError() << "device " << rank << " appears twice";
    seen.set(rank);
  }
  return success();
}

StringRef MeshOp::getAxisName(size_t i) {
  return cast<StringAttr>(getAxisNames()[i]).getValue();
}

std::optional<unsigned> MeshOp::getAxisIndex(StringRef name) {
  for (size_t i = 0; i < getNumAxes(); ++i)
    if (getAxisName(i) == name)
      return i;
  return std::nullopt;
}

int64_t MeshOp::getAxisSize(AxisRefAttr axis) {
  return axis.isWhole() ? getAxisSizes()[*getAxisIndex(axis.getName())]
                        : axis.getSize();
}

int64_t MeshOp::getAxesSize(ArrayRef<AxisRefAttr> axes) {
  int64_t size = 1;
  for (AxisRefAttr axis : axes)
    size *= getAxisSize(axis);
  return size;
}

int64_t MeshOp::getNumRanks() {
  int64_t ranks = 1;
  for (int64_t size : getAxisSizes())
    ranks *= size;
  return ranks;
}

int64_t MeshOp::getPosition(int64_t rank) {
  if (!getDevices())
    return rank;
  return std::distance(getDevices()->begin(), llvm::find(*getDevices(), rank));
}

int64_t MeshOp::getRank(int64_t position) {
  return getDevices() ? (*getDevices())[position] : position;
}

/// The distance between the positions of two neighbours along `axis`.
static int64_t getStride(MeshOp mesh, AxisRefAttr axis) {
  unsigned index = *mesh.getAxisIndex(axis.getName());
  int64_t stride = 1;
  for (size_t i = index + 1; i < mesh.getNumAxes(); ++i)
    stride *= mesh.getAxisSizes()[i];
  if (!axis.isWhole())
    stride *= mesh.getAxisSizes()[index] / (axis.getPreSize() * axis.getSize());
  return stride;
}

int64_t MeshOp::getIndexAlong(int64_t rank, ArrayRef<AxisRefAttr> axes) {
  int64_t index = 0, position = getPosition(rank);
  for (AxisRefAttr axis : axes) {
    int64_t size = getAxisSize(axis);
    index = index * size + position / getStride(*this, axis) % size;
  }
  return index;
}

SmallVector<int64_t> MeshOp::getGroupOf(int64_t rank,
                                        ArrayRef<AxisRefAttr> axes) {
  // Finds the position of the group's first member, then those of the others,
  // axis by axis.
  int64_t first = getPosition(rank);
  for (AxisRefAttr axis : axes)
    first -= getIndexAlong(rank, axis) * getStride(*this, axis);
  SmallVector<int64_t> positions = {first};
  for (AxisRefAttr axis : axes) {
    SmallVector<int64_t> next;
    for (int64_t position : positions)
      for (int64_t i = 0, e = getAxisSize(axis); i < e; ++i)
        next.push_back(position + i * getStride(*this, axis));
    positions = std::move(next);
  }
  return llvm::map_to_vector(positions, [&](int64_t p) { return getRank(p); });
}

SmallVector<SmallVector<int64_t>>
MeshOp::getGroups(ArrayRef<AxisRefAttr> axes) {
  SmallVector<SmallVector<int64_t>> groups;
  for (int64_t position = 0; position < getNumRanks(); ++position)
    if (getIndexAlong(getRank(position), axes) == 0)
      groups.push_back(getGroupOf(getRank(position), axes));
  return groups;
}

//===----------------------------------------------------------------------===//
// RedistributeOp
//===----------------------------------------------------------------------===//

static bool isOver(AxisListAttr over, AxisRefAttr axis) {
  return llvm::any_of(over.getAxes(), [&](AxisRefAttr other) {
    return other.getName() == axis.getName();
  });
}

LogicalResult RedistributeOp::verify() {
  auto emit = [&]() { return emitOpError(); };
  if (failed(verifySharding(getSharding(), getType(), *this, emit)))
    return failure();
  AxisListAttr over = getOverAttr();
  if (!over)
    return success();
  MeshOp mesh = lookupMesh(*this, getSharding().getMesh());
  for (AxisRefAttr axis : over)
    if (!mesh.getAxisIndex(axis.getName()) || !axis.isWhole())
      return emitOpError() << "is over '" << axis.getName()
                           << "', which isn't a dimension of the mesh";
  auto check = [&](AxisRefAttr axis) -> LogicalResult {
    if (isOver(over, axis))
      return success();
    return emitOpError() << "places its result along '" << axis.getName()
                         << "', which it isn't over";
  };
  for (AxisListAttr axes : getSharding().getDims())
    for (AxisRefAttr axis : axes)
      if (failed(check(axis)))
        return failure();
  for (PartialAttr partial : getSharding().getPartial())
    if (failed(check(partial.getAxis())))
      return failure();
  return success();
}

LogicalResult ConstraintOp::verify() {
  for (int64_t dim : getOpen())
    if (dim < 0 || dim >= getType().getRank())
      return emitOpError() << "opens dimension " << dim << " of a tensor of "
                           << getType().getRank();
  if (getPriority() > uint64_t(INT64_MAX))
    return emitOpError("has a negative priority; 0 is the first");
  return verifySharding(getSharding(), getType(), *this,
                        [&]() { return emitOpError(); });
}

ShardingAttr RedistributeOp::getTarget(ShardingAttr from) {
  AxisListAttr over = getOverAttr();
  ShardingAttr to = getSharding();
  if (!over)
    return to;
  MeshOp mesh = lookupMesh(*this, to.getMesh());
  auto comesBefore = [&](AxisRefAttr a, AxisRefAttr b) {
    return *mesh.getAxisIndex(a.getName()) < *mesh.getAxisIndex(b.getName());
  };
  SmallVector<AxisListAttr> dims;
  for (auto [kept, added] : llvm::zip(from.getDims(), to.getDims())) {
    SmallVector<AxisRefAttr> others, axes;
    llvm::copy_if(kept, std::back_inserter(others),
                  [&](AxisRefAttr axis) { return !isOver(over, axis); });
    std::merge(others.begin(), others.end(), added.begin(), added.end(),
               std::back_inserter(axes), comesBefore);
    ArrayRef<int64_t> segments = added.getSegments();
    if (segments.empty() && !others.empty())
      segments = kept.getSegments();
    dims.push_back(AxisListAttr::get(getContext(), axes, segments));
  }
  SmallVector<PartialAttr> partial;
  llvm::copy_if(
      from.getPartial(), std::back_inserter(partial),
      [&](PartialAttr other) { return !isOver(over, other.getAxis()); });
  llvm::append_range(partial, to.getPartial());
  llvm::sort(partial, [&](PartialAttr a, PartialAttr b) {
    return comesBefore(a.getAxis(), b.getAxis());
  });
  return ShardingAttr::get(getContext(), to.getMesh(), dims, partial);
}

LogicalResult DistributeOp::verify() {
  return verifySharding(getSharding(), getType(), *this,
                        [&]() { return emitOpError(); });
}

/// Verifies that `local` is the type of a block of `global`, the same on all
/// ranks.
static LogicalResult verifyLocal(Operation *op, ShardingAttr sharding,
                                 RankedTensorType global,
                                 RankedTensorType local) {
  if (failed(verifySharding(sharding, global, op,
                            [&]() { return op->emitOpError(); })))
    return failure();
  MeshOp mesh = lookupMesh(op, sharding.getMesh());
  if (!isEven(global.getShape(), sharding, mesh))
    return op->emitOpError()
           << "the ranks' blocks of " << global << " placed "
           << printPlacements(sharding, mesh)
           << " have different sizes; a local value needs one type";
  RankedTensorType expected = getLocalType(global, sharding, mesh, 0);
  if (local != expected)
    return op->emitOpError() << "a rank's block of " << global << " is "
                             << expected << ", found " << local;
  return success();
}

LogicalResult ToLocalOp::verify() {
  if (getGradPlacements() &&
      failed(verifySharding(*getGradPlacements(), getInput().getType(), *this,
                            [&]() { return emitOpError(); })))
    return failure();
  return verifyLocal(*this, getSharding(), getInput().getType(), getType());
}

LogicalResult FromLocalOp::verify() {
  return verifyLocal(*this, getSharding(), getType(), getInput().getType());
}

OpFoldResult RedistributeOp::fold(FoldAdaptor) {
  auto producer = getInput().getDefiningOp<RedistributeOp>();
  if (producer && producer.getSharding() == getSharding() &&
      producer.getOverAttr() == getOverAttr())
    return getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// Per-rank ops: verifiers
//===----------------------------------------------------------------------===//

/// The number of ranks that the axes span, or failure with a diagnostic. Only
/// axes that cut dimension `dim` of a tensor of type `whole` may have segments.
static FailureOr<int64_t> verifyGroup(Operation *op, FlatSymbolRefAttr meshRef,
                                      AxisListAttr axes,
                                      RankedTensorType whole = {},
                                      int64_t dim = 0) {
  MeshOp mesh = lookupMesh(op, meshRef);
  if (!mesh)
    return op->emitOpError()
           << "no tp.mesh called '" << meshRef.getValue() << "'";
  if (axes.empty())
    return op->emitOpError("needs at least one mesh dimension");
  if (!whole && !axes.getSegments().empty())
    return op->emitOpError(
        "can't have segments; only 'tp.local_slice' supports them");
  if (!whole)
    whole = RankedTensorType::get({1}, IntegerType::get(op->getContext(), 1));
  // A sharding that nests all axes on one dimension has the same constraints.
  SmallVector<AxisListAttr> dims(whole.getRank(),
                                 AxisListAttr::get(op->getContext(), {}));
  dims[dim] = axes;
  auto sharding = ShardingAttr::get(op->getContext(), meshRef, dims, {});
  if (failed(verifySharding(sharding, whole, op,
                            [&]() { return op->emitOpError(); })))
    return failure();
  return mesh.getAxesSize(axes.getAxes());
}

/// Whether `axes` can give a rank a block of `block` of the dimension's `whole`
/// elements.
static bool isBlockSize(MeshOp mesh, AxisListAttr axes, int64_t whole,
                        int64_t block) {
  for (int64_t rank : mesh.getGroupOf(mesh.getRank(0), axes.getAxes())) {
    int64_t size = 0;
    for (Interval interval : getDimBlock(whole, axes, mesh, rank))
      size += interval.size;
    if (size == block)
      return true;
  }
  return false;
}

/// Verifies that dimension `dim` of `block` is a block of that of `whole`, and
/// that all other dimensions are equal. If `segmented`, `axes` may have
/// segments.
static LogicalResult verifyBlock(Operation *op, FlatSymbolRefAttr meshRef,
                                 AxisListAttr axes, int64_t dim,
                                 RankedTensorType whole, RankedTensorType block,
                                 bool segmented = false) {
  auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
  if (dim < 0 || dim >= operand.getRank())
    return op->emitOpError()
           << "dimension " << dim << " is out of range for " << operand;
  if (failed(segmented ? verifyGroup(op, meshRef, axes, whole, dim)
                       : verifyGroup(op, meshRef, axes)))
    return failure();
  MeshOp mesh = lookupMesh(op, meshRef);
  bool fits = whole.getRank() == block.getRank() &&
              whole.getElementType() == block.getElementType();
  for (int64_t d = 0; fits && d < whole.getRank(); ++d)
    fits = d == dim ? isBlockSize(mesh, axes, whole.getDimSize(d),
                                  block.getDimSize(d))
                    : whole.getDimSize(d) == block.getDimSize(d);
  if (!fits)
    return op->emitOpError()
           << "no rank's block of " << whole << ", split along dimension "
           << dim << " by a group of " << mesh.getAxesSize(axes.getAxes())
           << ", is " << block;
  return success();
}

LogicalResult AllGatherOp::verify() {
  return verifyBlock(*this, getMeshAttr(), getAxes(), getDim(), getType(),
                     getInput().getType());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyBlock(*this, getMeshAttr(), getAxes(), getDim(),
                     getInput().getType(), getType());
}

LogicalResult LocalSliceOp::verify() {
  return verifyBlock(*this, getMeshAttr(), getAxes(), getDim(),
                     getInput().getType(), getType(), /*segmented=*/true);
}

LogicalResult AllReduceOp::verify() {
  return verifyGroup(*this, getMeshAttr(), getAxes());
}

LogicalResult ShardOffsetOp::verify() {
  return verifyGroup(*this, getMeshAttr(), getAxes());
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes())))
    return failure();
  auto from = getInput().getType();
  auto to = getType();
  int64_t rank = from.getRank();
  int64_t split = getSplitDim(), concat = getConcatDim();
  if (split < 0 || split >= rank || concat < 0 || concat >= rank)
    return emitOpError() << "dimensions " << split << " and " << concat
                         << " must both be dimensions of " << from;
  if (split == concat)
    return emitOpError("split and concat must be different dimensions");
  // The shape that the group's blocks make up together.
  SmallVector<int64_t> whole(from.getShape());
  whole[concat] = to.getRank() == rank ? to.getDimSize(concat) : -1;
  if (failed(verifyBlock(*this, getMeshAttr(), getAxes(), concat,
                         from.clone(whole), from)))
    return failure();
  return verifyBlock(*this, getMeshAttr(), getAxes(), split, from.clone(whole),
                     to);
}

LogicalResult ExchangeOp::verify() {
  auto global =
      RankedTensorType::get(getShape(), getInput().getType().getElementType());
  auto emit = [&]() { return emitOpError(); };
  if (failed(verifySharding(getFrom(), global, *this, emit)) ||
      failed(verifySharding(getTo(), global, *this, emit)))
    return failure();
  if (getFrom().getMesh() != getMeshAttr() ||
      getTo().getMesh() != getMeshAttr())
    return emitOpError("both shardings must be over the op's mesh");
  if (getFrom().getPartial() != getTo().getPartial())
    return emitOpError("an exchange reduces nothing: both shardings must have "
                       "the same Partial");
  if (getAxes().getAxes() != ArrayRef(getSplittingAxes(getFrom())))
    return emitOpError("the group must be spanned by the axes of 'from'");
  MeshOp mesh = lookupMesh(*this, getMeshAttr());
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
    if (getLocalType(global, getFrom(), mesh, rank) == getInput().getType() &&
        getLocalType(global, getTo(), mesh, rank) == getType())
      return success();
  return emitOpError() << "no rank's blocks of " << global << " are "
                       << getInput().getType() << " and " << getType();
}

/// The ranks that run the function that `op` is in.
static SmallVector<int64_t> getRanks(Operation *op, MeshOp mesh) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto listed = function
                    ? function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr)
                    : DenseI64ArrayAttr();
  auto ranks = llvm::to_vector(llvm::seq<int64_t>(0, mesh.getNumRanks()));
  if (listed)
    llvm::erase_if(ranks, [&](int64_t rank) {
      return !llvm::is_contained(listed.asArrayRef(), rank);
    });
  return ranks;
}

LogicalResult PermuteOp::verify() {
  FailureOr<int64_t> n = verifyGroup(*this, getMeshAttr(), getAxes());
  if (failed(n))
    return failure();
  if (static_cast<int64_t>(getSource().size()) != *n)
    return emitOpError() << "has " << getSource().size()
                         << " sources, the group has " << *n << " ranks";
  for (int64_t source : getSource())
    if (source < 0 || source >= *n)
      return emitOpError() << "source " << source
                           << " is out of range; the group has " << *n
                           << " ranks";
  RankedTensorType from = getInput().getType(), to = getType();
  if (from.getRank() != to.getRank() ||
      from.getElementType() != to.getElementType())
    return emitOpError() << "moves blocks as they are: the result must have "
                         << from.getRank() << " dimensions of "
                         << from.getElementType() << ", found " << to;
  if (from == to)
    return success();
  MeshOp mesh = lookupMesh(*this, getMeshAttr());
  SmallVector<int64_t> ranks = getRanks(*this, mesh);
  for (int64_t rank : ranks) {
    SmallVector<int64_t> group = mesh.getGroupOf(rank, getAxes().getAxes());
    int64_t source =
        group[getSource()[mesh.getIndexAlong(rank, getAxes().getAxes())]];
    if (llvm::is_contained(ranks, source))
      return emitOpError() << "gives rank " << rank << " the block of rank "
                           << source
                           << ", which runs the same program: a result of "
                           << from << " is needed, found " << to;
  }
  return success();
}

LogicalResult BroadcastOp::verify() {
  FailureOr<int64_t> n = verifyGroup(*this, getMeshAttr(), getAxes());
  if (failed(n))
    return failure();
  if (static_cast<int64_t>(getRoot()) >= *n)
    return emitOpError() << "root " << getRoot()
                         << " is out of range; the group has " << *n
                         << " ranks";
  return success();
}

CollectiveOpInterface StartOp::getCollective() {
  return cast<CollectiveOpInterface>(getBody().front().front());
}

LogicalResult StartOp::verifyRegions() {
  Block &block = getBody().front();
  if (!llvm::hasNItems(block, 2) ||
      !isa<CollectiveOpInterface>(block.front()) ||
      !isa<YieldOp>(block.back()) ||
      cast<YieldOp>(block.back()).getValue().getDefiningOp() != &block.front())
    return emitOpError("needs a body of one collective and a 'tp.yield' of its "
                       "result");
  Type type = cast<YieldOp>(block.back()).getValue().getType();
  if (getType().getTensor() != type)
    return emitOpError() << "is pending for " << getType().getTensor()
                         << ", the collective gives " << type;
  if (!getResult().hasOneUse() ||
      !isa<WaitOp>(*getResult().getUsers().begin()) ||
      (*getResult().getUsers().begin())->getBlock() != (*this)->getBlock())
    return emitOpError("needs one 'tp.wait', in the same block");
  return success();
}

//===----------------------------------------------------------------------===//
// Per-rank ops: bytes
//===----------------------------------------------------------------------===//

static int64_t getNumBytes(Value value) {
  return getTensorBytes(cast<RankedTensorType>(value.getType()));
}

int64_t AllGatherOp::getReceivedBytes(int64_t, MeshOp &) {
  return getNumBytes(getResult()) - getNumBytes(getInput());
}

int64_t ReduceScatterOp::getReceivedBytes(int64_t, MeshOp &mesh) {
  return (mesh.getAxesSize(getAxes().getAxes()) - 1) * getNumBytes(getResult());
}

int64_t AllReduceOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  int64_t n = mesh.getAxesSize(getAxes().getAxes());
  int64_t elements = getType().getNumElements();
  int64_t width = getElementBytes(getType().getElementType());
  int64_t own =
      getChunk({0, elements}, n, mesh.getIndexAlong(rank, getAxes().getAxes()))
          .size;
  return width * (own * (n - 1) + elements - own);
}

/// Everything except the part of the rank's own block that stays.
int64_t AllToAllOp::getReceivedBytes(int64_t, MeshOp &) {
  int64_t split = getInput().getType().getDimSize(getSplitDim());
  int64_t kept = split == 0 ? 0
                            : getNumBytes(getInput()) / split *
                                  getType().getDimSize(getSplitDim());
  return getNumBytes(getResult()) - kept;
}

int64_t PermuteOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  int64_t index = mesh.getIndexAlong(rank, getAxes().getAxes());
  return getSource()[index] == index ? 0 : getNumBytes(getResult());
}

int64_t ExchangeOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  int64_t elements = 0;
  for (const Transfer &transfer :
       getTransfers(getShape(), getFrom(), getTo(), mesh, rank))
    if (transfer.source != rank)
      elements += llvm::product_of(transfer.size);
  return elements * getElementBytes(getType().getElementType());
}

int64_t BroadcastOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  bool isRoot = mesh.getIndexAlong(rank, getAxes().getAxes()) ==
                static_cast<int64_t>(getRoot());
  return isRoot ? 0 : getNumBytes(getInput());
}

SmallVector<int64_t> tp::getOtherMembers(AxisListAttr axes, int64_t rank,
                                         MeshOp &mesh) {
  SmallVector<int64_t> others = mesh.getGroupOf(rank, axes.getAxes());
  llvm::erase(others, rank);
  return others;
}

SmallVector<int64_t> PermuteOp::getSources(int64_t rank, MeshOp &mesh) {
  SmallVector<int64_t> group = mesh.getGroupOf(rank, getAxes().getAxes());
  int64_t source =
      group[getSource()[mesh.getIndexAlong(rank, getAxes().getAxes())]];
  if (source == rank)
    return {};
  return {source};
}

SmallVector<int64_t> ExchangeOp::getSources(int64_t rank, MeshOp &mesh) {
  SmallVector<int64_t> sources;
  for (const Transfer &transfer :
       getTransfers(getShape(), getFrom(), getTo(), mesh, rank))
    if (transfer.source != rank &&
        !llvm::is_contained(sources, transfer.source))
      sources.push_back(transfer.source);
  return sources;
}

SmallVector<int64_t> BroadcastOp::getSources(int64_t rank, MeshOp &mesh) {
  int64_t root = mesh.getGroupOf(rank, getAxes().getAxes())[getRoot()];
  if (root == rank)
    return {};
  return {root};
}

SmallVector<int64_t> tp::getReceivedBytesByRank(CollectiveOpInterface op,
                                                MeshOp mesh) {
  SmallVector<int64_t> bytes(mesh.getNumRanks(), 0);
  for (int64_t rank : getRanks(op, mesh))
    bytes[rank] = op.getReceivedBytes(rank, mesh);
  return bytes;
}

void tp::setCollectiveBytes(CollectiveOpInterface op, MeshOp mesh) {
  SmallVector<int64_t> bytes = getReceivedBytesByRank(op, mesh);
  op->setAttr("bytes", IntegerAttr::get(IntegerType::get(op.getContext(), 64),
                                        *llvm::max_element(bytes)));
}
