// An index out of range ends the program with the module, the op, the input and the index.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s -o program.tpx
// RUN: %python -c "import numpy as np; np.save('table', np.ones((10, 4), 'f4')); np.save('good', np.array([0, 9])); np.save('high', np.array([0, 10])); np.save('low', np.array([-1, 3]))"
// RUN: tp-run program.tpx --input table=table.npy --input ids=good.npy | FileCheck %s --check-prefix=GOOD
// RUN: not tp-run program.tpx --input table=table.npy --input ids=high.npy 2>&1 | FileCheck %s --check-prefix=HIGH
// RUN: not tp-run program.tpx --input table=table.npy --input ids=low.npy 2>&1 | FileCheck %s --check-prefix=LOW

// GOOD: result0: {{.*}} = [1, 1, 1, 1, 1, 1, …]
// HIGH: tok_embeddings: embedding of input 'ids': index 10 is out of range [0, 10)
// LOW: tok_embeddings: embedding of input 'ids': index -1 is out of range [0, 10)
func.func @main(%table: tensor<10x4xf32> {tp.name = "table"}, %ids: tensor<2xi64> {tp.name = "ids"}) -> tensor<2x4xf32> {
  %0 = nn.embedding %ids, %table {tp.fqn = "tok_embeddings"} : (tensor<2xi64>, tensor<10x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
