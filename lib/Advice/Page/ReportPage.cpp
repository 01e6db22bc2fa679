//===- ReportPage.cpp - The report as an HTML page ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Page/ReportPage.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

/// The page, with a mark where each of the JSON texts goes.
static constexpr StringLiteral kPage =
#include "page.html.inc"
    ;

/// Prints JSON for a script element, which ends at the first "</script". In
/// JSON, "<" is only in strings, where an escape stands for it.
static void printInScript(const llvm::json::Value &value, raw_ostream &os) {
  for (char c : llvm::to_string(value))
    if (c == '<')
      os << "\\u003c";
    else
      os << c;
}

void tp::printReportPage(const llvm::json::Value &report,
                         const PageDetails &details, raw_ostream &os) {
  StringRef rest = kPage;
  auto fill = [&](StringRef mark, const llvm::json::Value &value) {
    auto [before, after] = rest.split(mark);
    os << before;
    printInScript(value, os);
    rest = after;
  };
  fill("@REPORT@", report);
  fill("@EXPLANATION@", details.explanation);
  fill("@MEASURED@", details.measured);
  fill("@ALTERNATIVES@", details.alternatives);
  fill("@SCALING@", details.scaling);
  os << rest;
}

/// "dp=2, tp=4"; empty if `axes` isn't what mesh dimensions are written as.
static std::string printAxes(const llvm::json::Value &axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator;
  if (const llvm::json::Array *list = axes.getAsArray())
    for (const llvm::json::Value &axis : *list)
      if (const llvm::json::Object *object = axis.getAsObject())
        os << separator << object->getString("name").value_or("?") << '='
           << object->getInteger("size").value_or(0);
  return text;
}

static const llvm::json::Value *getAxes(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  const llvm::json::Object *mesh = object ? object->getObject("mesh") : nullptr;
  return mesh ? mesh->get("axes") : nullptr;
}

/// The number of a report's redistributions, and the bytes that all ranks
/// receive in them.
static std::pair<int64_t, int64_t>
countRedistributions(const llvm::json::Value &report) {
  std::pair<int64_t, int64_t> total = {0, 0};
  for (const llvm::json::Value &each :
       *report.getAsObject()->getArray("redistributions")) {
    ++total.first;
    total.second += *each.getAsObject()->getInteger("bytes_received_total");
  }
  return total;
}

/// The values of an explanation without their chains, which are most of the
/// text. What many of them have in common is written once: `kinds` are ops with
/// types and placements, `fqns` modules, and a value has the index of its kind,
/// of its module, its operands and, if it isn't that of an op, its name.
static llvm::json::Object shareValues(const llvm::json::Array &values) {
  llvm::json::Array kinds, fqns, rows;
  llvm::StringMap<int64_t> knownKinds, knownFqns;
  auto insert = [](llvm::StringMap<int64_t> &known, llvm::json::Array &list,
                   const Twine &key, llvm::json::Value value) {
    auto [it, isNew] = known.try_emplace(key.str(), list.size());
    if (isNew)
      list.push_back(std::move(value));
    return it->second;
  };
  for (const llvm::json::Value &each : values) {
    const llvm::json::Object &value = *each.getAsObject();
    llvm::json::Object kind;
    for (StringRef key : {"op", "shape", "dtype", "placements"})
      if (const llvm::json::Value *field = value.get(key))
        kind[key] = *field;
    std::string text =
        llvm::to_string(llvm::json::Value(llvm::json::Object(kind)));
    StringRef op = value.getString("op").value_or("");
    StringRef fqn = value.getString("fqn").value_or("");
    StringRef name = value.getString("name").value_or("");
    llvm::json::Array operands;
    if (const llvm::json::Array *list = value.getArray("operands"))
      operands = *list;
    llvm::json::Array row;
    row.push_back(insert(knownKinds, kinds, text, std::move(kind)));
    row.push_back(insert(knownFqns, fqns, fqn, fqn.str()));
    row.push_back(std::move(operands));
    if (name != (op + " (" + fqn + ")").str())
      row.push_back(name.str());
    rows.push_back(std::move(row));
  }
  return llvm::json::Object{{"kinds", std::move(kinds)},
                            {"fqns", std::move(fqns)},
                            {"rows", std::move(rows)}};
}

llvm::Expected<llvm::json::Value>
tp::parseExplanation(StringRef json, const llvm::json::Value &report) {
  auto fail = [](const Twine &message) {
    return llvm::createStringError(message);
  };
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(json);
  if (!parsed)
    return parsed.takeError();
  llvm::json::Object *explanation = parsed->getAsObject();
  const llvm::json::Value *axes = getAxes(*parsed);
  // Reports have other schemas.
  bool isReport = explanation && explanation->get("rank_classes");
  if (explanation && !isReport &&
      explanation->getInteger("schema").value_or(1) != 1)
    return fail("its schema isn't 1");
  const llvm::json::Array *movements =
      explanation ? explanation->getArray("redistributions") : nullptr;
  const llvm::json::Object *totals =
      explanation ? explanation->getObject("totals") : nullptr;
  if (isReport || !axes || !movements || !totals ||
      !totals->getInteger("bytes") || !explanation->getInteger("trials"))
    return fail("this isn't what tp-explain writes with 'format=json'");
  const llvm::json::Value *expected = getAxes(report);
  if (!expected)
    return fail("the report has no mesh");
  if (*axes != *expected)
    return fail("it explains the mesh " + printAxes(*axes) +
                ", the report is of " + printAxes(*expected));
  auto [count, bytes] = countRedistributions(report);
  const auto ownCount = static_cast<int64_t>(movements->size());
  const int64_t ownBytes = *totals->getInteger("bytes");
  if (ownCount != count || ownBytes != bytes)
    return fail("it explains another program, with " + Twine(ownCount) +
                " redistributions of " + Twine(ownBytes) +
                " bytes; the report has " + Twine(count) + " of " +
                Twine(bytes) + " bytes");
  const llvm::json::Array *values = explanation->getArray("values");
  if (!values || !llvm::all_of(*values, [](const llvm::json::Value &value) {
        return value.getAsObject();
      }))
    return fail("it has no values");
  llvm::json::Object shared = shareValues(*values);
  (*explanation)["values"] = std::move(shared);
  return parsed;
}
