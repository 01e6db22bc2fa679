//===- NcclPlan.cpp - Execution of a collective by NCCL -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/nccl/NcclPlan.h"

#include <algorithm>
#include <set>

using namespace tprt;
using namespace tprt::cuda;

std::optional<ncclDataType_t> cuda::toNccl(Dtype dtype) {
  switch (dtype) {
  case Dtype::F32:
    return ncclFloat32;
  case Dtype::F64:
    return ncclFloat64;
  case Dtype::F16:
    return ncclFloat16;
  case Dtype::BF16:
    return ncclBfloat16;
  case Dtype::I64:
    return ncclInt64;
  case Dtype::I32:
    return ncclInt32;
  case Dtype::I8:
    return ncclInt8;
  case Dtype::I1:
  case Dtype::UI8:
    return ncclUint8;
  case Dtype::I16:
    return std::nullopt;
  }
  return std::nullopt;
}

/// An average of bytes would lose the upper bits of the sum.
static void checkReduction(const Manifest &manifest, int64_t id) {
  const Collective &c = manifest.collectives[id];
  bool loses = c.reduction == Reduction::Avg && byteWidth(c.dtype) == 1;
  if (c.isReduction() && (!toNccl(c.dtype) || loses))
    throw executionError(
        describeCollective(manifest, id) + ": NCCL doesn't reduce " +
        std::string(toString(c.dtype)) + " by " +
        std::string(toString(c.reduction)) + ": convert the operand to i32");
}

ncclRedOp_t cuda::toNccl(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum:
    return ncclSum;
  case Reduction::Avg:
    return ncclAvg;
  case Reduction::Max:
    return ncclMax;
  case Reduction::Min:
    return ncclMin;
  case Reduction::Product:
    return ncclProd;
  }
  return ncclSum;
}

/// Whether blocks along `dim` follow each other in memory.
static bool isOutermost(const Shape &shape, int64_t dim) {
  for (int64_t d = 0; d < dim; ++d)
    if (shape[d] != 1)
      return false;
  return true;
}

/// The pairs of sender and receiver of a transfer, by receiver.
static Groups getChannels(const Manifest &manifest, int64_t id) {
  const Collective &c = manifest.collectives[id];
  Groups pairs;
  std::set<int64_t> seen;
  for (int64_t to = 0; to < manifest.worldSize; ++to)
    for (const Transfer &transfer : c.transfers[to]) {
      std::vector<int64_t> pair = {transfer.from, to};
      if (transfer.from == to)
        pair.pop_back();
      if (!pairs.empty() && pairs.back() == pair)
        continue;
      for (int64_t rank : pair)
        if (!seen.insert(rank).second)
          throw executionError(describeCollective(manifest, id) + ": rank " +
                               std::to_string(rank) +
                               " is in several pairs of sender and receiver; "
                               "with NCCL, a rank may be in one pair of each "
                               "transfer");
      pairs.push_back(pair);
    }
  return pairs;
}

NcclPlan cuda::makeNcclPlan(const Manifest &manifest, int64_t id,
                            int64_t rank) {
  checkReduction(manifest, id);
  const Collective &c = manifest.collectives[id];
  NcclPlan plan;
  plan.isMember = c.getGroup(rank);
  plan.groups =
      c.kind == CollectiveKind::Transfer ? getChannels(manifest, id) : c.groups;
  auto group = std::find_if(
      plan.groups.begin(), plan.groups.end(), [&](const auto &members) {
        return std::find(members.begin(), members.end(), rank) != members.end();
      });
  if (group == plan.groups.end())
    return plan;
  plan.position =
      std::find(group->begin(), group->end(), rank) - group->begin();
  plan.operandElements = numElements(c.operandShapes[rank]);
  plan.resultElements = numElements(c.resultShapes[rank]);
  plan.countedBytes = getReceivedBytes(c, rank);
  const std::vector<Shape> &blocks = c.kind == CollectiveKind::ReduceScatter
                                         ? c.resultShapes
                                         : c.operandShapes;
  plan.isEven = std::all_of(group->begin(), group->end(), [&](int64_t member) {
    return blocks[member] == blocks[rank];
  });
  switch (c.kind) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::Broadcast:
    plan.isDense = true;
    return plan;
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    plan.isDense = plan.isEven && isOutermost(blocks[rank], c.dim);
    plan.sendsBoxes = c.kind == CollectiveKind::AllGather && !plan.isEven;
    break;
  default:
    plan.sendsBoxes = true;
  }
  static_cast<Boxes &>(plan) = makeBoxes(c, rank, *group);
  return plan;
}
