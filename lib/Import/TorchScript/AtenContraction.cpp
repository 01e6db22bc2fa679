//===- AtenContraction.cpp - products, attention, embedding ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include "tp/Dialect/NN/Expressions.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::tp;

/// If `v` is the transpose of a parameter (n, k), returns that parameter: `x @
/// w.t()` becomes a Linear, so that the styles for Linear apply.
static Value transposedParameter(Value v) {
  auto transpose = v.getDefiningOp<nn::TransposeOp>();
  if (!transpose || transpose.getPermutation() != ArrayRef<int64_t>{1, 0} ||
      !transpose.getInput().getDefiningOp<nn::ParameterOp>())
    return Value();
  return transpose.getInput();
}

static Value multiply(NNBuilder &b, Value lhs, Value rhs) {
  if (Value weight = transposedParameter(rhs); weight && b.isFloat(lhs))
    return b.linear(lhs, weight);
  return b.matmul(lhs, rhs);
}

/// PyTorch's matmul: a one-dimensional operand is a row on the left and a
/// column on the right, and its dimension disappears.
static LogicalResult product(AtenCall &call, NNBuilder &b, Value lhs,
                             Value rhs) {
  Type type = call.resultElement();
  lhs = b.cast(lhs, type);
  rhs = b.cast(rhs, type);
  if (b.rank(lhs) == 1)
    lhs = b.reshape(lhs, {1, b.shape(lhs)[0]});
  if (b.rank(rhs) == 1)
    rhs = b.reshape(rhs, {b.shape(rhs)[0], 1});
  return call.result(b.reshape(multiply(b, lhs, rhs), call.resultShape()));
}

static LogicalResult matmul(AtenCall &call, NNBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("other"));
}

static LogicalResult matrixMultiply(AtenCall &call, NNBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("mat2"));
}

static LogicalResult matrixVector(AtenCall &call, NNBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("vec"));
}

static LogicalResult dot(AtenCall &call, NNBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("tensor"));
}

static LogicalResult outer(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value column = b.cast(call.tensor("self"), type);
  column = b.reshape(column, {b.shape(column)[0], 1});
  return call.result(b.mul(column, b.cast(call.tensor("vec2"), type)));
}

/// If the rows of `matrix` are flattened dimensions, restores these dimensions:
/// a Linear takes any number of dimensions, and each of them can be split.
static Value unflatten(NNBuilder &b, Value matrix) {
  auto flat = matrix.getDefiningOp<nn::ReshapeOp>();
  if (!flat || b.rank(matrix) != 2)
    return matrix;
  llvm::SmallVector<int64_t> shape;
  int64_t numRows = 1;
  for (int64_t size : b.shape(flat.getInput())) {
    if (numRows == b.shape(matrix)[0])
      break;
    shape.push_back(size);
    numRows *= size;
  }
  if (numRows != b.shape(matrix)[0])
    return matrix;
  shape.push_back(b.shape(matrix)[1]);
  return b.reshape(matrix, shape);
}

static LogicalResult linear(AtenCall &call, NNBuilder &b) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  if (b.rank(weight) != 2)
    return call.unsupported("with a one-dimensional weight");
  // nn.linear wants a row; a vector is a batch of one.
  bool isVector = b.rank(input) == 1;
  Value rows =
      isVector ? b.reshape(input, {1, b.shape(input)[0]}) : unflatten(b, input);
  Value result = b.linear(rows, weight);
  if (call.has("bias"))
    result = b.add(result, call.tensor("bias"));
  return call.result(b.reshape(result, call.resultShape()));
}

/// beta * self + alpha * (first @ second).
static LogicalResult addProduct(AtenCall &call, NNBuilder &b, Value first,
                                Value second) {
  auto scaled = [&](Value v, StringRef name) {
    return call.scalar(name) == 1.0
               ? v
               : b.mul(v, b.scalar(b.element(v), call.scalar(name)));
  };
  Value result = scaled(multiply(b, first, second), "alpha");
  if (call.scalar("beta") == 0.0)
    return call.result(result);
  return call.result(b.add(result, scaled(call.tensor("self"), "beta")));
}

static LogicalResult addmm(AtenCall &call, NNBuilder &b) {
  return addProduct(call, b, call.tensor("mat1"), call.tensor("mat2"));
}

