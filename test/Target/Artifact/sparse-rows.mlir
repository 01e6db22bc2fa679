// Two collectives that differ only in whether rows of zeros are sent receive different numbers of bytes.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s --emit=manifest -o - | FileCheck %s --check-prefix=MANIFEST
// RUN: tp-opt %s --tp-report=file=- -o /dev/null | FileCheck %s --check-prefix=REPORT
// RUN: tp-compile %s -o all.tpx
// RUN: %python -c "import numpy as np; np.save('x', np.arange(16, dtype='f4').reshape(4, 2, 2))"
// RUN: tp-run all.tpx --input x=x.npy | FileCheck %s

// MANIFEST: "bytes_by_rank":[16,16]
// MANIFEST: "bytes_by_rank":[18,18]
// REPORT: "bytes_per_rank": 16,
// REPORT: "bytes_per_rank": 18,
// CHECK-DAG: plain: 2x4x2xf32 = [0, 1, 2, 3, 8, 9, …]
// CHECK-DAG: sparse: 2x4x2xf32 = [0, 1, 2, 3, 8, 9, …]
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<2x2x2xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>, tp.global_type = tensor<4x2x2xf32>})
    -> (tensor<1x4x2xf32> {tp.name = "plain", tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>, tp.global_type = tensor<2x4x2xf32>},
        tensor<1x4x2xf32> {tp.name = "sparse", tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>, tp.global_type = tensor<2x4x2xf32>}) {
  %0 = tp.all_to_all %x split 0 concat 1 over @mesh {tp} : tensor<2x2x2xf32> -> tensor<1x4x2xf32>
  %1 = tp.all_to_all %x split 0 concat 1 over @mesh {tp} {tp.sparse_rows} : tensor<2x2x2xf32> -> tensor<1x4x2xf32>
  return %0, %1 : tensor<1x4x2xf32>, tensor<1x4x2xf32>
}
