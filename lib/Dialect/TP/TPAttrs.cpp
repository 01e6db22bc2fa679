//===- TPAttrs.cpp - Placements -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Builders.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Reductions.h"
#include "tp/Dialect/TP/TP.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using llvm::isAlnum;
using llvm::isDigit;

#include "tp/Dialect/TP/TPEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "tp/Dialect/TP/TPAttrs.cpp.inc"

void TPDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tp/Dialect/TP/TPAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// AxisRefAttr: tp, tp:(1)2
//===----------------------------------------------------------------------===//

/// Parses an axis and, with `thenColon`, the colon after it: `tp:`, `tp:(1)2:`.
/// Only the token after the first colon distinguishes the two forms.
static FailureOr<AxisRefAttr> parseAxis(AsmParser &parser,
                                        bool thenColon = false) {
  std::string name;
  int64_t preSize = 0, size = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseKeywordOrString(&name)))
    return failure();
  bool isPart;
  if (thenColon) {
    if (parser.parseColon())
      return failure();
    isPart = succeeded(parser.parseOptionalLParen());
  } else {
    isPart = succeeded(parser.parseOptionalColon());
    if (isPart && parser.parseLParen())
      return failure();
  }
  if (isPart) {
    if (parser.parseInteger(preSize) || parser.parseRParen() ||
        parser.parseInteger(size) || (thenColon && parser.parseColon()))
      return failure();
    if (preSize < 1 || size < 2)
      return parser.emitError(loc) << "part ':(" << preSize << ")" << size
                                   << "' of mesh dimension '" << name
                                   << "' needs a size of at least 2 and a "
                                      "pre-size of at least 1";
  }
  return AxisRefAttr::get(parser.getContext(), name, preSize, size);
}

bool AxisRefAttr::overlaps(AxisRefAttr other) const {
  if (getName() != other.getName())
    return false;
  // Part (p)s covers the sizes from p to p*s. The indices along two parts are
  // independent only if the minor one begins at a multiple of the major one's
  // end: for 6 ranks, x:(1)2 and x:(3)2 don't form a grid.
  auto comesBefore = [](AxisRefAttr major, AxisRefAttr minor) {
    return minor.getPreSize() % (major.getPreSize() * major.getSize()) == 0;
  };
  return isWhole() || other.isWhole() ||
         !(comesBefore(*this, other) || comesBefore(other, *this));
}

void AxisRefAttr::printAxis(raw_ostream &os) const {
  StringRef name = getName();
  bool bare = !name.empty() && !isDigit(name[0]) &&
              llvm::all_of(name, [](char c) { return isAlnum(c) || c == '_'; });
  if (bare) {
    os << name;
  } else {
    os << '"';
    llvm::printEscapedString(name, os);
    os << '"';
  }
  if (!isWhole())
    os << ":(" << getPreSize() << ")" << getSize();
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxis(printer.getStream());
  printer << ">";
}

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisRefAttr> axis = parseAxis(parser);
  if (failed(axis) || parser.parseGreater())
    return {};
  return *axis;
}

//===----------------------------------------------------------------------===//
// AxisListAttr: {dp, tp}, {tp | 64, 32, 32}
//===----------------------------------------------------------------------===//

FailureOr<AxisListAttr> AxisListAttr::parseAxes(AsmParser &parser) {
  SmallVector<AxisRefAttr> axes;
  SmallVector<int64_t> segments;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<AxisRefAttr> axis = parseAxis(parser);
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
    return success();
  };
  auto parseSegment = [&]() -> ParseResult {
    return parser.parseInteger(segments.emplace_back());
  };
  if (parser.parseLBrace())
    return failure();
  if (succeeded(parser.parseOptionalRBrace()))
    return AxisListAttr::get(parser.getContext(), axes);
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalVerticalBar())) {
    if (parser.parseCommaSeparatedList(parseSegment))
      return failure();
    if (segments.size() < 2 ||
        llvm::any_of(segments, [](int64_t size) { return size < 1; })) {
      parser.emitError(loc) << "at least two segments, of at least one element "
                               "each, are expected";
      return failure();
    }
  }
  if (parser.parseRBrace())
    return failure();
  return AxisListAttr::get(parser.getContext(), axes, segments);
}