static LogicalResult baddbmm(AtenCall &call, NNBuilder &b) {
  return addProduct(call, b, call.tensor("batch1"), call.tensor("batch2"));
}

/// A causal mask of queries by keys; true where a key is kept.
static Value triangleOf(NNBuilder &b, Value query, Value key) {
  return b.triangle(b.shape(query)[b.rank(query) - 2],
                    b.shape(key)[b.rank(key) - 2],
                    /*diagonal=*/0, /*upper=*/false);
}

/// Attention with dropout on its weights, as in PyTorch's math backend. Shared
/// heads of key and value are repeated.
static Value droppedAttention(NNBuilder &b, Value query, Value key, Value value,
                              Value mask, bool causal, double scale,
                              double dropout) {
  int64_t rank = b.rank(query);
  auto repeatHeads = [&](Value v) {
    int64_t heads = b.shape(query)[rank - 3], shared = b.shape(v)[rank - 3];
    if (heads == shared)
      return v;
    llvm::SmallVector<int64_t> shape(b.shape(v));
    shape.insert(shape.begin() + rank - 2, 1);
    v = b.reshape(v, shape);
    shape[rank - 2] = heads / shared;
    v = b.broadcast(v, shape);
    shape.erase(shape.begin() + rank - 2);
    shape[rank - 3] = heads;
    return b.reshape(v, shape);
  };
  Value keys = b.swap(repeatHeads(key), rank - 2, rank - 1);
  Value scores = b.matmul(query, keys);
  Type element = b.element(scores);
  // The softmax of small floats is computed in f32.
  Type wide =
      element.getIntOrFloatBitWidth() < 32 ? b.builder.getF32Type() : element;
  scores = b.mul(b.cast(scores, wide), b.scalar(wide, Scalar::of(scale)));
  if (causal)
    mask = triangleOf(b, query, key);
  if (mask && b.isBool(mask))
    scores = b.where(
        mask, scores,
        b.scalar(wide, Scalar::of(-std::numeric_limits<double>::infinity())));
  else if (mask)
    scores = b.add(scores, b.cast(mask, wide));
  ImplicitLocOpBuilder formulas(b.loc, b.builder);
  Value weights = b.cast(
      nn::expr::safeSoftmax(formulas, scores, b.rank(scores) - 1), element);
  weights = nn::DropoutOp::create(b.builder, b.loc, weights.getType(), weights,
                                  b.builder.getF64FloatAttr(dropout));
  return b.matmul(weights, repeatHeads(value));
}

static LogicalResult attention(AtenCall &call, NNBuilder &b) {
  Value query = call.tensor("query"), key = call.tensor("key"),
        value = call.tensor("value");
  int64_t rank = b.rank(query);
  if (rank < 3)
    return call.unsupported("of fewer than three dimensions");
  if (b.rank(key) != rank || b.rank(value) != rank)
    return call.unsupported("of query, key and value of different ranks");
  double scale = call.has("scale")
                     ? call.real("scale")
                     : 1.0 / std::sqrt(double(b.shape(query).back()));
  bool causal = call.flag("is_causal");
  Value mask;
  if (call.has("attn_mask")) {
    bool square = b.shape(query)[rank - 2] == b.shape(key)[rank - 2];
    if (square && call.isCausalMask("attn_mask")) {
      causal = true;
    } else {
      mask = call.tensor("attn_mask");
      if (!b.isBool(mask))
        mask = b.cast(mask, b.element(query));
    }
  }
  if (mask && causal) {
    Value keep = triangleOf(b, query, key);
    if (b.isBool(mask))
      mask = b.binary<nn::LogicalAndOp>(mask, keep);
    else
      mask = b.where(
          keep, mask,
          b.scalar(b.element(mask),
                   Scalar::of(-std::numeric_limits<double>::infinity())));
    causal = false;
  }

  // nn.attention has batch and head dimensions; a three-dimensional operand has
  // one head.
  auto withHead = [&](Value v) {
    if (rank != 3)
      return v;
    auto shape = b.shape(v);
    return b.reshape(v, {shape[0], 1, shape[1], shape[2]});
  };
  if (mask && rank == 3 && b.rank(mask) == 3)
    mask = withHead(mask);
  query = withHead(query), key = withHead(key), value = withHead(value);

  // PyTorch broadcasts the leading dimensions; nn.attention shares heads alone.
  llvm::SmallVector<int64_t> lead(b.shape(query).drop_back(2));
  for (Value v : {key, value}) {
    llvm::SmallVector<int64_t> both;
    auto other = llvm::to_vector(b.shape(v).drop_back(2));
    if (call.flag("enable_gqa")) {
      if (other.back() == 0)
        return call.unsupported("without heads that are shared");
      other.back() = lead.back();
    }
    if (!OpTrait::util::getBroadcastedShape(lead, other, both))
      return call.unsupported("with heads that don't broadcast");
    lead = both;
  }
  auto expand = [&](Value v, bool shareHeads) {
    llvm::SmallVector<int64_t> shape(lead);
    if (shareHeads)
      shape.back() = b.shape(v)[b.rank(v) - 3];
    llvm::append_range(shape, b.shape(v).take_back(2));
    return b.broadcast(v, shape);
  };
  bool shareHeads = call.flag("enable_gqa");
  query = expand(query, false);
  key = expand(key, shareHeads);
  value = expand(value, shareHeads);

  llvm::SmallVector<int64_t> shape(lead);
  shape.push_back(b.shape(query)[b.rank(query) - 2]);
  shape.push_back(b.shape(value).back());
  auto type = RankedTensorType::get(shape, b.element(query));
  Value result;
  if (double dropout = call.real("dropout_p"); dropout != 0)
    result = b.broadcast(
        droppedAttention(b, query, key, value, mask, causal, scale, dropout),
        shape);
  else
    result =
        nn::AttentionOp::create(b.builder, b.loc, type, query, key, value, mask,
                                b.builder.getF64FloatAttr(scale), causal);
  return call.result(b.reshape(result, call.resultShape()));
}

