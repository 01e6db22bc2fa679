//===- ShardingRule.cpp - Correspondence of an op's dimensions ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;

/// A value that isn't a tensor has no dimensions.
static ArrayRef<int64_t> getShape(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// One item of a tensor's spec: a name, a group `name..`, a product `[a b]`, or
/// `1` (no names).
struct DimSpec {
  SmallVector<StringRef, 2> names;
  bool group = false;
};
using TensorSpec = SmallVector<DimSpec, 4>;

/// Gives each name a factor; a group's k-th dimension from the right is the
/// factor "name<k>".
class EinsumBuilder {
public:
  ShardingRule rule;

  unsigned getFactor(const Twine &name, int64_t size) {
    auto [it, inserted] = ids.try_emplace(name.str(), rule.factors.size());
    if (inserted) {
      rule.factors.push_back({size});
      rule.names.push_back(it->first().str());
    }
    return it->second;
  }

  TensorFactors bind(const TensorSpec &spec, ArrayRef<int64_t> shape) {
    TensorFactors dims(shape.size());
    size_t groupSize = shape.size() + 1 - spec.size();
    size_t dim = 0;
    for (const DimSpec &item : spec) {
      if (!item.group) {
        bindDim(item, shape[dim], dims[dim]);
        ++dim;
        continue;
      }
      for (size_t k = groupSize; k-- > 0; ++dim) {
        // A dimension of size 1 corresponds to nothing if another tensor has a
        // larger one; `declare` has declared the larger one.
        std::string name = (item.names[0] + Twine(k)).str();
        auto it = ids.find(name);
        if (shape[dim] == 1 && it != ids.end() &&
            rule.factors[it->second].size != 1)
          continue;
        dims[dim].push_back(getFactor(name, shape[dim]));
      }
    }
    return dims;
  }

  /// Declares larger group dimensions and single names, so that broadcasting
  /// and products find them in `bind`.
  void declare(const TensorSpec &spec, ArrayRef<int64_t> shape) {
    size_t groupSize = shape.size() + 1 - spec.size();
    size_t dim = 0;
    for (const DimSpec &item : spec) {
      if (item.group) {
        for (size_t k = groupSize; k-- > 0; ++dim)
          if (shape[dim] != 1)
            getFactor(item.names[0] + Twine(k), shape[dim]);
        continue;
      }
      if (item.names.size() == 1)
        getFactor(item.names[0], shape[dim]);
      ++dim;
    }
  }

private:
  void bindDim(const DimSpec &item, int64_t size, DimFactors &factors) {
    // All names of a product except one are known from other tensors.
    int64_t known = 1;
    for (StringRef name : item.names)
      if (auto it = ids.find(name); it != ids.end() && item.names.size() > 1)
        known *= rule.factors[it->second].size;
    // If there are no elements, any size is right.
    int64_t rest = known ? size / known : 1;
    for (StringRef name : item.names)
      factors.push_back(getFactor(name, item.names.size() == 1 ? size : rest));
  }

  llvm::StringMap<unsigned> ids;
};
} // namespace

static TensorSpec parseTensorSpec(StringRef text) {
  TensorSpec spec;
  SmallVector<StringRef> tokens;
  text.split(tokens, ' ', -1, /*KeepEmpty=*/false);
  bool inProduct = false;
  for (StringRef token : tokens) {
    bool open = token.consume_front("["), close = token.consume_back("]");
    if (!inProduct)
      spec.emplace_back();
    inProduct = (inProduct || open) && !close;
    if (token == "1")
      continue;
    spec.back().group = token.consume_back("..");
    spec.back().names.push_back(token);
  }
  return spec;
}

static SmallVector<TensorSpec> parseTensorSpecs(StringRef text) {
  text = text.trim();
  text.consume_front("(");
  text.consume_back(")");
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  return llvm::map_to_vector(parts,
                             [](StringRef p) { return parseTensorSpec(p); });
}

