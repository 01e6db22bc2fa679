//===- PlanFuzzer.cpp - Any text as a plan --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever a plan file says, it is checked against a model, linted and printed,
// or refused with an error: no crash, no hang.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tp/Advice/Lint/Lint.h"
#include "tp/Advice/Print/PlanPrinter.h"
#include "tp/Plan/Plan.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

/// A gated feed-forward, with a fused weight, a reshape and a loss.
static constexpr StringRef kModel = R"mlir(
func.func @main(%x: tensor<2x8xf32>, %t: tensor<2xi64>) -> (tensor<2x8xf32>, tensor<f32>) {
  %r:2 = nn.module "" class "Gated" (%x as "x" at 0, %t as "target" at 1) {
  ^bb0(%a: tensor<2x8xf32>, %target: tensor<2xi64>):
    %g = nn.module "layers.0.up" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<2x8xf32>):
      %w = nn.parameter "layers.0.up.weight" : tensor<32x8xf32>
      %b = nn.parameter "layers.0.up.bias" : tensor<32xf32>
      %y = nn.linear %input, %w : (tensor<2x8xf32>, tensor<32x8xf32>) -> tensor<2x32xf32>
      %z = nn.add %y, %b : (tensor<2x32xf32>, tensor<32xf32>) -> tensor<2x32xf32>
      nn.yield %z : tensor<2x32xf32>
    } : (tensor<2x8xf32>) -> tensor<2x32xf32>
    %0 = nn.slice %g dim 1 start 0 step 1 : tensor<2x32xf32> -> tensor<2x16xf32>
    %1 = nn.slice %g dim 1 start 16 step 1 : tensor<2x32xf32> -> tensor<2x16xf32>
    %2 = nn.mul %0, %1 : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %3 = nn.reshape %2 : tensor<2x16xf32> -> tensor<2x4x4xf32>
    %4 = nn.softmax %3 dim 2 : tensor<2x4x4xf32>
    %5 = nn.reshape %4 : tensor<2x4x4xf32> -> tensor<2x16xf32>
    %d = nn.module "layers.0.down" class "Linear" (%5 as "input" at 0) {
    ^bb0(%input: tensor<2x16xf32>):
      %w = nn.parameter "layers.0.down.weight" : tensor<8x16xf32>
      %y = nn.linear %input, %w : (tensor<2x16xf32>, tensor<8x16xf32>) -> tensor<2x8xf32>
      nn.yield %y : tensor<2x8xf32>
    } : (tensor<2x16xf32>) -> tensor<2x8xf32>
    %l = nn.cross_entropy mean %d, %target ignore -100 smoothing 0.0 : (tensor<2x8xf32>, tensor<2xi64>) -> tensor<f32>
    nn.yield %d, %l : tensor<2x8xf32>, tensor<f32>
  } : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<2x8xf32>, tensor<f32>)
  return %r#0, %r#1 : tensor<2x8xf32>, tensor<f32>
}
)mlir";

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NNDialect, TPDialect>();
  OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(kModel, &context);
  bool reported = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    reported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
  });
  StringRef text(reinterpret_cast<const char *>(data), size);
  plan::CheckedPlan plan;
  bool valid =
      succeeded(plan::parsePlan(text, "plan.yaml", &context, plan.file));
  valid &= succeeded(plan::checkPlan(*model, plan));
  valid = valid && succeeded(plan::lintPlan(plan, *model));
  // An error is always reported, and only when there is one.
  if (valid == reported)
    abort();
  if (!valid)
    return 0;
  (void)plan::emitFindings(plan.findings, /*strict=*/false);
  plan::printText(plan, *model, llvm::nulls());
  plan::printJson(plan, *model, llvm::nulls());
  plan::printPython(plan, *model, llvm::nulls());
  return 0;
}
