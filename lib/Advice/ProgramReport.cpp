//===- ProgramReport.cpp - Data and communication of a per-rank program ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Report.md describes the file.
//
//===----------------------------------------------------------------------===//

#include "PredictionReport.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "tp/Advice/Page/ReportPage.h"
#include "tp/Advice/Passes.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::tp {
#define GEN_PASS_DEF_REPORT
#include "tp/Advice/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

static llvm::json::Array toJSON(ArrayRef<int64_t> list) {
  return llvm::json::Array(list);
}

namespace {

struct Report : tp::impl::ReportBase<Report> {
  using ReportBase::ReportBase;
  Report(std::string &text, StringRef machine) : text(&text) {
    this->machine = machine.str();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> found =
        getMesh(module, "; only a parallel program can be reported");
    if (failed(found))
      return signalPassFailure();
    mesh = *found;
    held.assign(mesh.getNumRanks(), {});
    llvm::json::Object report{{"schema", 1}};
    report["mesh"] = getMeshJSON();
    llvm::json::Array collectives, redistributions, parameters, inputs, outputs;
    auto functions = getPrograms(module);
    if (failed(functions))
      return signalPassFailure();
    for (ArrayRef<func::FuncOp> programs : *functions) {
      // The programs of one function have the same collectives, in the same
      // order.
      SmallVector<SmallVector<CollectiveOpInterface>> issued;
      for (func::FuncOp program : programs) {
        auto &list = issued.emplace_back();
        walkExecuted(program, [&](Operation *op) {
          // The receiver's program has the transfer, too.
          auto transfer = dyn_cast<TransferOp>(op);
          if (auto collective = dyn_cast<CollectiveOpInterface>(op);
              collective && !(transfer && transfer.isSent()))
            list.push_back(collective);
        });
        if (list.size() != issued.front().size()) {
          program.emitError()
              << "has " << list.size() << " collectives, the program of other "
              << "ranks has " << issued.front().size()
              << "; all ranks must issue the same ones";
          return signalPassFailure();
        }
      }
      func::FuncOp function = programs.front();
      if (!isWanted()) {
        for (size_t i = 0; i < issued.front().size(); ++i)
          emitRemark(getSameCollectives(issued, i), function);
        continue;
      }
      for (size_t i = 0; i < issued.front().size(); ++i) {
        auto ops = getSameCollectives(issued, i);
        emitRemark(ops, function);
        collectives.push_back(getCollectiveJSON(ops));
      }
      if (auto list = function->getAttrOfType<ArrayAttr>(kRedistributionsAttr))
        for (auto entry : list.getAsRange<DictionaryAttr>())
          redistributions.push_back(getRedistributionJSON(entry));
    }
    if (!isWanted())
      return;
    for (auto &[name, programs] : joinStages(*functions)) {
      addParameters(programs, parameters);
      addInterface(programs, inputs, outputs);
    }
    report["totals"] = std::move(totals);
    report["collectives"] = std::move(collectives);
    report["redistributions"] = std::move(redistributions);
    report["parameters"] = std::move(parameters);
    report["inputs"] = std::move(inputs);
    report["outputs"] = std::move(outputs);
    if (failed(addPrediction(module, report)))
      return signalPassFailure();
    if (failed(write(std::move(report))))
      signalPassFailure();
  }

  LogicalResult write(llvm::json::Value report) {
    std::string json = llvm::formatv("{0:2}\n", report);
    if (text)
      *text += json;
    std::string page;
    if (!html.empty()) {
      FailureOr<llvm::json::Value> explained = readExplanation(report);
      if (failed(explained))
        return failure();
      llvm::raw_string_ostream os(page);
      printReportPage(report, *explained, os);
    } else if (!explanation.empty()) {
      return getOperation().emitError(
          "the explanation '" + explanation +
          "' is for the page, which needs the option 'html'");
    }
    if (llvm::Error error = writeFiles({{file, json}, {html, page}}))
      return getOperation().emitError() << llvm::toString(std::move(error));
    return success();
  }

  /// What tp-explain has said; null if nobody asked it.
  FailureOr<llvm::json::Value>
  readExplanation(const llvm::json::Value &report) {
    if (explanation.empty())
      return llvm::json::Value(nullptr);
    auto text = readInput(explanation);
    if (!text) {
      emitInputError(&getContext(), explanation, "explanation",
                     text.takeError());
      return failure();
    }
    auto parsed = parseExplanation((*text)->getBuffer(), report);
    if (!parsed)
      return getOperation().emitError("explanation '" + explanation + "': ")
             << llvm::toString(parsed.takeError());
    return std::move(*parsed);
  }