ShardingRule ShardingRule::einsum(Operation *op, StringRef spec,
                                  ArrayRef<bool> present) {
  auto [left, right] = spec.split("->");
  SmallVector<TensorSpec> operandSpecs = parseTensorSpecs(left);
  SmallVector<TensorSpec> resultSpecs = parseTensorSpecs(right);
  if (!present.empty()) {
    SmallVector<TensorSpec> kept;
    for (auto [tensor, there] : llvm::zip(operandSpecs, present))
      if (there)
        kept.push_back(tensor);
    operandSpecs = kept;
  }

  EinsumBuilder builder;
  // Results come first, so that the factors are in the order of the results'
  // dimensions.
  for (auto [tensor, result] : llvm::zip(resultSpecs, op->getResults()))
    builder.declare(tensor, getShape(result));
  for (auto [tensor, operand] : llvm::zip(operandSpecs, op->getOperands()))
    builder.declare(tensor, getShape(operand));

  ShardingRule &rule = builder.rule;
  for (auto [tensor, operand] : llvm::zip(operandSpecs, op->getOperands()))
    rule.operands.push_back(builder.bind(tensor, getShape(operand)));
  for (auto [tensor, result] : llvm::zip(resultSpecs, op->getResults()))
    rule.results.push_back(builder.bind(tensor, getShape(result)));

  llvm::SmallBitVector inResult(rule.factors.size());
  for (const TensorFactors &tensor : rule.results)
    for (const DimFactors &dim : tensor)
      for (unsigned factor : dim)
        inResult.set(factor);
  // Booleans have no sum.
  bool isBool = getElementTypeOrSelf(op->getResult(0)).isInteger(1);
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (!inResult.test(index))
      factor.kind = isBool ? FactorKind::Whole : FactorKind::Reduction;
  return rule;
}

//===----------------------------------------------------------------------===//
// Elementwise, reshape, replicated
//===----------------------------------------------------------------------===//

ShardingRule ShardingRule::elementwise(Operation *op) {
  ShardingRule rule;
  ArrayRef<int64_t> shape = getShape(op->getResult(0));
  TensorFactors whole;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    rule.factors.push_back({size});
    whole.push_back({static_cast<unsigned>(dim)});
  }
  for (Value operand : op->getOperands()) {
    ArrayRef<int64_t> own = getShape(operand);
    TensorFactors dims(own.size());
    for (size_t dim = 0; dim < own.size(); ++dim) {
      size_t aligned = shape.size() - own.size() + dim;
      if (own[dim] == shape[aligned])
        dims[dim].push_back(aligned);
    }
    rule.operands.push_back(std::move(dims));
  }
  rule.results.assign(op->getNumResults(), whole);
  return rule;
}

ShardingRule ShardingRule::replicated(Operation *op) {
  ShardingRule rule;
  for (Value operand : op->getOperands())
    rule.operands.emplace_back(getShape(operand).size());
  for (Value result : op->getResults())
    rule.results.emplace_back(getShape(result).size());
  return rule;
}

namespace {
/// The common refinement of two lists of dimensions with the same number of
/// elements. Equal parts are peeled off the major side first, then off the
/// minor side. The rest in between has no common part and can't be split.
class ReshapeRefiner {
public:
  ReshapeRefiner(ShardingRule &rule, ArrayRef<int64_t> from,
                 ArrayRef<int64_t> to)
      : rule(rule) {
    for (auto [side, shape] : llvm::zip(sides, std::array{from, to})) {
      side.rest.assign(shape.begin(), shape.end());
      side.major.resize(shape.size());
      side.minor.resize(shape.size());
    }
  }

  /// Refines dimensions [fromBegin, fromEnd) and [toBegin, toEnd).
  void refine(size_t fromBegin, size_t fromEnd, size_t toBegin, size_t toEnd) {
    auto range = [](size_t begin, size_t end) {
      return llvm::to_vector(llvm::seq(begin, end));
    };
    SmallVector<size_t> fromDims = range(fromBegin, fromEnd);
    SmallVector<size_t> toDims = range(toBegin, toEnd);
    peel(fromDims, toDims, /*isMinor=*/false);
    std::reverse(fromDims.begin(), fromDims.end());
    std::reverse(toDims.begin(), toDims.end());
    peel(fromDims, toDims, /*isMinor=*/true);
    keepRest(sides[0], fromDims);
    keepRest(sides[1], toDims);
  }

  TensorFactors getFactors(unsigned side) {
    TensorFactors dims;
    for (auto [major, minor] :
         llvm::zip(sides[side].major, sides[side].minor)) {
      dims.push_back(major);
      llvm::append_range(dims.back(), llvm::reverse(minor));
    }
    return dims;
  }

private:
  struct Side {
    /// Per dimension: its size without the factors found, and these factors,
    /// the outermost first.
    SmallVector<int64_t> rest;
    SmallVector<DimFactors> major, minor;
  };

