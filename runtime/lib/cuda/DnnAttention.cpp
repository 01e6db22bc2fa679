//===- DnnAttention.cpp - Attention as a graph of cuDNN's -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN's engines for attention recognize graphs by their operations, the order
// of these, and the types between them. These are the graphs that NVIDIA's
// documentation gives for fused flash attention.
//
//===----------------------------------------------------------------------===//

#include "cuda/DnnAttention.h"

#include <limits>

using namespace tprt;
using namespace tprt::cuda;

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {

/// A graph with the operands of attention.
class Builder {
public:
  using Tensor = DnnGraph::Tensor;

  explicit Builder(const DnnAttention &attention) : attention(attention) {
    const DnnShape &query = attention.operands.at(DnnQuery);
    scores = {query.sizes[0], query.sizes[1], query.sizes[2],
              attention.operands.at(DnnKey).sizes[2]};
    rows = {query.sizes[0], query.sizes[1], query.sizes[2], 1};
  }

  Tensor getOperand(int64_t operand) { return getOperand(operand, false); }
  Tensor getTransposed(int64_t operand) { return getOperand(operand, true); }

  /// A virtual tensor with an element for each score or, if the last dimension
  /// has size 1, for each row.
  Tensor makeScores(int32_t type = CUDNN_DATA_FLOAT) {
    return graph.addVirtual(type, DnnShape::makeDense(scores));
  }
  Tensor makeRows() {
    return graph.addVirtual(CUDNN_DATA_FLOAT, DnnShape::makeDense(rows));
  }

  /// query * key^T * scale + mask.
  Tensor computeScores() {
    Tensor product = graph.multiply(getOperand(DnnQuery), getTransposed(DnnKey),
                                    makeScores());
    Tensor result =
        graph.apply(CUDNN_POINTWISE_MUL, product, getScale(), makeScores());
    if (attention.operands.contains(DnnMask))
      result = graph.apply(CUDNN_POINTWISE_ADD, result, getOperand(DnnMask),
                           makeScores());
    return result;
  }

  /// Replaces `values` that a causal mask hides by minus infinity.
  Tensor hide(Tensor values) {
    if (!attention.causal)
      return values;
    Tensor row = graph.index(values, 2, makeScores(CUDNN_DATA_INT32));
    Tensor column = graph.index(values, 3, makeScores(CUDNN_DATA_INT32));
    Tensor isSeen = graph.apply(CUDNN_POINTWISE_CMP_GE, row, column,
                                makeScores(CUDNN_DATA_BOOLEAN));
    Tensor lowest = graph.addScalar(-std::numeric_limits<float>::infinity());
    return graph.select(isSeen, values, lowest, makeScores());
  }

  Tensor getScale() {
    if (!scale)
      scale = graph.addScalar(attention.scale);
    return scale;
  }

  /// Scores transposed to columns by rows, for a matrix product.
  Tensor transposeScores(Tensor values) {
    DnnShape shape = DnnShape::makeDense(scores).transpose();
    return graph.reshape(values, graph.addVirtual(attention.type, shape));
  }

  DnnGraph graph;

private:
  Tensor getOperand(int64_t operand, bool isTransposed) {
    Tensor &tensor = operands[operand];
    if (!tensor) {
      const DnnShape &shape = attention.operands.at(operand);
      bool isWide = operand == DnnStatistics || operand == DnnRowSums;
      tensor = graph.addOperand(
          operand, isWide ? int32_t(CUDNN_DATA_FLOAT) : attention.type,
          isTransposed ? shape.transpose() : shape);
    }
    return tensor;
  }

  const DnnAttention &attention;
  std::array<int64_t, 4> scores, rows;
  std::map<int64_t, Tensor> operands;
  Tensor scale = nullptr;
};

} // namespace

DnnGraph DnnAttention::makeForward() const {
  using Tensor = DnnGraph::Tensor;
  Builder b(*this);
  DnnGraph &graph = b.graph;
  Tensor scores = b.hide(b.computeScores());
  Tensor maximum = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, b.makeRows());
  Tensor difference =
      graph.apply(CUDNN_POINTWISE_SUB, scores, maximum, b.makeScores());
  Tensor exponentials =
      graph.apply(CUDNN_POINTWISE_EXP, difference, nullptr, b.makeScores());
  Tensor sum =
      graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, b.makeRows());
  Tensor logarithm =
      graph.apply(CUDNN_POINTWISE_LOG, sum, nullptr, b.makeRows());
  graph.apply(CUDNN_POINTWISE_ADD, maximum, logarithm,
              b.getOperand(DnnStatistics));
  Tensor weights =
      graph.apply(CUDNN_POINTWISE_DIV, exponentials, sum, b.makeScores(type));
  graph.multiply(weights, b.getOperand(DnnValue), b.getOperand(DnnOutput));
  return std::move(graph);
}

DnnGraph DnnAttention::makeBackward() const {
  using Tensor = DnnGraph::Tensor;
  Builder b(*this);
  DnnGraph &graph = b.graph;
  const DnnShape &output = operands.at(DnnOutput);

  // For each row, the sum of output * gradient.
  Tensor product = graph.apply(
      CUDNN_POINTWISE_MUL, b.getOperand(DnnGradient), b.getOperand(DnnOutput),
      graph.addVirtual(CUDNN_DATA_FLOAT, DnnShape::makeDense(output.sizes)));
  Tensor sums = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, product, b.makeRows());
  Tensor rowSums = graph.apply(CUDNN_POINTWISE_MUL, sums, graph.addScalar(1),
                               b.getOperand(DnnRowSums));

  // Recompute the softmax, and from it value's gradient.
  Tensor differences = graph.apply(CUDNN_POINTWISE_SUB, b.computeScores(),
                                   b.getOperand(DnnStatistics), b.makeScores());
  Tensor weights = graph.apply(CUDNN_POINTWISE_EXP, b.hide(differences),
                               nullptr, b.makeScores());
  graph.multiply(b.transposeScores(weights), b.getOperand(DnnGradient),
                 b.getOperand(DnnValueGradient));

  // Compute the scores' gradient, and from it key's and query's.
  Tensor weightGradients = graph.multiply(
      b.getOperand(DnnGradient), b.getTransposed(DnnValue), b.makeScores());
  Tensor centered = graph.apply(CUDNN_POINTWISE_SUB, weightGradients, rowSums,
                                b.makeScores());
  Tensor weighted =
      graph.apply(CUDNN_POINTWISE_MUL, centered, weights, b.makeScores());
  Tensor scoreGradients =
      graph.apply(CUDNN_POINTWISE_MUL, weighted, b.getScale(), b.makeScores());
  graph.multiply(b.transposeScores(scoreGradients), b.getOperand(DnnQuery),
                 b.getOperand(DnnKeyGradient));
  Tensor key = graph.reshape(b.getTransposed(DnnKey),
                             graph.addVirtual(type, operands.at(DnnKey)));
  graph.multiply(scoreGradients, key, b.getOperand(DnnQueryGradient));
  return std::move(graph);
}
