//===- FormEntry.cpp - the entry's signature and manifest -----------------===//
//
// The one place that reads names, placements and global types of a per-rank
// program. What the artifact says about its tensors is decided here, and only
// carried along afterwards.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Conversion/Manifest.h"
#include "tp/Conversion/Passes.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::tp {
#define GEN_PASS_DEF_FORMENTRY
#include "tp/Conversion/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

constexpr StringLiteral kGlobalLevelHint =
    "this is a program over global shapes: run tp-opt --tp-parallelize first";

std::optional<StringRef> getDtype(Type type) {
  if (type.isF32())
    return "f32";
  if (type.isF64())
    return "f64";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isInteger(64))
    return "i64";
  if (type.isInteger(32))
    return "i32";
  if (type.isInteger(1))
    return "i1";
  return std::nullopt;
}

/// One tensor at the program's boundary.
struct Boundary {
  std::string name;
  Type type;
  DictionaryAttr attrs;
  Location loc;
};

/// Describes boundaries as docs/Artifact.md's TENSOR.
class Describer {
public:
  Describer(MLIRContext *context, MeshOp mesh) : b(context), mesh(mesh) {}

  FailureOr<DictionaryAttr> describe(const Boundary &boundary) {
    auto emit = [&] { return emitError(boundary.loc); };
    auto local = dyn_cast<RankedTensorType>(boundary.type);
    if (!local || !local.hasStaticShape())
      return emit() << "'" << boundary.name << "' has type " << boundary.type
                    << ", a tensor of static shape is needed";
    std::optional<StringRef> dtype = getDtype(local.getElementType());
    if (!dtype)
      return emit()
             << "'" << boundary.name << "' has element type "
             << local.getElementType()
             << ", an artifact holds f32, f64, f16, bf16, i64, i32 or i1";

    auto sharding = getAttr<ShardingAttr>(boundary, kShardingAttr);
    auto globalType = getAttr<TypeAttr>(boundary, kGlobalTypeAttr);
    bool isSplit = sharding && !sharding.isReplicated();
    if (isSplit && !globalType)
      return emit() << "'" << boundary.name
                    << "' has a sharding but no tp.global_type: "
                    << kGlobalLevelHint;
    if (isSplit && sharding.isPartial())
      return emit() << "'" << boundary.name
                    << "' is a partial sum: a program's boundary needs whole "
                       "values, replicated or split";
    auto global =
        globalType ? cast<RankedTensorType>(globalType.getValue()) : local;

    SmallVector<Attribute> placements, shards;
    if (mesh) {
      auto placed = sharding
                        ? sharding
                        : ShardingAttr::getReplicated(
                              FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                              local.getRank());
      for (const std::string &placement : getPlacements(placed, mesh))
        placements.push_back(b.getStringAttr(placement));
    }
    for (int64_t rank = 0, e = mesh ? mesh.getNumRanks() : 1; rank < e;
         ++rank) {
      SmallVector<Attribute> block;
      for (int64_t dim = 0; dim < local.getRank(); ++dim) {
        int64_t size = global.getDimSize(dim), offset = 0;
        if (isSplit && !sharding.getDims()[dim].empty()) {
          ArrayRef<AxisRefAttr> axes = sharding.getDims()[dim].getAxes();
          int64_t chunk = llvm::divideCeil(size, mesh.getAxesSize(axes));
          offset = std::min(mesh.getIndexAlong(rank, axes) * chunk, size);
          size = std::min(chunk, size - offset);
        }
        if (size != local.getDimSize(dim))
          return emit() << "'" << boundary.name << "' has " << size
                        << " elements along dimension " << dim << " on rank "
                        << rank << ", but the program's type " << local
                        << " has " << local.getDimSize(dim);
        block.push_back(b.getDenseI64ArrayAttr({offset, size}));
      }
      shards.push_back(b.getArrayAttr(block));
    }
    return b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(boundary.name)),
         b.getNamedAttr("dtype", b.getStringAttr(*dtype)),
         b.getNamedAttr("shape", b.getDenseI64ArrayAttr(global.getShape())),
         b.getNamedAttr("placements", b.getArrayAttr(placements)),
         b.getNamedAttr("shards", b.getArrayAttr(shards))});
  }

private:
  template <typename T>
  static T getAttr(const Boundary &b, StringRef name) {
    return b.attrs ? dyn_cast_or_null<T>(b.attrs.get(name)) : T();
  }

  Builder b;
  MeshOp mesh;
};