static LogicalResult embedding(AtenCall &call, NNBuilder &b) {
  // In PyTorch, -1 means no padding; other negative indices have been made
  // positive.
  int64_t padding = call.integer("padding_idx");
  IntegerAttr paddingAttr;
  if (padding >= 0)
    paddingAttr = b.builder.getI64IntegerAttr(padding);
  return call.result(nn::EmbeddingOp::create(
      b.builder, b.loc, call.resultType(), call.tensor("indices"),
      call.tensor("weight"), paddingAttr, call.flag("scale_grad_by_freq")));
}

static LogicalResult renormalize(AtenCall &call, NNBuilder &b) {
  return call.unsupported("(max_norm of an embedding): it changes the weight "
                          "in every forward pass, but a model keeps no state "
                          "between calls");
}

//===----------------------------------------------------------------------===//
// einsum
//===----------------------------------------------------------------------===//

namespace {
/// One operand of an einsum: a value and a letter per dimension.
struct Lettered {
  Value value;
  std::string letters;
};
} // namespace

/// Sums over the letters that `keep` doesn't have.
static Lettered sumOut(NNBuilder &b, Lettered term, StringRef keep) {
  llvm::SmallVector<int64_t> dims;
  std::string rest;
  for (auto [dim, letter] : llvm::enumerate(term.letters)) {
    if (keep.contains(letter))
      rest += letter;
    else
      dims.push_back(dim);
  }
  if (dims.empty())
    return term;
  return {b.reduce(nn::ReduceKind::Sum, term.value, dims, false), rest};
}

static Value permuteTo(NNBuilder &b, Lettered term, StringRef order) {
  auto permutation = llvm::map_to_vector(
      order, [&](char letter) { return int64_t(term.letters.find(letter)); });
  return b.transpose(term.value, permutation);
}

