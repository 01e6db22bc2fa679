//===- AtenContraction.cpp - products, attention, embedding ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// If the rows of `matrix` are flattened dimensions, restores these dimensions:
/// a Linear takes any number of dimensions, and each of them can be split.
static Value unflatten(ImportBuilder &b, Value matrix) {
  auto flat = matrix.getDefiningOp<nn::ReshapeOp>();
  if (!flat || rankOf(matrix) != 2)
    return matrix;
  llvm::SmallVector<int64_t> shape;
  int64_t numRows = 1;
  for (int64_t size : shapeOf(flat.getInput())) {
    if (numRows == shapeOf(matrix)[0])
      break;
    shape.push_back(size);
    numRows *= size;
  }
  if (numRows != shapeOf(matrix)[0])
    return matrix;
  shape.push_back(shapeOf(matrix)[1]);
  return b.reshape(matrix, shape);
}

/// If `v` is the transpose of a parameter (n, k), or that for each element of a
/// batch, returns that parameter: `x @ w.t()` becomes a Linear, so that the
/// styles for Linear apply.
static Value transposedParameter(Value v) {
  if (auto batch = v.getDefiningOp<nn::BroadcastOp>();
      batch && rankOf(batch.getInput()) == 2 &&
      shapeOf(v).take_back(2) == shapeOf(batch.getInput()))
    v = batch.getInput();
  auto transpose = v.getDefiningOp<nn::TransposeOp>();
  if (!transpose || transpose.getPermutation() != ArrayRef<int64_t>{1, 0} ||
      !transpose.getInput().getDefiningOp<nn::ParameterOp>())
    return Value();
  return transpose.getInput();
}

/// The rows of the result may be the dimensions that they were before they were
/// flattened.
static Value multiply(ImportBuilder &b, Value lhs, Value rhs) {
  Value weight = transposedParameter(rhs);
  if (!weight || !isFloat(lhs) ||
      (rankOf(rhs) > 2 &&
       shapeOf(lhs).drop_back(2) != shapeOf(rhs).drop_back(2)))
    return matmul(b, lhs, rhs);
  return nn::LinearOp::create(b, unflatten(b, lhs), weight);
}

/// PyTorch's matmul: a one-dimensional operand is a row on the left and a
/// column on the right, and its dimension disappears.
static LogicalResult product(AtenCall &call, ImportBuilder &b, Value lhs,
                             Value rhs) {
  Type type = call.resultElement();
  lhs = castTo(b, lhs, type);
  rhs = castTo(b, rhs, type);
  if (rankOf(lhs) == 1)
    lhs = b.reshape(lhs, {1, shapeOf(lhs)[0]});
  if (rankOf(rhs) == 1)
    rhs = b.reshape(rhs, {shapeOf(rhs)[0], 1});
  return call.result(b.reshape(multiply(b, lhs, rhs), call.resultShape()));
}

static LogicalResult matmul(AtenCall &call, ImportBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("other"));
}

static LogicalResult matrixMultiply(AtenCall &call, ImportBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("mat2"));
}

static LogicalResult matrixVector(AtenCall &call, ImportBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("vec"));
}

static LogicalResult dot(AtenCall &call, ImportBuilder &b) {
  return product(call, b, call.tensor("self"), call.tensor("tensor"));
}

static LogicalResult outer(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value column = castTo(b, call.tensor("self"), type);
  column = b.reshape(column, {shapeOf(column)[0], 1});
  return call.result(mul(b, column, castTo(b, call.tensor("vec2"), type)));
}

static LogicalResult linear(AtenCall &call, ImportBuilder &b) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  if (rankOf(weight) != 2)
    return call.decompose();
  // nn.linear wants a row; a vector is a batch of one.
  bool isVector = rankOf(input) == 1;
  Value rows =
      isVector ? b.reshape(input, {1, shapeOf(input)[0]}) : unflatten(b, input);
  Value result = nn::LinearOp::create(b, rows, weight);
  if (call.has("bias"))
    result = add(b, result, call.tensor("bias"));
  return call.result(b.reshape(result, call.resultShape()));
}

