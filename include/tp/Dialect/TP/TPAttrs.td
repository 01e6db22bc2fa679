//===- TPAttrs.td - Placements -----------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPATTRS_TD
#define TP_DIALECT_TP_TPATTRS_TD

include "tp/Dialect/TP/TPDialect.td"
include "tp/Dialect/TP/TPEnums.td"
include "mlir/IR/AttrTypeBase.td"

class TP_Attr<string name, string attrMnemonic> : AttrDef<TP_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def TP_AxisRefAttr : TP_Attr<"AxisRef", "axis"> {
  let summary = "a mesh dimension, or part of one";
  let description = [{
    `tp` is the whole mesh dimension called `tp`. `tp:(p)s` is the part of size `s` whose major
    neighbors have size `p`: of `tp = 8`, `tp:(1)2` is the major half, `tp:(2)4` the rest, and both
    together are `tp` again.

    **Constraints:** `p ≥ 1`, `s ≥ 2`; `p·s` divides the size of the mesh dimension. A whole
    dimension has `preSize = 0` and `size = 0`.
  }];
  let parameters = (ins StringRefParameter<"mesh dimension">:$name,
                        DefaultValuedParameter<"int64_t", "0">:$preSize,
                        DefaultValuedParameter<"int64_t", "0">:$size);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::StringRef":$name), [{
      return $_get($_ctxt, name, int64_t(0), int64_t(0));
    }]>];
  let extraClassDeclaration = [{
    bool isWhole() const { return getSize() == 0; }
    /// Whether the two can't split one tensor: they have a part of a mesh
    /// dimension in common, or their indices depend on each other.
    bool overlaps(AxisRefAttr other) const;
    void printAxis(::llvm::raw_ostream &os) const;
  }];
}

def TP_AxisListAttr : TP_Attr<"AxisList", "axes"> {
  let summary = "mesh dimensions, major to minor";
  let description = [{
    Printed as `{dp, tp}`. The axes that split one tensor dimension, or that span a collective's
    group.

    A tensor dimension may consist of *segments*, each of which is split separately, such as the
    rows of a fused query-key-value weight: `{tp | 64, 32, 32}` gives every rank its part of the
    first 64, of the next 32 and of the last 32.

    **Constraints:** segments are positive, and there are none or at least two.
  }];
  let parameters = (ins ArrayRefParameter<"AxisRefAttr">:$axes,
                        OptionalArrayRefParameter<"int64_t">:$segments);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<::mlir::tp::AxisRefAttr>":$axes), [{
      return $_get($_ctxt, axes, ::llvm::ArrayRef<int64_t>());
    }]>];
  let extraClassDeclaration = [{
    bool empty() const { return getAxes().empty(); }
    size_t size() const { return getAxes().size(); }
    auto begin() const { return getAxes().begin(); }
    auto end() const { return getAxes().end(); }
    void printAxes(::llvm::raw_ostream &os) const;
    static ::mlir::FailureOr<AxisListAttr> parseAxes(::mlir::AsmParser &parser);
  }];
}

def TP_PartialAttr : TP_Attr<"Partial", "partial"> {
  let summary = "a pending reduction over one mesh dimension";
  let description = [{
    DTensor's `Partial`: the ranks along `axis` hold terms that are still to be reduced with `kind`.
    It is part of a `#tp.sharding`, which prints it as `tp: sum`:

    ```mlir
    #tp.sharding<@mesh, [{}, {} ], partial = {tp: sum}>
    ```
  }];
  let parameters = (ins "AxisRefAttr":$axis, EnumParameter<TP_ReductionKind>:$kind);
  let assemblyFormat = "`<` $axis `,` $kind `>`";
}

def TP_ShardingAttr : TP_Attr<"Sharding", "sharding"> {
  let summary = "where a tensor lives on a mesh";
  let description = [{
    Lists, for each tensor dimension, the mesh dimensions that split it, major to minor, and then
    the mesh dimensions over which the value is still a partial reduction. The value is replicated
    over mesh dimensions that don't appear. This is DTensor's list of placements, with the nesting
    order made explicit:

    ```mlir
    tp.mesh @mesh(dp = 2, tp = 4)
    #tp.sharding<@mesh, [{dp}, {tp} ]>                    // (Shard(0), Shard(1))
    #tp.sharding<@mesh, [{tp, dp}, {} ]>                   // both split dimension 0, tp major
    #tp.sharding<@mesh, [{}, {} ], partial = {tp: sum}>    // (Replicate, Partial(sum))
    #tp.sharding<@mesh, [{tp:(1)2}, {} ]>                  // the major half of tp
    #tp.sharding<@mesh, [{tp | 64, 32, 32}, {} ]>          // three segments, each split by tp
    ```

    Sizes needn't divide evenly: an axis of size k splits a dimension of size n into blocks of
    ceil(n/k) elements; the last ones are shorter or empty, as with `torch.chunk`. Further axes
    split each of these blocks in the same way.

    **Constraints:**
    - (C1) one list per dimension of the tensor;
    - (C2) every axis names a dimension of the mesh;
    - (C3) no mesh dimension, or part of one, appears twice, and of two parts the minor one begins
      at a multiple of where the major one ends;
    - (C4) parts satisfy the constraints of `axis`;
    - (C5) the segments of a dimension add up to its size;
    - (C6) all reductions are of one kind, or each is sum or avg; other kinds don't commute;
    - (C7) the tensor has a static shape, at most 2^40 elements, and elements that are integers,
      floats or indices. A value that isn't a tensor has a replicated sharding without dimensions.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"AxisListAttr">:$dims,
                        OptionalArrayRefParameter<"PartialAttr">:$partial);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    bool isReplicated() const;
    bool isPartial() const { return !getPartial().empty(); }
    static ShardingAttr getReplicated(::mlir::FlatSymbolRefAttr mesh, int64_t rank);
    /// The dimension that `axis` splits, if any.
    std::optional<int64_t> getShardedDim(::llvm::StringRef axis) const;
    std::optional<int64_t> getShardedDim(AxisRefAttr axis) const;
    std::optional<ReductionKind> getPartialKind(::llvm::StringRef axis) const;
    std::optional<ReductionKind> getPartialKind(AxisRefAttr axis) const;
    /// This sharding without any axis called `axis`.
    ShardingAttr without(::llvm::StringRef axis) const;
    ShardingAttr withShard(AxisRefAttr axis, int64_t dim) const;
    ShardingAttr withPartial(AxisRefAttr axis, ReductionKind kind) const;
    ShardingAttr withoutPartial() const;
    /// Prints all but the mesh.
    void printPlacement(::llvm::raw_ostream &os) const;
  }];
}

#endif // TP_DIALECT_TP_TPATTRS_TD
