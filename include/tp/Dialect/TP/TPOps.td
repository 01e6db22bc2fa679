//===- TPOps.td - Mesh, redistribution, collectives --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPOPS_TD
#define TP_DIALECT_TP_TPOPS_TD

include "tp/Dialect/TP/TPOpBase.td"
include "tp/Dialect/TP/TPTypes.td"

//===----------------------------------------------------------------------===//
// Global level
//===----------------------------------------------------------------------===//

def TP_MeshOp : TP_Op<"mesh", [Symbol]> {
  let summary = "A named grid of ranks";
  let description = [{
    Names the dimensions of a DeviceMesh and their sizes. Positions are numbered row-major: the last
    dimension varies fastest. The rank at a position has the same number, unless `devices` lists the
    ranks by position.

    ```mlir
    tp.mesh @mesh(dp = 2, tp = 4)                     // rank = 4 * dp + tp
    tp.mesh @mesh(dp = 2, tp = 2) devices [0, 2, 1, 3] // rank 2 has dp = 0, tp = 1
    ```

    **Constraints:** (C1) at least one dimension; (C2) names are unique; (C3) sizes are at least 1;
    (C4) `devices` has each rank once; (C5) the mesh has at most 65536 ranks.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       ArrayAttr:$axis_names,
                       DenseI64ArrayAttr:$axis_sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$devices);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    size_t getNumAxes() { return getAxisSizes().size(); }
    ::llvm::StringRef getAxisName(size_t i);
    /// Index of a mesh dimension by name.
    std::optional<unsigned> getAxisIndex(::llvm::StringRef name);
    /// Size of a mesh dimension, or of a part of one; the name must exist.
    int64_t getAxisSize(AxisRefAttr axis);
    int64_t getAxesSize(::llvm::ArrayRef<AxisRefAttr> axes);
    int64_t getNumRanks();
    /// The position of `rank` in the grid, row-major, and the rank at a position.
    int64_t getPosition(int64_t rank);
    int64_t getRank(int64_t position);
    /// Index of `rank` along `axes`, the first major.
    int64_t getIndexAlong(int64_t rank, ::llvm::ArrayRef<AxisRefAttr> axes);
    /// The groups that `axes` span: ranks ordered by their index along them.
    ::llvm::SmallVector<::llvm::SmallVector<int64_t>>
    getGroups(::llvm::ArrayRef<AxisRefAttr> axes);
    /// The group that `rank` is in, ordered by index along `axes`.
    ::llvm::SmallVector<int64_t> getGroupOf(int64_t rank, ::llvm::ArrayRef<AxisRefAttr> axes);
  }];
}