  /// Peels common factors off the fronts of the two lists as long as there are
  /// any.
  void peel(ArrayRef<size_t> fromDims, ArrayRef<size_t> toDims, bool isMinor) {
    while (true) {
      while (!fromDims.empty() && sides[0].rest[fromDims.front()] == 1)
        fromDims = fromDims.drop_front();
      while (!toDims.empty() && sides[1].rest[toDims.front()] == 1)
        toDims = toDims.drop_front();
      if (fromDims.empty() || toDims.empty())
        return;
      int64_t common = std::gcd(sides[0].rest[fromDims.front()],
                                sides[1].rest[toDims.front()]);
      if (common == 1)
        return;
      for (auto [side, dims] : llvm::zip(sides, std::array{fromDims, toDims})) {
        side.rest[dims.front()] /= common;
        auto &factors = isMinor ? side.minor : side.major;
        factors[dims.front()].push_back(rule.factors.size());
      }
      rule.factors.push_back({common});
      // After a part that doesn't divide, elements no longer correspond.
      if (sides[0].rest[fromDims.front()] != 1 &&
          sides[1].rest[toDims.front()] != 1)
        return;
    }
  }

  void keepRest(Side &side, ArrayRef<size_t> dims) {
    for (size_t dim : dims) {
      if (side.rest[dim] == 1)
        continue;
      side.major[dim].push_back(rule.factors.size());
      rule.factors.push_back({side.rest[dim], FactorKind::Whole});
    }
  }

  ShardingRule &rule;
  std::array<Side, 2> sides;
};
} // namespace

/// Divides the dimensions into groups that have the same number of elements in
/// both shapes; no factor is in two groups.
ShardingRule ShardingRule::reshape(Operation *op) {
  ShardingRule rule;
  ArrayRef<int64_t> from = getShape(op->getOperand(0));
  ArrayRef<int64_t> to = getShape(op->getResult(0));
  if (llvm::is_contained(from, 0) || llvm::is_contained(to, 0))
    return replicated(op);
  ReshapeRefiner refiner(rule, from, to);
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    size_t fromBegin = i, toBegin = j;
    int64_t left = from[i++], right = to[j++];
    while (left != right)
      if (left < right)
        left *= from[i++];
      else
        right *= to[j++];
    refiner.refine(fromBegin, i, toBegin, j);
  }
  rule.operands.push_back(refiner.getFactors(0));
  rule.results.push_back(refiner.getFactors(1));
  for (Value other : op->getOperands().drop_front())
    rule.operands.emplace_back(getShape(other).size());
  return rule;
}

//===----------------------------------------------------------------------===//
// Halos
//===----------------------------------------------------------------------===//

Interval Halo::getNeeded(Interval block) const {
  if (block.size == 0)
    return {0, 0};
  if (!isTransposed)
    return {block.offset * stride - padding,
            (block.size - 1) * stride + extent};
  // The first window that reaches into the block, but none that begins behind
  // the block's first element: no padding is negative.
  int64_t first = block.offset + padding;
  int64_t begin = std::min(llvm::divideCeilSigned(first - extent + 1, stride),
                           llvm::divideFloorSigned(first, stride));
  int64_t end = llvm::divideFloorSigned(first + block.size - 1, stride) + 1;
  return {begin, end - begin};
}

int64_t Halo::getLocalPadding(Interval block) const {
  if (!isTransposed || block.size == 0)
    return 0;
  return block.offset + padding - getNeeded(block).offset * stride;
}

//===----------------------------------------------------------------------===//
// Modifiers
//===----------------------------------------------------------------------===//

ShardingRule &ShardingRule::wholeResultDim(int64_t dim) {
  for (unsigned factor : results[0][dim])
    factors[factor].kind = FactorKind::Whole;
  return *this;
}

ShardingRule &ShardingRule::wholeOperandDim(unsigned operand, int64_t dim) {
  for (unsigned factor : operands[operand][dim])
    factors[factor].kind = FactorKind::Whole;
  return *this;
}

ShardingRule &ShardingRule::collectiveResultDim(int64_t dim,
                                                int64_t reductions) {
  for (unsigned factor : results[0][dim]) {
    factors[factor].kind = FactorKind::Collective;
    factors[factor].reductions = reductions;
  }
  return *this;
}

ShardingRule &ShardingRule::whole(StringRef name) {
  if (std::optional<unsigned> factor = getFactor(name))
    factors[*factor].kind = FactorKind::Whole;
  return *this;
}

