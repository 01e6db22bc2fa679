//===- ProgramReport.cpp - Data and communication of a per-rank program ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Report.md describes the file.
//
//===----------------------------------------------------------------------===//

#include "ProgramReport.h"
#include "PredictionReport.h"
#include "mlir/IR/Remarks.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Support/StridedSet.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

static llvm::json::Array toJSON(ArrayRef<int64_t> list) {
  return llvm::json::Array(list);
}

namespace {

/// The programs of one function. They have the same collectives, in the same
/// order.
struct Function {
  SmallVector<func::FuncOp> programs;
  /// By program.
  SmallVector<SmallVector<CollectiveOpInterface>> issued;

  func::FuncOp getFirst() const { return programs.front(); }
  size_t getNumCollectives() const { return issued.front().size(); }
};

/// A parameter, an input or an output.
struct Tensor {
  StringRef name;
  /// The kind of memory that its blocks are counted as.
  int64_t RankMemory::*kind;
  /// That of the first program; of the model.
  RankedTensorType local, global;
  ShardingAttr sharding;
  /// The programs whose ranks hold it.
  SmallVector<func::FuncOp> holders;
};

class ReportBuilder {
public:
  ReportBuilder(ModuleOp module, MeshOp mesh) : module(module), mesh(mesh) {}

