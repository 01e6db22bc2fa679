//===- Pipeline.cpp - Pipelines and their transfers -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/Pipeline.h"
#include "AxesFormat.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/PipelineSchedule.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;

#include "tp/Dialect/TP/PipelineEnums.cpp.inc"

#define GET_OP_CLASSES
#include "tp/Dialect/TP/PipelineOps.cpp.inc"

PipelineOp tp::getPipeline(ModuleOp module) {
  auto pipelines = module.getOps<PipelineOp>();
  return pipelines.empty() ? PipelineOp() : *pipelines.begin();
}

//===----------------------------------------------------------------------===//
// tp.pipeline
//===----------------------------------------------------------------------===//

LogicalResult PipelineOp::verify() {
  if (!symbolizePipelineSchedule(getSchedule()))
    return emitOpError() << "has no schedule '" << getSchedule()
                         << "'; there are "
                         << llvm::join(getPipelineScheduleNames(), ", ");
  auto numMicrobatches = static_cast<int64_t>(getMicrobatches());
  if (numMicrobatches < 1 || numMicrobatches > kMaxMicrobatches)
    return emitOpError() << "needs 1 to " << kMaxMicrobatches
                         << " microbatches, found " << numMicrobatches;
  return success();
}

int64_t PipelineOp::getNumStages(MeshOp mesh) {
  auto axis = AxisRefAttr::get(getContext(), getAxis());
  return getStages() ? static_cast<int64_t>(*getStages())
                     : mesh.getAxisSize(axis);
}

LogicalResult PipelineOp::verifyStages(MeshOp mesh) {
  int64_t numRanks =
      mesh.getAxisSize(AxisRefAttr::get(getContext(), getAxis()));
  int64_t numStages = getNumStages(mesh);
  PipelineSchedule schedule = *symbolizePipelineSchedule(getSchedule());
  if (numStages < 1 || numStages % numRanks != 0)
    return emitOpError() << "has " << numStages << " stages, which aren't a "
                         << "multiple of the " << numRanks << " ranks along '"
                         << getAxis() << "'";
  if (numStages / numRanks > kMaxStagesPerRank)
    return emitOpError() << "has " << numStages << " stages on " << numRanks
                         << " ranks, more than " << kMaxStagesPerRank
                         << " per rank";
  bool hasSeveral = numStages > numRanks;
  if (hasSeveral ? !allowsSeveralStages(schedule)
                 : requiresSeveralStages(schedule))
    return emitOpError() << "has " << numStages << " stages on " << numRanks
                         << " ranks, but schedule '" << getSchedule()
                         << "' needs "
                         << (hasSeveral ? "one stage" : "several stages")
                         << " per rank";
  auto numMicrobatches = static_cast<int64_t>(getMicrobatches());
  if (hasSeveral && !getRoundSize(numMicrobatches, numRanks))
    return emitOpError() << "has " << numMicrobatches
                         << " microbatches, which can't run in "
                         << numMicrobatches / numRanks
                         << " rounds of equal size on " << numRanks
                         << " ranks; use a multiple of " << numRanks;
  return success();
}

