//===- PerRankOps.cpp - Collectives, slices -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Intervals.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/SparseRows.h"

using namespace mlir;
using namespace mlir::tp;

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Verifies that a group can be spanned by `axes`. Only `tp.local_slice` is
/// `segmented`.
static LogicalResult verifyAxes(Operation *op, AxisListAttr axes,
                                bool segmented = false) {
  if (axes.empty())
    return op->emitOpError("needs at least one mesh dimension");
  if (!segmented && !axes.getSegments().empty())
    return op->emitOpError(
        "can't have segments; only 'tp.local_slice' supports them");
  return success();
}

/// Verifies that `axes` are valid for dimension `dim` of a tensor of type
/// `whole`. Returns the mesh.
static FailureOr<MeshOp> verifyGroup(Operation *op,
                                     SymbolTableCollection &symbols,
                                     FlatSymbolRefAttr meshRef,
                                     AxisListAttr axes, RankedTensorType whole,
                                     int64_t dim) {
  // A sharding that nests all axes on one dimension has the same constraints.
  SmallVector<AxisListAttr> dims(whole.getRank(),
                                 AxisListAttr::get(op->getContext(), {}));
  dims[dim] = axes;
  auto sharding = ShardingAttr::get(op->getContext(), meshRef, dims, {});
  MeshOp mesh = lookupMesh(op, meshRef, symbols);
  if (failed(verifySharding(sharding, whole, mesh,
                            [&]() { return op->emitOpError(); })))
    return failure();
  return mesh;
}

/// Verifies that the mesh has `axes`, which have no segments. Returns the mesh.
static FailureOr<MeshOp> verifyGroup(Operation *op,
                                     SymbolTableCollection &symbols,
                                     FlatSymbolRefAttr meshRef,
                                     AxisListAttr axes) {
  auto any = RankedTensorType::get({1}, IntegerType::get(op->getContext(), 1));
  return verifyGroup(op, symbols, meshRef, axes, any, /*dim=*/0);
}

/// Whether `axes` can give a rank a block of `block` of the dimension's `whole`
/// elements.
static bool isBlockSize(MeshOp mesh, AxisListAttr axes, int64_t whole,
                        int64_t block) {
  return llvm::any_of(
      mesh.getGroupOf(mesh.getRank(0), axes.getAxes()), [&](int64_t rank) {
        return getSize(getDimBlock(whole, axes, mesh, rank)) == block;
      });
}

/// Verifies that dimension `dim` of `block` is a block of that of `whole`, and
/// that all other dimensions are equal. If `segmented`, `axes` may have
/// segments.
static LogicalResult verifyBlock(Operation *op, SymbolTableCollection &symbols,
                                 FlatSymbolRefAttr meshRef, AxisListAttr axes,
                                 int64_t dim, RankedTensorType whole,
                                 RankedTensorType block,
                                 bool segmented = false) {
  FailureOr<MeshOp> mesh =
      segmented ? verifyGroup(op, symbols, meshRef, axes, whole, dim)
                : verifyGroup(op, symbols, meshRef, axes);
  if (failed(mesh))
    return failure();
  bool fits = whole.getRank() == block.getRank() &&
              whole.getElementType() == block.getElementType();
  for (int64_t d = 0; fits && d < whole.getRank(); ++d)
    fits = d == dim ? isBlockSize(*mesh, axes, whole.getDimSize(d),
                                  block.getDimSize(d))
                    : whole.getDimSize(d) == block.getDimSize(d);
  if (!fits)
    return op->emitOpError()
           << "no rank's block of " << whole << ", split along dimension "
           << dim << " by a group of " << mesh->getAxesSize(axes.getAxes())
           << ", is " << block;
  return success();
}

/// Verifies the axes and the dimension of an op that splits or concatenates
/// along `dim`.
static LogicalResult verifyAlong(Operation *op, AxisListAttr axes, int64_t dim,
                                 bool segmented = false) {
  auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
  if (dim < 0 || dim >= operand.getRank())
    return op->emitOpError()
           << "dimension " << dim << " is out of range for " << operand;
  return verifyAxes(op, axes, segmented);
}

LogicalResult AllGatherOp::verify() {
  return verifyAlong(*this, getAxes(), getDim());
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBlock(*this, symbols, getMeshAttr(), getAxes(), getDim(),
                     getType(), getInput().getType());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyAlong(*this, getAxes(), getDim());
}

LogicalResult
ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBlock(*this, symbols, getMeshAttr(), getAxes(), getDim(),
                     getInput().getType(), getType());
}

