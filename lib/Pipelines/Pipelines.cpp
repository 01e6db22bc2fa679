//===- Pipelines.cpp - Named pipelines and registration -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "tp/Advice/Passes.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Extensions/Extensions.h"
#include "tp/Proof/Passes.h"
#include "tp/Training/Passes.h"
#include "tp/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;

void tp::buildParallelizePipeline(OpPassManager &pm,
                                  const ParallelizeOptions &options) {
  // Add the loss first, because the plan is checked against it.
  if (!options.train.empty() && !options.plan.empty())
    pm.addPass(createAddLoss({options.train}));
  if (!options.plan.empty())
    pm.addPass(createApplyPlan({options.plan, options.strict}));
  // With a backward pass, later passes join collectives, so each one costs less
  // latency.
  bool isTraining = !options.train.empty() || options.gradients;
  if (isTraining)
    pm.addPass(createGrad({options.train, /*inputs=*/options.gradients}));
  else
    pm.addPass(createSplitBatch());
  int64_t latencyBytes = options.latencyBytes;
  if (latencyBytes < 0)
    latencyBytes = isTraining ? 1024 : 65536;
  pm.addPass(createPropagate(
      {options.strategy, options.forbidImplicit, options.exhaustiveOps,
       latencyBytes, options.searchBudget, options.oneShot, options.memory}));
  pm.addPass(createPartition({options.oneShot, options.memory}));
  // From here on, each entry point is one program that contains its callees.
  pm.addPass(createInlineCalls());
  pm.addPass(createCutStages());
  // By default, gradients are reduced together. FSDP's parameters are gathered,
  // and their gradients reduced, by group, unless joining is turned off.
  constexpr int64_t kTrainingBucketBytes = 25 << 20;
  int64_t bucketBytes = options.bucketBytes;
  if (bucketBytes < 0)
    bucketBytes = isTraining ? kTrainingBucketBytes : 0;
  pm.addPass(createOptimizeCollectives(
      {options.sequenceParallel, bucketBytes,
       /*bucketGathers=*/options.bucketBytes > 0,
       /*fsdpGroups=*/options.bucketBytes != 0, options.memoryLimit}));
  if (options.overlap)
    pm.addPass(createOverlapCollectives({options.chunks}));
  else if (isTraining)
    pm.addNestedPass<func::FuncOp>(createHoistParameterUpdates());
  pm.addPass(createVerifyCollectives());
  if (!options.machine.empty())
    pm.addPass(createPredictMemory());
  pm.addPass(createReport({options.report, options.html, options.explanation,
                           options.trace, options.alternatives, options.scaling,
                           options.machine, options.table}));
}

void tp::registerDialects(DialectRegistry &registry) {
  registry
      .insert<TPDialect, nn::NNDialect, tprt::TPRTDialect, func::FuncDialect>();
  func::registerInlinerExtension(registry);
  registerExternalModels(registry);
  registerGradientModels(registry);
}

void tp::registerPassesAndPipelines() {
  registerTPTransformsPasses();
  registerTPAdvicePasses();
  registerTPCodeGenPasses();
  registerTPProofPasses();
  registerTPTrainingPasses();
  registerLoweringPipelines();
  PassPipelineRegistration<ParallelizeOptions>(ParallelizeOptions::kArgument,
                                               ParallelizeOptions::kSummary,
                                               buildParallelizePipeline);
}

SmallVector<std::string> tp::getPassOptionNames(StringRef name,
                                                MLIRContext *context) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (name == ParallelizeOptions::kArgument) {
    ParallelizeOptions().print(os);
  } else if (const PassInfo *info = PassInfo::lookup(name)) {
    PassManager passes(context, "builtin.module",
                       PassManager::Nesting::Implicit);
    if (failed(info->addToPipeline(passes, "",
                                   [](const Twine &) { return failure(); })))
      return {};
    passes.printAsTextualPipeline(os);
  }
  // "name{first=1 second=x}"
  StringRef options = StringRef(text).split('{').second;
  SmallVector<std::string> names;
  for (StringRef option :
       llvm::split(options.take_until([](char c) { return c == '}'; }), " "))
    if (!option.empty())
      names.push_back(option.split('=').first.str());
  return names;
}
