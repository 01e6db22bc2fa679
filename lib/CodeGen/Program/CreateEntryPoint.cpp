//===- CreateEntryPoint.cpp - The entry's signature and manifest ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ranks run different programs, which differ in the shapes of their
// blocks, all of them get the same arguments in the same order.
//
//===----------------------------------------------------------------------===//

#include "DescribeBoundary.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/ConstantBuffers.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CREATEENTRYPOINT
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// A function that some ranks run, and the tensors at its boundary.
struct Program {
  func::FuncOp function;
  SmallVector<int64_t> ranks;
  std::optional<BoundaryDescriber> describer;
  SmallVector<Boundary> inputs, outputs;
  /// The ops that read each parameter, in order of first use.
  llvm::MapVector<StringAttr, SmallVector<nn::ParameterOp>> parameters;
  /// The ops that give parameters their next values.
  llvm::MapVector<StringAttr, nn::AssignOp> assigns;

  Block &getBody() { return function.getBody().front(); }
  func::ReturnOp getReturn() {
    return cast<func::ReturnOp>(getBody().getTerminator());
  }
};

class CreateEntryPoint
    : public tp::impl::CreateEntryPointBase<CreateEntryPoint> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkSizes(module)))
      return signalPassFailure();
    auto meshes = llvm::to_vector(module.getOps<MeshOp>());
    if (meshes.size() > 1) {
      meshes[1]
              .emitError("a program has one mesh, this is the second")
              .attachNote(meshes[0].getLoc())
          << "the first is here";
      return signalPassFailure();
    }
    mesh = meshes.empty() ? MeshOp() : meshes.front();
    programs.clear();
    parameters.clear();
    if (failed(findPrograms()))
      return signalPassFailure();
    for (Program &program : programs)
      program.describer.emplace(mesh, program.ranks);
    if (failed(writeManifest()))
      return signalPassFailure();
    for (Program &program : programs)
      rewrite(program);
  }

  int64_t getNumRanks() { return mesh ? mesh.getNumRanks() : 1; }

  //===--------------------------------------------------------------------===//
  // Programs and their boundaries
  //===--------------------------------------------------------------------===//

  LogicalResult findPrograms() {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions = getEntryPrograms(module);
    if (functions.empty()) {
      // A single function need not be called main.
      auto all = llvm::to_vector(module.getOps<func::FuncOp>());
      if (all.size() != 1)
        return module.emitError("there is no function '@main' to compile");
      functions = all;
      functions.front()->setAttr(
          kRanksAttr, DenseI64ArrayAttr::get(
                          &getContext(),
                          llvm::to_vector(llvm::seq<int64_t>(getNumRanks()))));
    }
    for (auto other : module.getOps<func::FuncOp>())
      if (other.isPublic() && !other.isExternal() &&
          !llvm::is_contained(functions, other)) {
        InFlightDiagnostic diagnostic = other.emitError("'@")
                                        << other.getName()
                                        << "' is a second entry point; an "
                                           "artifact has one";
        diagnostic.attachNote(functions.front().getLoc())
            << "the other one is '@" << functions.front().getName() << "'";
        return diagnostic;
      }
    if (failed(getProgramsByRank(functions, getNumRanks())))
      return failure();
    for (func::FuncOp function : functions) {
      if (function.isExternal())
        return function.emitError("'@")
               << function.getName() << "' has no body to compile";
      Program &program = programs.emplace_back();
      program.function = function;
      program.ranks = getRanksOf(function, getNumRanks());
      if (failed(checkPerRank(function)) || failed(findBoundary(program)))
        return failure();
    }
    return success();
  }

  LogicalResult checkPerRank(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return function.emitError("'@")
             << function.getName()
             << "' has several blocks, a program is straight-line code";
    // As an attribute of its own, as tp.constraint, or as a discardable one.
    auto hasSharding = [](Operation *op) {
      return op->hasAttr(kShardingAttr) || op->hasAttr(kShardingsAttr) ||
             isa_and_present<ShardingAttr>(op->getAttr("sharding"));
    };
    WalkResult walked = function.walk([&](Operation *op) {
      if (!isa<nn::ParameterOp, nn::AssignOp, func::FuncOp>(op) &&
          hasSharding(op)) {
        op->emitError("'") << op->getName()
                           << "' isn't partitioned: " << kGlobalLevelHint;
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  static std::string getName(DictionaryAttr attrs, StringRef prefix,
                             unsigned i) {
    auto name = attrs ? attrs.getAs<StringAttr>(kNameAttr) : StringAttr();
    return name ? name.str() : (prefix + Twine(i)).str();
  }

  LogicalResult findBoundary(Program &program) {
    func::FuncOp function = program.function;
    for (BlockArgument arg : program.getBody().getArguments()) {
      unsigned i = arg.getArgNumber();
      DictionaryAttr attrs = function.getArgAttrDict(i);
      program.inputs.push_back(
          {getName(attrs, "arg", i), arg.getType(), attrs, arg.getLoc()});
    }
    for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
      DictionaryAttr attrs = function.getResultAttrDict(i);
      program.outputs.push_back({getName(attrs, "result", i), type, attrs,
                                 program.getReturn().getLoc()});
    }
    function.walk([&](nn::ParameterOp op) {
      program.parameters[op.getFqnAttr()].push_back(op);
    });
    if (failed(findAssigns(program)))
      return failure();
    for (auto &[fqn, ops] : program.parameters) {
      nn::ParameterOp first = ops.front();
      for (nn::ParameterOp op : ops)
        if (op.getType() != first.getType() ||
            op->getAttr(kShardingAttr) != first->getAttr(kShardingAttr)) {
          InFlightDiagnostic diagnostic =
              op.emitError("parameter ")
              << fqn << " is placed in two ways, a program holds one block of "
              << "each parameter";
          diagnostic.attachNote(first.getLoc()) << "the other one is here";
          return failure();
        }
    }
    return success();
  }

  /// The parameter of an assignment, of which no op has read the old value.
  static nn::ParameterOp createParameter(Program &program, nn::AssignOp op) {
    OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody());
    auto parameter = nn::ParameterOp::create(
        builder, op.getLoc(), op.getValue().getType(), op.getFqnAttr(),
        /*frozen=*/true);
    parameter->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return parameter;
  }

  static LogicalResult findAssigns(Program &program) {
    WalkResult walked = program.function.walk([&](nn::AssignOp op) {
      StringAttr fqn = op.getFqnAttr();
      auto &parameters = program.parameters[fqn];
      if (parameters.empty())
        parameters.push_back(createParameter(program, op));
      if (parameters.front().getType() != op.getValue().getType()) {
        op.emitError("assigns ")
            << fqn << ", but no 'nn.parameter' of this FQN has type "
            << op.getValue().getType();
        return WalkResult::interrupt();
      }
      auto [it, isNew] = program.assigns.insert({fqn, op});
      if (!isNew) {
        op.emitError("assigns ")
                .append(fqn, " a second time")
                .attachNote(it->second.getLoc())
            << "the first is here";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  //===--------------------------------------------------------------------===//
  // The manifest
  //===--------------------------------------------------------------------===//

  LogicalResult writeManifest() {
    Builder b(&getContext());
    // All programs take the parameters that any of them reads.
    for (Program &program : programs)
      for (auto &[fqn, ops] : program.parameters)
        parameters.insert(
            {fqn,
             {fqn.str(), ops.front().getType(),
              ops.front()->getAttrDictionary(), ops.front().getLoc()}});

    auto inputs = describeAll("inputs", &Program::inputs);
    auto outputs = describeAll("outputs", &Program::outputs);
    if (failed(inputs) || failed(outputs))
      return failure();
    SmallVector<Attribute> described;
    for (auto &[fqn, boundary] : parameters) {
      FailureOr<DictionaryAttr> tensor = describeParameter(fqn);
      if (failed(tensor))
        return failure();
      described.push_back(*tensor);
    }
    ModuleOp module = getOperation();
    module->setAttr(
        kManifestAttr,
        b.getDictionaryAttr({{"world_size", b.getI64IntegerAttr(getNumRanks())},
                             {"mesh", describeMesh(b)},
                             {"inputs", *inputs},
                             {"parameters", b.getArrayAttr(described)},
                             {"outputs", *outputs}}));
    if (Attribute constants = module->removeAttr(kConstantsAttr))
      setManifestEntry(module, "constants", constants);
    return success();
  }

  /// The inputs or outputs, on which the programs must agree.
  FailureOr<ArrayAttr> describeAll(StringRef role,
                                   SmallVector<Boundary> Program::*list) {
    SmallVector<Attribute> tensors;
    Program &first = programs.front();
    for (Program &program : programs) {
      if ((program.*list).size() != (first.*list).size())
        return differ(program.function)
               << "has " << (program.*list).size() << " " << role
               << ", expected " << (first.*list).size();
      llvm::StringSet<> names;
      for (auto [i, boundary] : llvm::enumerate(program.*list)) {
        if (!names.insert(boundary.name).second)
          return emitError(boundary.loc) << "two " << role << " have the name '"
                                         << boundary.name << "'";
        FailureOr<DictionaryAttr> tensor =
            program.describer->describe(boundary);
        if (failed(tensor))
          return failure();
        if (list == &Program::outputs && isPartial(boundary))
          return emitError(boundary.loc)
                 << "output '" << boundary.name
                 << "' is Partial; an output must be replicated or split";
        if (&program == &first)
          tensors.push_back(*tensor);
        else if (FailureOr<DictionaryAttr> joined = joinShards(
                     cast<DictionaryAttr>(tensors[i]), *tensor, program);
                 succeeded(joined))
          tensors[i] = *joined;
        else
          return differ(program.function)
                 << "has '" << boundary.name << "' as number " << i
                 << " of its " << role
                 << ", with another name, type or sharding";
      }
    }
    return ArrayAttr::get(&getContext(), tensors);
  }

  /// `first` with the shards that `program` gives for its ranks; fails if the
  /// two differ in anything else.
  FailureOr<DictionaryAttr> joinShards(DictionaryAttr first,
                                       DictionaryAttr other,
                                       const Program &program) {
    NamedAttrList joined(first), rest(other);
    SmallVector<Attribute> shards(first.getAs<ArrayAttr>(kShards).getValue());
    ArrayAttr own = other.getAs<ArrayAttr>(kShards);
    for (int64_t rank : program.ranks)
      shards[rank] = own[rank];
    joined.set(kShards, own);
    if (joined.getDictionary(&getContext()) !=
        rest.getDictionary(&getContext()))
      return failure();
    joined.set(kShards, ArrayAttr::get(&getContext(), shards));
    return joined.getDictionary(&getContext());
  }

  FailureOr<DictionaryAttr> describeParameter(StringAttr fqn) {
    DictionaryAttr first;
    SmallVector<const Program *> lacking;
    for (Program &program : programs) {
      auto found = program.parameters.find(fqn);
      if (found == program.parameters.end()) {
        if (program.function->hasAttr(kStageAttr))
          lacking.push_back(&program);
        continue;
      }
      nn::ParameterOp op = found->second.front();
      FailureOr<DictionaryAttr> tensor = program.describer->describe(
          {fqn.str(), op.getType(), op->getAttrDictionary(), op.getLoc()});
      if (failed(tensor))
        return failure();
      if (nn::AssignOp assign = program.assigns.lookup(fqn)) {
        Builder b(&getContext());
        NamedAttrList entries(*tensor);
        entries.append("updated", b.getBoolAttr(true));
        if (FloatAttr init = assign.getInitAttr())
          entries.append("init", init);
        tensor = entries.getDictionary(&getContext());
      }
      if (first && *tensor != first)
        return differ(program.function)
               << "has parameter " << fqn
               << " with another type, sharding or update";
      first = *tensor;
    }
    if (lacking.empty())
      return first;
    // The other stages of a pipeline don't hold it.
    SmallVector<Attribute> shards(first.getAs<ArrayAttr>(kShards).getValue());
    for (const Program *program : lacking)
      for (int64_t rank : program->ranks)
        shards[rank] = describeAbsent(cast<ArrayAttr>(shards[rank]));
    NamedAttrList entries(first);
    entries.set(kShards, ArrayAttr::get(&getContext(), shards));
    return entries.getDictionary(&getContext());
  }

  /// An error about a program that isn't like the first.
  InFlightDiagnostic differ(func::FuncOp function) {
    InFlightDiagnostic diagnostic = function.emitError();
    diagnostic.attachNote(programs.front().function.getLoc())
        << "the ranks' programs have one interface, this is the first";
    return std::move(diagnostic << "'@" << function.getName() << "' ");
  }

  DictionaryAttr describeMesh(Builder &b) {
    SmallVector<Attribute> axes;
    for (size_t i = 0, e = mesh ? mesh.getNumAxes() : 0; i < e; ++i)
      axes.push_back(b.getDictionaryAttr(
          {{"name", b.getStringAttr(mesh.getAxisName(i))},
           {"size", b.getI64IntegerAttr(mesh.getAxisSizes()[i])}}));
    return b.getDictionaryAttr(
        {{"name", b.getStringAttr(mesh ? mesh.getSymName() : "")},
         {"axes", b.getArrayAttr(axes)}});
  }

  //===--------------------------------------------------------------------===//
  // The signature: rank, inputs, parameters, outputs
  //===--------------------------------------------------------------------===//

  /// The tensor that `value` is a part of, or has the elements of.
  static Value findSource(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<ReshapeOpInterface, SliceOpInterface>(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  void rewrite(Program &program) {
    func::FuncOp function = program.function;
    Block &body = program.getBody();
    func::ReturnOp terminator = program.getReturn();
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    SmallVector<DictionaryAttr> argAttrs;
    auto addArg = [&](Type type, Role role, Location loc, StringRef name = "") {
      NamedAttrList attrs;
      attrs.set(kRoleAttr, builder.getStringAttr(stringifyRole(role)));
      // Errors about its elements name the input.
      if (role == Role::Input)
        attrs.set(kNameAttr, builder.getStringAttr(name));
      argAttrs.push_back(attrs.getDictionary(&getContext()));
      return body.addArgument(type, loc);
    };
    auto addBuffer = [&](const Boundary &boundary, Role role) {
      auto tensor = cast<RankedTensorType>(boundary.type);
      SmallVector<int64_t> shape(tensor.getShape());
      if (tensor.getNumElements() == 0)
        shape = {0}; // bare pointers need plain strides
      return addArg(MemRefType::get(shape, tensor.getElementType()), role,
                    boundary.loc, boundary.name);
    };
    auto read = [&](const Boundary &boundary, Role role,
                    bool writable = false) -> Value {
      Value buffer = addBuffer(boundary, role);
      auto tensor = cast<RankedTensorType>(boundary.type);
      if (tensor.getNumElements() == 0)
        return tensor::EmptyOp::create(builder, boundary.loc, tensor.getShape(),
                                       tensor.getElementType());
      return bufferization::ToTensorOp::create(
          builder, boundary.loc, tensor, buffer, /*restrict=*/true, writable);
    };
    // Write into the tensor that was read, so that bufferization treats both as
    // one buffer.
    auto write = [&](nn::AssignOp assign, Value tensor) {
      Value written = bufferization::MaterializeInDestinationOp::create(
                          builder, assign.getLoc(), assign.getValue(), tensor)
                          .getResult();
      bufferization::MaterializeInDestinationOp::create(
          builder, assign.getLoc(), TypeRange(), written,
          tensor.getDefiningOp<bufferization::ToTensorOp>().getBuffer(),
          /*restrict=*/true, /*writable=*/true);
    };
    unsigned numOld = body.getNumArguments();
    addArg(builder.getIndexType(), Role::Rank, function.getLoc());
    for (auto [i, input] : llvm::enumerate(program.inputs))
      body.getArgument(i).replaceAllUsesWith(read(input, Role::Input));
    llvm::MapVector<Value, nn::AssignOp> updates; // by the tensors read
    for (auto &[fqn, boundary] : parameters) {
      auto found = program.parameters.find(fqn);
      if (found == program.parameters.end()) {
        addBuffer(boundary, Role::Parameter); // another program's
        continue;
      }
      boundary.type = found->second.front().getType();
      nn::AssignOp assign = program.assigns.lookup(fqn);
      Value tensor = read(boundary, Role::Parameter, /*writable=*/!!assign);
      if (assign && cast<RankedTensorType>(boundary.type).getNumElements())
        updates.insert({tensor, assign});
      for (nn::ParameterOp op : found->second)
        op.getResult().replaceAllUsesWith(tensor);
    }
    for (auto &[fqn, ops] : program.parameters)
      for (nn::ParameterOp op : ops)
        op.erase();
    builder.setInsertionPoint(terminator);
    // A parameter's old value that is the next one of another is copied before
    // it is overwritten.
    for (auto &[tensor, assign] : updates)
      if (Value value = assign.getValue();
          value != tensor && updates.contains(findSource(value)))
        assign.getValueMutable().assign(bufferization::AllocTensorOp::create(
            builder, assign.getLoc(), cast<RankedTensorType>(value.getType()),
            /*dynamicSizes=*/ValueRange(), /*copy=*/value));
    for (auto [output, value] :
         llvm::zip_equal(program.outputs, terminator.getOperands())) {
      Value buffer = addBuffer(output, Role::Output);
      if (cast<RankedTensorType>(output.type).getNumElements() != 0)
        bufferization::MaterializeInDestinationOp::create(
            builder, terminator.getLoc(), TypeRange(), value, buffer,
            /*restrict=*/true, /*writable=*/true);
    }
    for (auto &[tensor, assign] : updates)
      write(assign, tensor);
    for (auto &[fqn, assign] : program.assigns)
      assign.erase();
    terminator.getOperandsMutable().clear();
    body.eraseArguments(0, numOld);
    function.setType(builder.getFunctionType(body.getArgumentTypes(), {}));
    function.setResAttrsAttr(nullptr);
    function.setAllArgAttrs(argAttrs);
  }

  MeshOp mesh;
  std::vector<Program> programs;
  /// By FQN, with the type that it has in one of the programs.
  llvm::MapVector<StringAttr, Boundary> parameters;
};

} // namespace