  /// Whether anything but remarks is requested.
  bool isWanted() {
    return text || !file.empty() || !html.empty() || !explanation.empty() ||
           !machine.empty() || table || getOperation().getTargetSystemSpec();
  }

  /// One collective in the programs of all ranks.
  static SmallVector<CollectiveOpInterface>
  getSameCollectives(ArrayRef<SmallVector<CollectiveOpInterface>> issued,
                     size_t index) {
    return llvm::map_to_vector(issued,
                               [&](const auto &list) { return list[index]; });
  }

  /// If there is a machine, predicts a run of the entry on it.
  LogicalResult addPrediction(ModuleOp module, llvm::json::Object &report) {
    FailureOr<std::optional<Machine>> found = tp::getMachine(module);
    if (!machine.empty()) {
      FailureOr<Machine> named = readMachine(machine, &getContext());
      if (failed(named))
        return failure();
      found = std::optional<Machine>(std::move(*named));
    }
    if (failed(found))
      return failure();
    if (!*found) {
      if (table)
        return module.emitError("a table of costs needs a machine: the option "
                                "'machine', or a dlti.target_system_spec");
      return success();
    }
    auto functions = getPrograms(module);
    if (failed(functions))
      return failure();
    if (functions->empty())
      return success();
    auto *entry = llvm::find_if(*functions, [](auto &programs) {
      return programs.front().getName() == "main";
    });
    auto joined = joinStages(*functions);
    ArrayRef<func::FuncOp> programs =
        joined[entry == functions->end()
                   ? joined.front().first
                   : StringAttr::get(&getContext(), "main")];
    PredictionReport predicted{
        **found, predict(programs, mesh, **found), getMemory(module), {}};
    predicted.receivedBytes.assign(mesh.getNumRanks(), 0);
    for (func::FuncOp program : programs)
      walkExecuted(program, [&](Operation *op) {
        if (auto collective = dyn_cast<CollectiveOpInterface>(op))
          for (auto [sum, more] :
               llvm::zip_equal(predicted.receivedBytes,
                               getReceivedBytesByRank(collective, mesh)))
            sum += more;
      });
    checkCapacity(module, predicted);
    report["prediction"] = predicted.toJSON();
    if (table)
      predicted.print(llvm::outs());
    return success();
  }

  /// Each rank's memory; empty if tp-predict-memory hasn't run.
  SmallVector<RankMemory> getMemory(ModuleOp module) {
    auto arena = module->getAttrOfType<IntegerAttr>(kArenaBytesAttr);
    if (!arena)
      return {};
    SmallVector<RankMemory> memory = held;
    for (RankMemory &rank : memory)
      rank.arena = arena.getInt();
    return memory;
  }

