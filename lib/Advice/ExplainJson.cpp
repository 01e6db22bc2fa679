//===- ExplainJson.cpp - An explanation as JSON ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Explain.md describes the fields.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::explain;

namespace {
class JsonPrinter {
public:
  JsonPrinter(const Program &program, raw_ostream &os)
      : program(program), mesh(program.mesh), json(os, /*IndentSize=*/2) {
    for (auto [index, entry] : llvm::enumerate(program.explanation.values))
      indices[{entry.function, entry.value}] = index;
  }

  void print() {
    const Explanation &explanation = program.explanation;
    json.object([&] {
      json.attribute("schema", 1);
      json.attributeObject("mesh", [&] {
        json.attribute("name", mesh.getSymName());
        json.attributeArray("axes", [&] {
          for (size_t i = 0; i < mesh.getNumAxes(); ++i)
            json.object([&] {
              json.attribute("name", mesh.getAxisName(i));
              json.attribute("size", mesh.getAxisSizes()[i]);
            });
        });
      });
      json.attributeObject("totals", [&] {
        json.attribute("bytes", program.total.bytes);
        json.attribute("collectives", program.total.collectives);
        json.attribute("gap", program.gap);
        json.attributeObject("optimized", [&] {
          json.attribute("bytes", program.optimized.bytes);
          json.attribute("collectives", program.optimized.collectives);
        });
      });
      json.attributeArray("values", [&] {
        for (const ExplainedValue &entry : explanation.values)
          printEntry(entry);
      });
      json.attributeArray("redistributions", [&] {
        for (size_t i = 0; i < explanation.movements.size(); ++i)
          printMovement(i);
      });
      json.attribute("trials", program.trials);
      json.attribute("trials_cut_short", program.isCutShort);
    });
  }

private:
  void printOpFields(Operation *op) {
    json.attribute("op", op->getName().getStringRef());
    json.attribute("fqn", getFqn(op));
    json.attribute("location", printLocation(op->getLoc()));
  }

  void printType(RankedTensorType type) {
    json.attribute("shape", llvm::json::Array(type.getShape()));
    json.attribute("dtype", llvm::to_string(type.getElementType()));
  }

  StringRef getFunctionName(unsigned function) {
    return func::FuncOp(program.functions[function].op).getSymName();
  }

  /// The index of a value in `values`; null if it isn't listed. An op that
  /// passes its input on as it is has no value of its own there.
  llvm::json::Value getIndex(unsigned function, Value value) const {
    while (true) {
      auto found = indices.find({function, value});
      if (found != indices.end())
        return found->second;
      Operation *op = value.getDefiningOp();
      if (!isa_and_nonnull<RedistributeOp, ConstraintOp, PropagationBarrierOp>(
              op))
        return nullptr;
      value = op->getOperand(0);
    }
  }

  /// What an op reads, values that its regions capture included.
  llvm::json::Array getOperands(unsigned function, Operation *op) const {
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    llvm::json::Array list;
    for (Value value : read)
      list.push_back(getIndex(function, value));
    return list;
  }

  void printChainFields(const PlacementChain &chain) {
    json.attribute("placement", chain.placement);
    if (chain.source)
      json.attributeObject("source", [&] {
        NamedSource source = nameSource(chain, program);
        json.attribute("kind", source.kind);
        json.attribute("what", source.what);
        json.attribute("by", source.by);
        json.attribute("placement", chain.sourcePlacement);
      });
    else
      json.attribute("source", nullptr);
    json.attribute("left_out", chain.numLeftOut);
    json.attributeArray("steps", [&] {
      for (const PlacementChain::Step &step : chain.steps)
        json.object([&] {
          printOpFields(step.op);
          json.attribute("split", step.split);
          json.attribute("placement", step.placement);
        });
    });
  }

