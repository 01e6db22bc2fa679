// The report of a pipeline: each stage's rank holds its parameters, transfers are listed with the stage that receives them,
// and their bytes are 2 · activations · (stages − 1) · microbatches, and the loss. The second stage waits for the first one.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml report=report.json machine=cpu" -o ranks.mlir
// RUN: %python check.py

//--- check.py
import json
report = json.load(open("report.json"))
# Each rank is a class.
assert [c["ranks"] for c in report["rank_classes"]] == [[{"offset": rank, "sizes": [], "strides": []}] for rank in range(2)]
transfers = [c for c in report["collectives"] if c["kind"] == "transfer"]
activation = 2 * 4 * 4
values = [c for c in transfers if c["shape"] == [2, 4]]
assert sum(sum(c["bytes_by_class"]) for c in values) == 2 * activation * (2 - 1) * 3, values
assert [c["id"] for c in report["collectives"]] == list(range(len(report["collectives"])))
[loss] = [c for c in transfers if c not in values]
assert loss["shape"] == [1] and loss["bytes_by_class"] == [4, 0], loss
assert all(c["group_size"] == 2 and c["mesh_dim"] == "pp" for c in transfers)
assert "pipeline: stage 0 to 1, forward pass of microbatch 2" in [c["reason"] for c in transfers]
ranks = {p["fqn"]: p.get("classes") for p in report["parameters"]}
assert ranks == {"net1.weight": [0], "net2.weight": [1], "optimizer.step": None}, ranks
assert [(i["name"], i["classes"]) for i in report["inputs"]] == [("x", [0]), ("target", [1])]
assert all("classes" not in output for output in report["outputs"])
first, second = report["prediction"]["by_class"]
assert second["waiting_seconds"] > 0 and second["bytes_received"] == 3 * activation
assert first["waiting_seconds"] > 0 and first["bytes_received"] == 3 * activation + 4
assert first["memory"]["parameters"] == 64 + 8 and second["memory"]["parameters"] == 64 + 8

//--- plan.yaml
mesh: {pp: 2}
pipeline: {pp: {split: [net2], microbatches: 3}}

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}

//--- model.mlir
func.func @main(%x: tensor<2x4xf32> {tp.name = "x"}) -> tensor<2x4xf32> {
  %h = nn.module "net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "net1.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %o = nn.module "net2" class "Linear" (%h as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "net2.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %o : tensor<2x4xf32>
}
