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

//===----------------------------------------------------------------------===//
// The keys
//===----------------------------------------------------------------------===//

/// The seed is one word of the generator's key.
static constexpr int64_t kMaxSeed = 0xFFFFFFFF;
/// Each batch has its copy of the model's ops.
static constexpr int64_t kMaxAccumulate = 1024;

static constexpr NamedValue<LossConfig::Kind> kLosses[] = {
    {"cross_entropy", LossConfig::CrossEntropy},
    {"mse", LossConfig::MSE},
    {"output", LossConfig::Output},
};
static constexpr NamedValue<nn::LossReduction> kReductions[] = {
    {"mean", nn::LossReduction::Mean},
    {"sum", nn::LossReduction::Sum},
};
static constexpr NamedValue<OptimizerConfig::Kind> kOptimizers[] = {
    {"SGD", OptimizerConfig::SGD},     {"Adam", OptimizerConfig::Adam},
    {"AdamW", OptimizerConfig::AdamW}, {"sgd", OptimizerConfig::SGD},
    {"adam", OptimizerConfig::Adam},   {"adamw", OptimizerConfig::AdamW},
};
static constexpr NamedValue<ScheduleConfig::Kind> kSchedules[] = {
    {"constant", ScheduleConfig::Constant},
    {"cosine", ScheduleConfig::Cosine},
};
enum class ComputeType { F32, BF16, F16 };
static constexpr NamedValue<ComputeType> kComputeTypes[] = {
    {"f32", ComputeType::F32},
    {"bf16", ComputeType::BF16},
    {"f16", ComputeType::F16},
};

static ValueType getPatterns() { return ValueType::list(ValueType::text()); }

static ArrayRef<KeySpec> getLossKeys() {
  const auto none = ValueType::integer();
  static const KeySpec keys[] = {
      {"name", ValueType::name(kLosses),
       "which loss; 'output': a result of the model is the loss",
       KeySpec::Required},
      {"output", ValueType::integer(0),
       "which of the model's results it is, or is of, from 0"},
      {"reduction",
       ValueType::name(kReductions),
       "how the losses of the examples become one; mean by default",
       KeySpec::Optional,
       {"cross_entropy", "mse"}},
      {"ignore_index",
       none,
       "the target that is ignored; -100 by default",
       KeySpec::Optional,
       {"cross_entropy"}},
      {"label_smoothing",
       ValueType::number(0, 1),
       "how far the target's distribution is from one-hot; 0 by default",
       KeySpec::Optional,
       {"cross_entropy"}},
      {"class_dim",
       none,
       "the dimension of the classes; -1 by default",
       KeySpec::Optional,
       {"cross_entropy"}},
      {"weight",
       ValueType::list(ValueType::number(0)),
       "a number for each class; 1 each by default",
       KeySpec::Optional,
       {"cross_entropy"}},
  };
  return keys;
}

static ArrayRef<KeySpec> getOptimizerKeys() {
  static const KeySpec keys[] = {
      {"name", ValueType::name(kOptimizers), "which optimizer",
       KeySpec::Required},
      {"lr", ValueType::number(0), "the learning rate; 0.001 by default"},
      {"weight_decay", ValueType::number(0),
       "the weight decay; 0.01 by default for AdamW, otherwise 0"},
      {"no_decay", getPatterns(),
       "patterns of parameters without weight decay"},
      {"maximize", ValueType::boolean(),
       "whether the loss is maximized instead of minimized"},
      {"momentum",
       ValueType::number(0, 1),
       "0 by default",
       KeySpec::Optional,
       {"SGD"}},
      {"dampening",
       ValueType::number(0, 1),
       "0 by default",
       KeySpec::Optional,
       {"SGD"}},
      {"nesterov",
       ValueType::boolean(),
       "Nesterov's momentum; needs a momentum, and no dampening",
       KeySpec::Optional,
       {"SGD"}},
      {"betas",
       ValueType(llvm::json::Object{
           {"type", "array"},
           {"items", llvm::json::Object{{"type", "number"},
                                        {"minimum", 0},
                                        {"exclusiveMaximum", 1}}},
           {"minItems", 2},
           {"maxItems", 2}}),
       "the decay of the two moments; [0.9, 0.999] by default",
       KeySpec::Optional,
       {"Adam", "AdamW"}},
      {"eps",
       ValueType::number(0),
       "what is added to the divisor; 1e-8 by default",
       KeySpec::Optional,
       {"Adam", "AdamW"}},
      {"amsgrad",
       ValueType::boolean(),
       "whether to divide by the largest second moment so far",
       KeySpec::Optional,
       {"Adam", "AdamW"}},
  };
  return keys;
}

