// Where ranks hold rows, or classes, of their own, an index that nobody has is reported as the model has it, with the size
// of the whole table.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-opt %s --tp-parallelize=latency-bytes=0 -o local.mlir && tp-compile local.mlir -o local.tpx
// RUN: FileCheck %s --check-prefix=LOCAL < local.mlir
// LOCAL-DAG: nn.embedding {{.*}} {{{.*}}tp.index_bound = 32 : i64{{.*}}} : {{.*}}tensor<8x4xf32>
// LOCAL-DAG: nn.gather {{.*}} {{{.*}}tp.index_bound = 32 : i64{{.*}}} : {{.*}}tensor<2x8xf32>

// RUN: %python -c "import numpy as np; np.save('table', np.ones((32, 4), 'f4')); np.save('scores', np.ones((2, 32), 'f4')); np.save('good', np.array([31, 3])); [np.save(f'bad{i}', np.array([3, i])) for i in (32, 99, -1, 8)]"
// DEFINE: %{ids} = good
// DEFINE: %{target} = good
// DEFINE: %{run} = tp-run local.tpx --input table=table.npy --input scores=scores.npy --input ids=%{ids}.npy --input target=%{target}.npy
// RUN: %{run}
// REDEFINE: %{ids} = bad8
// REDEFINE: %{target} = bad8
// RUN: %{run}
// REDEFINE: %{ids} = bad32
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=NEXT
// NEXT: embedding of input 'ids': index 32 is out of range [0, 32)
// REDEFINE: %{ids} = bad99
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: embedding of input 'ids': index 99 is out of range [0, 32)
// REDEFINE: %{ids} = bad-1
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=LOW
// LOW: embedding of input 'ids': index -1 is out of range [0, 32)
// REDEFINE: %{ids} = good
// REDEFINE: %{target} = bad32
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=CLASS
// CLASS: gather of input 'target': index 32 is out of range [0, 32)
// REDEFINE: %{target} = bad-1
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=NOCLASS
// NOCLASS: gather of input 'target': index -1 is out of range [0, 32)

tp.mesh @mesh(tp = 4)
func.func @main(%table: tensor<32x4xf32> {tp.name = "table", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}, %ids: tensor<2xi64> {tp.name = "ids"},
                %scores: tensor<2x32xf32> {tp.name = "scores", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %target: tensor<2xi64> {tp.name = "target"})
    -> (tensor<2x4xf32> {tp.name = "rows", tp.sharding = #tp.sharding<@mesh, [{}, {}]>}, tensor<f32> {tp.name = "loss", tp.sharding = #tp.sharding<@mesh, []>}) {
  %rows = nn.embedding %ids, %table : (tensor<2xi64>, tensor<32x4xf32>) -> tensor<2x4xf32>
  %loss = nn.cross_entropy mean %scores, %target ignore -100 smoothing 0.0 : (tensor<2x32xf32>, tensor<2xi64>) -> tensor<f32>
  return %rows, %loss : tensor<2x4xf32>, tensor<f32>
}
