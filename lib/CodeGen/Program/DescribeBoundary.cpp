//===- DescribeBoundary.cpp - Tensors at a program's boundary -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Only this file reads the placements and global types of a per-rank program.
// It decides what the artifact says about tensors; later passes only pass that
// on.
//
//===----------------------------------------------------------------------===//

#include "DescribeBoundary.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Pipeline.h"

using namespace mlir;
using namespace mlir::tp;

static std::optional<StringRef> getDtype(Type type) {
  if (type.isF32())
    return "f32";
  if (type.isF64())
    return "f64";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isSignlessInteger(64))
    return "i64";
  if (type.isSignlessInteger(32))
    return "i32";
  if (type.isSignlessInteger(16))
    return "i16";
  if (type.isSignlessInteger(8))
    return "i8";
  if (type.isUnsignedInteger(8))
    return "ui8";
  if (type.isSignlessInteger(1))
    return "i1";
  return std::nullopt;
}

template <typename T>
static T getAttr(const Boundary &boundary, StringRef name) {
  return boundary.attrs ? dyn_cast_or_null<T>(boundary.attrs.get(name)) : T();
}

bool tp::isPartial(const Boundary &boundary) {
  auto sharding = getAttr<ShardingAttr>(boundary, kShardingAttr);
  return sharding && sharding.isPartial();
}

/// The blocks of all ranks: for each dimension, the offset and size of each
/// piece.
static ArrayAttr describeShards(Builder &b, ArrayRef<TensorBlock> blocks) {
  SmallVector<Attribute> shards;
  for (const TensorBlock &block : blocks) {
    SmallVector<Attribute> dims;
    for (ArrayRef<Interval> pieces : block) {
      SmallVector<int64_t> numbers;
      for (Interval piece : pieces)
        numbers.append({piece.offset, piece.size});
      dims.push_back(b.getDenseI64ArrayAttr(numbers));
    }
    shards.push_back(b.getArrayAttr(dims));
  }
  return b.getArrayAttr(shards);
}

ArrayAttr tp::describeAbsent(ArrayAttr shard) {
  auto nothing = DenseI64ArrayAttr::get(shard.getContext(), {0, 0});
  return ArrayAttr::get(shard.getContext(),
                        SmallVector<Attribute>(shard.size(), nothing));
}

/// For a Partial sum or product, the ranks whose part is the neutral element,
/// so that the parts of all ranks make up the value. For other reductions,
/// every rank's part may be the value itself.
static std::optional<DictionaryAttr>
describeNeutral(Builder &b, ShardingAttr sharding, MeshOp mesh) {
  SmallVector<int64_t> ranks;
  int64_t element = 0;
  for (PartialAttr partial : sharding.getPartial()) {
    if (partial.getKind() != ReductionKind::Sum &&
        partial.getKind() != ReductionKind::Product)
      continue;
    element = partial.getKind() == ReductionKind::Product;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      if (mesh.getIndexAlong(rank, partial.getAxis()) != 0 &&
          !llvm::is_contained(ranks, rank))
        ranks.push_back(rank);
  }
  if (ranks.empty())
    return std::nullopt;
  llvm::sort(ranks);
  return b.getDictionaryAttr({{"element", b.getI64IntegerAttr(element)},
                              {"ranks", b.getDenseI64ArrayAttr(ranks)}});
}

FailureOr<DictionaryAttr> tp::describeBoundary(const Boundary &boundary,
                                               MeshOp mesh,
                                               ArrayRef<int64_t> ranks) {
  auto emit = [&] { return emitError(boundary.loc); };
  auto local = dyn_cast<RankedTensorType>(boundary.type);
  if (!local || !local.hasStaticShape())
    return emit() << "'" << boundary.name << "' has type " << boundary.type
                  << ", a tensor of static shape is needed";
  std::optional<StringRef> dtype = getDtype(local.getElementType());
  if (!dtype) {
    InFlightDiagnostic diag = emit()
                              << "'" << boundary.name << "' has element type "
                              << local.getElementType()
                              << ", an artifact holds f32, f64, f16, bf16, "
                                 "i64, i32, i16, i8, ui8 or i1";
    if (local.getElementType().isIndex())
      diag << "; pass i64, and convert it in the program by arith.index_cast";
    return diag;
  }

  auto sharding = getAttr<ShardingAttr>(boundary, kShardingAttr);
  auto globalType = getAttr<TypeAttr>(boundary, kGlobalTypeAttr);
  bool isSplit = sharding && !sharding.isReplicated();
  if (isSplit && !globalType)
    return emit() << "'" << boundary.name
                  << "' has a sharding but no tp.global_type: "
                  << kGlobalLevelHint;
  auto global =
      globalType ? cast<RankedTensorType>(globalType.getValue()) : local;
  if (mesh && !sharding)
    sharding = ShardingAttr::getReplicated(
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), global.getRank());

  Builder b(local.getContext());
  SmallVector<Attribute> placements;
  SmallVector<TensorBlock> blocks;
  if (mesh) {
    for (const std::string &placement : getPlacements(sharding, mesh))
      placements.push_back(b.getStringAttr(placement));
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      blocks.push_back(getBlock(global.getShape(), sharding, mesh, rank));
  } else {
    TensorBlock &whole = blocks.emplace_back();
    for (int64_t size : global.getShape())
      whole.push_back({Interval{0, size}});
  }
  if (boundary.attrs && boundary.attrs.contains(kAbsentAttr))
    for (int64_t rank : ranks)
      blocks[rank].assign(global.getRank(), {Interval{0, 0}});
  for (int64_t rank : ranks)
    for (auto [dim, required, found] :
         llvm::enumerate(getBlockShape(blocks[rank]), local.getShape()))
      if (required != found)
        return emit() << "'" << boundary.name << "' has " << required
                      << " elements along dimension " << dim << " on rank "
                      << rank << ", but the program's type " << local << " has "
                      << found;
  bool hasSum = false, hasProduct = false;
  for (PartialAttr partial :
       sharding ? sharding.getPartial() : ArrayRef<PartialAttr>()) {
    hasSum |= partial.getKind() == ReductionKind::Sum;
    hasProduct |= partial.getKind() == ReductionKind::Product;
  }
  if (hasSum && hasProduct)
    return emit() << "'" << boundary.name
                  << "' is a partial sum and a partial product: a program's "
                     "boundary takes one of them";
  NamedAttrList tensor({{"name", b.getStringAttr(boundary.name)},
                        {"dtype", b.getStringAttr(*dtype)},
                        {"shape", b.getDenseI64ArrayAttr(global.getShape())},
                        {"placements", b.getArrayAttr(placements)},
                        {kShards, describeShards(b, blocks)}});
  if (auto symbolic = getAttr<ArrayAttr>(boundary, kSymbolicShapeAttr))
    tensor.append("symbolic_shape", symbolic);
  if (hasSum || hasProduct)
    if (auto neutral = describeNeutral(b, sharding, mesh))
      tensor.append("neutral", *neutral);
  return tensor.getDictionary(local.getContext());
}