/// Contracts two operands to the letters of `keep` by one batched matmul.
static Lettered contract(NNBuilder &b, Lettered lhs, Lettered rhs,
                         StringRef keep) {
  lhs = sumOut(b, lhs, (keep + rhs.letters).str());
  rhs = sumOut(b, rhs, (keep + lhs.letters).str());
  std::string batch, rows, inner, columns;
  for (char letter : lhs.letters) {
    if (!StringRef(rhs.letters).contains(letter))
      rows += letter;
    else if (keep.contains(letter))
      batch += letter;
    else
      inner += letter;
  }
  for (char letter : rhs.letters)
    if (!StringRef(lhs.letters).contains(letter))
      columns += letter;

  auto sizes = [&](Lettered &term, StringRef letters) {
    return llvm::map_to_vector(letters, [&](char letter) {
      return b.shape(term.value)[term.letters.find(letter)];
    });
  };
  auto count = [](ArrayRef<int64_t> sizes) {
    int64_t product = 1;
    for (int64_t size : sizes)
      product *= size;
    return product;
  };
  auto batchSizes = sizes(lhs, batch), rowSizes = sizes(lhs, rows),
       innerSizes = sizes(lhs, inner), columnSizes = sizes(rhs, columns);
  auto matrix = [&](Lettered &term, const std::string &order,
                    ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
    llvm::SmallVector<int64_t> shape(batchSizes);
    shape.push_back(count(first));
    shape.push_back(count(second));
    return b.reshape(permuteTo(b, term, order), shape);
  };
  Value result =
      b.matmul(matrix(lhs, batch + rows + inner, rowSizes, innerSizes),
               matrix(rhs, batch + inner + columns, innerSizes, columnSizes));
  llvm::SmallVector<int64_t> shape(batchSizes);
  llvm::append_range(shape, rowSizes);
  llvm::append_range(shape, columnSizes);
  return {b.reshape(result, shape), batch + rows + columns};
}

static LogicalResult einsum(AtenCall &call, NNBuilder &b) {
  std::string equation = call.string("equation");
  llvm::erase(equation, ' ');
  auto [inputs, output] = StringRef(equation).split("->");
  bool explicitOutput = StringRef(equation).contains("->");
  if (StringRef(equation).contains('.') || !explicitOutput)
    return call.unsupported("with equation '" + llvm::Twine(equation) +
                            "', expected letters and '->' alone");
  llvm::SmallVector<StringRef> parts;
  inputs.split(parts, ',');
  llvm::SmallVector<Lettered> terms;
  llvm::SmallDenseMap<char, int64_t> sizes;
  for (auto [value, part] : llvm::zip_equal(call.tensors("tensors"), parts)) {
    for (size_t i = 0; i < part.size(); ++i)
      if (part.find(part[i]) != i)
        return call.unsupported("with the repeated letter '" +
                                llvm::Twine(part[i]) + "'");
    for (auto [dim, letter] : llvm::enumerate(part))
      if (sizes.try_emplace(letter, b.shape(value)[dim]).first->second !=
          b.shape(value)[dim])
        return call.unsupported("with sizes that are broadcast");
    terms.push_back({b.cast(value, call.resultElement()), part.str()});
  }
  Lettered left = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string keep = output.str();
    for (size_t j = i + 1; j < terms.size(); ++j)
      keep += terms[j].letters;
    left = contract(b, left, terms[i], keep);
  }
  left = sumOut(b, left, output);
  return call.result(permuteTo(b, left, output));
}

void mlir::tp::addContractionOps(AtenTable &table) {
  table["linear"] = {linear, "input weight bias"};
  table["matmul"] = {matmul, "self other"};
  table["linalg_matmul"] = {matmul, "self other"};
  table["__matmul__"] = {matmul, "self other"};
  table["mm"] = {
      .run = matrixMultiply, .reads = "self mat2", .inType = "out_dtype"};
  table["bmm"] = {
      .run = matrixMultiply, .reads = "self mat2", .inType = "out_dtype"};
  table["mv"] = {matrixVector, "self vec"};
  table["dot"] = {dot, "self tensor"};
  table["outer"] = {outer, "self vec2"};
  table["ger"] = {outer, "self vec2"};
  table["addmm"] = {.run = addmm,
                    .reads = "self mat1 mat2 beta alpha",
                    .refuses = "out_dtype"};
  table["baddbmm"] = {.run = baddbmm,
                      .reads = "self batch1 batch2 beta alpha",
                      .refuses = "out_dtype"};
  table["einsum"] = {.run = einsum,
                     .reads = "equation tensors",
                     .noEffect = "path",
                     .refuses = "a"};
  table["scaled_dot_product_attention"] = {
      attention,
      "query key value attn_mask dropout_p is_causal scale enable_gqa"};
  table["embedding"] = {.run = embedding,
                        .reads =
                            "weight indices padding_idx scale_grad_by_freq",
                        .noEffect = "sparse"};
  table["embedding_renorm"] = {renormalize, "self indices max_norm norm_type"};
}
