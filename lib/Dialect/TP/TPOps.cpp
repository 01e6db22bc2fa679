//===- TPOps.cpp - Mesh, sharding, redistribution -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AxesFormat.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::tp;

#include "tp/Dialect/TP/TPInterfaces.cpp.inc"

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
  constexpr int64_t kMaxRanks = 65536;
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
    if (getAxisSizes()[i] > kMaxRanks / numRanks)
      return emitOpError() << "has more than " << kMaxRanks << " ranks";
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

int64_t MeshOp::getNumRanks() { return llvm::product_of(getAxisSizes()); }

int64_t MeshOp::getPosition(int64_t rank) {
  if (!getDevices())
    return rank;
  return std::distance(getDevices()->begin(), llvm::find(*getDevices(), rank));
}

int64_t MeshOp::getRank(int64_t position) {
  return getDevices() ? (*getDevices())[position] : position;
}

/// The size of `axis`, and the distance between the positions of two neighbors
/// along it.
static std::pair<int64_t, int64_t> getSizeAndStride(MeshOp mesh,
                                                    AxisRefAttr axis) {
  unsigned index = *mesh.getAxisIndex(axis.getName());
  ArrayRef<int64_t> sizes = mesh.getAxisSizes();
  int64_t stride = llvm::product_of(sizes.drop_front(index + 1));
  if (axis.isWhole())
    return {sizes[index], stride};
  return {axis.getSize(),
          stride * (sizes[index] / (axis.getPreSize() * axis.getSize()))};
}

int64_t MeshOp::getIndexAlong(int64_t rank, ArrayRef<AxisRefAttr> axes) {
  int64_t index = 0, position = getPosition(rank);
  for (AxisRefAttr axis : axes) {
    auto [size, stride] = getSizeAndStride(*this, axis);
    index = index * size + position / stride % size;
  }
  return index;
}

SmallVector<int64_t> MeshOp::getGroupOf(int64_t rank,
                                        ArrayRef<AxisRefAttr> axes) {
  // Finds the position of the group's first member, then those of the others,
  // axis by axis.
  const int64_t own = getPosition(rank);
  int64_t first = own;
  for (AxisRefAttr axis : axes) {
    auto [size, stride] = getSizeAndStride(*this, axis);
    first -= own / stride % size * stride;
  }
  SmallVector<int64_t> positions = {first};
  for (AxisRefAttr axis : axes) {
    auto [size, stride] = getSizeAndStride(*this, axis);
    SmallVector<int64_t> next;
    for (int64_t position : positions)
      for (int64_t i = 0; i < size; ++i)
        next.push_back(position + i * stride);
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
// DistributeOp
//===----------------------------------------------------------------------===//

/// Verifies that `sharding` places a value of type `type`, an operand or result
/// of `op`. Returns the mesh.
static FailureOr<MeshOp> verifyPlacement(Operation *op, ShardingAttr sharding,
                                         Type type,
                                         SymbolTableCollection &symbols) {
  MeshOp mesh = lookupMesh(op, sharding.getMesh(), symbols);
  if (failed(verifySharding(sharding, type, mesh,
                            [&]() { return op->emitOpError(); })))
    return failure();
  return mesh;
}

LogicalResult DistributeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPlacement(*this, getSharding(), getType(), symbols);
}

//===----------------------------------------------------------------------===//
// ToLocalOp
//===----------------------------------------------------------------------===//

/// Verifies that `local` is the type of a block of `global`, the same on all
/// ranks.
static LogicalResult verifyLocal(Operation *op, ShardingAttr sharding,
                                 RankedTensorType global,
                                 RankedTensorType local,
                                 SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh = verifyPlacement(op, sharding, global, symbols);
  if (failed(mesh))
    return failure();
  if (!isEven(global.getShape(), sharding, *mesh))
    return op->emitOpError()
           << "the ranks' blocks of " << global << " placed "
           << printPlacements(sharding, *mesh)
           << " have different sizes; a local value needs one type";
  RankedTensorType expected = getLocalType(global, sharding, *mesh, 0);
  if (local != expected)
    return op->emitOpError() << "a rank's block of " << global << " is "
                             << expected << ", found " << local;
  return success();
}

LogicalResult ToLocalOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getGradPlacements() &&
      failed(verifyPlacement(*this, *getGradPlacements(), getInput().getType(),
                             symbols)))
    return failure();
  return verifyLocal(*this, getSharding(), getInput().getType(), getType(),
                     symbols);
}

//===----------------------------------------------------------------------===//
// FromLocalOp
//===----------------------------------------------------------------------===//

LogicalResult FromLocalOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLocal(*this, getSharding(), getType(), getInput().getType(),
                     symbols);
}

//===----------------------------------------------------------------------===//
// RedistributeOp
//===----------------------------------------------------------------------===//

static bool isOver(AxisListAttr over, AxisRefAttr axis) {
  return llvm::any_of(over.getAxes(), [&](AxisRefAttr other) {
    return other.getName() == axis.getName();
  });
}

LogicalResult RedistributeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh =
      verifyPlacement(*this, getSharding(), getType(), symbols);
  if (failed(mesh))
    return failure();
  AxisListAttr over = getOverAttr();
  if (!over)
    return success();
  for (AxisRefAttr axis : over)
    if (!mesh->getAxisIndex(axis.getName()) || !axis.isWhole())
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

OpFoldResult RedistributeOp::fold(FoldAdaptor) {
  auto producer = getInput().getDefiningOp<RedistributeOp>();
  if (producer && producer.getSharding() == getSharding() &&
      producer.getOverAttr() == getOverAttr())
    return getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// ConstraintOp
//===----------------------------------------------------------------------===//

LogicalResult ConstraintOp::verify() {
  for (int64_t dim : getOpen())
    if (dim < 0 || dim >= getType().getRank())
      return emitOpError() << "opens dimension " << dim << " of a tensor of "
                           << getType().getRank();
  if (getPriority() > uint64_t(INT64_MAX))
    return emitOpError("has a negative priority; 0 is the first");
  return success();
}

LogicalResult ConstraintOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPlacement(*this, getSharding(), getType(), symbols);
}
