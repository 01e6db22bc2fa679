//===- TrainingFile.cpp - Training files ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Training/TrainingFile.h"
#include "tp/Support/FieldReader.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/YamlReader.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;

namespace {

class TrainingReader : FieldReader {
public:
  TrainingReader(TrainingConfig &config, MLIRContext *context)
      : config(config), context(context) {}

  LogicalResult read(const YamlValue &root) {
    if (!root.isMap()) {
      reportValue(
          root,
          "a training file is a map with the keys 'loss' and 'optimizer'");
      return failure();
    }
    Fields fields =
        readFields(root, "training file",
                   {"loss", "optimizer", "schedule", "clip_grad_norm",
                    "accumulate", "compute", "checkpoint", "frozen", "seed"});
    if (const YamlValue *loss = fields["loss"]) {
      config.loss.loc = fields.getKeyLoc("loss");
      readLoss(*loss);
    } else {
      report(root.loc, "key 'loss' is missing: cross_entropy, mse, or output, "
                       "where the model's result is the loss");
    }
    if (const YamlValue *optimizer = fields["optimizer"])
      readOptimizer(*optimizer);
    else
      report(root.loc, "key 'optimizer' is missing: SGD, Adam or AdamW");
    if (const YamlValue *schedule = fields["schedule"])
      readSchedule(*schedule);
    if (const YamlValue *clip = fields["clip_grad_norm"])
      config.clipNorm = readNumber(*clip, "clip_grad_norm", 0, std::nullopt,
                                   /*openBelow=*/true);
    if (const YamlValue *accumulate = fields["accumulate"]) {
      config.accumulate =
          readInteger(*accumulate, "accumulate", 1, kMaxAccumulate);
      config.accumulateLoc = accumulate->loc;
    }
    if (const YamlValue *compute = fields["compute"])
      readCompute(*compute);
    readPatterns(fields["checkpoint"], "checkpoint", config.checkpoint,
                 config.checkpointLocs);
    readPatterns(fields["frozen"], "frozen", config.frozen, config.frozenLocs);
    if (const YamlValue *seed = fields["seed"])
      config.seed = readInteger(*seed, "seed", 0, kMaxSeed);
    return success(!failed);
  }

private:
  /// The seed is one word of the generator's key.
  static constexpr int64_t kMaxSeed = 0xFFFFFFFF;
  /// Each batch has its copy of the model's ops.
  static constexpr int64_t kMaxAccumulate = 1024;

  /// Reads `value` as a map; a scalar such as `AdamW` stands for {name: AdamW}.
  /// The name goes to `name`.
  Fields readNamed(const YamlValue &value, StringRef what,
                   ArrayRef<StringRef> keys, const YamlValue *&name) {
    if (value.isScalar()) {
      name = &value;
      return {};
    }
    name = nullptr;
    if (!value.isMap()) {
      reportValue(value,
                  what + " must be a name, or a map with the key 'name'");
      return {};
    }
    Fields fields = readFields(value, what, keys);
    name = fields["name"];
    if (!name)
      report(value.loc, "key 'name' is missing");
    return fields;
  }

  double readNumber(const YamlValue &value, StringRef what, int64_t least,
                    std::optional<int64_t> most = std::nullopt,
                    bool openBelow = false) {
    double number = 0;
    auto low = static_cast<double>(least);
    auto high = static_cast<double>(most.value_or(0));
    if (!value.isScalar() || value.quoted ||
        StringRef(value.text).getAsDouble(number) || !std::isfinite(number) ||
        number < low || (openBelow && number == low) ||
        (most && number > high)) {
      std::string range =
          (openBelow ? "above " : "of at least ") + std::to_string(least);
      if (most)
        range = llvm::formatv("from {0} to {1}", least, *most).str();
      reportValue(value, what + " must be a number " + range);
    }
    return number;
  }

  int64_t readInteger(const YamlValue &value, StringRef what,
                      std::optional<int64_t> least,
                      std::optional<int64_t> most = std::nullopt) {
    std::optional<int64_t> number = value.getInteger();
    if (number && (!least || *number >= *least) && (!most || *number <= *most))
      return *number;
    std::string range;
    if (most)
      range = llvm::formatv(" from {0} to {1}", *least, *most).str();
    else if (least)
      range = llvm::formatv(" of at least {0}", *least).str();
    reportValue(value, what + " must be an integer" + range);
    return least.value_or(0);
  }

