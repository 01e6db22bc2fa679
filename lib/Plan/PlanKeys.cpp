//===- PlanKeys.cpp - The keys of a plan ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanKeys.h"
#include "tp/Dialect/TP/PipelineSchedule.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;
namespace json = llvm::json;

json::Object plan::makeReference(StringRef name) {
  return json::Object{{"$ref", ("#/$defs/" + name).str()}};
}

static ValueType getPatterns() { return ValueType::list(ValueType::text()); }

/// A group of the file is one of these maps, or the file itself.
static std::vector<KeySpec> makeGroupKeys(KeySpec::Need need) {
  const ValueType text = ValueType::text();
  return {
      {"mesh_dim",
       ValueType(anyOf({text.toSchema(),
                        ValueType::list(text, /*minItems=*/1).toSchema()})),
       "the mesh dimension that 'plan' splits over, or a list of those that "
       "are used as one"},
      {"tp_mesh_dim", ValueType::integer(0),
       "the same, by its index, as in PyTorch 2.0"},
      {"plan", ValueType(makeReference("plan")),
       "a map of patterns of modules to styles, or one style for the root "
       "module",
       need},
      {"match", ValueType::name(kMatchModes),
       "how patterns match; fnmatch by default"},
      {"on_unmatched", ValueType::name(kUnmatchedModes),
       "what a pattern that matches nothing causes"},
      {"loss_parallel", ValueType::boolean(),
       "whether the logits of cross entropies are split along their classes; "
       "false by default"},
  };
}

ArrayRef<KeySpec> plan::getGroupKeys() {
  static const std::vector<KeySpec> keys = makeGroupKeys(KeySpec::Required);
  return keys;
}

ArrayRef<KeySpec> plan::getPlanKeys() {
  static const std::vector<KeySpec> keys = [] {
    std::vector<KeySpec> keys = makeGroupKeys(KeySpec::Optional);
    keys.insert(keys.begin(),
                {"mesh", ValueType(makeReference("mesh")),
                 "the DeviceMesh: the names of its dimensions and their sizes, "
                 "major to minor",
                 KeySpec::Required});
    ValueType group(makeReference("group"));
    keys.push_back({"parallelize",
                    ValueType(anyOf(
                        {ValueType::list(group).toSchema(), group.toSchema()})),
                    "several plans, each with its 'mesh_dim'"});
    keys.push_back(
        {"world_size", ValueType::integer(1), "the number of available ranks"});
    keys.push_back(
        {"data_parallel",
         ValueType(json::Object{
             {"type", "object"},
             {"additionalProperties",
              getNamedSchema(getDataKeys(), /*nameKey=*/"style")}}),
         "a map of mesh dimensions to ddp or fsdp, which split the batch"});
    keys.push_back({"batch",
                    ValueType(json::Object{{"type", "object"},
                                           {"minProperties", 1},
                                           {"additionalProperties",
                                            ValueType::integer().toSchema()}}),
                    "a map of inputs to the dimension that data_parallel and "
                    "expert_parallel split"});
    keys.push_back(
        {"context_parallel",
         ValueType(json::Object{
             {"type", "object"},
             {"minProperties", 1},
             {"maxProperties", 1},
             {"additionalProperties",
              getNamedSchema(getContextKeys(), /*nameKey=*/"method")}}),
         "a map of a mesh dimension, which splits the sequence, to how "
         "attention communicates"});
    keys.push_back(
        {"expert_parallel",
         ValueType(json::Object{
             {"type", "object"},
             {"minProperties", 1},
             {"maxProperties", 1},
             {"additionalProperties", json::Object{{"const", "all_to_all"}}}}),
         "a map of a mesh dimension, which splits the batch and the experts, "
         "to all_to_all"});
    keys.push_back(
        {"pipeline",
         ValueType(json::Object{
             {"type", "object"},
             {"minProperties", 1},
             {"maxProperties", 1},
             {"additionalProperties", getMapSchema(getPipelineKeys())}}),
         "a map of one mesh dimension to the stages that its ranks run"});
    return keys;
  }();
  return keys;
}

ArrayRef<KeySpec> plan::getMeshKeys() {
  static const KeySpec keys[] = {
      {"dims", ValueType(makeReference("dims")),
       "the names of the mesh's dimensions and their sizes, major to minor",
       KeySpec::Required},
      {"devices", ValueType(makeReference("devices")),
       "the ranks at the positions of the mesh, row-major, flat or nested"},
  };
  return keys;
}

ArrayRef<KeySpec> plan::getContextKeys() {
  static const KeySpec keys[] = {
      {"method", ValueType::name(kContextMethods),
       "ring: blocks of keys and values pass from rank to rank; all_gather: "
       "each rank has all of them; all_to_all: heads are split instead of the "
       "sequence; cheapest: by the cost model, the default"},
      {"inputs",
       ValueType(json::Object{
           {"type", "object"},
           {"minProperties", 1},
           {"additionalProperties", ValueType::integer().toSchema()}}),
       "a map of inputs to the dimension that is the sequence"},
  };
  return keys;
}

ArrayRef<KeySpec> plan::getDataKeys() {
  static const KeySpec keys[] = {
      {"style", ValueType::name(kDataStyles),
       "ddp: parameters are replicated, as in DistributedDataParallel; fsdp: "
       "split, as by fully_shard",
       KeySpec::Required},
      {"reshard_after_forward",
       ValueType::boolean(),
       "whether a group is gathered again for the backward pass",
       KeySpec::Optional,
       {"fsdp"}},
      {"modules",
       getPatterns(),
       "patterns of the modules, besides the root, that fully_shard would be "
       "called on",
       KeySpec::Optional,
       {"fsdp"}},
  };
  return keys;
}

ArrayRef<KeySpec> plan::getPipelineKeys() {
  static const KeySpec keys[] = {
      {"split",
       ValueType(anyOf(
           {ValueType::oneOf({"auto"}).toSchema(),
            ValueType::list(ValueType::text(), /*minItems=*/1).toSchema()})),
       "the FQNs of the modules that begin the stages after the first, in the "
       "order in which the model runs them; or auto, for stages of about equal "
       "predicted time",
       KeySpec::Required},
      {"schedule", ValueType::name(kPipelineSchedules),
       "the order of the microbatches' passes; 1F1B by default"},
      {"stages_per_rank", ValueType::integer(1, kMaxStagesPerRank),
       "with split: auto, the number of stages that each rank runs; by default "
       "2 with Interleaved1F1B and 1 with others"},
      {"machine", ValueType::text(),
       "with split: auto, the machine for which the stages' times are "
       "predicted: a preset or the path of a description; cpu by default"},
      {"microbatches", ValueType::integer(1, kMaxMicrobatches),
       "the number of microbatches, each as large as the model's batch; 1 by "
       "default"},
  };
  return keys;
}