  void checkCapacity(ModuleOp module, const PredictionReport &predicted) {
    for (auto [rank, memory] : llvm::enumerate(predicted.memory))
      if (memory.getTotal() > predicted.machine.memoryCapacity) {
        module.emitWarning()
            << "rank " << rank << " needs " << memory.getTotal()
            << " bytes of memory, a device of '" << predicted.machine.name
            << "' has " << predicted.machine.memoryCapacity;
        return;
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

  /// `ops` are one collective in the programs of all ranks.
  llvm::json::Object getCollectiveJSON(ArrayRef<CollectiveOpInterface> ops) {
    CollectiveOpInterface op = ops.front();
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> bytes = getBytesByRank(ops);
    int64_t most = *llvm::max_element(bytes);
    StringRef kind = op.getCollectiveKind();
    int64_t groupSize = mesh.getAxesSize(op.getAxes().getAxes());
    if (isa<TransferOp>(op)) { // between two ranks, and received here
      operand = result;
      groupSize = 2;
    }

    llvm::json::Object *total = totals.getObject(kind);
    if (!total) {
      totals[kind] = llvm::json::Object{{"count", 0}, {"bytes_per_rank", 0}};
      total = totals.getObject(kind);
    }
    (*total)["count"] = *total->getInteger("count") + 1;
    (*total)["bytes_per_rank"] = *total->getInteger("bytes_per_rank") + most;

    return llvm::json::Object{
        {"id", nextId++},
        {"kind", kind},
        {"mesh_dim", getMeshDim(op)},
        {"group_size", groupSize},
        {"dtype", llvm::to_string(operand.getElementType())},
        {"shape", toJSON(operand.getShape())},
        {"result_shape", toJSON(result.getShape())},
        {"bytes_per_rank", most},
        {"bytes_by_rank", toJSON(bytes)},
        {"fqn", op.getOriginFqn()},
        {"reason", op.getOriginReason()}};
  }

  /// The ranks that run a program for which `has` is true; those of all stages
  /// of a pipeline unless `programs` are its stages'.
  template <typename Has>
  SmallVector<int64_t> getHolders(ArrayRef<func::FuncOp> programs, Has has) {
    SmallVector<int64_t> holders;
    for (func::FuncOp program : programs)
      if (!program->hasAttr(kStageAttr) || has(program))
        llvm::append_range(holders, getRanksOf(program, mesh.getNumRanks()));
    llvm::sort(holders);
    return holders;
  }

  /// `programs` are those of one function; ranks hold the parameters that their
  /// stage of a pipeline reads.
  void addParameters(ArrayRef<func::FuncOp> programs,
                     llvm::json::Array &parameters) {
    llvm::MapVector<StringAttr, ParameterOpInterface> first;
    DenseMap<Operation *, DenseSet<StringAttr>> read;
    for (func::FuncOp program : programs) {
      // Ranks of one stage have the same parameters.
      if (program->hasAttr(kCopyOfAttr) && !program->hasAttr(kStageAttr))
        continue;
      program.walk([&](ParameterOpInterface op) {
        first.insert({op.getFqnAttr(), op});
        read[program].insert(op.getFqnAttr());
      });
    }
    for (auto &[fqn, op] : first)
      parameters.push_back(getTensorJSON(
          "fqn", fqn, &RankMemory::parameters,
          cast<RankedTensorType>(op.getResult().getType()),
          op->getAttrOfType<TypeAttr>(kGlobalTypeAttr),
          op->getAttrOfType<ShardingAttr>(kShardingAttr),
          getHolders(programs, [&, fqn = fqn](func::FuncOp program) {
            return read[program].contains(fqn);
          })));
  }

  /// `kind` is the kind of memory that the tensor's blocks are counted as, on
  /// the ranks `holders`.
  llvm::json::Object getTensorJSON(StringRef key, StringRef name,
                                   int64_t RankMemory::*kind,
                                   RankedTensorType localType,
                                   TypeAttr globalAttr, ShardingAttr sharding,
                                   ArrayRef<int64_t> holders) {
    auto global =
        globalAttr ? cast<RankedTensorType>(globalAttr.getValue()) : localType;
    if (!sharding)
      sharding = ShardingAttr::getReplicated(
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()), global.getRank());
    llvm::json::Object tensor{
        {key, name},
        {"dtype", llvm::to_string(global.getElementType())},
        {"shape", toJSON(global.getShape())},
        {"local_shape", toJSON(localType.getShape())},
        {"bytes_per_rank", getTensorBytes(localType)},
        {"placements", llvm::json::Array(getPlacements(sharding, mesh))}};
    if (static_cast<int64_t>(holders.size()) != mesh.getNumRanks())
      tensor["ranks"] = toJSON(holders);
    if (isEven(global.getShape(), sharding, mesh)) {
      for (int64_t rank : holders)
        held[rank].*kind += getTensorBytes(localType);
      return tensor;
    }
    llvm::json::Array shapes;
    int64_t most = 0;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      RankedTensorType block = getLocalType(global, sharding, mesh, rank);
      shapes.push_back(toJSON(block.getShape()));
      most = std::max(most, getTensorBytes(block));
      if (llvm::is_contained(holders, rank))
        held[rank].*kind += getTensorBytes(block);
    }
    tensor["local_shapes"] = std::move(shapes);
    tensor["bytes_per_rank"] = most;
    return tensor;
  }

  /// The sharding as the IR spells it, without the mesh.
  static std::string printDims(ShardingAttr sharding) {
    std::string text;
    llvm::raw_string_ostream os(text);
    sharding.printPlacement(os);
    return text;
  }

  static std::string printAxisList(AxisListAttr axes) {
    std::string text;
    llvm::raw_string_ostream os(text);
    axes.printAxes(os);
    return text;
  }