  bool readBool(const YamlValue &value, StringRef what) {
    if (std::optional<bool> boolean = value.getBool())
      return *boolean;
    reportValue(value, what + " must be true or false");
    return false;
  }

  void readPatterns(const YamlValue *value, StringRef what,
                    std::vector<std::string> &patterns,
                    std::vector<FileLineColLoc> &locs) {
    if (!value)
      return;
    if (!value->isList())
      return reportValue(*value, what + " must be a list of patterns");
    for (const YamlValue &item : value->items) {
      if (!item.isScalar()) {
        reportValue(item, "a pattern is a string");
        continue;
      }
      patterns.push_back(item.text);
      locs.push_back(item.loc);
    }
  }

  void readLoss(const YamlValue &value) {
    LossConfig &loss = config.loss;
    const YamlValue *name;
    Fields fields = readNamed(value, "loss",
                              {"name", "output", "reduction", "ignore_index",
                               "label_smoothing", "class_dim", "weight"},
                              name);
    if (!name)
      return;
    auto kind = llvm::StringSwitch<std::optional<LossConfig::Kind>>(name->text)
                    .Case("output", LossConfig::Output)
                    .Case("cross_entropy", LossConfig::CrossEntropy)
                    .Case("mse", LossConfig::MSE)
                    .Default(std::nullopt);
    if (!kind)
      return reportValue(*name, "loss must be cross_entropy, mse or output");
    loss.kind = *kind;
    if (const YamlValue *output = fields["output"]) {
      loss.output = readInteger(*output, "output", 0);
      loss.outputLoc = output->loc;
    }
    if (const YamlValue *reduction = fields["reduction"]) {
      if (reduction->text == "sum")
        loss.reduction = nn::LossReduction::Sum;
      else if (reduction->text != "mean")
        reportValue(*reduction, "reduction must be mean or sum");
      if (loss.kind == LossConfig::Output)
        report(fields.getKeyLoc("reduction"),
               "'reduction' is not for a loss that the model gives");
    }
    for (StringRef key :
         {"ignore_index", "label_smoothing", "class_dim", "weight"})
      if (fields[key] && loss.kind != LossConfig::CrossEntropy)
        report(fields.getKeyLoc(key), "'" + key + "' is for cross_entropy");
    if (const YamlValue *ignored = fields["ignore_index"])
      loss.ignoreIndex = readInteger(*ignored, "ignore_index", std::nullopt);
    if (const YamlValue *smoothing = fields["label_smoothing"])
      loss.labelSmoothing = readNumber(*smoothing, "label_smoothing", 0, 1);
    if (const YamlValue *dim = fields["class_dim"]) {
      loss.classDim = readInteger(*dim, "class_dim", std::nullopt);
      loss.classDimLoc = dim->loc;
    }
    if (const YamlValue *weight = fields["weight"]) {
      loss.weightLoc = weight->loc;
      if (!weight->isList())
        return reportValue(
            *weight, "weight must be a list with a number for each class");
      for (const YamlValue &item : weight->items)
        loss.weights.push_back(readNumber(item, "a weight", 0));
    }
  }