void AxisListAttr::printAxes(raw_ostream &os) const {
  os << "{";
  llvm::interleaveComma(getAxes(), os,
                        [&](AxisRefAttr axis) { axis.printAxis(os); });
  if (!getSegments().empty()) {
    os << " | ";
    llvm::interleaveComma(getSegments(), os);
  }
  os << "}";
}

void AxisListAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxes(printer.getStream());
  printer << ">";
}

Attribute AxisListAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisListAttr> axes = parseAxes(parser);
  if (failed(axes) || parser.parseGreater())
    return {};
  return *axes;
}

//===----------------------------------------------------------------------===//
// ShardingAttr: <@mesh, [{dp}, {tp}], partial = {x: sum}>
//===----------------------------------------------------------------------===//

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<AxisListAttr> dims;
  SmallVector<PartialAttr> partial;
  auto parseDim = [&]() -> ParseResult {
    FailureOr<AxisListAttr> axes = AxisListAttr::parseAxes(parser);
    if (failed(axes))
      return failure();
    dims.push_back(*axes);
    return success();
  };
  auto parsePartial = [&]() -> ParseResult {
    FailureOr<AxisRefAttr> axis = parseAxis(parser, /*thenColon=*/true);
    StringRef keyword;
    if (failed(axis))
      return failure();
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<ReductionKind> kind = symbolizeReductionKind(keyword);
    if (!kind)
      return parser.emitError(loc)
             << "unknown reduction '" << keyword
             << "'; one of sum, avg, max, min, product is expected";
    partial.push_back(PartialAttr::get(parser.getContext(), *axis, *kind));
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("partial") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                       parsePartial))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return ShardingAttr::get(parser.getContext(), mesh, dims, partial);
}

void ShardingAttr::printPlacement(raw_ostream &os) const {
  os << "[";
  llvm::interleaveComma(getDims(), os,
                        [&](AxisListAttr axes) { axes.printAxes(os); });
  os << "]";
  if (!isPartial())
    return;
  os << ", partial = {";
  llvm::interleaveComma(getPartial(), os, [&](PartialAttr partial) {
    partial.getAxis().printAxis(os);
    os << ": " << stringifyReductionKind(partial.getKind());
  });
  os << "}";
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", ";
  printPlacement(printer.getStream());
  printer << ">";
}

bool ShardingAttr::isReplicated() const {
  return !isPartial() && llvm::all_of(getDims(), [](AxisListAttr axes) {
    return axes.empty();
  });
}

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, int64_t rank) {
  MLIRContext *context = mesh.getContext();
  SmallVector<AxisListAttr> dims(rank, AxisListAttr::get(context, {}));
  return get(context, mesh, dims, {});
}

std::optional<int64_t> ShardingAttr::getShardedDim(StringRef axis) const {
  for (auto [dim, axes] : llvm::enumerate(getDims()))
    if (llvm::any_of(axes, [&](AxisRefAttr a) { return a.getName() == axis; }))
      return dim;
  return std::nullopt;
}

std::optional<ReductionKind>
ShardingAttr::getPartialKind(StringRef axis) const {
  for (PartialAttr partial : getPartial())
    if (partial.getAxis().getName() == axis)
      return partial.getKind();
  return std::nullopt;
}

std::optional<int64_t> ShardingAttr::getShardedDim(AxisRefAttr axis) const {
  for (auto [dim, axes] : llvm::enumerate(getDims()))
    if (llvm::is_contained(axes.getAxes(), axis))
      return dim;
  return std::nullopt;
}

std::optional<ReductionKind>
ShardingAttr::getPartialKind(AxisRefAttr axis) const {
  for (PartialAttr partial : getPartial())
    if (partial.getAxis() == axis)
      return partial.getKind();
  return std::nullopt;
}

ShardingAttr ShardingAttr::without(StringRef axis) const {
  SmallVector<AxisListAttr> dims;
  for (AxisListAttr axes : getDims()) {
    SmallVector<AxisRefAttr> kept(llvm::make_filter_range(
        axes, [&](AxisRefAttr a) { return a.getName() != axis; }));
    dims.push_back(AxisListAttr::get(getContext(), kept,
                                     kept.empty() ? ArrayRef<int64_t>()
                                                  : axes.getSegments()));
  }
  SmallVector<PartialAttr> partial(
      llvm::make_filter_range(getPartial(), [&](PartialAttr p) {
        return p.getAxis().getName() != axis;
      }));
  return get(getContext(), getMesh(), dims, partial);
}