LogicalResult LocalSliceOp::verify() {
  return verifyAlong(*this, getAxes(), getDim(), /*segmented=*/true);
}

LogicalResult LocalSliceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBlock(*this, symbols, getMeshAttr(), getAxes(), getDim(),
                     getInput().getType(), getType(), /*segmented=*/true);
}

LogicalResult AllReduceOp::verify() { return verifyAxes(*this, getAxes()); }

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyGroup(*this, symbols, getMeshAttr(), getAxes());
}

LogicalResult ShardOffsetOp::verify() { return verifyAxes(*this, getAxes()); }

LogicalResult ShardOffsetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyGroup(*this, symbols, getMeshAttr(), getAxes());
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  auto from = getInput().getType();
  int64_t rank = from.getRank();
  int64_t split = getSplitDim(), concat = getConcatDim();
  if (split < 0 || split >= rank || concat < 0 || concat >= rank)
    return emitOpError() << "dimensions " << split << " and " << concat
                         << " must both be dimensions of " << from;
  if (split == concat)
    return emitOpError("split and concat must be different dimensions");
  return success();
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto from = getInput().getType();
  auto to = getType();
  int64_t concat = getConcatDim();
  // The shape that the group's blocks make up together.
  SmallVector<int64_t> whole(from.getShape());
  whole[concat] = to.getRank() == from.getRank() ? to.getDimSize(concat) : -1;
  if (failed(verifyBlock(*this, symbols, getMeshAttr(), getAxes(), concat,
                         from.clone(whole), from)))
    return failure();
  return verifyBlock(*this, symbols, getMeshAttr(), getAxes(), getSplitDim(),
                     from.clone(whole), to);
}

LogicalResult ExchangeOp::verify() {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  if (getFrom().getMesh() != getMeshAttr() ||
      getTo().getMesh() != getMeshAttr())
    return emitOpError("both shardings must be over the op's mesh");
  if (getFrom().getPartial() != getTo().getPartial())
    return emitOpError("an exchange reduces nothing: both shardings must have "
                       "the same Partial");
  if (getAxes().getAxes() != ArrayRef(getSplittingAxes(getFrom())))
    return emitOpError("the group must be spanned by the axes of 'from'");
  return success();
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto global =
      RankedTensorType::get(getShape(), getInput().getType().getElementType());
  MeshOp mesh = lookupMesh(*this, getMeshAttr(), symbols);
  auto emit = [&]() { return emitOpError(); };
  if (failed(verifySharding(getFrom(), global, mesh, emit)) ||
      failed(verifySharding(getTo(), global, mesh, emit)))
    return failure();
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
    if (getLocalType(global, getFrom(), mesh, rank) == getInput().getType() &&
        getLocalType(global, getTo(), mesh, rank) == getType())
      return success();
  return emitOpError() << "no rank's blocks of " << global << " are "
                       << getInput().getType() << " and " << getType();
}

/// The ranks that run the function that `op` is in.
static SmallVector<int64_t> getRanks(Operation *op, MeshOp mesh) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto listed = function
                    ? function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr)
                    : DenseI64ArrayAttr();
  auto ranks = llvm::to_vector(llvm::seq<int64_t>(0, mesh.getNumRanks()));
  if (listed)
    llvm::erase_if(ranks, [&](int64_t rank) {
      return !llvm::is_contained(listed.asArrayRef(), rank);
    });
  return ranks;
}

/// The rank whose block `rank` gets.
static int64_t getSourceOf(PermuteOp op, int64_t rank, MeshOp mesh) {
  ArrayRef<AxisRefAttr> axes = op.getAxes().getAxes();
  return mesh.getGroupOf(rank,
                         axes)[op.getSource()[mesh.getIndexAlong(rank, axes)]];
}

LogicalResult PermuteOp::verify() {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  RankedTensorType from = getInput().getType(), to = getType();
  if (from.getRank() != to.getRank() ||
      from.getElementType() != to.getElementType())
    return emitOpError() << "moves blocks as they are: the result must have "
                         << from.getRank() << " dimensions of "
                         << from.getElementType() << ", found " << to;
  return success();
}

