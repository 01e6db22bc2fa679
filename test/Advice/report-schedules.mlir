// The predicted bubble of each schedule, as the time that ranks wait: interleaved stages and the later gradients of weights
// make it smaller than that of 1F1B, and the step faster. The values that stages pass are those of all boundaries.
// RUN: split-file %s %t && cd %t
// RUN: %python check.py

//--- check.py
import json, subprocess
SPLITS = {1: "[layers.4]", 2: "[layers.2, layers.4, layers.6]"}
waiting, seconds, received = {}, {}, {}
for schedule, stages in (("GPipe", 1), ("1F1B", 1), ("Interleaved1F1B", 2), ("InterleavedZeroBubble", 1), ("InterleavedZeroBubble", 2)):
    with open("plan.yaml", "w") as file:
        file.write(f"mesh: {{pp: 2}}\npipeline: {{pp: {{split: {SPLITS[stages]}, schedule: {schedule}, microbatches: 4}}}}\n")
    subprocess.run(["tp-opt", "model.mlir", "--tp-parallelize=plan=plan.yaml train=train.yaml report=report.json machine=cpu",
                    "-o", "ranks.mlir"], check=True)
    report = json.load(open("report.json"))
    # Each rank is a class.
    ranks, key = report["prediction"]["by_class"], (schedule, stages)
    assert len(ranks) == 2, ranks
    waiting[key] = sum(rank["waiting_seconds"] for rank in ranks)
    seconds[key] = report["prediction"]["seconds"]
    received[key] = sum(sum(c["bytes_by_class"]) for c in report["collectives"] if c["kind"] == "transfer" and len(c["shape"]) > 1)
base = "1F1B", 1
assert waiting["Interleaved1F1B", 2] < 0.7 * waiting[base] and waiting["InterleavedZeroBubble", 1] < 0.8 * waiting[base], waiting
for other in (("Interleaved1F1B", 2), ("InterleavedZeroBubble", 1), ("InterleavedZeroBubble", 2)):
    assert waiting[other] < waiting[base] and seconds[other] < seconds[base], (other, waiting, seconds)
for key, moved in received.items():
    assert moved == 2 * 64 * 64 * 4 * (2 * key[1] - 1) * 4, (key, moved)

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}

//--- model.mlir
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = nn.module "layers.0" class "Layer" (%x as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.0.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = nn.module "layers.1" class "Layer" (%0 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.1.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = nn.module "layers.2" class "Layer" (%1 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.2.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = nn.module "layers.3" class "Layer" (%2 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.3.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = nn.module "layers.4" class "Layer" (%3 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.4.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = nn.module "layers.5" class "Layer" (%4 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.5.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = nn.module "layers.6" class "Layer" (%5 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.6.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %7 = nn.module "layers.7" class "Layer" (%6 as "input" at 0) {
  ^bb0(%input: tensor<64x64xf32>):
    %w = nn.parameter "layers.7.weight" : tensor<64x64xf32>
    %y = nn.linear %input, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = nn.relu %y : tensor<64x64xf32>
    nn.yield %z : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %7 : tensor<64x64xf32>
}