static ArrayRef<KeySpec> getScheduleKeys() {
  static const KeySpec keys[] = {
      {"name", ValueType::name(kSchedules),
       "the course of the learning rate after the warm-up", KeySpec::Required},
      {"warmup_steps", ValueType::integer(0),
       "steps in which the learning rate grows linearly from 0; 0 by default"},
      {"total_steps",
       ValueType::integer(1),
       "the step at which the cosine ends, above warmup_steps",
       KeySpec::Required,
       {"cosine"}},
      {"min_lr",
       ValueType::number(0),
       "the learning rate at which the cosine ends; 0 by default",
       KeySpec::Optional,
       {"cosine"}},
  };
  return keys;
}

static ArrayRef<KeySpec> getTrainingKeys() {
  static const KeySpec keys[] = {
      {"loss", ValueType(getNamedSchema(getLossKeys())),
       "what is minimized: a name, or a map with its arguments",
       KeySpec::Required},
      {"optimizer", ValueType(getNamedSchema(getOptimizerKeys())),
       "what updates the parameters: a name, or a map with its arguments",
       KeySpec::Required},
      {"schedule", ValueType(getNamedSchema(getScheduleKeys())),
       "the course of the learning rate; constant by default"},
      {"clip_grad_norm", ValueType::numberAbove(0),
       "the largest norm of all gradients together, to which they are scaled "
       "down"},
      {"accumulate", ValueType::integer(1, kMaxAccumulate),
       "the number of batches whose gradients are added up in one step"},
      {"compute", ValueType::name(kComputeTypes),
       "the type of the forward and the backward pass; the model's by default"},
      {"checkpoint", getPatterns(),
       "patterns of modules whose values the backward pass computes again"},
      {"keep", getPatterns(),
       "patterns of modules, among those of 'checkpoint' or inside of them, "
       "whose values are kept"},
      {"frozen", getPatterns(),
       "patterns of parameters, or of modules, that aren't trained"},
      {"seed", ValueType::integer(0, kMaxSeed),
       "the seed of dropout; 0 by default"},
  };
  return keys;
}

//===----------------------------------------------------------------------===//
// The reader
//===----------------------------------------------------------------------===//

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
    Fields fields = readFields(root, "training file", getTrainingKeys());
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
    if (fields["clip_grad_norm"])
      readNumber(fields, "clip_grad_norm", config.clipNorm.emplace());
    if (const YamlValue *accumulate = fields["accumulate"]) {
      readInteger(fields, "accumulate", config.accumulate);
      config.accumulateLoc = accumulate->loc;
    }
    if (const YamlValue *compute = fields["compute"])
      readCompute(*compute);
    readPatterns(fields["checkpoint"], "checkpoint", config.checkpoint,
                 config.checkpointLocs);
    readPatterns(fields["keep"], "keep", config.keep, config.keepLocs);
    readPatterns(fields["frozen"], "frozen", config.frozen, config.frozenLocs);
    readInteger(fields, "seed", config.seed);
    return success(!failed);
  }

