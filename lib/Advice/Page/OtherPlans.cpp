//===- OtherPlans.cpp - What a page compares the plan with ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Page/ReportPage.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

static llvm::Error fail(const Twine &message) {
  return llvm::createStringError(message);
}

/// The machine of the prediction of `report`; an error, which says that `what`
/// needs one, if there is no prediction with memory.
static llvm::Expected<StringRef> getMachineName(const llvm::json::Value &report,
                                                StringRef what) {
  const llvm::json::Object *prediction =
      report.getAsObject()->getObject("prediction");
  if (!prediction)
    return fail(what + " can only be shown beside a prediction, which needs a "
                       "machine");
  const llvm::json::Array &classes = *prediction->getArray("by_class");
  if (!llvm::all_of(classes, [](const llvm::json::Value &each) {
        return each.getAsObject()->getObject("memory");
      }))
    return fail(what + " can only be shown beside a prediction of memory; run "
                       "tp-predict-memory before tp-report");
  return *prediction->getObject("machine")->getString("name");
}

/// Whether `value` is an object that has the members of a cost.
static bool hasCost(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  return object && object->getNumber("seconds") &&
         object->getInteger("memory_bytes") &&
         object->getInteger("bytes_received") &&
         object->getInteger("collectives");
}

/// The number of ranks of a mesh with these dimensions; nullopt if they aren't
/// what mesh dimensions are written as.
static std::optional<int64_t> countRanks(const llvm::json::Value *axes) {
  const llvm::json::Array *list = axes ? axes->getAsArray() : nullptr;
  if (!list)
    return std::nullopt;
  int64_t ranks = 1;
  for (const llvm::json::Value &axis : *list) {
    const llvm::json::Object *object = axis.getAsObject();
    if (!object || !object->getString("name") || !object->getInteger("size"))
      return std::nullopt;
    ranks *= *object->getInteger("size");
  }
  return ranks;
}

static const llvm::json::Value *getAxes(const llvm::json::Object &object) {
  const llvm::json::Object *mesh = object.getObject("mesh");
  return mesh ? mesh->get("axes") : nullptr;
}

/// Whether `value` is a plan as tp-auto-plan describes it.
static bool isPlan(const llvm::json::Value &value) {
  return hasCost(value) && value.getAsObject()->getString("plan") &&
         countRanks(value.getAsObject()->get("axes")) &&
         llvm::all_of(*value.getAsObject()->getArray("axes"),
                      [](const llvm::json::Value &axis) {
                        return axis.getAsObject()->getString("role");
                      });
}

llvm::Expected<llvm::json::Value>
tp::parseAlternatives(StringRef json, const llvm::json::Value &report) {
  auto machine = getMachineName(report, "other plans");
  if (!machine)
    return machine.takeError();
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(json);
  if (!parsed)
    return parsed.takeError();
  const llvm::json::Object *found = parsed->getAsObject();
  const llvm::json::Array *others =
      found ? found->getArray("alternatives") : nullptr;
  if (!others || !isPlan(*parsed) || !llvm::all_of(*others, isPlan) ||
      !found->getString("machine"))
    return fail("this isn't what tp-auto-plan writes with 'report'");
  if (found->getInteger("schema").value_or(1) != 1)
    return fail("its schema isn't 1");
  if (*found->getString("machine") != *machine)
    return fail("its plans are for the machine '" +
                *found->getString("machine") + "', the report is for '" +
                *machine + "'");
  int64_t ranks = *report.getAsObject()->getObject("mesh")->getInteger("ranks");
  if (int64_t own = *countRanks(found->get("axes")); own != ranks)
    return fail("its plans are for " + Twine(own) +
                " ranks, the report is of " + Twine(ranks));
  return parsed;
}

/// Whether `value` is a curve as tp-scale-plan describes it.
static bool isCurve(const llvm::json::Value &value) {
  const llvm::json::Object *curve = value.getAsObject();
  const llvm::json::Array *points = curve ? curve->getArray("points") : nullptr;
  const llvm::json::Array *leftOut =
      curve ? curve->getArray("left_out") : nullptr;
  return points && leftOut && curve->getString("axis") &&
         llvm::all_of(*points,
                      [](const llvm::json::Value &point) {
                        return hasCost(point) &&
                               point.getAsObject()->getInteger("size") &&
                               point.getAsObject()->getInteger("ranks");
                      }) &&
         llvm::all_of(*leftOut, [](const llvm::json::Value &one) {
           const llvm::json::Object *object = one.getAsObject();
           return object && object->getInteger("size") &&
                  object->getString("reason");
         });
}

llvm::Expected<llvm::json::Value>
tp::parseScaling(StringRef json, const llvm::json::Value &report) {
  auto machine = getMachineName(report, "other numbers of ranks");
  if (!machine)
    return machine.takeError();
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(json);
  if (!parsed)
    return parsed.takeError();
  const llvm::json::Object *scaling = parsed->getAsObject();
  const llvm::json::Array *curves =
      scaling ? scaling->getArray("curves") : nullptr;
  if (!curves || !hasCost(*parsed) || !llvm::all_of(*curves, isCurve) ||
      !getAxes(*scaling) || !scaling->getString("machine"))
    return fail("this isn't what tp-scale-plan writes with 'report'");
  if (scaling->getInteger("schema").value_or(1) != 1)
    return fail("its schema isn't 1");
  if (*getAxes(*scaling) != *getAxes(*report.getAsObject()))
    return fail("its plan has another mesh than the report");
  if (*scaling->getString("machine") != *machine)
    return fail("it is for the machine '" + *scaling->getString("machine") +
                "', the report is for '" + *machine + "'");
  const llvm::json::Object &prediction =
      *report.getAsObject()->getObject("prediction");
  int64_t memory = 0;
  for (const llvm::json::Value &each : *prediction.getArray("by_class"))
    memory = std::max(
        memory, *each.getAsObject()->getObject("memory")->getInteger("total"));
  if (*scaling->getNumber("seconds") != *prediction.getNumber("seconds") ||
      *scaling->getInteger("memory_bytes") != memory)
    return fail("it predicts another program than the report, or one with "
                "other options of tp-parallelize");
  return parsed;
}