class FormEntry : public tp::impl::FormEntryBase<FormEntry> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal()) {
      module.emitError("there is no function '@main' to compile");
      return signalPassFailure();
    }
    auto meshes = llvm::to_vector(module.getOps<MeshOp>());
    if (meshes.size() > 1) {
      meshes[1]
              .emitError("a program has one mesh, this is the second")
              .attachNote(meshes[0].getLoc())
          << "the first is here";
      return signalPassFailure();
    }
    mesh = meshes.empty() ? MeshOp() : meshes.front();
    if (failed(checkPerRank(main)) || failed(rewrite(main)))
      signalPassFailure();
  }

  LogicalResult checkPerRank(func::FuncOp main) {
    if (!main.getBody().hasOneBlock())
      return main.emitError("'@main' has several blocks, a program is "
                            "straight-line code");
    WalkResult walked = main.walk([&](Operation *op) {
      if (isa<RedistributeOp>(op) ||
          (!isa<nn::ParameterOp, func::FuncOp>(op) &&
           (op->hasAttr(kShardingAttr) || op->hasAttr(kShardingsAttr)))) {
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

  LogicalResult rewrite(func::FuncOp main) {
    MLIRContext *context = &getContext();
    Describer describer(context, mesh);
    Builder b(context);
    Block &body = main.getBody().front();
    auto terminator = cast<func::ReturnOp>(body.getTerminator());

    SmallVector<Boundary> inputs, parameters, outputs;
    for (BlockArgument arg : body.getArguments()) {
      unsigned i = arg.getArgNumber();
      DictionaryAttr attrs = main.getArgAttrDict(i);
      inputs.push_back(
          {getName(attrs, "arg", i), arg.getType(), attrs, arg.getLoc()});
    }
    // One argument per FQN, in order of first use.
    llvm::MapVector<StringAttr, SmallVector<nn::ParameterOp>> uses;
    main.walk([&](nn::ParameterOp op) { uses[op.getFqnAttr()].push_back(op); });
    for (auto &[fqn, ops] : uses) {
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
      parameters.push_back({fqn.str(), first.getType(),
                            first->getAttrDictionary(), first.getLoc()});
    }
    for (auto [i, type] : llvm::enumerate(main.getResultTypes())) {
      DictionaryAttr attrs = main.getResultAttrDict(i);
      outputs.push_back(
          {getName(attrs, "result", i), type, attrs, terminator.getLoc()});
    }

    // The manifest.
    SmallVector<NamedAttribute> manifest{
        b.getNamedAttr("world_size",
                       b.getI64IntegerAttr(mesh ? mesh.getNumRanks() : 1)),
        b.getNamedAttr("mesh", describeMesh(b))};
    for (auto &[role, boundaries] :
         {std::pair<StringRef, SmallVector<Boundary> &>{"inputs", inputs},
          {"parameters", parameters},
          {"outputs", outputs}}) {
      SmallVector<Attribute> tensors;
      llvm::StringSet<> names;
      for (const Boundary &boundary : boundaries) {
        FailureOr<DictionaryAttr> tensor = describer.describe(boundary);
        if (failed(tensor))
          return failure();
        if (role != "parameters" && !names.insert(boundary.name).second)
          return emitError(boundary.loc) << "two " << role << " have the name '"
                                         << boundary.name << "'";
        tensors.push_back(*tensor);
      }
      manifest.push_back(b.getNamedAttr(role, b.getArrayAttr(tensors)));
    }
    getOperation()->setAttr(kManifestAttr, b.getDictionaryAttr(manifest));

    // The signature: rank, inputs, parameters, outputs.
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    SmallVector<DictionaryAttr> argAttrs;
    auto addArg = [&](Type type, Role role, Location loc) {
      argAttrs.push_back(b.getDictionaryAttr(
          b.getNamedAttr(kRoleAttr, b.getStringAttr(stringifyRole(role)))));
      return body.addArgument(type, loc);
    };
    auto addBuffer = [&](const Boundary &boundary, Role role) {
      auto tensor = cast<RankedTensorType>(boundary.type);
      SmallVector<int64_t> shape(tensor.getShape());
      if (tensor.getNumElements() == 0)
        shape = {0}; // bare pointers need plain strides
      return addArg(MemRefType::get(shape, tensor.getElementType()), role,
                    boundary.loc);
    };
    auto read = [&](const Boundary &boundary, Role role) -> Value {
      Value buffer = addBuffer(boundary, role);
      auto tensor = cast<RankedTensorType>(boundary.type);
      if (tensor.getNumElements() == 0)
        return tensor::EmptyOp::create(builder, boundary.loc, tensor.getShape(),
                                       tensor.getElementType());
      return bufferization::ToTensorOp::create(builder, boundary.loc, tensor,
                                               buffer, /*restrict=*/true);
    };
    unsigned numOld = body.getNumArguments();
    addArg(builder.getIndexType(), Role::Rank, main.getLoc());
    for (auto [i, input] : llvm::enumerate(inputs))
      body.getArgument(i).replaceAllUsesWith(read(input, Role::Input));
    for (auto [parameter, ops] :
         llvm::zip_equal(parameters, llvm::make_second_range(uses))) {
      Value tensor = read(parameter, Role::Parameter);
      for (nn::ParameterOp op : ops)
        op.getResult().replaceAllUsesWith(tensor);
    }
    for (auto &[fqn, ops] : uses)
      for (nn::ParameterOp op : ops)
        op.erase();
    builder.setInsertionPoint(terminator);
    for (auto [output, value] :
         llvm::zip_equal(outputs, terminator.getOperands())) {
      Value buffer = addBuffer(output, Role::Output);
      if (cast<RankedTensorType>(output.type).getNumElements() != 0)
        bufferization::MaterializeInDestinationOp::create(
            builder, terminator.getLoc(), TypeRange(), value, buffer,
            /*restrict=*/true, /*writable=*/true);
    }
    terminator.getOperandsMutable().clear();
    body.eraseArguments(0, numOld);
    main.setType(builder.getFunctionType(body.getArgumentTypes(), {}));
    main.setResAttrsAttr(nullptr);
    main.setAllArgAttrs(argAttrs);
    return success();
  }

  DictionaryAttr describeMesh(Builder &b) {
    SmallVector<Attribute> axes;
    for (size_t i = 0, e = mesh ? mesh.getNumAxes() : 0; i < e; ++i)
      axes.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", b.getStringAttr(mesh.getAxisName(i))),
           b.getNamedAttr("size",
                          b.getI64IntegerAttr(mesh.getAxisSizes()[i]))}));
    return b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(mesh ? mesh.getSymName() : "")),
         b.getNamedAttr("axes", b.getArrayAttr(axes))});
  }

  MeshOp mesh;
};

} // namespace
