//===- TPRTOps.td - calls of the runtime -------------------*- tablegen -*-===//

#ifndef TP_DIALECT_TPRT_TPRTOPS_TD
#define TP_DIALECT_TPRT_TPRTOPS_TD

include "tp/Dialect/TPRT/TPRTDialect.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class TPRT_Op<string mnemonic, list<Trait> traits = []>
    : Op<TPRT_Dialect, mnemonic, traits>;

/// The status that a program returns: ops that may fail write it.
def TPRT_StatusResource : Resource<"::mlir::tprt::StatusResource">;

def TPRT_IndexBuffer : AnyTypeOf<[StaticShapeTensorOf<[I32, I64]>,
                                  StaticShapeMemRefOf<[I32, I64]>]>;

def TPRT_CheckIndexOp : TPRT_Op<"check_index", [
    MemoryEffects<[MemWrite<TPRT_StatusResource>]>,
    DeclareOpInterfaceMethods<BufferizableOpInterface, [
      "bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "Fail unless every index is in range";
  let description = [{
    Ends the program with `tprt_index_error` at the first element of `indices`, in
    row-major order, that is outside `[0, bound)` and isn't `ignored`. `what` is the
    text of the error: the module's FQN and the op.

    ```mlir
    tprt.check_index %ids below 100 what "embeddings.word: embedding" : tensor<2x8xi64>
    tprt.check_index %t below 16 except -100 what "loss: cross_entropy" : tensor<8xi64>
    ```

    The ops that use the indices read a row that exists in any case, so that their
    order relative to the check is free.

    **Constraints:** (C1) `bound` is not negative.
  }];
  let arguments = (ins Arg<TPRT_IndexBuffer, "the indices", [MemRead]>:$indices,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$bound,
                       OptionalAttr<I64Attr>:$ignored, StrAttr:$what);
  let assemblyFormat = [{
    $indices `below` $bound (`except` $ignored^)? `what` $what attr-dict `:` type($indices)
  }];
}

#endif // TP_DIALECT_TPRT_TPRTOPS_TD