  FailureOr<llvm::json::Object> build(const std::optional<Machine> &machine,
                                      raw_ostream *table) {
    auto groups = getPrograms(module);
    if (failed(groups))
      return failure();
    for (ArrayRef<func::FuncOp> programs : *groups)
      if (failed(addFunction(programs)))
        return failure();
    auto joined = joinStages(*groups);
    std::optional<Prediction> prediction;
    ArrayRef<func::FuncOp> entry;
    if (machine && !joined.empty()) {
      auto *main = joined.find(StringAttr::get(module.getContext(), "main"));
      entry = main == joined.end() ? joined.front().second : main->second;
      FailureOr<Prediction> predicted = predict(entry, mesh, *machine);
      if (failed(predicted))
        return failure();
      prediction = std::move(*predicted);
    }
    for (auto &[name, programs] : joined) {
      addParameters(programs);
      addInterface(programs);
    }
    findClasses(prediction, joined);

    llvm::json::Array collectives, redistributions;
    for (const Function &function : functions) {
      bool isEntry = llvm::is_contained(entry, function.getFirst());
      for (size_t i = 0; i < function.getNumCollectives(); ++i) {
        SmallVector<int64_t> bytes = getBytesByClass(function, i);
        CollectiveOpInterface op = function.issued.front()[i];
        emitRemark(op, *llvm::max_element(bytes), function.getFirst());
        collectives.push_back(describe(op, bytes));
        for (size_t index = 0; isEntry && index < bytes.size(); ++index)
          received[index] += bytes[index];
      }
      if (auto list = function.getFirst()->getAttrOfType<ArrayAttr>(
              kRedistributionsAttr))
        for (auto item : list.getAsRange<DictionaryAttr>())
          redistributions.push_back(describe(item));
    }
    llvm::json::Object report{{"schema", 2},
                              {"mesh", describeMesh()},
                              {"rank_classes", describeClasses()},
                              {"totals", std::move(totals)},
                              {"collectives", std::move(collectives)},
                              {"redistributions", std::move(redistributions)},
                              {"parameters", describe(parameters, "fqn")},
                              {"inputs", describe(inputs, "name")},
                              {"outputs", describe(outputs, "name")}};
    if (prediction) {
      PredictionReport predicted{
          *machine,
          std::move(*prediction),
          *classes,
          getMemory(),
          ArenaUse::fromAttr(module->getAttr(kArenaUseAttr)),
          received};
      checkCapacity(predicted);
      report["prediction"] = predicted.toJSON();
      if (table)
        predicted.print(*table);
    }
    return report;
  }

private:
  LogicalResult addFunction(ArrayRef<func::FuncOp> programs) {
    Function &function = functions.emplace_back();
    function.programs.assign(programs.begin(), programs.end());
    for (func::FuncOp program : programs) {
      auto &list = function.issued.emplace_back();
      walkExecuted(program, [&](Operation *op) {
        // The receiver's program has the transfer, too.
        auto transfer = dyn_cast<TransferOp>(op);
        if (auto collective = dyn_cast<CollectiveOpInterface>(op);
            collective && !(transfer && transfer.isSent()))
          list.push_back(collective);
      });
      if (list.size() != function.getNumCollectives())
        return program.emitError()
               << "has " << list.size() << " collectives, the program of other "
               << "ranks has " << function.getNumCollectives()
               << "; all ranks must issue the same ones";
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Classes of ranks
  //===--------------------------------------------------------------------===//

  /// Ranks are alike if they run the same programs, hold blocks of the same
  /// shapes, receive the same bytes, and are predicted to take the same time.
  void findClasses(
      const std::optional<Prediction> &prediction,
      const llvm::MapVector<StringAttr, SmallVector<func::FuncOp>> &joined) {
    if (prediction)
      classes = prediction->classes;
    else
      classes.emplace(mesh);
    for (auto &[name, programs] : joined)
      classes->splitByProgram(programs);
    for (ArrayRef<Tensor> list : {parameters, inputs, outputs})
      for (const Tensor &tensor : list)
        classes->splitByBlock(tensor.global.getShape(), tensor.sharding);
    for (const Function &function : functions)
      for (auto [program, list] :
           llvm::zip_equal(function.programs, function.issued)) {
        SmallVector<int64_t> ranks = getRanksOf(program, mesh.getNumRanks());
        CollectiveInterner seen;
        for (CollectiveOpInterface op : list)
          if (seen.insert(op).second)
            classes->splitByReceivedBytes(op, ranks);
      }
    held.assign(classes->size(), {});
    received.assign(classes->size(), 0);
  }

  /// The classes whose ranks run `program`.
  ArrayRef<int64_t> getClassesOf(func::FuncOp program) {
    auto [it, isNew] = classesOf.try_emplace(program);
    if (isNew) {
      llvm::SmallBitVector found(classes->size());
      for (int64_t rank : getRanksOf(program, mesh.getNumRanks()))
        found.set(classes->getClass(rank));
      it->second.assign(found.set_bits_begin(), found.set_bits_end());
    }
    return it->second;
  }

  /// What the ranks of each class receive in collective `i` of `function`.
  SmallVector<int64_t> getBytesByClass(const Function &function, size_t i) {
    SmallVector<int64_t> bytes(classes->size(), 0);
    for (auto [program, list] :
         llvm::zip_equal(function.programs, function.issued)) {
      CollectiveOpInterface op = list[i];
      unsigned number = numbers.insert(op).first;
      for (int64_t index : getClassesOf(program)) {
        auto [it, isNew] = knownBytes.try_emplace({number, index});
        if (isNew)
          it->second = op.getReceivedBytes(classes->getFirst(index), mesh);
        bytes[index] = it->second;
      }
    }
    return bytes;
  }

  llvm::json::Array describeClasses() {
    llvm::json::Array list;
    for (ArrayRef<int64_t> ranks : classes->getRanks())
      list.push_back(
          llvm::json::Object{{"count", static_cast<int64_t>(ranks.size())},
                             {"ranks", tp::toJSON(getStridedParts(ranks))}});
    return list;
  }

  //===--------------------------------------------------------------------===//
  // Prediction
  //===--------------------------------------------------------------------===//

  /// The memory of each class; empty if tp-predict-memory hasn't run.
  SmallVector<RankMemory> getMemory() {
    auto arena = module->getAttrOfType<IntegerAttr>(kArenaBytesAttr);
    if (!arena)
      return {};
    SmallVector<RankMemory> memory = held;
    for (RankMemory &rank : memory)
      rank.arena = arena.getInt();
    return memory;
  }

  void checkCapacity(const PredictionReport &predicted) {
    for (auto [index, memory] : llvm::enumerate(predicted.memory))
      if (memory.getTotal() > predicted.machine.memoryCapacity) {
        module.emitWarning()
            << "rank " << classes->getFirst(index) << " needs "
            << memory.getTotal() << " bytes of memory, a device of '"
            << predicted.machine.name << "' has "
            << predicted.machine.memoryCapacity;
        return;
      }
  }

  //===--------------------------------------------------------------------===//
  // Members of the report
  //===--------------------------------------------------------------------===//

  llvm::json::Object describeMesh() {
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

  /// `op` is a collective in the first program of its function.
  llvm::json::Object describe(CollectiveOpInterface op,
                              ArrayRef<int64_t> bytes) {
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
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
        {"bytes_by_class", toJSON(bytes)},
        {"fqn", op.getOriginFqn()},
        {"reason", op.getOriginReason()}};
  }

  /// The programs for which `has` is true; all of them unless they are those of
  /// a pipeline's stages.
  template <typename Has>
  static SmallVector<func::FuncOp> getHolders(ArrayRef<func::FuncOp> programs,
                                              Has has) {
    return llvm::filter_to_vector(programs, [&](func::FuncOp program) {
      return !program->hasAttr(kStageAttr) || has(program);
    });
  }

  void addTensor(SmallVectorImpl<Tensor> &list, StringRef name,
                 int64_t RankMemory::*kind, RankedTensorType local,
                 TypeAttr globalAttr, ShardingAttr sharding,
                 SmallVector<func::FuncOp> holders) {
    auto global =
        globalAttr ? cast<RankedTensorType>(globalAttr.getValue()) : local;
    if (!sharding)
      sharding = ShardingAttr::getReplicated(
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()), global.getRank());
    list.push_back({name, kind, local, global, sharding, std::move(holders)});
  }

  /// `programs` are those of one function; ranks hold the parameters that their
  /// stage of a pipeline reads.
  void addParameters(ArrayRef<func::FuncOp> programs) {
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
      addTensor(parameters, fqn, &RankMemory::parameters,
                cast<RankedTensorType>(op.getResult().getType()),
                op->getAttrOfType<TypeAttr>(kGlobalTypeAttr),
                op->getAttrOfType<ShardingAttr>(kShardingAttr),
                getHolders(programs, [&, fqn = fqn](func::FuncOp program) {
                  return read[program].contains(fqn);
                }));
  }

  /// `key` is what the name is called.
  llvm::json::Array describe(ArrayRef<Tensor> tensors, StringRef key) {
    llvm::json::Array list;
    for (const Tensor &tensor : tensors)
      list.push_back(describe(tensor, key));
    return list;
  }

  /// Counts the memory of the tensor's blocks, too.
  llvm::json::Object describe(const Tensor &tensor, StringRef key) {
    SmallVector<int64_t> holders;
    for (func::FuncOp program : tensor.holders)
      llvm::append_range(holders, getClassesOf(program));
    llvm::sort(holders);
    llvm::json::Object object{
        {key, tensor.name},
        {"dtype", llvm::to_string(tensor.global.getElementType())},
        {"shape", toJSON(tensor.global.getShape())},
        {"local_shape", toJSON(tensor.local.getShape())},
        {"placements",
         llvm::json::Array(getPlacements(tensor.sharding, mesh))}};
    if (holders.size() != classes->size())
      object["classes"] = toJSON(holders);
    bool even = isEven(tensor.global.getShape(), tensor.sharding, mesh);
    llvm::json::Array shapes;
    int64_t most = 0;
    SmallVector<int64_t> bytes;
    for (size_t index = 0; index < classes->size(); ++index) {
      RankedTensorType block =
          even ? tensor.local
               : getLocalType(tensor.global, tensor.sharding, mesh,
                              classes->getFirst(index));
      shapes.push_back(toJSON(block.getShape()));
      bytes.push_back(getTensorBytes(block));
      most = std::max(most, bytes.back());
    }
    for (int64_t index : holders)
      held[index].*tensor.kind += bytes[index];
    object["bytes_per_rank"] = most;
    if (!even)
      object["local_shapes_by_class"] = std::move(shapes);
    return object;
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

  llvm::json::Object describe(DictionaryAttr entry) {
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
  void addInterface(ArrayRef<func::FuncOp> programs) {
    func::FuncOp first = programs.front();
    for (unsigned i = 0; i < first.getNumArguments(); ++i)
      addBoundary(programs, &RankMemory::inputs, inputs,
                  [&](func::FuncOp program) {
                    return std::pair(program.getArgumentTypes()[i],
                                     program.getArgAttrDict(i));
                  });
    for (unsigned i = 0; i < first.getNumResults(); ++i)
      addBoundary(programs, &RankMemory::outputs, outputs,
                  [&](func::FuncOp program) {
                    return std::pair(program.getResultTypes()[i],
                                     program.getResultAttrDict(i));
                  });
  }

  /// Adds an argument or result; `get` returns its type and attributes in a
  /// program.
  void
  addBoundary(ArrayRef<func::FuncOp> programs, int64_t RankMemory::*kind,
              SmallVectorImpl<Tensor> &list,
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
    addTensor(list, name ? name.getValue() : "", kind,
              cast<RankedTensorType>(type),
              dyn_cast_or_null<TypeAttr>(take(kGlobalTypeAttr)),
              dyn_cast_or_null<ShardingAttr>(take(kShardingAttr)),
              getHolders(programs, has));
  }

  void emitRemark(CollectiveOpInterface op, int64_t mostBytes,
                  func::FuncOp function) {
    auto remark = remark::passed(
        op->getLoc(), remark::RemarkOpts::name(op.getCollectiveKind())
                          .category("tp-report")
                          .function(function.getName()));
    if (!remark)
      return;
    remark << remark::metric("MeshDim", getMeshDim(op))
           << remark::metric("BytesPerRank", mostBytes)
           << remark::metric("FQN", op.getOriginFqn())
           << remark::reason("{0}", op.getOriginReason());
  }

  ModuleOp module;
  MeshOp mesh;
  SmallVector<Function> functions;
  SmallVector<Tensor> parameters, inputs, outputs;
  std::optional<RankClasses> classes;
  DenseMap<Operation *, SmallVector<int64_t>> classesOf;
  /// By class: the blocks of parameters, inputs and outputs, and the bytes that
  /// a rank receives in collectives of the entry.
  SmallVector<RankMemory> held;
  SmallVector<int64_t> received;
  /// What equal collectives receive, by their number and the class.
  CollectiveInterner numbers;
  DenseMap<std::pair<unsigned, unsigned>, int64_t> knownBytes;
  llvm::json::Object totals;
  int64_t nextId = 0;
};

} // namespace

FailureOr<llvm::json::Object>
tp::buildReport(ModuleOp module, MeshOp mesh,
                const std::optional<Machine> &machine, raw_ostream *table) {
  return ReportBuilder(module, mesh).build(machine, table);
}
