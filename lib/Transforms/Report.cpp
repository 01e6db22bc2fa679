//===- Report.cpp - What a per-rank program moves and holds ---------------===//
//
// docs/Report.md describes the file.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::tp {
#define GEN_PASS_DEF_REPORT
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

static std::string getDtype(Type element) {
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

static int64_t getNumBytes(RankedTensorType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

static llvm::json::Array toJSON(ArrayRef<int64_t> list) {
  return llvm::json::Array(list);
}

namespace {

struct Report : tp::impl::ReportBase<Report> {
  using ReportBase::ReportBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> found = getMesh(module);
    if (failed(found))
      return signalPassFailure();
    mesh = *found;
    if (!mesh) {
      module.emitError("no tp.mesh; only a parallel program can be reported");
      return signalPassFailure();
    }
    llvm::json::Object report{{"schema", 1}};
    report["mesh"] = getMeshJSON();
    llvm::json::Array collectives, parameters, inputs, outputs;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      function.walk([&](CollectiveOpInterface op) {
        emitRemark(op, function);
        collectives.push_back(getCollectiveJSON(op));
      });
      llvm::StringSet<> seen;
      function.walk([&](nn::ParameterOp op) {
        if (seen.insert(op.getFqn()).second)
          parameters.push_back(getTensorJSON(
              "fqn", op.getFqn(), op.getType(),
              op->getAttrOfType<TypeAttr>(kGlobalTypeAttr),
              op->getAttrOfType<ShardingAttr>(kShardingAttr)));
      });
      addInterface(function, inputs, outputs);
    }
    report["totals"] = std::move(totals);
    report["collectives"] = std::move(collectives);
    report["parameters"] = std::move(parameters);
    report["inputs"] = std::move(inputs);
    report["outputs"] = std::move(outputs);
    if (file.empty())
      return;
    // Written aside and renamed: a reader never sees half of it.
    llvm::Error error =
        llvm::writeToOutput(file, [&](raw_ostream &os) -> llvm::Error {
          os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report)));
          return llvm::Error::success();
        });
    if (error) {
      module.emitError() << "can't write the report to '" << file
                         << "': " << llvm::toString(std::move(error));
      signalPassFailure();
    }
  }

  llvm::json::Object getMeshJSON() {
    llvm::json::Array axes;
    for (size_t i = 0; i < mesh.getNumAxes(); ++i)
      axes.push_back(llvm::json::Object{{"name", mesh.getAxisName(i)},
                                        {"size", mesh.getAxisSizes()[i]}});
    return llvm::json::Object{{"name", mesh.getSymName()},
            {"axes", std::move(axes)},
            {"ranks", mesh.getNumRanks()}};
  }

  static std::string getMeshDim(CollectiveOpInterface op) {
    std::string dims;
    llvm::raw_string_ostream os(dims);
    llvm::interleave(
        op.getAxes(), os, [&](AxisRefAttr axis) { axis.printAxis(os); }, ",");
    return dims;
  }

  llvm::json::Object getCollectiveJSON(CollectiveOpInterface op) {
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> bytes = getReceivedBytesByRank(op, mesh);
    int64_t most = *llvm::max_element(bytes);
    StringRef kind = op.getCollectiveKind();

    llvm::json::Object *total = totals.getObject(kind);
    if (!total) {
      totals[kind] = llvm::json::Object{{"count", 0}, {"bytes_per_rank", 0}};
      total = totals.getObject(kind);
    }
    (*total)["count"] = *total->getInteger("count") + 1;
    (*total)["bytes_per_rank"] = *total->getInteger("bytes_per_rank") + most;

    return llvm::json::Object{{"id", nextId++},
            {"kind", kind},
            {"mesh_dim", getMeshDim(op)},
            {"group_size", mesh.getAxesSize(op.getAxes().getAxes())},
            {"dtype", getDtype(operand.getElementType())},
            {"shape", toJSON(operand.getShape())},
            {"result_shape", toJSON(result.getShape())},
            {"bytes_per_rank", most},
            {"bytes_by_rank", toJSON(bytes)},
            {"fqn", op.getOriginFqn()},
            {"reason", op.getOriginReason()}};
  }

  llvm::json::Object getTensorJSON(StringRef key, StringRef name,
                                   RankedTensorType localType,
                                   TypeAttr globalAttr, ShardingAttr sharding) {
    auto global = globalAttr ? cast<RankedTensorType>(globalAttr.getValue())
                             : localType;
    if (!sharding)
      sharding = ShardingAttr::getReplicated(
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()), global.getRank());
    return llvm::json::Object{{key, name},
            {"dtype", getDtype(global.getElementType())},
            {"shape", toJSON(global.getShape())},
            {"local_shape", toJSON(localType.getShape())},
            {"bytes_per_rank", getNumBytes(localType)},
            {"placements", llvm::json::Array(getPlacements(sharding, mesh))}};
  }

  void addInterface(func::FuncOp function, llvm::json::Array &inputs,
                    llvm::json::Array &outputs) {
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto name = function.getArgAttrOfType<StringAttr>(i, kNameAttr);
      inputs.push_back(getTensorJSON(
          "name", name ? name.getValue() : "", cast<RankedTensorType>(type),
          function.getArgAttrOfType<TypeAttr>(i, kGlobalTypeAttr),
          getArgSharding(function, i)));
    }
    for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
      auto name = dyn_cast_or_null<StringAttr>(
          function.getResultAttr(i, kNameAttr));
      outputs.push_back(getTensorJSON(
          "name", name ? name.getValue() : "", cast<RankedTensorType>(type),
          dyn_cast_or_null<TypeAttr>(
              function.getResultAttr(i, kGlobalTypeAttr)),
          getResultSharding(function, i)));
    }
  }

  int64_t getMostBytes(CollectiveOpInterface op) {
    SmallVector<int64_t> bytes = getReceivedBytesByRank(op, mesh);
    return *llvm::max_element(bytes);
  }

  void emitRemark(CollectiveOpInterface op, func::FuncOp function) {
    remark::passed(op->getLoc(),
                   remark::RemarkOpts::name(op.getCollectiveKind())
                       .category("tp-report")
                       .function(function.getName()))
        << remark::metric("MeshDim", getMeshDim(op))
        << remark::metric("BytesPerRank",
                          getMostBytes(op))
        << remark::metric("FQN", op.getOriginFqn())
        << remark::reason("{0}", op.getOriginReason());
  }

  MeshOp mesh;
  llvm::json::Object totals;
  int64_t nextId = 0;
};

} // namespace