/// beta * self + alpha * product.
static LogicalResult addScaled(AtenCall &call, ImportBuilder &b,
                               Value product) {
  auto scaled = [&](Value v, StringRef name) {
    return call.scalar(name) == 1.0
               ? v
               : mul(b, v, b.scalar(elementOf(v), call.scalar(name)));
  };
  Value result = scaled(product, "alpha");
  if (call.scalar("beta") != 0.0) {
    Value self = call.tensor("self");
    if (rankOf(self) > 1)
      result = b.reshape(result, call.resultShape());
    result = add(b, result, scaled(self, "beta"));
  }
  return call.result(b.reshape(result, call.resultShape()));
}

static LogicalResult addProduct(AtenCall &call, ImportBuilder &b, Value first,
                                Value second) {
  return addScaled(call, b, multiply(b, first, second));
}

static LogicalResult addmm(AtenCall &call, ImportBuilder &b) {
  return addProduct(call, b, call.tensor("mat1"), call.tensor("mat2"));
}

static LogicalResult baddbmm(AtenCall &call, ImportBuilder &b) {
  return addProduct(call, b, call.tensor("batch1"), call.tensor("batch2"));
}

static LogicalResult addmv(AtenCall &call, ImportBuilder &b) {
  Value vec = call.tensor("vec");
  Value column = b.reshape(vec, {shapeOf(vec)[0], 1});
  Value product =
      b.reshape(multiply(b, call.tensor("mat"), column), call.resultShape());
  return addScaled(call, b, product);
}

/// The sum of the products of a batch.
static LogicalResult addbmm(AtenCall &call, ImportBuilder &b) {
  Value product = matmul(b, call.tensor("batch1"), call.tensor("batch2"));
  return addScaled(call, b, b.reduce(nn::ReduceKind::Sum, product, {0}, false));
}

/// x1ᵀ W[o] x2 for each output o.
static LogicalResult bilinear(AtenCall &call, ImportBuilder &b) {
  Value x1 = call.tensor("input1"), x2 = call.tensor("input2"),
        weight = call.tensor("weight");
  int64_t rank = rankOf(x1), outputs = shapeOf(weight)[0],
          size1 = shapeOf(weight)[1], size2 = shapeOf(weight)[2];
  // (i, o, j) as (o * j, i) for a Linear.
  Value matrix =
      b.reshape(b.transpose(weight, {0, 2, 1}), {outputs * size2, size1});
  bool isVector = rank == 1;
  Value rows = isVector ? b.reshape(x1, {1, size1}) : x1;
  Value product = nn::LinearOp::create(b, rows, matrix);
  llvm::SmallVector<int64_t> shape(shapeOf(x1).drop_back());
  shape.append({outputs, size2});
  product = mul(b, b.reshape(product, shape), unsqueeze(b, x2, rank - 1));
  Value result = b.reduce(nn::ReduceKind::Sum, product, {rank}, false);
  if (call.has("bias"))
    result = add(b, result, call.tensor("bias"));
  return call.result(result);
}

/// The cross product of vectors of three elements.
static LogicalResult cross(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  auto shape = call.resultShape();
  auto prepare = [&](StringRef name) {
    return broadcast(b, castTo(b, call.tensor(name), type), shape);
  };
  Value x = prepare("self"), y = prepare("other");
  int64_t dim = call.dim("dim", rankOf(x));
  auto part = [&](Value v, int64_t i) { return b.slice(v, dim, i % 3, 1); };
  llvm::SmallVector<Value> parts;
  for (int64_t i = 0; i < 3; ++i)
    parts.push_back(sub(b, mul(b, part(x, i + 1), part(y, i + 2)),
                        mul(b, part(x, i + 2), part(y, i + 1))));
  return call.result(b.concat(parts, dim));
}

/// A causal mask of queries by keys; true where a key is kept.
static Value triangleOf(ImportBuilder &b, Value query, Value key) {
  return b.triangle(shapeOf(query)[rankOf(query) - 2],
                    shapeOf(key)[rankOf(key) - 2],
                    /*diagonal=*/0, /*upper=*/false);
}