  void printEntry(const ExplainedValue &entry) {
    json.object([&] {
      json.attribute("function", getFunctionName(entry.function));
      json.attribute("name", printValue(entry.value));
      if (Operation *op = entry.value.getDefiningOp()) {
        printOpFields(op);
        json.attribute("operands", getOperands(entry.function, op));
      }
      printType(cast<RankedTensorType>(entry.value.getType()));
      json.attribute("placements",
                     llvm::json::Array(getPlacements(entry.sharding, mesh)));
      json.attributeArray("chains", [&] {
        for (auto [axis, chain] : llvm::enumerate(entry.chains))
          json.object([&] {
            json.attribute("mesh_dim", mesh.getAxisName(axis));
            printChainFields(chain);
          });
      });
    });
  }

  void printMovement(size_t index) {
    const ExplainedMovement &movement = program.explanation.movements[index];
    json.object([&] {
      json.attribute("function", getFunctionName(movement.function));
      json.attribute("value", printValue(movement.value));
      json.attribute("value_index",
                     getIndex(movement.function, movement.value));
      printOpFields(movement.op);
      json.attribute("op_index", movement.op->getNumResults() == 0
                                     ? llvm::json::Value(nullptr)
                                     : getIndex(movement.function,
                                                movement.op->getResult(0)));
      if (movement.operand)
        json.attribute("operand", *movement.operand);
      printType(movement.type);
      if (movement.from) {
        json.attribute("from",
                       llvm::json::Array(getPlacements(movement.from, mesh)));
        json.attribute("to",
                       llvm::json::Array(getPlacements(movement.to, mesh)));
      }
      json.attribute("module", movement.fqn);
      json.attribute("reason", movement.reason);
      json.attribute("asked", movement.isAsked);
      json.attribute("collectives", llvm::json::Array(movement.collectives));
      json.attribute("bytes", movement.bytes);
      json.attribute("bytes_per_rank", movement.bytesPerRank);
      json.attribute("least_bytes", movement.leastBytes);
      json.attribute("times", movement.times);
      json.attributeArray("conflicts", [&] {
        for (const ExplainedMovement::Conflict &conflict : movement.conflicts)
          json.object([&] {
            json.attribute("mesh_dim", conflict.axis);
            json.attribute("verdict", conflict.verdict);
            json.attributeObject("lost",
                                 [&] { printChainFields(conflict.current); });
            json.attributeObject("won",
                                 [&] { printChainFields(conflict.required); });
          });
      });
      if (movement.choice)
        json.attributeObject("choice", [&] { printOpFields(movement.choice); });
      json.attributeArray("alternatives", [&] {
        for (const ExplainedMovement::Alternative &other :
             movement.alternatives)
          json.object([&] {
            json.attribute("split", other.description);
            json.attribute("operands", llvm::json::Array(other.operands));
            json.attribute("results", llvm::json::Array(other.results));
            json.attribute("bytes", other.delta.bytes);
            json.attribute("collectives", other.delta.collectives);
          });
      });
      if (!program.edits.empty())
        json.attributeArray("edits", [&] {
          for (const TriedEdit &edit : program.edits[index])
            printEdit(edit);
        });
    });
  }

  void printEdit(const TriedEdit &edit) {
    json.object([&] {
      json.attribute("action", edit.action);
      json.attribute("place", edit.place);
      json.attribute("text", edit.text);
      json.attribute("removes", edit.removes);
      json.attribute("bytes", edit.bytes);
      json.attribute("collectives", edit.collectives);
      json.attribute("parameter_bytes_per_rank", edit.parameterBytes);
      json.attribute("work", edit.work);
      json.attribute("interface", llvm::json::Array(edit.interface));
    });
  }

  const Program &program;
  MeshOp mesh;
  llvm::json::OStream json;
  /// Of the values that are listed, by function and value.
  DenseMap<std::pair<unsigned, Value>, int64_t> indices;
};
} // namespace

void explain::printJson(const Program &program, raw_ostream &os) {
  JsonPrinter(program, os).print();
  os << "\n";
}