/// The mesh of an op that needs an entry of `list` for each rank of the group.
template <typename OpT>
static FailureOr<MeshOp> verifyByRank(OpT op, SymbolTableCollection &symbols,
                                      ArrayRef<int64_t> list,
                                      StringRef entries) {
  FailureOr<MeshOp> mesh =
      verifyGroup(op, symbols, op.getMeshAttr(), op.getAxes());
  if (failed(mesh))
    return failure();
  size_t numRanks = mesh->getAxesSize(op.getAxes().getAxes());
  if (list.size() != numRanks)
    return op.emitOpError() << "has " << list.size() << " " << entries
                            << ", the group has " << numRanks << " ranks";
  return mesh;
}

LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> found =
      verifyByRank(*this, symbols, getSource(), "sources");
  if (failed(found))
    return failure();
  MeshOp mesh = *found;
  int64_t n = getSource().size();
  for (int64_t source : getSource())
    if (source < 0 || source >= n)
      return emitOpError() << "source " << source
                           << " is out of range; the group has " << n
                           << " ranks";
  RankedTensorType from = getInput().getType(), to = getType();
  if (from == to)
    return success();
  SmallVector<int64_t> ranks = getRanks(*this, mesh);
  for (int64_t rank : ranks) {
    int64_t source = getSourceOf(*this, rank, mesh);
    if (llvm::is_contained(ranks, source))
      return emitOpError() << "gives rank " << rank << " the block of rank "
                           << source
                           << ", which runs the same program: a result of "
                           << from << " is needed, found " << to;
  }
  return success();
}

LogicalResult HaloOp::verify() {
  RankedTensorType from = getInput().getType(), to = getType();
  if (failed(verifyAlong(*this, getAxes(), getDim())))
    return failure();
  if (auto size = static_cast<int64_t>(getSize()); size < 0)
    return emitOpError() << "needs a size of at least 0, found " << size;
  bool fits = from.getRank() == to.getRank() &&
              from.getElementType() == to.getElementType();
  for (int64_t dim = 0; fits && dim < from.getRank(); ++dim)
    fits = dim == static_cast<int64_t>(getDim()) ||
           from.getDimSize(dim) == to.getDimSize(dim);
  if (!fits)
    return emitOpError() << "changes only dimension " << getDim() << " of "
                         << from << ", found " << to;
  return success();
}

/// The part of `interval` that lies in [0, size), and how far it reaches beyond
/// either end.
static std::tuple<Interval, int64_t, int64_t> clip(Interval interval,
                                                   int64_t size) {
  int64_t end = interval.offset + interval.size;
  int64_t first = std::clamp<int64_t>(0, interval.offset, end);
  int64_t last = std::clamp<int64_t>(size, first, end);
  return {{first, last - first}, first - interval.offset, end - last};
}

/// The elements that `rank` gets.
static Interval getReceived(HaloOp op, int64_t rank, MeshOp mesh) {
  return {op.getBegin()[mesh.getIndexAlong(rank, op.getAxes().getAxes())],
          op.getType().getDimSize(op.getDim())};
}

LogicalResult HaloOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> found =
      verifyByRank(*this, symbols, getBegin(), "beginnings");
  if (failed(found))
    return failure();
  MeshOp mesh = *found;
  int64_t given = getInput().getType().getDimSize(getDim());
  for (int64_t rank : getRanks(*this, mesh)) {
    int64_t block =
        mlir::tp::getSize(getDimBlock(getSize(), getAxes(), mesh, rank));
    auto [inside, before, behind] =
        clip(getReceived(*this, rank, mesh), getSize());
    int64_t needed = block + std::max(before, behind);
    if (given < needed)
      return emitOpError() << "needs a block of at least " << needed
                           << " elements along dimension " << getDim()
                           << " on rank " << rank << ", which has " << block
                           << " of " << getSize() << ", found " << given;
  }
  return success();
}

LogicalResult BroadcastOp::verify() { return verifyAxes(*this, getAxes()); }

LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh =
      verifyGroup(*this, symbols, getMeshAttr(), getAxes());
  if (failed(mesh))
    return failure();
  int64_t n = mesh->getAxesSize(getAxes().getAxes());
  if (static_cast<int64_t>(getRoot()) >= n)
    return emitOpError() << "root " << getRoot()
                         << " is out of range; the group has " << n << " ranks";
  return success();
}

CollectiveOpInterface StartOp::getCollective() {
  return cast<CollectiveOpInterface>(getBody().front().front());
}