std::optional<unsigned> ShardingRule::getFactor(StringRef name) const {
  const auto *found = llvm::find(names, name);
  return found == names.end() ? std::nullopt
                              : std::optional<unsigned>(found - names.begin());
}

ShardingRule &ShardingRule::linear(ArrayRef<LinearSet> sets) {
  llvm::append_range(linearSets, sets);
  return *this;
}

const Window *ShardingRule::getWindow(bool isResult, unsigned tensor,
                                      unsigned dim) const {
  for (const Window &window : windows)
    if (window.isResult == isResult && window.tensor == tensor &&
        window.dim == dim)
      return &window;
  return nullptr;
}

const Halo *ShardingRule::getHalo(unsigned factor) const {
  const auto *found = llvm::find_if(
      halos, [&](const Halo &halo) { return halo.factor == factor; });
  return found == halos.end() ? nullptr : found;
}

int64_t ShardingRule::getDimSize(bool isResult, unsigned tensor,
                                 unsigned dim) const {
  int64_t size = 1;
  for (unsigned factor : (isResult ? results : operands)[tensor][dim]) {
    if (const Halo *halo = getHalo(factor))
      return isResult ? halo->resultSize : halo->operandSize;
    size *= factors[factor].size;
  }
  return size;
}

ShardingRule &ShardingRule::halo(Halo halo) {
  halo.factor = results[0][halo.resultDim].front();
  factors[halo.factor].kind = FactorKind::Halo;
  halos.push_back(halo);
  return *this;
}

ShardingRule &ShardingRule::linearOnce(ArrayRef<LinearSet> sets) {
  numOnce += sets.size();
  return linear(sets);
}

void ShardingRule::print(raw_ostream &os) const {
  auto printTensors = [&](ArrayRef<TensorFactors> tensors, bool isResult) {
    os << "(";
    llvm::interleaveComma(llvm::enumerate(tensors), os, [&](auto item) {
      for (auto [dim, factors] : llvm::enumerate(item.value())) {
        os << (factors.empty() ? "[_" : "[");
        llvm::interleave(factors, os, "*");
        if (const Window *window = getWindow(isResult, item.index(), dim))
          os << ":" << window->start << "+" << window->size;
        os << "]";
      }
    });
    os << ")";
  };
  printTensors(operands, /*isResult=*/false);
  os << " -> ";
  printTensors(results, /*isResult=*/true);
  os << " {";
  llvm::interleaveComma(llvm::enumerate(factors), os, [&](auto item) {
    os << item.index() << "=" << item.value().size;
  });
  os << "}";
  auto printKind = [&](StringRef label, FactorKind kind) {
    SmallVector<unsigned> ids;
    for (auto [index, factor] : llvm::enumerate(factors))
      if (factor.kind == kind)
        ids.push_back(index);
    if (ids.empty())
      return;
    os << " " << label << "={";
    llvm::interleaveComma(ids, os);
    os << "}";
  };
  printKind("reduction", FactorKind::Reduction);
  printKind("whole", FactorKind::Whole);
  printKind("collective", FactorKind::Collective);
  auto printLists = [&](StringRef label, auto getList) {
    SmallVector<unsigned> ids;
    for (auto [index, factor] : llvm::enumerate(factors))
      if (!getList(factor).empty())
        ids.push_back(index);
    if (ids.empty())
      return;
    os << " " << label << "={";
    llvm::interleaveComma(ids, os, [&](unsigned id) {
      os << id << ": ";
      llvm::interleaveComma(getList(factors[id]), os);
    });
    os << "}";
  };
  printLists("summed", [](const Factor &factor) -> ArrayRef<unsigned> {
    return factor.summedResults;
  });
  if (!halos.empty()) {
    os << " halo={";
    llvm::interleaveComma(halos, os, [&](const Halo &halo) {
      os << halo.factor << ": "
         << (halo.isTransposed ? halo.resultSize : halo.operandSize) << " of "
         << halo.extent << " by " << halo.stride << " from " << -halo.padding;
    });
    os << "}";
  }
  auto printSets = [&](StringRef label, ArrayRef<LinearSet> sets) {
    if (sets.empty())
      return;
    os << " " << label << "={";
    llvm::interleaveComma(sets, os, [&](const LinearSet &set) {
      os << "{";
      llvm::interleaveComma(set, os);
      os << "}";
    });
    os << "}";
  };
  printSets("linear", ArrayRef(linearSets).drop_back(numOnce));
  printSets("once", ArrayRef(linearSets).take_back(numOnce));
}
