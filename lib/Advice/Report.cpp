//===- Report.cpp - The pass that writes a report -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramReport.h"
#include "tp/Advice/Page/ReportPage.h"
#include "tp/Advice/Passes.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::tp {
#define GEN_PASS_DEF_REPORT
#include "tp/Advice/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

struct Report : tp::impl::ReportBase<Report> {
  using ReportBase::ReportBase;
  Report(std::string &text, StringRef machine) : text(&text) {
    this->machine = machine.str();
  }

  void runOnOperation() override {
    FailureOr<MeshOp> mesh =
        getMesh(getOperation(), "; only a parallel program can be reported");
    if (failed(mesh))
      return signalPassFailure();
    FailureOr<std::optional<Machine>> onMachine = findMachine();
    if (failed(onMachine))
      return signalPassFailure();
    FailureOr<llvm::json::Object> report = buildReport(
        getOperation(), *mesh, *onMachine, table ? &llvm::outs() : nullptr);
    if (failed(report) || failed(write(std::move(*report))))
      signalPassFailure();
  }

  /// The machine to predict a run on, if any.
  FailureOr<std::optional<Machine>> findMachine() {
    FailureOr<std::optional<Machine>> found = tp::getMachine(getOperation());
    if (!machine.empty()) {
      FailureOr<Machine> named = readMachine(machine, &getContext());
      if (failed(named))
        return failure();
      found = std::optional<Machine>(std::move(*named));
    }
    if (succeeded(found) && !*found && table)
      return getOperation().emitError(
          "a table of costs needs a machine: the option 'machine', or a "
          "dlti.target_system_spec");
    return found;
  }

  LogicalResult write(llvm::json::Value report) {
    std::string json;
    if (text || !file.empty())
      json = llvm::formatv("{0:2}\n", report);
    if (text)
      *text += json;
    std::string page;
    if (!html.empty()) {
      PageDetails details;
      for (const auto &[path, detail] : getDetails())
        if (failed(read(path, detail, report, details)))
          return failure();
      llvm::raw_string_ostream os(page);
      printReportPage(report, details, os);
    } else {
      for (const auto &[path, detail] : getDetails())
        if (!path.empty())
          return getOperation().emitError("the option '")
                 << detail.name
                 << "' is for the page, which needs the option 'html'";
    }
    if (llvm::Error error = writeFiles({{file, json}, {html, page}}))
      return getOperation().emitError() << llvm::toString(std::move(error));
    return success();
  }

  /// The paths of what the page shows besides the report.
  SmallVector<std::pair<std::string, PageDetail>> getDetails() const {
    const std::string paths[] = {explanation, trace, alternatives, scaling};
    SmallVector<std::pair<std::string, PageDetail>> details;
    for (const auto &[path, detail] : llvm::zip_equal(paths, kPageDetails))
      details.emplace_back(path, detail);
    return details;
  }

  /// Reads one detail from the file at `path`, unless that is empty.
  LogicalResult read(const std::string &path, const PageDetail &detail,
                     const llvm::json::Value &report, PageDetails &details) {
    if (path.empty())
      return success();
    auto text = readInput(path);
    if (!text) {
      emitInputError(&getContext(), path, detail.name, text.takeError());
      return failure();
    }
    auto parsed = detail.parse((*text)->getBuffer(), report);
    if (!parsed)
      return getOperation().emitError()
             << detail.name << " '" << path
             << "': " << llvm::toString(parsed.takeError());
    details.*detail.member = std::move(*parsed);
    return success();
  }

  /// Where the report goes besides the file; null if nowhere.
  std::string *text = nullptr;
};

} // namespace

std::unique_ptr<Pass> tp::createReport(std::string &report, StringRef machine) {
  return std::make_unique<Report>(report, machine);
}
