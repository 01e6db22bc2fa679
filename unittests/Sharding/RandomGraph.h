//===- RandomGraph.h - Random programs, randomly placed ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of ops with all kinds of sharding rules, whose values are used
// several times, with random placements on arguments, parameters, ops and
// results. The same seed gives the same program.
//
//===----------------------------------------------------------------------===//

#ifndef TP_UNITTESTS_SHARDING_RANDOMGRAPH_H
#define TP_UNITTESTS_SHARDING_RANDOMGRAPH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <random>
#include <string>
#include <vector>

namespace mlir::tp {

class RandomGraph {
public:
  struct Axis {
    std::string name;
    int64_t size;
  };

  /// One of six meshes, named as in plans; the last two have three ranks along
  /// a dimension.
  static std::vector<Axis> getMesh(unsigned index) {
    const std::vector<Axis> meshes[] = {
        {{"tp", 2}},
        {{"tp", 4}},
        {{"dp", 2}, {"tp", 2}},
        {{"dp", 2}, {"tp", 4}},
        {{"tp", 3}},
        {{"dp", 3}, {"tp", 2}},
    };
    return meshes[index];
  }

  RandomGraph(unsigned seed, std::vector<Axis> mesh)
      : random(seed), mesh(std::move(mesh)) {}

  /// A module whose function `@main` has at most `maxOps` ops of nn, parameters
  /// not counted.
  std::string get(unsigned maxOps) {
    unsigned target = draw(1, maxOps);
    while (numOps < target)
      addOp(target - numOps);
    std::string text = "tp.mesh @mesh(";
    for (auto [i, axis] : llvm::enumerate(mesh))
      text += (i ? ", " : "") + axis.name + " = " + std::to_string(axis.size);
    text += ")\nfunc.func @main(" + arguments + ") -> (";
    std::string names, types;
    for (const Value &value : values) {
      if (value.isUsed && draw(0, 9) != 0)
        continue;
      std::string comma = names.empty() ? "" : ", ";
      text += comma + value.getType() + place(value, 50);
      names += comma + value.name;
      types += comma + value.getType();
    }
    return text + ") {\n" + body + "  return " + names + " : " + types +
           "\n}\n";
  }

private:
  using Shape = std::vector<int64_t>;
  struct Value {
    std::string name;
    Shape shape;
    std::string element;
    bool isUsed = false;

    std::string getType() const {
      std::string text = "tensor<";
      for (int64_t size : shape)
        text += std::to_string(size) + "x";
      return text + element + ">";
    }
  };

  int64_t draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool chance(int percent) { return draw(1, 100) <= percent; }
  int64_t drawSize() {
    static const int64_t sizes[] = {1, 2, 3, 4, 4, 6, 8, 8, 12};
    return sizes[draw(0, std::size(sizes) - 1)];
  }
  Shape drawShape(unsigned rank) {
    Shape shape;
    for (unsigned i = 0; i < rank; ++i)
      shape.push_back(drawSize());
    return shape;
  }

  /// `<@mesh, …>`; most placements divide evenly.
  std::string drawSharding(const Shape &shape) {
    std::vector<std::string> dims(shape.size());
    std::vector<int64_t> ranks(shape.size(), 1);
    std::string partial;
    std::vector<Axis> axes;
    for (const Axis &axis : mesh) {
      if (axis.size == 4 && chance(15)) {
        axes.push_back({axis.name + ":(1)2", 2});
        axes.push_back({axis.name + ":(2)2", 2});
      } else {
        axes.push_back(axis);
      }
    }
    if (chance(30))
      std::shuffle(axes.begin(), axes.end(), random);
    for (const Axis &axis : axes) {
      bool isUneven = chance(25) && !llvm::StringRef(axis.name).contains(':');
      std::vector<size_t> fitting;
      for (size_t dim = 0; dim < shape.size(); ++dim)
        if (isUneven || shape[dim] % (ranks[dim] * axis.size) == 0)
          fitting.push_back(dim);
      if (fitting.empty() || !chance(65))
        continue;
      size_t dim = fitting[draw(0, fitting.size() - 1)];
      dims[dim] += (dims[dim].empty() ? "" : ", ") + axis.name;
      ranks[dim] *= axis.size;
    }
    std::string text = "<@mesh, [";
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      text += (dim ? ", {" : "{") + dims[dim];
      int64_t half = shape[dim] / 2;
      if (!dims[dim].empty() && half % ranks[dim] == 0 && shape[dim] % 2 == 0 &&
          chance(10))
        text += " | " + std::to_string(half) + ", " + std::to_string(half);
      text += "}";
    }
    return text + " ]>";
  }
  /// An attribute dictionary, or nothing.
  std::string place(const Value &value, int percent) {
    if (!chance(percent))
      return "";
    return " {tp.sharding = #tp.sharding" + drawSharding(value.shape) + "}";
  }

