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
#include "llvm/ADT/SmallBitVector.h"

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

/// A block: for each dimension, the offset and size of each piece.
static ArrayAttr describeBlock(Builder &b, const TensorBlock &block) {
  SmallVector<Attribute> dims;
  for (ArrayRef<Interval> pieces : block) {
    SmallVector<int64_t> numbers;
    for (Interval piece : pieces)
      numbers.append({piece.offset, piece.size});
    dims.push_back(b.getDenseI64ArrayAttr(numbers));
  }
  return b.getArrayAttr(dims);
}

ArrayAttr tp::describeAbsent(ArrayAttr shard) {
  auto nothing = DenseI64ArrayAttr::get(shard.getContext(), {0, 0});
  return ArrayAttr::get(shard.getContext(),
                        SmallVector<Attribute>(shard.size(), nothing));
}

/// For a Partial sum or product, the ranks whose part is the neutral element,
/// so that the parts of all ranks make up the value. For other reductions,
/// every rank's part may be the value itself.
std::optional<DictionaryAttr>
BoundaryDescriber::describeNeutral(ShardingAttr sharding) {
  Builder b(sharding.getContext());
  llvm::SmallBitVector isNeutral(mesh.getNumRanks());
  int64_t element = 0;
  for (PartialAttr partial : sharding.getPartial()) {
    if (partial.getKind() != ReductionKind::Sum &&
        partial.getKind() != ReductionKind::Product)
      continue;
    element = partial.getKind() == ReductionKind::Product;
    auto axis = AxisListAttr::get(b.getContext(), partial.getAxis());
    for (auto [rank, index] : llvm::enumerate(indices.get(axis)))
      if (index != 0)
        isNeutral.set(rank);
  }
  if (isNeutral.none())
    return std::nullopt;
  SmallVector<int64_t> neutral(isNeutral.set_bits());
  return b.getDictionaryAttr({{"element", b.getI64IntegerAttr(element)},
                              {"ranks", b.getDenseI64ArrayAttr(neutral)}});
}

FailureOr<ArrayAttr> BoundaryDescriber::getShards(const Boundary &boundary,
                                                  RankedTensorType global,
                                                  ShardingAttr sharding,
                                                  RankedTensorType local) {
  Builder b(global.getContext());
  bool isAbsent = boundary.attrs && boundary.attrs.contains(kAbsentAttr);
  ArrayAttr &shards = known[{global, local, sharding, isAbsent}];
  if (shards)
    return shards;
  TensorBlock whole;
  for (int64_t size : global.getShape())
    whole.push_back({Interval{0, size}});
  SmallVector<Attribute> blocks = {describeBlock(b, whole)};
  auto getBlockOf = [&](int64_t rank) {
    return mesh ? getBlock(global.getShape(), sharding, mesh, rank) : whole;
  };
  auto axes =
      AxisListAttr::get(b.getContext(), mesh ? getSplittingAxes(sharding)
                                             : SmallVector<AxisRefAttr>());
  if (mesh)
    blocks = indices.map(axes, [&](int64_t rank) -> Attribute {
      return describeBlock(b, getBlockOf(rank));
    });
  // Ranks with the same block are checked once.
  llvm::SmallPtrSet<const void *, 16> checked;
  for (int64_t rank : ranks) {
    if (!checked.insert(blocks[rank].getAsOpaquePointer()).second)
      continue;
    SmallVector<int64_t> shape = getBlockShape(getBlockOf(rank));
    if (isAbsent)
      shape.assign(shape.size(), 0);
    for (auto [dim, required, found] : llvm::enumerate(shape, local.getShape()))
      if (required != found)
        return emitError(boundary.loc)
               << "'" << boundary.name << "' has " << required
               << " elements along dimension " << dim << " on rank " << rank
               << ", but the program's type " << local << " has " << found;
  }
  if (isAbsent)
    for (int64_t rank : ranks)
      blocks[rank] = describeAbsent(cast<ArrayAttr>(blocks[rank]));
  return shards = b.getArrayAttr(blocks);
}

FailureOr<DictionaryAttr>
BoundaryDescriber::describe(const Boundary &boundary) {
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
  if (mesh)
    for (const std::string &placement : getPlacements(sharding, mesh))
      placements.push_back(b.getStringAttr(placement));
  FailureOr<ArrayAttr> shards = getShards(boundary, global, sharding, local);
  if (failed(shards))
    return failure();
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
                        {kShards, *shards}});
  if (auto symbolic = getAttr<ArrayAttr>(boundary, kSymbolicShapeAttr))
    tensor.append("symbolic_shape", symbolic);
  if (hasSum || hasProduct)
    if (auto neutral = describeNeutral(sharding))
      tensor.append("neutral", *neutral);
  return tensor.getDictionary(local.getContext());
}