def TP_DistributeOp : TP_Op<"distribute", [
    Pure, AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Place a value that every rank has";
  let description = [{
    DTensor's `distribute_tensor`: the input is whole on every rank, and the result is the same
    value placed as `sharding`. No communication. An input that already has a placement is an error;
    use `tp.redistribute` to change a placement.

    ```mlir
    %1 = tp.distribute %0 to <@mesh, [{tp}, {} ]> : tensor<16x8xf32>
    ```

    **Constraints:** (C1) `sharding` is valid for the input.
  }];
  let arguments = (ins AnyRankedTensor:$input, TP_ShardingAttr:$sharding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `to` $sharding attr-dict `:` type($input)";
}

def TP_ToLocalOp : TP_Op<"to_local", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Leave the global view: a rank's own block";
  let description = [{
    DTensor's `to_local`: on every rank, the result is the rank's own block of the input, which is
    first placed as `sharding`. Ops on the result run on each rank's block alone, until
    `tp.from_local` makes it a global value again. `grad_placements` is the placement of the
    gradient that arrives in the backward pass, if it differs.

    ```mlir
    %1 = tp.to_local %0 as <@mesh, [{tp}, {} ]> : tensor<16x8xf32> -> tensor<4x8xf32>
    ```

    **Constraints:** (C1) `sharding` and `grad_placements` are valid for the input; (C2) the result
    has the type of a block; the ranks must divide each dimension evenly, because blocks of
    different sizes have no common type.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       TP_ShardingAttr:$sharding,
                       OptionalAttr<TP_ShardingAttr>:$grad_placements);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `as` $sharding (`grad` $grad_placements^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def TP_FromLocalOp : TP_Op<"from_local", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Return to the global view: every rank's block is part of one value";
  let description = [{
    DTensor's `from_local`: the result is the global value whose blocks, placed as `sharding`, are
    the ranks' inputs. Over a mesh dimension that `sharding` replicates, the inputs are assumed to
    be equal; over one with a Partial, they are the parts to be reduced. No communication.

    ```mlir
    %1 = tp.from_local %0 as <@mesh, [{tp}, {} ]> : tensor<4x8xf32> -> tensor<16x8xf32>
    ```

    **Constraints:** (C1) `sharding` is valid for the result; (C2) that of `tp.to_local`, for the
    input.
  }];
  let arguments = (ins AnyRankedTensor:$input, TP_ShardingAttr:$sharding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `as` $sharding attr-dict `:` type($input) `->` type($result)";
}

def TP_RedistributeOp : TP_Op<"redistribute", [
    Pure, AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Change a value's placement";
  let description = [{
    The result is the input, placed as `sharding` says. Before partitioning this is the identity on
    the global value; `tp-partition` turns it into the collectives that lead from the input's
    placement to the result's. `fqn` and `reason` say which module and which plan entry or op asked
    for it.

    ```mlir
    %1 = tp.redistribute %0 to <@mesh, [{}, {}, {} ]>
         {fqn = "mlp.net2", reason = "plan.yaml:4:9: RowwiseParallel output_layouts Replicate"}
         : tensor<2x8x16xf32>
    ```

    With `over`, the redistribution only concerns these mesh dimensions; over all others the value
    keeps its placement. So a plan over one mesh dimension needn't know about a plan over another.
    After propagation there is no `over`.

    A value can't become Partial by a redistribution, and a Partial can't change its reduction: as
    in DTensor, such a target is an error at partitioning.

    **Constraints:** (C1) `sharding` is valid for the input; (C2) `over` names whole mesh
    dimensions; (C3) with `over`, `sharding` uses only these.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       TP_ShardingAttr:$sharding,
                       OptionalAttr<StrAttr>:$fqn,
                       OptionalAttr<StrAttr>:$reason,
                       OptionalAttr<TP_AxisListAttr>:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `to` $sharding (`over` custom<Axes>($over)^)? attr-dict `:` "
                       "type($input)";
  let hasFolder = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input,
                   "::mlir::tp::ShardingAttr":$sharding, "::mlir::StringAttr":$fqn,
                   "::mlir::StringAttr":$reason), [{
      build($_builder, $_state, type, input, sharding, fqn, reason, AxisListAttr());
    }]>];
  let extraClassDeclaration = [{
    /// The result's placement if the input is placed as `from`.
    ::mlir::tp::ShardingAttr getTarget(::mlir::tp::ShardingAttr from);
  }];
}

def TP_ConstraintOp : TP_Op<"constraint", [
    Pure, AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Fix a value's placement where it can't carry an attribute";
  let description = [{
    From here on, the value is placed as `sharding` says. Propagation spreads this placement in both
    directions. The op is the identity. If the value doesn't already have this placement,
    `tp-propagate` replaces the op by a `tp.redistribute`.

    Dimensions in `open` may be split further, over mesh dimensions that the value doesn't use; all
    others are closed. Constraints with a smaller `priority` (0 by default) are propagated first,
    and their decisions stand; those with a larger one fill in what is left open.

    ```mlir
    %1 = tp.constraint %0 to <@mesh, [{dp}, {} ]> : tensor<8x16xf32>
    %2 = tp.constraint %1 to <@mesh, [{dp}, {} ]> open [1] priority 1 : tensor<8x16xf32>
    ```

    **Constraints:** (C1) `open` names dimensions of the tensor; (C2) the priority isn't negative;
    (C3) `sharding` is valid for the input.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       TP_ShardingAttr:$sharding,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$open,
                       DefaultValuedAttr<I64Attr, "0">:$priority);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `to` $sharding (`open` $open^)? (`priority` $priority^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def TP_PropagationBarrierOp : TP_Op<"propagation_barrier", [
    Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Keep placements from spreading";
  let description = [{
    Placements don't spread through the op: `forward` blocks them from the input to the result,
    `backward` from the result to the input. Without either, both directions are blocked. If the two
    sides end up with different placements, the value is redistributed here. The op is the identity,
    and `tp-propagate` removes it.

    ```mlir
    %1 = tp.propagation_barrier %0 : tensor<8x16xf32>
    %2 = tp.propagation_barrier %1 forward : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, UnitAttr:$forward, UnitAttr:$backward);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input (`forward` $forward^)? (`backward` $backward^)? attr-dict `:` type($input)
  }];
  let extraClassDeclaration = [{
    bool blocksForward() { return getForward() || !getBackward(); }
    bool blocksBackward() { return getBackward() || !getForward(); }
  }];
}

//===----------------------------------------------------------------------===//
// Per-rank level
//===----------------------------------------------------------------------===//

def TP_AllGatherOp : TP_CollectiveOp<"all_gather"> {
  let summary = "Concatenate the group's blocks on every rank";
  let description = [{
    The result is the concatenation of the group's operands along `dim`.

    ```mlir
    %1 = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x16xf32>
    ```
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            I64Attr:$dim), base, provenance);
  let assemblyFormat = [{
    $input `dim` $dim `over` $mesh custom<Axes>($axes) attr-dict `:` type($input) `->` type($result)
  }];
  let extraClassDeclaration = "bool isSameInGroup() { return true; }";
}

def TP_ReduceScatterOp : TP_CollectiveOp<"reduce_scatter"> {
  let summary = "Reduce over the group, keep this rank's block";
  let description = [{
    The operands are reduced with `kind`; rank i of the group keeps block i along `dim`.

    ```mlir
    %1 = tp.reduce_scatter sum %0 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x4xf32>
    ```
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            EnumProp<TP_ReductionKind>:$kind,
                            I64Attr:$dim), base, provenance);
  let assemblyFormat = [{
    $kind $input `dim` $dim `over` $mesh custom<Axes>($axes) attr-dict `:` type($input) `->`
    type($result)
  }];
}

def TP_AllReduceOp : TP_CollectiveOp<"all_reduce", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Reduce over the group, on every rank";
  let description = [{
    The operands are reduced with `kind`; every rank gets the result.

    ```mlir
    %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<8x16xf32>
    ```
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            EnumProp<TP_ReductionKind>:$kind), base, provenance);
  let assemblyFormat = [{
    $kind $input `over` $mesh custom<Axes>($axes) attr-dict `:` type($input)
  }];
  let extraClassDeclaration = [{
    unsigned getNumPhases() { return 2; }
    bool isSameInGroup() { return true; }
  }];
}

def TP_AllToAllOp : TP_CollectiveOp<"all_to_all"> {
  let summary = "Move the split from one dimension to another";
  let description = [{
    The operand is cut into as many blocks along `split_dim` as the group has ranks; block j goes to
    rank j, which concatenates the blocks that it receives along `concat_dim`.

    ```mlir
    %1 = tp.all_to_all %0 split 0 concat 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x16xf32>
    ```

    **Constraints:** (C4) `split_dim` and `concat_dim` are different dimensions of the operand.
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            I64Attr:$split_dim,
                            I64Attr:$concat_dim), base, provenance);
  let assemblyFormat = [{
    $input `split` $split_dim `concat` $concat_dim `over` $mesh custom<Axes>($axes) attr-dict `:`
    type($input) `->` type($result)
  }];
  let extraClassDeclaration = [{
    bool isRelayed() { return false; }
  }];
}

def TP_PermuteOp : TP_CollectiveOp<"permute"> {
  let summary = "Exchange blocks within the group";
  let description = [{
    The result of rank i of the group is the operand of rank `source[i]`. If blocks differ in shape,
    a rank may receive a block whose shape differs from its own.

    ```mlir
    %1 = tp.permute %0 from [1, 0] over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf32>
    %2 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<3x4xf32> -> tensor<2x4xf32>
    ```

    **Constraints:** (C4) `source` has one entry per rank of the group, each in range; (C5) a block
    from a rank that runs the same program has the operand's type.
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            DenseI64ArrayAttr:$source), base, provenance);
  let assemblyFormat = [{
    $input `from` $source `over` $mesh custom<Axes>($axes) attr-dict `:` type($input) `->`
    type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<int64_t> getSources(int64_t rank, ::mlir::tp::MeshOp &mesh);
    bool isRelayed() { return false; }
  }];
}

def TP_ExchangeOp : TP_CollectiveOp<"exchange"> {
  let summary = "Change the blocks in one step, each element sent once";
  let description = [{
    Operand and result are this rank's blocks of a tensor of shape `of`, placed by `from` and by
    `to`. Every rank receives the elements that it lacks from the rank of its group that has them.
    This is an all-to-all with blocks of any size: a rank receives exactly the elements of its new
    block that aren't in its old one. A Partial stays unchanged.

    ```mlir
    %1 = tp.exchange %0 of [16, 8] from <@mesh, [{x}, {y} ]> to <@mesh, [{y}, {x} ]>
         over @mesh {x, y} : tensor<4x4xf32> -> tensor<8x2xf32>
    ```

    **Constraints:** (C4) `from` and `to` are shardings of a tensor of this shape over the mesh and
    have the same Partial; (C5) the group is spanned by the axes of `from`.
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            DenseI64ArrayAttr:$shape,
                            TP_ShardingAttr:$from,
                            TP_ShardingAttr:$to), base, provenance);
  let assemblyFormat = [{
    $input `of` $shape `from` $from `to` $to `over` $mesh custom<Axes>($axes) attr-dict `:`
    type($input) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::tp::Transfer> getTransfers(int64_t rank, ::mlir::tp::MeshOp &mesh);
    ::llvm::SmallVector<int64_t> getSources(int64_t rank, ::mlir::tp::MeshOp &mesh);
    bool isRelayed() { return false; }
  }];
}

def TP_HaloOp : TP_CollectiveOp<"halo"> {
  let summary = "Receive what windows need beyond the block";
  let description = [{
    A dimension of `of` elements is split over `axes`. The operand is this rank's block of it,
    followed by m more elements, the *margin*. Rank i of the group receives the elements from
    `begin[i]` on, as many as its result has, from the ranks that hold them. Elements before the
    first or after the last one of the dimension are taken from the rank's own margin, from its first
    element on. The margin usually holds a constant, the padding. This is GSPMD's halo exchange (Xu et
    al., "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021).

    Below, ranks hold 4 of 8 elements, and each needs one more at either end:

    ```mlir
    %1 = tp.halo %0 dim 1 of 8 begin [-1, 3] over @mesh {tp} : tensor<2x5xf32> -> tensor<2x6xf32>
    ```

    **Constraints:** (C4) `dim` is a dimension of the operand, and `of` isn't negative; (C5) `begin`
    has one entry per rank of the group; (C6) the margin has room for what lies outside at either
    end; (C7) the other dimensions don't change.
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            I64Attr:$dim,
                            I64Attr:$size,
                            DenseI64ArrayAttr:$begin), base, provenance);
  let assemblyFormat = [{
    $input `dim` $dim `of` $size `begin` $begin `over` $mesh custom<Axes>($axes) attr-dict `:`
    type($input) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::tp::Transfer> getTransfers(int64_t rank, ::mlir::tp::MeshOp &mesh);
    ::llvm::SmallVector<int64_t> getSources(int64_t rank, ::mlir::tp::MeshOp &mesh);
    bool isRelayed() { return false; }
  }];
}

def TP_BroadcastOp : TP_CollectiveOp<"broadcast", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Give one rank's block to the whole group";
  let description = [{
    The result on every rank is the operand of rank `root` of the group.

    ```mlir
    %1 = tp.broadcast %0 root 0 over @mesh {tp} : tensor<8x4xf32>
    ```

    **Constraints:** (C4) `root` is a position in the group.
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            I64Attr:$root), base, provenance);
  let assemblyFormat = [{
    $input `root` $root `over` $mesh custom<Axes>($axes) attr-dict `:` type($input)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<int64_t> getSources(int64_t rank, ::mlir::tp::MeshOp &mesh);
    bool isSameInGroup() { return true; }
  }];
}

def TP_StartOp : TP_Op<"start", [SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "Begin a collective that is waited for later";
  let description = [{
    Issues the collective in its body; `tp.wait` gives its result. Ops in between may run at the
    same time. Ranks issue collectives in the order of the starts.

    ```mlir
    %0 = tp.start {
      %1 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<16x4xf32>
      tp.yield %1 : tensor<16x4xf32>
    } : !tp.pending<tensor<16x4xf32>>
    %2 = nn.linear %y, %w : …
    %3 = tp.wait %0 : !tp.pending<tensor<16x4xf32>>
    ```

    **Constraints:** (C1) the body is one collective and a `tp.yield` of its result; (C2) the
    result's type is `!tp.pending` of the yielded type; (C3) it has one use, a `tp.wait` in the same
    block.
  }];
  let regions = (region SizedRegion<1>:$body);
  let results = (outs TP_PendingType:$result);
  let assemblyFormat = "$body attr-dict `:` qualified(type($result))";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    CollectiveOpInterface getCollective();
  }];
}

def TP_YieldOp : TP_Op<"yield", [Pure, Terminator, HasParent<"StartOp">]> {
  let summary = "End the body of a started collective";
  let description = [{
    Terminates `tp.start`; the operand is the collective's result.

    ```mlir
    tp.yield %1 : tensor<16x4xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def TP_WaitOp : TP_Op<"wait", [
    TypesMatchWith<"the result is what is pending", "pending", "result",
                   "::llvm::cast<PendingType>($_self).getTensor()">,
    MemoryEffects<[MemRead<TP_CommResource>, MemWrite<TP_CommResource>]>]> {
  let summary = "Wait for a started collective";
  let description = [{
    ```mlir
    %1 = tp.wait %0 : !tp.pending<tensor<16x4xf32>>
    ```
  }];
  let arguments = (ins TP_PendingType:$pending);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$pending attr-dict `:` qualified(type($pending))";
}

def TP_LocalSliceOp : TP_PerRankOp<"local_slice", [Pure]> {
  let summary = "Keep this rank's block of a replicated value";
  let description = [{
    The rank whose index along `axes` is i keeps block i along `dim`. No communication. If `axes`
    has segments, the rank keeps block i of each segment.

    ```mlir
    %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x4xf32>
    %2 = tp.local_slice %0 dim 1 over @mesh {tp | 8, 8} : tensor<8x16xf32> -> tensor<8x4xf32>
    ```

    **Constraints:** (C1) the mesh exists and has the axes; there is at least one axis; (C2) the
    segments add up to the size of the dimension; (C3) operand and result have the same element
    type; (C4) the result has the shape of a rank's block.
  }];
  let arguments = !con((ins AnyRankedTensor:$input, I64Attr:$dim), base);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `dim` $dim `over` $mesh custom<Axes>($axes) attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TP_ShardOffsetOp : TP_PerRankOp<"shard_offset", [Pure]> {
  let summary = "Where this rank's block begins";
  let description = [{
    A scalar: the first index of the rank's block of a dimension of size `of` that `axes` split. An
    empty block begins at the end. If `of` is the number of ranks along the axes, the offset is the
    rank's index.

    ```mlir
    %0 = tp.shard_offset of 10 over @mesh {tp} : tensor<i64>    // 0, 3, 6, 9 for tp = 4
    ```

    **Constraints:** (C1) the mesh exists and has the axes; there is at least one axis; (C2) axes
    have no segments.
  }];
  let arguments = !con((ins ConfinedAttr<I64Attr, [IntNonNegative]>:$size), base);
  let results = (outs 0DTensorOf<[I64]>:$result);
  let assemblyFormat = "`of` $size `over` $mesh custom<Axes>($axes) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // TP_DIALECT_TP_TPOPS_TD
