//===- NNBase.td - Base classes of nn ops ------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNBASE_TD
#define TP_DIALECT_NN_NNBASE_TD

include "tp/Dialect/NN/NNDialect.td"
include "tp/Interfaces/GradientOpInterface.td"
include "tp/Interfaces/ModelOpInterfaces.td"
include "tp/Interfaces/ShapeOpInterfaces.td"
include "tp/Interfaces/ShardingRuleOpInterface.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// ui8 can be moved and cast; arithmetic is on signless integers.
def NN_Tensor : StaticShapeTensorOf<[F16, BF16, F32, F64, I8, I16, I32, I64, I1, UI8]>;
def NN_SignlessTensor : StaticShapeTensorOf<[F16, BF16, F32, F64, I8, I16, I32, I64, I1]>;
def NN_FloatTensor : StaticShapeTensorOf<[F16, BF16, F32, F64]>;
def NN_NumericTensor : StaticShapeTensorOf<[F16, BF16, F32, F64, I8, I16, I32, I64]>;
def NN_IndexTensor : StaticShapeTensorOf<[I32, I64]>;
def NN_BoolTensor : StaticShapeTensorOf<[I1]>;

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits>;

/// An op with a sharding rule. `rule` is a C++ expression of type
/// tp::ShardingRule, with the op as `*this`. `partitioned = 1`: the op defines
/// partition() itself. `differentiable = 1`: it defines buildGradient(), in
/// lib/Dialect/NN/Gradients. `purity`: the side-effect traits; empty if the
/// result depends on more than the operands.
class NN_RuleOp<string mnemonic, string ruleExpr, list<Trait> traits = [],
                bit partitioned = 0, bit differentiable = 1,
                list<Trait> purity = [Pure]>
    : NN_Op<mnemonic, traits # purity # [
        DeclareOpInterfaceMethods<ShardingRuleOpInterface,
          !if(partitioned, ["partition"], []<string>)>] #
        !if(differentiable, [DeclareOpInterfaceMethods<GradientOpInterface>], []<Trait>)> {
  string rule = ruleExpr;
  code ruleDefinition = "::mlir::tp::ShardingRule $cppClass::getShardingRule() {\n"
    "  using ::mlir::tp::ShardingRule;\n  return " # rule # ";\n}\n";
  let extraClassDefinition = ruleDefinition;
}

/// The result types follow from operands and attributes: `create` takes no types, and NNTypes.cpp
/// defines inferReturnTypes. The interface's own check is off, because it reports two errors; verify()
/// compares the types and reports one.
def NN_InferType : InferTypeOpAdaptorBase<[{
  static ::llvm::LogicalResult refineReturnTypes(::mlir::MLIRContext *,
      ::std::optional<::mlir::Location>, ::mlir::ValueRange, ::mlir::DictionaryAttr,
      ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &) {
    return ::mlir::success();
  }
}]>;

#endif // TP_DIALECT_NN_NNBASE_TD
