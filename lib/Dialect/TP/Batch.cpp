//===- Batch.cpp - Batch and sequence dimensions --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::tp;

/// The dimension that `sharding` splits by the mesh dimension `name`.
static std::optional<int64_t> findSplit(ShardingAttr sharding, StringRef name) {
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
    for (AxisRefAttr axis : axes)
      if (axis.getName() == name)
        return dim;
  return std::nullopt;
}

LogicalResult tp::verifyBatch(FunctionOpInterface function, unsigned index,
                              Attribute batch,
                              function_ref<InFlightDiagnostic()> emitError) {
  auto names = dyn_cast<ArrayAttr>(batch);
  if (!names || names.empty() ||
      !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return emitError() << "names of mesh dimensions are expected, found "
                       << batch;
  auto sharding = getArgSharding(function, index);
  std::optional<int64_t> first;
  for (auto name : names.getAsRange<StringAttr>()) {
    std::optional<int64_t> dim =
        sharding ? findSplit(sharding, name.getValue()) : std::nullopt;
    if (!dim)
      return emitError() << "'" << name.getValue()
                         << "' splits nothing in the argument's 'tp.sharding'";
    if (first && *dim != *first)
      return emitError() << "'" << name.getValue() << "' splits dimension "
                         << *dim << ", and '"
                         << cast<StringAttr>(names[0]).getValue()
                         << "' dimension " << *first;
    first = dim;
  }
  return success();
}

static std::optional<int64_t> getSplitDim(FunctionOpInterface function,
                                          unsigned index, StringRef attr) {
  auto names = function.getArgAttrOfType<ArrayAttr>(index, attr);
  auto sharding = getArgSharding(function, index);
  if (!names || !sharding)
    return std::nullopt;
  return findSplit(sharding, cast<StringAttr>(names[0]).getValue());
}

std::optional<int64_t> tp::getBatchDim(FunctionOpInterface function,
                                       unsigned index) {
  return getSplitDim(function, index, kBatchAttr);
}

std::optional<int64_t> tp::getSequenceDim(FunctionOpInterface function,
                                          unsigned index) {
  return getSplitDim(function, index, kSequenceAttr);
}