ShardingAttr ShardingAttr::withShard(AxisRefAttr axis, int64_t dim) const {
  SmallVector<AxisListAttr> dims(getDims());
  SmallVector<AxisRefAttr> axes(dims[dim].getAxes());
  axes.push_back(axis);
  dims[dim] = AxisListAttr::get(getContext(), axes, dims[dim].getSegments());
  return get(getContext(), getMesh(), dims, getPartial());
}

ShardingAttr ShardingAttr::withPartial(AxisRefAttr axis,
                                       ReductionKind kind) const {
  SmallVector<PartialAttr> partial(getPartial());
  partial.push_back(PartialAttr::get(getContext(), axis, kind));
  return get(getContext(), getMesh(), getDims(), partial);
}

ShardingAttr ShardingAttr::withoutPartial() const {
  return get(getContext(), getMesh(), getDims(), {});
}

//===----------------------------------------------------------------------===//
// What a sharding means for a tensor
//===----------------------------------------------------------------------===//

MeshOp tp::lookupMesh(Operation *from, FlatSymbolRefAttr mesh) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, mesh);
}

MeshOp tp::lookupMesh(Operation *from, FlatSymbolRefAttr mesh,
                      SymbolTableCollection &symbols) {
  return symbols.lookupNearestSymbolFrom<MeshOp>(from, mesh);
}

LogicalResult tp::verifySharding(ShardingAttr sharding, Type type,
                                 Operation *from,
                                 function_ref<InFlightDiagnostic()> emitError) {
  return verifySharding(sharding, type, lookupMesh(from, sharding.getMesh()),
                        emitError);
}

LogicalResult tp::verifySharding(ShardingAttr sharding, Type type, MeshOp mesh,
                                 function_ref<InFlightDiagnostic()> emitError) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  // A value that isn't a tensor, such as an index or a shape, is the same on
  // all ranks.
  if (!isa<TensorType>(type) && sharding.isReplicated() && !sharding.getRank())
    return success();
  if (!tensor)
    return emitError() << "a sharding needs a ranked tensor, found " << type;
  if (!tensor.hasStaticShape())
    return emitError() << "a sharding needs a tensor of static shape, found "
                       << type;
  if (!tensor.getElementType().isIntOrIndexOrFloat())
    return emitError() << "a sharding needs a tensor of integers, floats or "
                          "indices, found "
                       << type;
  int64_t elements = 1;
  for (int64_t size : tensor.getShape())
    if (llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements) ||
        elements > kMaxTensorElements)
      return emitError() << "a sharding needs a tensor of at most "
                         << kMaxTensorElements << " elements, found " << type;
  if (!mesh)
    return emitError() << "no tp.mesh called '" << sharding.getMesh().getValue()
                       << "'";
  if (sharding.getRank() != tensor.getRank())
    return emitError() << "sharding has " << sharding.getRank()
                       << " dimension lists, the tensor " << tensor << " has "
                       << tensor.getRank() << " dimensions";
  SmallVector<AxisRefAttr> taken;
  auto visit = [&](AxisRefAttr axis) -> LogicalResult {
    std::optional<unsigned> index = mesh.getAxisIndex(axis.getName());
    if (!index) {
      InFlightDiagnostic diag = emitError() << "mesh '" << mesh.getSymName()
                                            << "' has no dimension '"
                                            << axis.getName() << "'; it has ";
      for (size_t i = 0; i < mesh.getNumAxes(); ++i)
        diag << (i ? ", '" : "'") << mesh.getAxisName(i) << "'";
      return diag;
    }
    int64_t whole = mesh.getAxisSizes()[*index];
    if (!axis.isWhole() && whole % (axis.getPreSize() * axis.getSize()))
      return emitError() << "part ':(" << axis.getPreSize() << ")"
                         << axis.getSize()
                         << "' doesn't divide mesh dimension '"
                         << axis.getName() << "' of size " << whole;
    for (AxisRefAttr other : taken) {
      if (!axis.overlaps(other))
        continue;
      auto [major, minor] =
          std::minmax(axis, other, [](AxisRefAttr a, AxisRefAttr b) {
            return a.getPreSize() < b.getPreSize();
          });
      int64_t end = major.getPreSize() * major.getSize();
      if (major.isWhole() || minor.getPreSize() < end)
        return emitError() << "mesh dimension '" << axis.getName()
                           << "' appears twice";
      return emitError() << "parts ':(" << major.getPreSize() << ")"
                         << major.getSize() << "' and ':(" << minor.getPreSize()
                         << ")" << minor.getSize() << "' of mesh dimension '"
                         << axis.getName()
                         << "' can't be used together: " << end
                         << " doesn't divide " << minor.getPreSize();
    }
    taken.push_back(axis);
    return success();
  };
  for (AxisListAttr axes : sharding.getDims())
    for (AxisRefAttr axis : axes)
      if (failed(visit(axis)))
        return failure();
  for (PartialAttr partial : sharding.getPartial())
    if (failed(visit(partial.getAxis())))
      return failure();
  for (PartialAttr partial : sharding.getPartial())
    if (PartialAttr first = sharding.getPartial().front();
        !commute(first.getKind(), partial.getKind()))
      return emitError() << "partial by " << stringifyEnum(first.getKind())
                         << " over '" << first.getAxis().getName()
                         << "' and by " << stringifyEnum(partial.getKind())
                         << " over '" << partial.getAxis().getName()
                         << "': these reductions don't commute";
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims())) {
    int64_t sum = 0;
    for (int64_t segment : axes.getSegments())
      sum += segment;
    if (!axes.getSegments().empty() && sum != tensor.getDimSize(dim))
      return emitError() << "the segments of dimension " << dim << " add up to "
                         << sum << ", its size is " << tensor.getDimSize(dim);
  }
  return success();
}