  void readOptimizer(const YamlValue &value) {
    OptimizerConfig optimizer;
    const YamlValue *name;
    Fields fields =
        readNamed(value, "optimizer",
                  {"name", "lr", "momentum", "dampening", "nesterov", "betas",
                   "eps", "amsgrad", "weight_decay", "no_decay", "maximize"},
                  name);
    if (!name)
      return;
    auto kind =
        llvm::StringSwitch<std::optional<OptimizerConfig::Kind>>(name->text)
            .Cases({"SGD", "sgd"}, OptimizerConfig::SGD)
            .Cases({"Adam", "adam"}, OptimizerConfig::Adam)
            .Cases({"AdamW", "adamw"}, OptimizerConfig::AdamW)
            .Default(std::nullopt);
    if (!kind)
      return reportValue(*name, "optimizer must be SGD, Adam or AdamW");
    optimizer.kind = *kind;
    // PyTorch's defaults.
    optimizer.lr = 1e-3;
    optimizer.weightDecay = *kind == OptimizerConfig::AdamW ? 0.01 : 0;
    if (const YamlValue *lr = fields["lr"])
      optimizer.lr = readNumber(*lr, "lr", 0);
    bool isSGD = *kind == OptimizerConfig::SGD;
    for (StringRef key : {"momentum", "dampening", "nesterov"})
      if (fields[key] && !isSGD)
        report(fields.getKeyLoc(key), "'" + key + "' is for SGD");
    for (StringRef key : {"betas", "eps", "amsgrad"})
      if (fields[key] && isSGD)
        report(fields.getKeyLoc(key), "'" + key + "' is for Adam and AdamW");
    if (const YamlValue *momentum = fields["momentum"])
      optimizer.momentum = readNumber(*momentum, "momentum", 0, 1);
    if (const YamlValue *dampening = fields["dampening"])
      optimizer.dampening = readNumber(*dampening, "dampening", 0, 1);
    if (const YamlValue *nesterov = fields["nesterov"]) {
      optimizer.nesterov = readBool(*nesterov, "nesterov");
      if (optimizer.nesterov &&
          (optimizer.momentum == 0 || optimizer.dampening != 0))
        report(nesterov->loc, "nesterov needs a momentum, and no dampening");
    }
    if (const YamlValue *amsgrad = fields["amsgrad"])
      optimizer.amsgrad = readBool(*amsgrad, "amsgrad");
    if (const YamlValue *maximize = fields["maximize"])
      optimizer.maximize = readBool(*maximize, "maximize");
    if (const YamlValue *betas = fields["betas"]) {
      if (!betas->isList() || betas->items.size() != 2)
        report(betas->loc,
               "betas must be a list of two numbers, found " +
                   (betas->isList()
                        ? "one of " + Twine(betas->items.size()).str()
                        : betas->describe()));
      else {
        optimizer.beta1 = readBeta(betas->items[0]);
        optimizer.beta2 = readBeta(betas->items[1]);
      }
    }
    if (const YamlValue *eps = fields["eps"])
      optimizer.eps = readNumber(*eps, "eps", 0);
    if (const YamlValue *decay = fields["weight_decay"])
      optimizer.weightDecay = readNumber(*decay, "weight_decay", 0);
    readPatterns(fields["no_decay"], "no_decay", optimizer.noDecay,
                 config.noDecayLocs);
    config.optimizer = optimizer;
  }

  double readBeta(const YamlValue &value) {
    double beta = readNumber(value, "a beta", 0, 1);
    if (beta == 1)
      report(value.loc, "a beta must be below 1");
    return beta;
  }

  void readSchedule(const YamlValue &value) {
    ScheduleConfig &schedule = config.schedule;
    const YamlValue *name;
    Fields fields =
        readNamed(value, "schedule",
                  {"name", "warmup_steps", "total_steps", "min_lr"}, name);
    if (!name)
      return;
    if (name->text == "cosine")
      schedule.kind = ScheduleConfig::Cosine;
    else if (name->text != "constant")
      return reportValue(*name, "schedule must be constant or cosine");
    if (const YamlValue *warmup = fields["warmup_steps"])
      schedule.warmupSteps = readInteger(*warmup, "warmup_steps", 0);
    bool isCosine = schedule.kind == ScheduleConfig::Cosine;
    for (StringRef key : {"total_steps", "min_lr"})
      if (fields[key] && !isCosine)
        report(fields.getKeyLoc(key), "'" + key + "' is for cosine");
    if (const YamlValue *minLr = fields["min_lr"])
      schedule.minLr = readNumber(*minLr, "min_lr", 0);
    if (const YamlValue *total = fields["total_steps"])
      schedule.totalSteps =
          readInteger(*total, "total_steps", schedule.warmupSteps + 1);
    else if (isCosine)
      report(value.loc, "a cosine needs 'total_steps', at which it ends");
  }

  void readCompute(const YamlValue &value) {
    if (value.text == "bf16")
      config.computeType = BFloat16Type::get(context);
    else if (value.text == "f16")
      config.computeType = Float16Type::get(context);
    else if (value.text == "f32")
      config.computeType = Float32Type::get(context);
    else
      reportValue(value, "compute must be f32, bf16 or f16");
  }

  TrainingConfig &config;
  MLIRContext *context;
};

} // namespace

FailureOr<TrainingConfig> tp::readTrainingFile(StringRef path,
                                               MLIRContext *context) {
  auto file = readInput(path);
  if (!file) {
    emitInputError(context, path, "training file", file.takeError());
    return failure();
  }
  std::optional<YamlValue> root =
      readYaml((*file)->getBuffer(), path, "a training file", context);
  TrainingConfig config;
  if (!root || failed(TrainingReader(config, context).read(*root)))
    return failure();
  return config;
}
