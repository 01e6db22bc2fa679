//===- AtenComplex.cpp - complex numbers as pairs of reals ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nn dialect has no complex numbers. A complex tensor of the model, as in
// rotary positions, is a real one with a last dimension of size 2: the real and
// the imaginary part. This is what view_as_real gives in PyTorch.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

namespace {
/// Both parts of numbers, each with a last dimension of size 1. Real numbers
/// have no imaginary part.
struct Parts {
  Value real, imaginary;
};
} // namespace

static Parts split(ImportBuilder &b, Value pairs) {
  int64_t dim = rankOf(pairs) - 1;
  return {b.slice(pairs, dim, 0, 1), b.slice(pairs, dim, 1, 1)};
}

/// An argument in the result's type.
static Parts partsOf(AtenCall &call, ImportBuilder &b, StringRef name) {
  Type type = call.resultElement();
  if (call.isNumber(name) && !call.isComplex(name))
    return {b.scalar(type, call.scalar(name)), Value()};
  Value v = castTo(b, call.tensor(name), type);
  if (call.isComplex(name))
    return split(b, v);
  return {unsqueeze(b, v, rankOf(v)), Value()};
}

/// The result of both parts.
static LogicalResult join(AtenCall &call, ImportBuilder &b, Parts parts) {
  auto shape = llvm::to_vector(call.resultShape());
  shape.back() = 1;
  Value real = broadcast(b, parts.real, shape);
  Value imaginary = parts.imaginary
                        ? broadcast(b, parts.imaginary, shape)
                        : b.splat(shape, elementOf(real), Scalar::of(0.0));
  return call.result(b.concat({real, imaginary}, rankOf(real) - 1));
}

/// For an op on parts, of which either may be absent in an operand.
static Value sum(ImportBuilder &b, Value x, Value y) {
  return x && y ? add(b, x, y) : x ? x : y;
}
static Value difference(ImportBuilder &b, Value x, Value y) {
  return x && y ? sub(b, x, y) : x ? x : y ? neg(b, y) : y;
}
static Value product(ImportBuilder &b, Value x, Value y) {
  return x && y ? mul(b, x, y) : Value();
}

static Parts multiply(ImportBuilder &b, Parts x, Parts y) {
  return {
      difference(b, product(b, x.real, y.real),
                 product(b, x.imaginary, y.imaginary)),
      sum(b, product(b, x.real, y.imaginary), product(b, x.imaginary, y.real))};
}

static Value squaredSize(ImportBuilder &b, Parts x) {
  return sum(b, product(b, x.real, x.real),
             product(b, x.imaginary, x.imaginary));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static LogicalResult identity(AtenCall &call, ImportBuilder &) {
  return call.result(call.tensor("self"));
}

static LogicalResult complex(AtenCall &call, ImportBuilder &b) {
  return join(call, b,
              {partsOf(call, b, "real").real, partsOf(call, b, "imag").real});
}

static Parts rotate(ImportBuilder &b, Value size, Value angle) {
  return {mul(b, size, unary<nn::CosOp>(b, angle)),
          mul(b, size, unary<nn::SinOp>(b, angle))};
}

static LogicalResult polar(AtenCall &call, ImportBuilder &b) {
  return join(
      call, b,
      rotate(b, partsOf(call, b, "abs").real, partsOf(call, b, "angle").real));
}

static LogicalResult exponential(AtenCall &call, ImportBuilder &b) {
  Parts x = partsOf(call, b, "self");
  return join(call, b, rotate(b, exp(b, x.real), x.imaginary));
}

static LogicalResult multiply(AtenCall &call, ImportBuilder &b) {
  return join(call, b,
              multiply(b, partsOf(call, b, "self"), partsOf(call, b, "other")));
}

/// x times the conjugate of y, by |y|².
static LogicalResult divide(AtenCall &call, ImportBuilder &b) {
  Parts x = partsOf(call, b, "self"), y = partsOf(call, b, "other");
  Value size = squaredSize(b, y);
  if (y.imaginary)
    y.imaginary = neg(b, y.imaginary);
  Parts result = multiply(b, x, y);
  result.real = div(b, result.real, size);
  if (result.imaginary)
    result.imaginary = div(b, result.imaginary, size);
  return join(call, b, result);
}

/// self ± alpha * other.
template <bool isSum>
static LogicalResult addScaled(AtenCall &call, ImportBuilder &b) {
  Parts x = partsOf(call, b, "self"), y = partsOf(call, b, "other");
  if (call.has("alpha"))
    y = multiply(
        b, y, {b.scalar(call.resultElement(), call.scalar("alpha")), Value()});
  auto *combine = isSum ? sum : difference;
  return join(
      call, b,
      {combine(b, x.real, y.real), combine(b, x.imaginary, y.imaginary)});
}

static LogicalResult negate(AtenCall &call, ImportBuilder &b) {
  return call.result(neg(b, call.tensor("self")));
}

static LogicalResult conjugate(AtenCall &call, ImportBuilder &b) {
  Parts x = partsOf(call, b, "self");
  return join(call, b, {x.real, neg(b, x.imaginary)});
}

static LogicalResult absolute(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  Value size = b.rootOfSquares(squaredSize(b, split(b, self)));
  return call.result(b.reshape(size, call.resultShape()));
}

static LogicalResult permute(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  auto order = call.integers("dims");
  order.push_back(rankOf(self) - 1);
  return call.result(b.transpose(self, order));
}

static LogicalResult convert(AtenCall &call, ImportBuilder &b) {
  if (!call.isComplex("self"))
    return join(call, b, partsOf(call, b, "self"));
  Value self = call.tensor("self");
  if (call.resultType().getRank() != rankOf(self))
    return call.unsupported("of complex numbers to real ones; take x.real or "
                            "x.abs()");
  return call.result(castTo(b, self, call.resultElement()));
}

void mlir::tp::addComplexOps(AtenTable &table) {
  auto add = [&](StringRef name, StringRef reads, AtenHandler run) {
    AtenOp &op = table[name];
    if (!op.run)
      op.reads = reads;
    op.runOnPairs = run;
  };
  add("view_as_complex", "self", identity);
  add("view_as_real", "self", identity);
  add("resolve_conj", "self", identity);
  add("_conj", "self", conjugate);
  add("complex", "real imag", complex);
  add("polar", "abs angle", polar);
  add("mul", "", multiply);
  add("div", "", divide);
  add("add", "", addScaled<true>);
  add("sub", "", addScaled<false>);
  add("neg", "", negate);
  add("abs", "", absolute);
  add("exp", "", exponential);
  add("permute", "", permute);
  for (StringRef name : {"to", "_to_copy", "type_as"})
    add(name, "", convert);
  // Their dimensions are counted from the front, where pairs have none of
  // their own.
  for (StringRef name : {"view",
                         "reshape",
                         "_unsafe_view",
                         "flatten",
                         "unflatten",
                         "unsqueeze",
                         "squeeze",
                         "view_as",
                         "reshape_as",
                         "expand",
                         "expand_as",
                         "broadcast_to",
                         "transpose",
                         "slice",
                         "narrow",
                         "select",
                         "chunk",
                         "split",
                         "split_with_sizes",
                         "unbind",
                         "cat",
                         "index_select",
                         "index",
                         "clone",
                         "contiguous",
                         "alias",
                         "lift_fresh",
                         "lift_fresh_copy",
                         "detach"})
    add(name, "", table[name].run);
}
