//===- TPOps.cpp - mesh, redistribution, collectives ----------------------===//

#include "tp/Dialect/TP/TP.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
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
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
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
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"sym_name", "axis_names", "axis_sizes"});
}

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError() << "has " << getAxisNames().size() << " names and "
                         << getAxisSizes().size() << " sizes";
  if (getNumAxes() == 0)
    return emitOpError("needs at least one dimension");
  for (size_t i = 0; i < getNumAxes(); ++i) {
    if (!isa<StringAttr>(getAxisNames()[i]))
      return emitOpError("dimension names must be strings");
    if (getAxisSizes()[i] < 1)
      return emitOpError() << "dimension '" << getAxisName(i) << "' has size "
                           << getAxisSizes()[i] << "; at least 1 is needed";
    if (*getAxisIndex(getAxisName(i)) != i)
      return emitOpError() << "dimension '" << getAxisName(i)
                           << "' appears twice";
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

int64_t MeshOp::getIndexAlong(int64_t rank, ArrayRef<AxisRefAttr> axes) {
  int64_t index = 0;
  for (AxisRefAttr axis : axes) {
    unsigned i = *getAxisIndex(axis.getName());
    int64_t stride = 1;
    for (size_t j = i + 1; j < getNumAxes(); ++j)
      stride *= getAxisSizes()[j];
    int64_t coordinate = rank / stride % getAxisSizes()[i];
    if (!axis.isWhole()) {
      int64_t minor =
          getAxisSizes()[i] / (axis.getPreSize() * axis.getSize());
      coordinate = coordinate / minor % axis.getSize();
    }
    index = index * getAxisSize(axis) + coordinate;
  }
  return index;
}

SmallVector<SmallVector<int64_t>>
MeshOp::getGroups(ArrayRef<AxisRefAttr> axes) {
  int64_t n = getAxesSize(axes);
  SmallVector<SmallVector<int64_t>> groups;
  SmallVector<int64_t> groupOf(getNumRanks(), -1);
  // Ranks of one group differ along `axes` only; the first one met opens it.
  auto sameGroup = [&](int64_t a, int64_t b) {
    // Whole mesh as one ordered list of parts is not needed: two ranks are in
    // the same group iff replacing their coordinates along `axes` by those of
    // the other gives the other.
    int64_t replaced = a;
    for (AxisRefAttr axis : axes) {
      unsigned i = *getAxisIndex(axis.getName());
      int64_t stride = 1;
      for (size_t j = i + 1; j < getNumAxes(); ++j)
        stride *= getAxisSizes()[j];
      if (!axis.isWhole())
        stride *= getAxisSizes()[i] / (axis.getPreSize() * axis.getSize());
      int64_t size = getAxisSize(axis);
      replaced += (b / stride % size - replaced / stride % size) * stride;
    }
    return replaced == b;
  };
  for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
    auto it = llvm::find_if(groups, [&](ArrayRef<int64_t> group) {
      int64_t member = *llvm::find_if(group, [](int64_t r) { return r >= 0; });
      return sameGroup(member, rank);
    });
    if (it == groups.end()) {
      groups.emplace_back(n, -1);
      it = std::prev(groups.end());
    }
    (*it)[getIndexAlong(rank, axes)] = rank;
  }
  return groups;
}

//===----------------------------------------------------------------------===//
// RedistributeOp
//===----------------------------------------------------------------------===//

LogicalResult RedistributeOp::verify() {
  return verifySharding(getSharding(), getType(), *this,
                        [&]() { return emitOpError(); });
}

OpFoldResult RedistributeOp::fold(FoldAdaptor) {
  auto producer = getInput().getDefiningOp<RedistributeOp>();
  if (producer && producer.getSharding() == getSharding())
    return getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// Per-rank ops: verifiers
//===----------------------------------------------------------------------===//

/// The number of ranks that the axes span, or failure with a diagnostic.
static FailureOr<int64_t> verifyGroup(Operation *op, FlatSymbolRefAttr meshRef,
                                      AxisListAttr axes) {
  MeshOp mesh = lookupMesh(op, meshRef);
  if (!mesh)
    return op->emitOpError() << "no tp.mesh called '" << meshRef.getValue()
                             << "'";
  if (axes.empty())
    return op->emitOpError("needs at least one mesh dimension");
  // A sharding that nests all axes on one dimension has the same constraints.
  auto sharding = ShardingAttr::get(op->getContext(), meshRef, {axes}, {});
  auto type = RankedTensorType::get({1}, IntegerType::get(op->getContext(), 1));
  if (failed(verifySharding(sharding, type, op,
                            [&]() { return op->emitOpError(); })))
    return failure();
  return mesh.getAxesSize(axes.getAxes());
}

/// Result shape = operand shape with dimension `dim` scaled by num/den.
static LogicalResult verifyScaled(Operation *op, int64_t dim, int64_t num,
                                  int64_t den) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (dim < 0 || dim >= from.getRank())
    return op->emitOpError() << "dimension " << dim << " is out of range for "
                             << from;
  if (from.getDimSize(dim) % den)
    return op->emitOpError()
           << "dimension " << dim << " has size " << from.getDimSize(dim)
           << ", not divisible by the " << den << " ranks of the group";
  SmallVector<int64_t> shape(from.getShape());
  shape[dim] = shape[dim] / den * num;
  auto expected = RankedTensorType::get(shape, from.getElementType());
  if (to != expected)
    return op->emitOpError() << "result should be " << expected << ", found "
                             << to;
  return success();
}