LogicalResult StartOp::verifyRegions() {
  Block &block = getBody().front();
  if (!llvm::hasNItems(block, 2) ||
      !isa<CollectiveOpInterface>(block.front()) ||
      !isa<YieldOp>(block.back()) ||
      cast<YieldOp>(block.back()).getValue().getDefiningOp() != &block.front())
    return emitOpError("needs a body of one collective and a 'tp.yield' of its "
                       "result");
  Type type = cast<YieldOp>(block.back()).getValue().getType();
  if (getType().getTensor() != type)
    return emitOpError() << "has the pending type " << getType().getTensor()
                         << ", but its collective returns " << type;
  if (!getResult().hasOneUse() ||
      !isa<WaitOp>(*getResult().getUsers().begin()) ||
      (*getResult().getUsers().begin())->getBlock() != (*this)->getBlock())
    return emitOpError("needs one 'tp.wait', in the same block");
  return success();
}

//===----------------------------------------------------------------------===//
// Dataflow
//===----------------------------------------------------------------------===//

std::optional<Dataflow> AllGatherOp::getDataflow() {
  return Dataflow{.joined = getDim()};
}

std::optional<Dataflow> ReduceScatterOp::getDataflow() {
  return Dataflow{.reduction = getKind(), .cut = getDim()};
}

std::optional<Dataflow> AllReduceOp::getDataflow() {
  return Dataflow{.reduction = getKind()};
}

std::optional<Dataflow> AllToAllOp::getDataflow() {
  return Dataflow{.cut = getSplitDim(), .joined = getConcatDim()};
}

std::optional<Dataflow> PermuteOp::getDataflow() {
  return Dataflow{.sources = getSource()};
}

std::optional<Dataflow> BroadcastOp::getDataflow() {
  return Dataflow{.root = getRoot()};
}

std::optional<Dataflow> ExchangeOp::getDataflow() { return std::nullopt; }

std::optional<Dataflow> HaloOp::getDataflow() { return std::nullopt; }

/// Boxes are whole in all dimensions but one.
SmallVector<Transfer> HaloOp::getTransfers(int64_t rank, MeshOp &mesh) {
  int64_t dim = getDim(), filled = 0;
  SmallVector<Transfer> transfers;
  if (getType().getNumElements() == 0)
    return transfers;
  auto add = [&](int64_t source, int64_t offset, int64_t size) {
    if (size == 0)
      return;
    SmallVector<int64_t> zero(getType().getRank(), 0);
    Transfer box{source, zero, zero,
                 SmallVector<int64_t>(getType().getShape())};
    box.sourceOffset[dim] = offset;
    box.offset[dim] = filled;
    box.size[dim] = size;
    filled += size;
    transfers.push_back(std::move(box));
  };
  auto getHeld = [&](int64_t member) {
    return getDimBlock(getSize(), getAxes(), mesh, member).front();
  };
  auto [inside, before, behind] =
      clip(getReceived(*this, rank, mesh), getSize());
  int64_t margin = getHeld(rank).size;
  add(rank, margin, before);
  for (int64_t member : mesh.getGroupOf(rank, getAxes().getAxes())) {
    Interval held = getHeld(member);
    int64_t first = std::max(inside.offset, held.offset);
    int64_t last =
        std::min(inside.offset + inside.size, held.offset + held.size);
    add(member, first - held.offset, std::max<int64_t>(last - first, 0));
  }
  add(rank, margin, behind);
  llvm::stable_sort(transfers, [](const Transfer &a, const Transfer &b) {
    return a.source < b.source;
  });
  return transfers;
}

SmallVector<Transfer> ExchangeOp::getTransfers(int64_t rank, MeshOp &mesh) {
  return mlir::tp::getTransfers(getShape(), getFrom(), getTo(), mesh, rank);
}

template <typename... Ops>
static SmallVector<StringRef> listCollectives() {
  SmallVector<StringRef> kinds;
  auto add = [&](StringRef name, bool isCollective) {
    if (isCollective)
      kinds.push_back(name.split('.').second);
  };
  (add(Ops::getOperationName(),
       Ops::template hasTrait<CollectiveOpInterface::Trait>()),
   ...);
  llvm::sort(kinds);
  return kinds;
}

SmallVector<StringRef> tp::getCollectiveKinds() {
  return listCollectives<
#define GET_OP_LIST
#include "tp/Dialect/TP/TPOps.cpp.inc"
      ,
#define GET_OP_LIST
#include "tp/Dialect/TP/PipelineOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static int64_t getNumBytes(Value value) {
  return getTensorBytes(cast<RankedTensorType>(value.getType()));
}

int64_t AllGatherOp::getReceivedBytes(int64_t, MeshOp &) {
  return getNumBytes(getResult()) - getNumBytes(getInput());
}

