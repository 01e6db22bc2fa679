//===- NNDialect.cpp - The nn dialect, modules ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/InliningUtils.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/NN/NNExperts.h"
#include "tp/Interfaces/TensorBuilder.h"

using namespace mlir;
using namespace mlir::nn;

#include "tp/Dialect/NN/NNDialect.cpp.inc"

#include "tp/Dialect/NN/NNEnums.cpp.inc"

static ParseResult parseContextMethod(OpAsmParser &parser,
                                      tp::ContextMethodAttr &attr) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<tp::ContextMethod> method = tp::symbolizeContextMethod(name);
  if (!method)
    return parser.emitError(loc)
           << "the context method must be cheapest, all_gather, all_to_all or "
              "ring, found '"
           << name << "'";
  attr = tp::ContextMethodAttr::get(parser.getContext(), *method);
  return success();
}

static void printContextMethod(OpAsmPrinter &printer, Operation *,
                               tp::ContextMethodAttr attr) {
  printer << tp::stringifyContextMethod(attr.getValue());
}

#define GET_OP_CLASSES
#include "tp/Dialect/NN/NNOps.cpp.inc"

#define GET_OP_CLASSES
#include "tp/Dialect/NN/NNExpertOps.cpp.inc"

namespace {
struct NNInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

struct NNTensorBuilder : tp::TensorBuilderInterface {
  using TensorBuilderInterface::TensorBuilderInterface;

  Value add(OpBuilder &b, Location loc, Value lhs, Value rhs,
            RankedTensorType type) const final {
    return AddOp::create(b, loc, type, lhs, rhs);
  }
  Value constant(OpBuilder &b, Location loc, ElementsAttr value) const final {
    return ConstantOp::create(b, loc, value);
  }
  Value createReshape(OpBuilder &b, Location loc, RankedTensorType type,
                      Value value) const final {
    return ReshapeOp::create(b, loc, type, value);
  }
  Value createTranspose(OpBuilder &b, Location loc, RankedTensorType type,
                        Value value,
                        ArrayRef<int64_t> permutation) const final {
    return TransposeOp::create(b, loc, type, value, permutation);
  }
  Value createSlice(OpBuilder &b, Location loc, RankedTensorType type,
                    Value value, int64_t dim, int64_t start) const final {
    return SliceOp::create(b, loc, type, value, dim, start, /*step=*/1);
  }
  Value createConcat(OpBuilder &b, Location loc, RankedTensorType type,
                     ArrayRef<Value> values, int64_t dim) const final {
    return ConcatOp::create(b, loc, type, values, dim);
  }
  Value createBroadcast(OpBuilder &b, Location loc, RankedTensorType type,
                        Value value) const final {
    return nn::BroadcastOp::create(b, loc, type, value);
  }
};
} // namespace

void NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tp/Dialect/NN/NNOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tp/Dialect/NN/NNExpertOps.cpp.inc"
      >();
  addInterfaces<NNInlinerInterface, NNTensorBuilder>();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location loc) {
  if (auto elements = dyn_cast<ElementsAttr>(value))
    if (elements.getType() == type)
      return ConstantOp::create(builder, loc, elements);
  return nullptr;
}

std::optional<tp::DimRange> SliceOp::getRange() {
  if (getStep() != 1)
    return std::nullopt;
  return tp::DimRange{static_cast<int64_t>(getDim()),
                      static_cast<int64_t>(getStart())};
}

//===----------------------------------------------------------------------===//
// ModuleOp
//===----------------------------------------------------------------------===//

void nn::ModuleOp::build(OpBuilder &builder, OperationState &state,
                         StringRef fqn, StringRef className, ValueRange inputs,
                         ArrayRef<StringRef> argNames,
                         ArrayRef<int64_t> argPositions,
                         TypeRange resultTypes) {
  state.addOperands(inputs);
  state.addTypes(resultTypes);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.fqn = builder.getStringAttr(fqn);
  properties.class_name = builder.getStringAttr(className);
  properties.arg_names = builder.getStrArrayAttr(argNames);
  properties.arg_positions = builder.getDenseI64ArrayAttr(argPositions);
  Block &body = state.addRegion()->emplaceBlock();
  for (Value input : inputs)
    body.addArgument(input.getType(), input.getLoc());
}

ParseResult nn::ModuleOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  StringAttr fqn, className;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Attribute> names;
  SmallVector<int64_t> positions;
  auto parseInput = [&]() -> ParseResult {
    StringAttr name;
    int64_t position;
    if (parser.parseOperand(inputs.emplace_back()) ||
        parser.parseKeyword("as") || parser.parseAttribute(name) ||
        parser.parseKeyword("at") || parser.parseInteger(position))
      return failure();
    names.push_back(name);
    positions.push_back(position);
    return success();
  };
  SMLoc inputsLoc;
  FunctionType type;
  Region *body = state.addRegion();
  if (parser.parseAttribute(fqn) || parser.parseKeyword("class") ||
      parser.parseAttribute(className) ||
      parser.getCurrentLocation(&inputsLoc) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseInput) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*body) || parser.parseColonType(type) ||
      parser.resolveOperands(inputs, type.getInputs(), inputsLoc,
                             state.operands))
    return failure();
  ensureTerminator(*body, builder, state.location);
  state.addTypes(type.getResults());
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.fqn = fqn;
  properties.class_name = className;
  properties.arg_names = builder.getArrayAttr(names);
  properties.arg_positions = builder.getDenseI64ArrayAttr(positions);
  return success();
}

void nn::ModuleOp::print(OpAsmPrinter &printer) {
  printer << " " << getFqnAttr() << " class " << getClassNameAttr() << " (";
  for (unsigned i = 0; i < getInputs().size(); ++i) {
    if (i)
      printer << ", ";
    printer << getInputs()[i] << " as " << getArgNames()[i] << " at "
            << getArgPositions()[i];
  }
  printer << ")";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"fqn", "class_name", "arg_names", "arg_positions"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/!getInputs().empty());
  printer << " : ";
  printer.printFunctionalType(*this);
}

LogicalResult nn::ModuleOp::verify() {
  Block *body = getBodyBlock();
  if (body->getArgumentTypes() != getInputs().getTypes())
    return emitOpError("block arguments must have the operands' types");
  auto yield = dyn_cast<YieldOp>(body->getTerminator());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("'nn.yield' must have the results' types");
  if (getArgNames().size() != getInputs().size() ||
      getArgPositions().size() != getInputs().size())
    return emitOpError() << "has " << getInputs().size() << " inputs, "
                         << getArgNames().size() << " names and "
                         << getArgPositions().size() << " positions";
  return success();
}