  Value &addValue(Value value) {
    value.name = "%v" + std::to_string(counter++);
    values.push_back(std::move(value));
    return values.back();
  }
  Value addSource(Shape shape, std::string element = "f32") {
    Value &value = addValue({"", std::move(shape), std::move(element)});
    if (value.element == "f32" && chance(50))
      body += "  " + value.name + " = nn.parameter \"p" + value.name.substr(1) +
              "\"" + place(value, 60) + " : " + value.getType() + "\n";
    else
      arguments += (arguments.empty() ? "" : ", ") + value.name + ": " +
                   value.getType() + place(value, 60);
    return value;
  }
  /// Any value of at least this rank, recent ones more often.
  Value pick(unsigned minRank = 0) {
    std::vector<Value> fitting;
    for (const Value &value : values)
      if (value.shape.size() >= minRank && value.element == "f32")
        fitting.push_back(value);
    if (fitting.empty() || chance(10))
      return addSource(drawShape(std::max<int64_t>(minRank, draw(1, 3))));
    return chance(60) ? fitting.back() : fitting[draw(0, fitting.size() - 1)];
  }
  /// A value of this shape, or one that broadcasts to it.
  Value pickLike(const Shape &shape) {
    for (const Value &value : values)
      if (value.shape == shape && value.element == "f32" && chance(50))
        return value;
    Shape other(shape.begin() + (chance(30) ? draw(0, shape.size()) : 0),
                shape.end());
    for (int64_t &size : other)
      size = chance(15) ? 1 : size;
    return addSource(other);
  }

  Value emit(const std::string &text, Shape shape,
             llvm::ArrayRef<Value> operands, const std::string &types) {
    for (Value &value : values)
      value.isUsed |= llvm::any_of(operands, [&](const Value &operand) {
        return operand.name == value.name;
      });
    ++numOps;
    Value &value = addValue({"", std::move(shape), "f32"});
    body += "  " + value.name + " = nn." + text + place(value, 6) + " : " +
            types + value.getType() + "\n";
    Value result = value;
    if (chance(12)) {
      values.back().isUsed = true;
      Value &moved = addValue({"", result.shape, "f32"});
      body += "  " + moved.name + " = tp.redistribute " + result.name + " to " +
              drawSharding(result.shape) + " : " + moved.getType() + "\n";
      result = moved;
    }
    return result;
  }
  /// With a functional type.
  Value emitOf(const std::string &text, Shape shape,
               llvm::ArrayRef<Value> operands) {
    std::string types = "(";
    for (auto [i, operand] : llvm::enumerate(operands))
      types += (i ? ", " : "") + operand.getType();
    return emit(text, std::move(shape), operands, types + ") -> ");
  }
  /// With the type of its operand and an arrow, or, of ops that don't change
  /// it, the one type.
  Value emitUnary(const std::string &text, Shape shape, const Value &x,
                  bool isSameType = false) {
    return emit(text, std::move(shape), {x},
                isSameType ? "" : x.getType() + " -> ");
  }
  static std::string print(const Shape &list) {
    std::string text = "[";
    for (auto [i, entry] : llvm::enumerate(list))
      text += (i ? ", " : "") + std::to_string(entry);
    return text + "]";
  }

  void addOp(unsigned limit) {
    switch (draw(0, 15)) {
    case 0:
    case 1:
      return addLinear();
    case 2:
      return addMatmul();
    case 3: {
      static const char *const names[] = {"gelu", "neg", "relu", "tanh"};
      Value x = pick();
      emitUnary(names[draw(0, 3)] + std::string(" ") + x.name, x.shape, x,
                /*isSameType=*/true);
      return;
    }
    case 4:
    case 5:
    case 6: {
      static const char *const names[] = {"add", "add", "sub",
                                          "mul", "mul", "maximum"};
      Value x = pick();
      Value y = chance(10) ? x : pickLike(x.shape);
      if (chance(30))
        std::swap(x, y);
      emitOf(names[draw(0, 5)] + std::string(" ") + x.name + ", " + y.name,
             std::max(x.shape, y.shape,
                      [](const Shape &a, const Shape &b) {
                        return getElements(a) < getElements(b) ||
                               (getElements(a) == getElements(b) &&
                                a.size() < b.size());
                      }),
             {x, y});
      return;
    }
    case 7:
    case 8:
      return addReshape();
    case 9:
      return addTranspose();
    case 10: {
      Value x = pick(1);
      emitUnary("softmax " + x.name + " dim " +
                    std::to_string(draw(0, x.shape.size() - 1)),
                x.shape, x, /*isSameType=*/true);
      return;
    }
    case 11:
      return addReduce();
    case 12: {
      Value indices = addSource(drawShape(draw(1, 2)), "i64");
      Value table = addSource(drawShape(2));
      Shape shape = indices.shape;
      shape.push_back(table.shape[1]);
      emitOf("embedding " + indices.name + ", " + table.name, shape,
             {indices, table});
      return;
    }
    case 13: {
      Value x = pick(1), y = x;
      int64_t dim = draw(0, x.shape.size() - 1);
      if (chance(60)) {
        Shape shape = x.shape;
        shape[dim] = drawSize();
        y = addSource(shape);
      }
      Shape shape = x.shape;
      shape[dim] += y.shape[dim];
      emitOf("concat " + x.name + ", " + y.name + " dim " + std::to_string(dim),
             shape, {x, y});
      return;
    }
    case 14: {
      Value x = pick(1);
      int64_t dim = draw(0, x.shape.size() - 1);
      int64_t start = chance(50) ? x.shape[dim] / 2 : draw(0, x.shape[dim] - 1);
      Shape shape = x.shape;
      shape[dim] -= start;
      emitUnary("slice " + x.name + " dim " + std::to_string(dim) + " start " +
                    std::to_string(start) + " step 1",
                shape, x);
      return;
    }
    default:
      if (limit >= 8)
        addAttention();
      return;
    }
  }

