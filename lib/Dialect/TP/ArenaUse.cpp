//===- ArenaUse.cpp - What lives in an arena over time --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/ArenaUse.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::tp;

DictionaryAttr ArenaUse::toAttr(MLIRContext *context) const {
  Builder b(context);
  SmallVector<int64_t> ops, live;
  SmallVector<Attribute> modules, list;
  for (const Time &time : times) {
    ops.push_back(time.op);
    live.push_back(time.bytes);
    modules.push_back(b.getStringAttr(time.fqn));
  }
  for (const Value &value : values)
    list.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("bytes", b.getI64IntegerAttr(value.bytes)),
         b.getNamedAttr("fqn", b.getStringAttr(value.fqn)),
         b.getNamedAttr("op", b.getStringAttr(value.op)),
         b.getNamedAttr("first", b.getI64IntegerAttr(value.first)),
         b.getNamedAttr("last", b.getI64IntegerAttr(value.last))}));
  return b.getDictionaryAttr(
      {b.getNamedAttr("ops", b.getI64IntegerAttr(numOps)),
       b.getNamedAttr("peak", b.getI64IntegerAttr(peak)),
       b.getNamedAttr("times", b.getDenseI64ArrayAttr(ops)),
       b.getNamedAttr("live", b.getDenseI64ArrayAttr(live)),
       b.getNamedAttr("modules", b.getArrayAttr(modules)),
       b.getNamedAttr("values", b.getArrayAttr(list))});
}

static bool read(DictionaryAttr fields, StringRef name, int64_t &number) {
  auto attr = fields.getAs<IntegerAttr>(name);
  if (!attr || !attr.getType().isInteger(64))
    return false;
  number = attr.getInt();
  return true;
}

static bool read(DictionaryAttr fields, StringRef name, StringRef &text) {
  auto attr = fields.getAs<StringAttr>(name);
  if (!attr)
    return false;
  text = attr.getValue();
  return true;
}

std::optional<ArenaUse> ArenaUse::fromAttr(Attribute attr) {
  ArenaUse use;
  auto fields = dyn_cast_or_null<DictionaryAttr>(attr);
  if (!fields || !read(fields, "ops", use.numOps) ||
      !read(fields, "peak", use.peak))
    return std::nullopt;
  auto ops = fields.getAs<DenseI64ArrayAttr>("times");
  auto live = fields.getAs<DenseI64ArrayAttr>("live");
  auto modules = fields.getAs<ArrayAttr>("modules");
  auto list = fields.getAs<ArrayAttr>("values");
  if (!ops || !live || !modules || !list || ops.size() != live.size() ||
      ops.size() != static_cast<int64_t>(modules.size()))
    return std::nullopt;
  for (auto [op, bytes, fqn] :
       llvm::zip_equal(ops.asArrayRef(), live.asArrayRef(), modules)) {
    auto name = dyn_cast<StringAttr>(fqn);
    if (!name)
      return std::nullopt;
    use.times.push_back({op, bytes, name.getValue()});
  }
  for (Attribute each : list) {
    auto value = dyn_cast<DictionaryAttr>(each);
    Value &added = use.values.emplace_back();
    if (!value || !read(value, "bytes", added.bytes) ||
        !read(value, "fqn", added.fqn) || !read(value, "op", added.op) ||
        !read(value, "first", added.first) || !read(value, "last", added.last))
      return std::nullopt;
  }
  return use;
}