int64_t ReduceScatterOp::getReceivedBytes(int64_t, MeshOp &mesh) {
  return (mesh.getAxesSize(getAxes().getAxes()) - 1) * getNumBytes(getResult());
}

int64_t AllReduceOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  int64_t n = mesh.getAxesSize(getAxes().getAxes());
  int64_t elements = getType().getNumElements();
  int64_t width = getElementBytes(getType().getElementType());
  int64_t own =
      getChunk({0, elements}, n, mesh.getIndexAlong(rank, getAxes().getAxes()))
          .size;
  return width * (own * (n - 1) + elements - own);
}

/// Everything except the part of the rank's own block that stays.
int64_t AllToAllOp::getReceivedBytes(int64_t, MeshOp &) {
  int64_t split = getInput().getType().getDimSize(getSplitDim());
  int64_t kept = split == 0 ? 0
                            : getNumBytes(getInput()) / split *
                                  getType().getDimSize(getSplitDim());
  int64_t bytes = getNumBytes(getResult()) - kept;
  if (!(*this)->hasAttr(kSparseRowsAttr) || bytes == 0)
    return bytes;
  // One more for each row, which says whether it is zero.
  int64_t rowBytes =
      getType().getShape().back() * getElementBytes(getType().getElementType());
  return bytes + bytes / rowBytes;
}

int64_t PermuteOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  int64_t index = mesh.getIndexAlong(rank, getAxes().getAxes());
  return getSource()[index] == index ? 0 : getNumBytes(getResult());
}

/// Of a collective without a dataflow.
static int64_t getTransferredBytes(CollectiveOpInterface op, int64_t rank,
                                   MeshOp mesh) {
  int64_t elements = 0;
  for (const Transfer &transfer : op.getTransfers(rank, mesh))
    if (transfer.source != rank)
      elements += llvm::product_of(transfer.size);
  Type type = op->getResult(0).getType();
  return elements * getElementBytes(getElementTypeOrSelf(type));
}

static SmallVector<int64_t> getTransferSources(CollectiveOpInterface op,
                                               int64_t rank, MeshOp mesh) {
  SmallVector<int64_t> sources;
  for (const Transfer &transfer : op.getTransfers(rank, mesh))
    if (transfer.source != rank &&
        !llvm::is_contained(sources, transfer.source))
      sources.push_back(transfer.source);
  return sources;
}

int64_t ExchangeOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  return getTransferredBytes(*this, rank, mesh);
}

int64_t HaloOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  return getTransferredBytes(*this, rank, mesh);
}

int64_t BroadcastOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  bool isRoot = mesh.getIndexAlong(rank, getAxes().getAxes()) ==
                static_cast<int64_t>(getRoot());
  return isRoot ? 0 : getNumBytes(getInput());
}

SmallVector<int64_t> tp::getOtherMembers(AxisListAttr axes, int64_t rank,
                                         MeshOp &mesh) {
  SmallVector<int64_t> others = mesh.getGroupOf(rank, axes.getAxes());
  llvm::erase(others, rank);
  return others;
}

SmallVector<int64_t> PermuteOp::getSources(int64_t rank, MeshOp &mesh) {
  int64_t source = getSourceOf(*this, rank, mesh);
  if (source == rank)
    return {};
  return {source};
}

SmallVector<int64_t> ExchangeOp::getSources(int64_t rank, MeshOp &mesh) {
  return getTransferSources(*this, rank, mesh);
}

SmallVector<int64_t> HaloOp::getSources(int64_t rank, MeshOp &mesh) {
  return getTransferSources(*this, rank, mesh);
}

SmallVector<int64_t> BroadcastOp::getSources(int64_t rank, MeshOp &mesh) {
  int64_t root = mesh.getGroupOf(rank, getAxes().getAxes())[getRoot()];
  if (root == rank)
    return {};
  return {root};
}

SmallVector<int64_t> tp::getReceivedBytesByRank(CollectiveOpInterface op,
                                                MeshOp mesh) {
  SmallVector<int64_t> bytes(mesh.getNumRanks(), 0);
  for (int64_t rank : getRanks(op, mesh))
    bytes[rank] = op.getReceivedBytes(rank, mesh);
  return bytes;
}

void tp::setCollectiveBytes(CollectiveOpInterface op, MeshOp mesh) {
  SmallVector<int64_t> bytes = getReceivedBytesByRank(op, mesh);
  op->setAttr("bytes", IntegerAttr::get(IntegerType::get(op.getContext(), 64),
                                        *llvm::max_element(bytes)));
}
