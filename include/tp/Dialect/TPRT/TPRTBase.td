//===- TPRTBase.td - Classes of the runtime's calls --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRTBASE_TD
#define TP_DIALECT_TPRT_TPRTBASE_TD

include "tp/Dialect/TPRT/TPRTDialect.td"
include "tp/Dialect/TPRT/TPRTEnums.td"
include "tp/Dialect/TPRT/TPRTInterfaces.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class TPRT_Op<string mnemonic, list<Trait> traits = []>
    : Op<TPRT_Dialect, mnemonic, traits>;

/// The status that a program returns: ops that may fail write it.
def TPRT_StatusResource : Resource<"::mlir::tprt::StatusResource">;

/// An op that bufferization rewrites; `overridden` are further methods of the interface.
class TPRT_Bufferizable<list<string> overridden = []>
    : DeclareOpInterfaceMethods<BufferizableOpInterface, [
        "bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues",
        "bufferize"] # overridden>;

/// An op that writes tensors or buffers which are operands; on tensors, the results are these.
/// `readsInits`, in C++, says whether it also reads them; `relation` is what bufferization knows
/// of an operand and its result.
class TPRT_DestinationOp<string mnemonic, string readsInits, string relation = "Equivalent",
                         list<Trait> traits = [], list<string> overridden = []>
    : TPRT_Op<mnemonic, [
        MemoryEffects<[MemWrite<TPRT_StatusResource>]>, DestinationStyleOpInterface,
        TPRT_Bufferizable<overridden>] # traits> {
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let extraClassDefinition = [{
    bool $cppClass::bufferizesToMemoryRead(
        ::mlir::OpOperand &operand, const ::mlir::bufferization::AnalysisState &) {
      return !isDpsInit(&operand) || (}] # readsInits # [{);
    }
    bool $cppClass::bufferizesToMemoryWrite(
        ::mlir::OpOperand &operand, const ::mlir::bufferization::AnalysisState &) {
      return isDpsInit(&operand);
    }
    ::mlir::bufferization::AliasingValueList $cppClass::getAliasingValues(
        ::mlir::OpOperand &operand, const ::mlir::bufferization::AnalysisState &) {
      if (!isDpsInit(&operand))
        return {};
      auto relation = ::mlir::bufferization::BufferRelation::}] # relation # [{;
      return {{getTiedOpResult(&operand), relation}};
    }
  }];
}

def TPRT_IndexBuffer : AnyTypeOf<[StaticShapeTensorOf<[I32, I64]>,
                                  StaticShapeMemRefOf<[I32, I64]>]>;

def TPRT_Buffer : AnyTypeOf<[AnyStaticShapeTensor, AnyStaticShapeMemRef]>;

def TPRT_StridedBuffer : StridedMemRefRankOf<[F32, F64, F16, BF16], [0, 1, 2, 3, 4, 5, 6, 7, 8]>;

#endif // TP_DIALECT_TPRT_TPRTBASE_TD