/// The text for a part of a mesh dimension; empty for a whole one.
static std::string printPart(AxisRefAttr axis) {
  if (axis.isWhole())
    return "";
  return llvm::formatv(", part=({0}){1}", axis.getPreSize(), axis.getSize());
}

/// The placement of `axis`, one of `axes` on dimension `dim`, in DTensor's
/// spelling. An axis is strided if axes that come later in the mesh are major
/// to it on the dimension.
static std::string printShard(AxisRefAttr axis, AxisListAttr axes, int64_t dim,
                              MeshOp mesh) {
  int64_t splitFactor = 1;
  for (AxisRefAttr other : axes.getAxes().take_while(
           [&](AxisRefAttr other) { return other != axis; }))
    if (*mesh.getAxisIndex(other.getName()) >
        *mesh.getAxisIndex(axis.getName()))
      splitFactor *= mesh.getAxisSize(other);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (splitFactor > 1 ? "_StridedShard(" : "Shard(") << dim;
  if (splitFactor > 1)
    os << ", split_factor=" << splitFactor;
  os << printPart(axis);
  if (!axes.getSegments().empty()) {
    os << ", segments=[";
    llvm::interleaveComma(axes.getSegments(), os);
    os << "]";
  }
  os << ")";
  return text;
}

SmallVector<std::string> tp::getPlacements(ShardingAttr sharding, MeshOp mesh) {
  SmallVector<std::string> placements;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
    SmallVector<std::string> parts;
    for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
      for (AxisRefAttr axis : axes)
        if (axis.getName() == mesh.getAxisName(i))
          parts.push_back(printShard(axis, axes, dim, mesh));
    for (PartialAttr partial : sharding.getPartial())
      if (partial.getAxis().getName() == mesh.getAxisName(i))
        parts.push_back("Partial(" +
                        stringifyReductionKind(partial.getKind()).str() +
                        printPart(partial.getAxis()) + ")");
    placements.push_back(parts.empty() ? "Replicate" : llvm::join(parts, "+"));
  }
  return placements;
}

std::string tp::printPlacements(ShardingAttr sharding, MeshOp mesh) {
  return "(" + llvm::join(getPlacements(sharding, mesh), ", ") + ")";
}