  static int64_t getElements(const Shape &shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }

  void addLinear() {
    Value x = pick(1);
    Value w = addSource({drawSize(), x.shape.back()});
    Shape shape = x.shape;
    shape.back() = w.shape[0];
    emitOf("linear " + x.name + ", " + w.name, shape, {x, w});
  }

  void addMatmul() {
    Value x = pick(2);
    Shape other(x.shape.end() - (chance(40) ? x.shape.size() : 2),
                x.shape.end());
    other[other.size() - 2] = x.shape.back();
    other.back() = drawSize();
    Value y = addSource(other);
    Shape shape = x.shape;
    shape.back() = other.back();
    emitOf("matmul " + x.name + ", " + y.name, shape, {x, y});
  }

  /// Splits a dimension, or merges two.
  void addReshape() {
    Value x = pick(1);
    Shape shape = x.shape;
    size_t dim = draw(0, shape.size() - 1);
    if (chance(50) && dim + 1 < shape.size()) {
      shape[dim] *= shape[dim + 1];
      shape.erase(shape.begin() + dim + 1);
    } else {
      int64_t major = std::vector<int64_t>{2, 3, 4}[draw(0, 2)];
      if (shape[dim] % major || shape.size() > 3)
        return;
      shape[dim] /= major;
      shape.insert(shape.begin() + dim, major);
    }
    emitUnary("reshape " + x.name, shape, x);
  }

  void addTranspose() {
    Value x = pick(2);
    Shape order(x.shape.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    emitTransposed(x, order);
  }
  Value emitTransposed(const Value &x, const Shape &order) {
    Shape shape;
    for (int64_t dim : order)
      shape.push_back(x.shape[dim]);
    return emitUnary("transpose " + x.name + " " + print(order), shape, x);
  }

  void addReduce() {
    static const char *const names[] = {"sum", "sum", "mean", "max"};
    Value x = pick(1);
    int64_t dim = draw(0, x.shape.size() - 1);
    Shape shape = x.shape;
    bool keep = chance(50);
    if (keep)
      shape[dim] = 1;
    else
      shape.erase(shape.begin() + dim);
    emitUnary("reduce " + std::string(names[draw(0, 3)]) + " " + x.name +
                  " dims " + print({dim}) + (keep ? " keepdim" : ""),
              shape, x);
  }

  /// Seven ops: three heads' worth of projections, with fewer key heads than
  /// query heads now and then.
  void addAttention() {
    int64_t heads = draw(1, 2) * 4, size = draw(1, 2) * 2;
    int64_t groups = chance(50) ? heads : heads / 2;
    Value x = addSource({2, 4, heads * size});
    auto project = [&](int64_t count) {
      Value w = addSource({count * size, heads * size});
      Value y = emitOf("linear " + x.name + ", " + w.name, {2, 4, count * size},
                       {x, w});
      Value z = emitUnary("reshape " + y.name, {2, 4, count, size}, y);
      return emitTransposed(z, {0, 2, 1, 3});
    };
    Value q = project(heads);
    Value k = project(groups);
    Value v = chance(50) ? k : addSource({2, groups, 4, size});
    emitOf("attention " + q.name + ", " + k.name + ", " + v.name + " scale 0.5",
           q.shape, {q, k, v});
  }

  std::mt19937 random;
  std::vector<Axis> mesh;
  std::vector<Value> values;
  std::string arguments, body;
  unsigned counter = 0, numOps = 0;
};

} // namespace mlir::tp

#endif // TP_UNITTESTS_SHARDING_RANDOMGRAPH_H