/// Attention with dropout on its weights, as in PyTorch's math backend. Shared
/// heads of key and value are repeated.
static Value droppedAttention(ImportBuilder &b, Value query, Value key,
                              Value value, Value mask, bool causal,
                              double scale, double dropout) {
  int64_t rank = rankOf(query);
  auto repeatHeads = [&](Value v) {
    int64_t heads = shapeOf(query)[rank - 3], shared = shapeOf(v)[rank - 3];
    if (heads == shared)
      return v;
    llvm::SmallVector<int64_t> shape(shapeOf(v));
    shape.insert(shape.begin() + rank - 2, 1);
    v = b.reshape(v, shape);
    shape[rank - 2] = heads / shared;
    v = broadcast(b, v, shape);
    shape.erase(shape.begin() + rank - 2);
    shape[rank - 3] = heads;
    return b.reshape(v, shape);
  };
  Value keys = b.swap(repeatHeads(key), rank - 2, rank - 1);
  Value scores = matmul(b, query, keys);
  Type element = elementOf(scores);
  // The softmax of small floats is computed in f32.
  Type wide = getWideElement(element);
  scores = mul(b, castTo(b, scores, wide), b.scalar(wide, Scalar::of(scale)));
  if (causal)
    mask = triangleOf(b, query, key);
  if (mask && isBool(mask))
    scores = select(
        b, mask, scores,
        b.scalar(wide, Scalar::of(-std::numeric_limits<double>::infinity())));
  else if (mask)
    scores = add(b, scores, castTo(b, mask, wide));
  Value weights =
      castTo(b, safeSoftmax(b, scores, rankOf(scores) - 1), element);
  weights = nn::DropoutOp::create(b, weights, b.getF64FloatAttr(dropout));
  return matmul(b, weights, repeatHeads(value));
}

static LogicalResult attention(AtenCall &call, ImportBuilder &b) {
  Value query = call.tensor("query"), key = call.tensor("key"),
        value = call.tensor("value");
  int64_t rank = rankOf(query);
  if (rank < 3)
    return call.unsupported("of fewer than three dimensions");
  if (rankOf(key) != rank || rankOf(value) != rank)
    return call.unsupported("of query, key and value of different ranks");
  double scale = call.has("scale")
                     ? call.real("scale")
                     : 1.0 / std::sqrt(double(shapeOf(query).back()));
  bool causal = call.flag("is_causal");
  Value mask;
  if (call.has("attn_mask")) {
    bool square = shapeOf(query)[rank - 2] == shapeOf(key)[rank - 2];
    if (square && call.isCausalMask("attn_mask")) {
      causal = true;
    } else {
      mask = call.tensor("attn_mask");
      if (!isBool(mask))
        mask = castTo(b, mask, elementOf(query));
    }
  }
  if (mask && causal) {
    Value keep = triangleOf(b, query, key);
    if (isBool(mask))
      mask = binary<nn::LogicalAndOp>(b, mask, keep);
    else
      mask = select(
          b, keep, mask,
          b.scalar(elementOf(mask),
                   Scalar::of(-std::numeric_limits<double>::infinity())));
    causal = false;
  }

  // nn.attention has batch and head dimensions; a three-dimensional operand has
  // one head.
  auto withHead = [&](Value v) {
    if (rank != 3)
      return v;
    auto shape = shapeOf(v);
    return b.reshape(v, {shape[0], 1, shape[1], shape[2]});
  };
  if (mask && rank == 3 && rankOf(mask) == 3)
    mask = withHead(mask);
  query = withHead(query), key = withHead(key), value = withHead(value);

  // PyTorch broadcasts the leading dimensions; nn.attention shares heads alone.
  llvm::SmallVector<int64_t> lead(shapeOf(query).drop_back(2));
  for (Value v : {key, value}) {
    llvm::SmallVector<int64_t> both;
    auto other = llvm::to_vector(shapeOf(v).drop_back(2));
    if (call.flag("enable_gqa")) {
      if (other.back() == 0)
        return call.unsupported(
            "with enable_gqa, but key or value has no heads");
      other.back() = lead.back();
    }
    if (!OpTrait::util::getBroadcastedShape(lead, other, both))
      return call.unsupported("with heads that don't broadcast");
    lead = both;
  }
  auto expand = [&](Value v, bool shareHeads) {
    llvm::SmallVector<int64_t> shape(lead);
    if (shareHeads)
      shape.back() = shapeOf(v)[rankOf(v) - 3];
    llvm::append_range(shape, shapeOf(v).take_back(2));
    return broadcast(b, v, shape);
  };
  bool shareHeads = call.flag("enable_gqa");
  query = expand(query, false);
  key = expand(key, shareHeads);
  value = expand(value, shareHeads);

  llvm::SmallVector<int64_t> shape(lead);
  shape.push_back(shapeOf(query)[rankOf(query) - 2]);
  shape.push_back(shapeOf(value).back());
  Value result;
  if (double dropout = call.real("dropout_p"); dropout != 0)
    result = broadcast(
        b, droppedAttention(b, query, key, value, mask, causal, scale, dropout),
        shape);
  else
    result = nn::AttentionOp::create(b, query, key, value, mask,
                                     b.getF64FloatAttr(scale), causal,
                                     /*context_method=*/{});
  return call.result(b.reshape(result, call.resultShape()));
}