LogicalResult AllGatherOp::verify() {
  FailureOr<int64_t> n = verifyGroup(*this, getMeshAttr(), getAxes());
  return failed(n) ? failure() : verifyScaled(*this, getDim(), *n, 1);
}

LogicalResult ReduceScatterOp::verify() {
  FailureOr<int64_t> n = verifyGroup(*this, getMeshAttr(), getAxes());
  return failed(n) ? failure() : verifyScaled(*this, getDim(), 1, *n);
}

LogicalResult LocalSliceOp::verify() {
  FailureOr<int64_t> n = verifyGroup(*this, getMeshAttr(), getAxes());
  return failed(n) ? failure() : verifyScaled(*this, getDim(), 1, *n);
}

LogicalResult AllReduceOp::verify() {
  return verifyGroup(*this, getMeshAttr(), getAxes());
}

LogicalResult ShardIndexOp::verify() {
  return verifyGroup(*this, getMeshAttr(), getAxes());
}

LogicalResult AllToAllOp::verify() {
  FailureOr<int64_t> n = verifyGroup(*this, getMeshAttr(), getAxes());
  if (failed(n))
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
  if (from.getDimSize(split) % *n)
    return emitOpError() << "dimension " << split << " has size "
                         << from.getDimSize(split)
                         << ", not divisible by the " << *n
                         << " ranks of the group";
  SmallVector<int64_t> shape(from.getShape());
  shape[split] /= *n;
  shape[concat] *= *n;
  auto expected = RankedTensorType::get(shape, from.getElementType());
  if (to != expected)
    return emitOpError() << "result should be " << expected << ", found " << to;
  return success();
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

//===----------------------------------------------------------------------===//
// Per-rank ops: bytes
//===----------------------------------------------------------------------===//

static int64_t getNumBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

int64_t AllGatherOp::getReceivedBytes(int64_t, int64_t n) {
  return (n - 1) * getNumBytes(getInput());
}

int64_t ReduceScatterOp::getReceivedBytes(int64_t, int64_t n) {
  return (n - 1) * getNumBytes(getResult());
}

int64_t AllReduceOp::getReceivedBytes(int64_t position, int64_t n) {
  int64_t elements = getType().getNumElements();
  int64_t width = llvm::divideCeil(getType().getElementTypeBitWidth(), 8);
  int64_t chunk = llvm::divideCeil(elements, n);
  int64_t begin = std::min(position * chunk, elements);
  int64_t own = std::min(begin + chunk, elements) - begin;
  return width * (own * (n - 1) + elements - own);
}

int64_t AllToAllOp::getReceivedBytes(int64_t, int64_t n) {
  return getNumBytes(getInput()) / n * (n - 1);
}

int64_t PermuteOp::getReceivedBytes(int64_t position, int64_t) {
  return getSource()[position] == position ? 0 : getNumBytes(getInput());
}

int64_t BroadcastOp::getReceivedBytes(int64_t position, int64_t) {
  return position == static_cast<int64_t>(getRoot()) ? 0
                                                     : getNumBytes(getInput());
}

SmallVector<int64_t> tp::getReceivedBytesByRank(CollectiveOpInterface op,
                                                MeshOp mesh) {
  SmallVector<int64_t> bytes(mesh.getNumRanks(), 0);
  for (const auto &group : mesh.getGroups(op.getAxes().getAxes()))
    for (auto [position, rank] : llvm::enumerate(group))
      bytes[rank] = op.getReceivedBytes(position, group.size());
  return bytes;
}

void tp::setCollectiveBytes(CollectiveOpInterface op, MeshOp mesh) {
  SmallVector<int64_t> bytes = getReceivedBytesByRank(op, mesh);
  op->setAttr("bytes", IntegerAttr::get(IntegerType::get(op.getContext(), 64),
                                        *llvm::max_element(bytes)));
}