  llvm::json::Object getRedistributionJSON(DictionaryAttr entry) {
    auto number = [&](StringRef name) {
      return entry.getAs<IntegerAttr>(name).getInt();
    };
    auto from = entry.getAs<ShardingAttr>("from");
    auto to = entry.getAs<ShardingAttr>("to");
    auto type =
        cast<RankedTensorType>(entry.getAs<TypeAttr>("type").getValue());
    llvm::json::Array steps;
    for (auto step :
         entry.getAs<ArrayAttr>("steps").getAsRange<DictionaryAttr>())
      steps.push_back(llvm::json::Object{
          {"kind", step.getAs<StringAttr>("kind").getValue()},
          {"mesh_dim", printAxisList(step.getAs<AxisListAttr>("axes"))},
          {"to", printDims(step.getAs<ShardingAttr>("to"))}});
    ArrayRef<int64_t> view =
        entry.getAs<DenseI64ArrayAttr>("view").asArrayRef();
    int64_t received = number("received_total");
    int64_t bound = number("lower_bound_total");
    return llvm::json::Object{
        {"from", printDims(from)},
        {"to", printDims(to)},
        {"from_placements", llvm::json::Array(getPlacements(from, mesh))},
        {"to_placements", llvm::json::Array(getPlacements(to, mesh))},
        {"shape", toJSON(type.getShape())},
        {"view", toJSON(view)},
        {"dtype", llvm::to_string(type.getElementType())},
        {"bytes_received_total", received},
        {"bytes_received_max", number("received_max")},
        {"lower_bound_total", bound},
        {"lower_bound_max", number("lower_bound_max")},
        {"peak_bytes", number("peak")},
        {"peak_lower_bound", number("peak_lower_bound")},
        {"steps", std::move(steps)},
        {"optimal", received == bound},
        {"fqn", entry.getAs<StringAttr>("fqn").getValue()},
        {"reason", entry.getAs<StringAttr>("reason").getValue()}};
  }

  /// `programs` are those of one function.
  void addInterface(ArrayRef<func::FuncOp> programs, llvm::json::Array &inputs,
                    llvm::json::Array &outputs) {
    func::FuncOp first = programs.front();
    for (unsigned i = 0; i < first.getNumArguments(); ++i)
      addTensor(programs, &RankMemory::inputs, inputs,
                [&](func::FuncOp program) {
                  return std::pair(program.getArgumentTypes()[i],
                                   program.getArgAttrDict(i));
                });
    for (unsigned i = 0; i < first.getNumResults(); ++i)
      addTensor(programs, &RankMemory::outputs, outputs,
                [&](func::FuncOp program) {
                  return std::pair(program.getResultTypes()[i],
                                   program.getResultAttrDict(i));
                });
  }

  /// Adds an argument or result; `get` returns its type and attributes in a
  /// program.
  void
  addTensor(ArrayRef<func::FuncOp> programs, int64_t RankMemory::*kind,
            llvm::json::Array &list,
            function_ref<std::pair<Type, DictionaryAttr>(func::FuncOp)> get) {
    auto has = [&](func::FuncOp program) {
      DictionaryAttr attrs = get(program).second;
      return !attrs || !attrs.contains(kAbsentAttr);
    };
    const func::FuncOp *found = llvm::find_if(programs, has);
    auto [type, attrs] =
        get(found == programs.end() ? programs.front() : *found);
    if (!isa<RankedTensorType>(type))
      return; // a scalar, the same on all ranks
    auto take = [&, attrs = attrs](StringRef name) {
      return attrs ? attrs.get(name) : Attribute();
    };
    auto name = dyn_cast_or_null<StringAttr>(take(kNameAttr));
    list.push_back(getTensorJSON(
        "name", name ? name.getValue() : "", kind, cast<RankedTensorType>(type),
        dyn_cast_or_null<TypeAttr>(take(kGlobalTypeAttr)),
        dyn_cast_or_null<ShardingAttr>(take(kShardingAttr)),
        getHolders(programs, has)));
  }

  SmallVector<int64_t> getBytesByRank(ArrayRef<CollectiveOpInterface> ops) {
    SmallVector<int64_t> bytes(mesh.getNumRanks(), 0);
    for (CollectiveOpInterface op : ops)
      for (auto [sum, more] :
           llvm::zip_equal(bytes, getReceivedBytesByRank(op, mesh)))
        sum += more;
    return bytes;
  }

  void emitRemark(ArrayRef<CollectiveOpInterface> ops, func::FuncOp function) {
    CollectiveOpInterface op = ops.front();
    auto remark = remark::passed(
        op->getLoc(), remark::RemarkOpts::name(op.getCollectiveKind())
                          .category("tp-report")
                          .function(function.getName()));
    if (!remark)
      return;
    remark << remark::metric("MeshDim", getMeshDim(op))
           << remark::metric("BytesPerRank",
                             *llvm::max_element(getBytesByRank(ops)))
           << remark::metric("FQN", op.getOriginFqn())
           << remark::reason("{0}", op.getOriginReason());
  }

  /// Where the report goes besides the file; null if nowhere.
  std::string *text = nullptr;
  MeshOp mesh;
  /// By rank: the blocks of parameters, inputs and outputs.
  SmallVector<RankMemory> held;
  llvm::json::Object totals;
  int64_t nextId = 0;
};

} // namespace

std::unique_ptr<Pass> tp::createReport(std::string &report, StringRef machine) {
  return std::make_unique<Report>(report, machine);
}