static LogicalResult embedding(AtenCall &call, ImportBuilder &b) {
  // In PyTorch, -1 means no padding; other negative indices have been made
  // positive.
  int64_t padding = call.integer("padding_idx");
  IntegerAttr paddingAttr;
  if (padding >= 0)
    paddingAttr = b.getI64IntegerAttr(padding);
  return call.result(nn::EmbeddingOp::create(b, call.tensor("indices"),
                                             call.tensor("weight"), paddingAttr,
                                             call.flag("scale_grad_by_freq")));
}

static LogicalResult renormalize(AtenCall &call, ImportBuilder &b) {
  return call.unsupported("(max_norm of an embedding): it changes the weight "
                          "in every forward pass");
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
static Lettered sumOut(ImportBuilder &b, Lettered term, StringRef keep) {
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

static Value permuteTo(ImportBuilder &b, Lettered term, StringRef order) {
  auto permutation = llvm::map_to_vector(
      order, [&](char letter) { return int64_t(term.letters.find(letter)); });
  return b.transpose(term.value, permutation);
}

/// Contracts two operands to the letters of `keep` by one batched matmul.
static Lettered contract(ImportBuilder &b, Lettered lhs, Lettered rhs,
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
      return shapeOf(term.value)[term.letters.find(letter)];
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
      matmul(b, matrix(lhs, batch + rows + inner, rowSizes, innerSizes),
             matrix(rhs, batch + inner + columns, innerSizes, columnSizes));
  llvm::SmallVector<int64_t> shape(batchSizes);
  llvm::append_range(shape, rowSizes);
  llvm::append_range(shape, columnSizes);
  return {b.reshape(result, shape), batch + rows + columns};
}

/// Equations of distinct letters with an explicit result.
static LogicalResult einsum(AtenCall &call, ImportBuilder &b) {
  std::string equation = call.string("equation");
  llvm::erase(equation, ' ');
  auto [inputs, output] = StringRef(equation).split("->");
  bool explicitOutput = StringRef(equation).contains("->");
  if (StringRef(equation).contains('.') || !explicitOutput)
    return call.decompose();
  llvm::SmallVector<StringRef> parts;
  inputs.split(parts, ',');
  llvm::SmallVector<Lettered> terms;
  llvm::SmallDenseMap<char, int64_t> sizes;
  for (auto [value, part] : llvm::zip_equal(call.tensors("tensors"), parts)) {
    for (size_t i = 0; i < part.size(); ++i)
      if (part.find(part[i]) != i)
        return call.decompose();
    for (auto [dim, letter] : llvm::enumerate(part))
      if (sizes.try_emplace(letter, shapeOf(value)[dim]).first->second !=
          shapeOf(value)[dim])
        return call.decompose();
    terms.push_back({castTo(b, value, call.resultElement()), part.str()});
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
  table["vdot"] = {matmul, "self other"};
  table["addmv"] = {addmv, "self mat vec beta alpha"};
  table["addbmm"] = {addbmm, "self batch1 batch2 beta alpha"};
  table["bilinear"] = {bilinear, "input1 input2 weight bias"};
  table["linalg_cross"] = {cross, "self other dim"};
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
  table["_scaled_dot_product_flash_attention_for_cpu"] = {
      attention, "query key value attn_mask dropout_p is_causal scale"};
  table["embedding"] = {.run = embedding,
                        .reads =
                            "weight indices padding_idx scale_grad_by_freq",
                        .noEffect = "sparse"};
  table["embedding_renorm"] = {renormalize, "self indices max_norm norm_type"};
}