LogicalResult PipelineOp::verifySymbolUses(SymbolTableCollection &symbols) {
  MeshOp mesh = lookupMesh(*this, getMeshAttr(), symbols);
  if (!mesh)
    return emitOpError() << "there is no mesh " << getMeshAttr();
  if (!mesh.getAxisIndex(getAxis()))
    return emitOpError() << "the mesh has no dimension '" << getAxis() << "'";
  if (failed(verifyStages(mesh)))
    return failure();
  for (auto other : (*this)->getBlock()->getOps<PipelineOp>())
    if (other != *this && other->isBeforeInBlock(*this)) {
      InFlightDiagnostic diagnostic =
          emitOpError("a program has one pipeline, this is the second");
      diagnostic.attachNote(other.getLoc()) << "the first is here";
      return diagnostic;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// tp.transfer
//===----------------------------------------------------------------------===//

static bool isEmpty(Value value) {
  return llvm::all_of(cast<RankedTensorType>(value.getType()).getShape(),
                      [](int64_t size) { return size == 0; });
}

LogicalResult TransferOp::verify() {
  RankedTensorType from = getInput().getType(), to = getType();
  if (getAxes().getAxes().size() != 1 || !getAxes().getAxes()[0].isWhole() ||
      !getAxes().getSegments().empty())
    return emitOpError("is over one mesh dimension, the pipeline's");
  if (from.getRank() == 0 || from.getRank() != to.getRank() ||
      from.getElementType() != to.getElementType())
    return emitOpError() << "passes a block on as it is: operand and result "
                            "have the same element type and number of "
                            "dimensions, at least one, found "
                         << from << " and " << to;
  if (!isEmpty(getInput()) && !isEmpty(getResult()))
    return emitOpError("sends or receives: operand or result must be empty");
  return success();
}

LogicalResult TransferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  MeshOp mesh = lookupMesh(*this, getMeshAttr(), symbols);
  if (!mesh)
    return emitOpError() << "there is no mesh " << getMeshAttr();
  AxisRefAttr axis = getAxes().getAxes()[0];
  if (!mesh.getAxisIndex(axis.getName()))
    return emitOpError() << "the mesh has no dimension '" << axis.getName()
                         << "'";
  int64_t size = mesh.getAxisSize(axis);
  auto from = static_cast<int64_t>(getFrom()),
       to = static_cast<int64_t>(getTo());
  if (from == to || from < 0 || to < 0 || from >= size || to >= size)
    return emitOpError() << "needs two different indices below " << size
                         << ", the size of '" << axis.getName() << "', found "
                         << from << " and " << to;
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  auto ranks = function ? function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr)
                        : DenseI64ArrayAttr();
  if (!ranks || ranks.empty())
    return emitOpError("belongs in the program of a stage, with 'tp.ranks'");
  for (int64_t rank : ranks.asArrayRef()) {
    if (rank < 0 || rank >= mesh.getNumRanks())
      return emitOpError() << "the mesh has no rank " << rank;
    int64_t stage = mesh.getIndexAlong(rank, axis);
    if (stage != from && stage != to)
      return emitOpError() << "is run by rank " << rank << ", at index "
                           << stage << " of '" << axis.getName()
                           << "', but is between indices " << from << " and "
                           << to;
    if (!isEmpty(stage == from ? getResult() : getInput()))
      return emitOpError() << (stage == from
                                   ? "sends a value, so its result"
                                   : "receives a value, so its operand")
                           << " must be empty on rank " << rank;
  }
  return success();
}

std::optional<Dataflow> TransferOp::getDataflow() { return std::nullopt; }

SmallVector<Transfer> TransferOp::getTransfers(int64_t rank, MeshOp &mesh) {
  ArrayRef<AxisRefAttr> axes = getAxes().getAxes();
  if (mesh.getIndexAlong(rank, axes) != static_cast<int64_t>(getTo()) ||
      getType().getNumElements() == 0)
    return {};
  SmallVector<int64_t> zero(getType().getRank(), 0);
  return {{mesh.getGroupOf(rank, axes)[getFrom()], zero, zero,
           SmallVector<int64_t>(getType().getShape())}};
}

int64_t TransferOp::getReceivedBytes(int64_t rank, MeshOp &mesh) {
  return getTransfers(rank, mesh).empty() ? 0 : getTensorBytes(getType());
}

SmallVector<int64_t> TransferOp::getSources(int64_t rank, MeshOp &mesh) {
  SmallVector<int64_t> sources;
  for (const Transfer &transfer : getTransfers(rank, mesh))
    sources.push_back(transfer.source);
  return sources;
}

bool TransferOp::isSent() {
  MeshOp mesh = lookupMesh(*this, getMeshAttr());
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  auto ranks = function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
  return mesh.getIndexAlong(ranks[0], getAxes().getAxes()) ==
         static_cast<int64_t>(getFrom());
}