private:
  /// Reads `value` as a map; a scalar such as `AdamW` stands for {name: AdamW}.
  /// The name goes to `name`.
  Fields readNamed(const YamlValue &value, StringRef what,
                   ArrayRef<KeySpec> keys, const YamlValue *&name) {
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

  /// Reports keys that aren't for a map whose name is `usualName`.
  void checkKeysAreFor(const Fields &fields, StringRef usualName) {
    for (const KeySpec &key : fields.getKeys())
      if (fields[key.name] && !key.isFor(usualName))
        report(fields.getKeyLoc(key.name),
               "'" + key.name + "' is for " + llvm::join(key.onlyFor, " and "));
  }

  double readNumber(const YamlValue &value, StringRef what,
                    const ValueType &type) {
    double number = 0;
    if (!value.isScalar() || value.quoted ||
        StringRef(value.text).getAsDouble(number) || !std::isfinite(number) ||
        number < *type.least || (type.isAbove && number == *type.least) ||
        (type.most && number > *type.most)) {
      std::string range =
          llvm::formatv("{0} {1}", type.isAbove ? "above" : "of at least",
                        static_cast<int64_t>(*type.least))
              .str();
      if (type.most)
        range =
            llvm::formatv("from {0} to {1}", static_cast<int64_t>(*type.least),
                          static_cast<int64_t>(*type.most))
                .str();
      reportValue(value, what + " must be a number " + range);
    }
    return number;
  }

  /// Sets `number` if the field is there.
  void readNumber(const Fields &fields, StringRef key, double &number) {
    if (const YamlValue *value = fields[key])
      number = readNumber(*value, key, fields.getType(key));
  }

  /// The same for an integer. `least` replaces the bound of the table.
  void readInteger(const Fields &fields, StringRef key, int64_t &integer,
                   std::optional<int64_t> least = std::nullopt) {
    const YamlValue *value = fields[key];
    if (!value)
      return;
    const ValueType &type = fields.getType(key);
    if (!least && type.least)
      least = static_cast<int64_t>(*type.least);
    std::optional<int64_t> number = value->getInteger();
    if (number && (!least || *number >= *least) &&
        (!type.most || *number <= *type.most)) {
      integer = *number;
      return;
    }
    std::string range;
    if (type.most)
      range = llvm::formatv(" from {0} to {1}", *least,
                            static_cast<int64_t>(*type.most))
                  .str();
    else if (least)
      range = llvm::formatv(" of at least {0}", *least).str();
    reportValue(*value, key + " must be an integer" + range);
  }

  void readBool(const Fields &fields, StringRef key, bool &boolean) {
    const YamlValue *value = fields[key];
    if (!value)
      return;
    if (std::optional<bool> read = value->getBool())
      boolean = *read;
    else
      reportValue(*value, key + " must be true or false");
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
    Fields fields = readNamed(value, "loss", getLossKeys(), name);
    if (!name)
      return;
    auto kind = findNamed(kLosses, name->text);
    if (!kind)
      return reportValue(*name, "loss must be cross_entropy, mse or output");
    loss.kind = *kind;
    checkKeysAreFor(fields, getUsualName(kLosses, *kind));
    if (const YamlValue *output = fields["output"]) {
      readInteger(fields, "output", loss.output);
      loss.outputLoc = output->loc;
    }
    if (const YamlValue *reduction = fields["reduction"]) {
      if (auto known = findNamed(kReductions, reduction->text))
        loss.reduction = *known;
      else
        reportValue(*reduction, "reduction must be mean or sum");
    }
    readInteger(fields, "ignore_index", loss.ignoreIndex);
    readNumber(fields, "label_smoothing", loss.labelSmoothing);
    if (const YamlValue *dim = fields["class_dim"]) {
      readInteger(fields, "class_dim", loss.classDim);
      loss.classDimLoc = dim->loc;
    }
    if (const YamlValue *weight = fields["weight"]) {
      loss.weightLoc = weight->loc;
      if (!weight->isList())
        return reportValue(
            *weight, "weight must be a list with a number for each class");
      for (const YamlValue &item : weight->items)
        loss.weights.push_back(
            readNumber(item, "a weight", ValueType::number(0)));
    }
  }

  void readOptimizer(const YamlValue &value) {
    OptimizerConfig optimizer;
    const YamlValue *name;
    Fields fields = readNamed(value, "optimizer", getOptimizerKeys(), name);
    if (!name)
      return;
    auto kind = findNamed(kOptimizers, name->text);
    if (!kind)
      return reportValue(*name, "optimizer must be SGD, Adam or AdamW");
    optimizer.kind = *kind;
    // PyTorch's defaults.
    optimizer.lr = 1e-3;
    optimizer.weightDecay = *kind == OptimizerConfig::AdamW ? 0.01 : 0;
    checkKeysAreFor(fields, getUsualName(kOptimizers, *kind));
    readNumber(fields, "lr", optimizer.lr);
    readNumber(fields, "momentum", optimizer.momentum);
    readNumber(fields, "dampening", optimizer.dampening);
    readBool(fields, "nesterov", optimizer.nesterov);
    if (optimizer.nesterov &&
        (optimizer.momentum == 0 || optimizer.dampening != 0))
      report(fields["nesterov"]->loc,
             "nesterov needs a momentum, and no dampening");
    readBool(fields, "amsgrad", optimizer.amsgrad);
    readBool(fields, "maximize", optimizer.maximize);
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
    readNumber(fields, "eps", optimizer.eps);
    readNumber(fields, "weight_decay", optimizer.weightDecay);
    readPatterns(fields["no_decay"], "no_decay", optimizer.noDecay,
                 config.noDecayLocs);
    config.optimizer = optimizer;
  }

  double readBeta(const YamlValue &value) {
    double beta = readNumber(value, "a beta", ValueType::number(0, 1));
    if (beta == 1)
      report(value.loc, "a beta must be below 1");
    return beta;
  }

  void readSchedule(const YamlValue &value) {
    ScheduleConfig &schedule = config.schedule;
    const YamlValue *name;
    Fields fields = readNamed(value, "schedule", getScheduleKeys(), name);
    if (!name)
      return;
    auto kind = findNamed(kSchedules, name->text);
    if (!kind)
      return reportValue(*name, "schedule must be constant or cosine");
    schedule.kind = *kind;
    checkKeysAreFor(fields, getUsualName(kSchedules, *kind));
    readInteger(fields, "warmup_steps", schedule.warmupSteps);
    readNumber(fields, "min_lr", schedule.minLr);
    if (fields["total_steps"])
      readInteger(fields, "total_steps", schedule.totalSteps,
                  schedule.warmupSteps + 1);
    else if (*kind == ScheduleConfig::Cosine)
      report(value.loc, "a cosine needs 'total_steps', at which it ends");
  }

  void readCompute(const YamlValue &value) {
    auto kind = findNamed(kComputeTypes, value.text);
    if (!kind)
      return reportValue(value, "compute must be f32, bf16 or f16");
    switch (*kind) {
    case ComputeType::F32:
      config.computeType = Float32Type::get(context);
      break;
    case ComputeType::BF16:
      config.computeType = BFloat16Type::get(context);
      break;
    case ComputeType::F16:
      config.computeType = Float16Type::get(context);
      break;
    }
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
  return parseTrainingFile((*file)->getBuffer(), path, context);
}

FailureOr<TrainingConfig> tp::parseTrainingFile(StringRef text, StringRef path,
                                                MLIRContext *context) {
  std::optional<YamlValue> root =
      readYaml(text, path, "a training file", context);
  TrainingConfig config;
  if (!root || failed(TrainingReader(config, context).read(*root)))
    return failure();
  return config;
}

llvm::json::Value tp::getTrainingSchema() {
  return makeFileSchema(getMapSchema(getTrainingKeys()),
                        "tp-mlir training file",
                        "The loss, the optimizer and the schedule of a "
                        "training, for --tp-parallelize=train=FILE.");
}
