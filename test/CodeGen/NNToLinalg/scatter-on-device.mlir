// RUN: tp-opt %s --convert-nn-to-linalg=on-device | FileCheck %s

// The gradient of an embedding for devices: the place of each index among all, and so their order; where the rows of the result start in that order; and the
// sums, each of which gathers what it is made of.

// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[IDS:.+]]: tensor<6xi64>, %[[ROWS:.+]]: tensor<6x8xbf16>
// CHECK: tprt.check_index %[[IDS]] below 20
// CHECK: %[[PLACES:.+]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[IDS]], %[[IDS]] : tensor<6xi64>, tensor<6xi64>) outs({{.*}} : tensor<6xi32>)
// CHECK: %[[ORDER:.+]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[PLACES]] : tensor<6xi32>) outs({{.*}} : tensor<6xi32>)
// CHECK: %[[STARTS:.+]] = linalg.generic {{.*}}["parallel"]} outs({{.*}} : tensor<21xi32>)
// CHECK: scf.for %{{.+}} = %{{.+}} to %c3
// CHECK: tensor.extract %[[ORDER]]
// CHECK: tensor.extract %[[IDS]]
// CHECK: %[[FROM:.+]] = tensor.extract_slice %[[STARTS]][0] [20] [1]
// CHECK: %[[TO:.+]] = tensor.extract_slice %[[STARTS]][1] [20] [1]
// CHECK: linalg.generic {{.*}}["parallel", "parallel"]} ins(%[[FROM]], %[[TO]] : tensor<20xi32>, tensor<20xi32>) outs({{.*}} : tensor<20x8xf32>)
// CHECK: scf.for
// CHECK: tensor.extract %[[ORDER]]
// CHECK: tensor.extract %[[ROWS]]
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
func.func @scatter(%ids: tensor<6xi64>, %rows: tensor<6x8xbf16>) -> tensor<20x8xbf16> {
  %0 = nn.scatter_add_rows %ids, %rows : (tensor<6xi64>, tensor<6x8xbf16>) -> tensor<20x8xbf16>
  return %0 : tensor<20x8xbf16>
}
