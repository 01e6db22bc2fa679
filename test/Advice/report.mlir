// RUN: tp-opt %s --tp-report=file=%t.json -o /dev/null --remarks-filter='tp-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: %python -m json.tool --sort-keys --compact %t.json | FileCheck %s
// RUN: not tp-opt %s --tp-report=file=%t.missing/r.json 2>&1 | FileCheck %s --check-prefix=ERROR

tp.mesh @mesh(dp = 2, tp = 2)

// REMARK: [Passed] all_reduce | Category:tp-report | Function=main | BytesPerRank=320, FQN=net2, MeshDim=tp, Reason="plan.yaml:4:3: RowwiseParallel output_layouts Replicate"
// REMARK-NOT: Passed
// ERROR: error: cannot write '{{.*}}r.json': No such file or directory

// CHECK: "collectives":[{"bytes_by_class":[320],"bytes_per_rank":320,"dtype":"f32","fqn":"net2","group_size":2,"id":0,"kind":"all_reduce","mesh_dim":"tp","reason":"plan.yaml:4:3: RowwiseParallel output_layouts Replicate","result_shape":[8,10],"shape":[8,10]}]
// CHECK-SAME: "inputs":[{"bytes_per_rank":256,"dtype":"f32","local_shape":[8,8],"name":"x","placements":["Replicate","Shard(1)"],"shape":[8,16]}]
// CHECK-SAME: "mesh":{"axes":[{"name":"dp","size":2},{"name":"tp","size":2}],"name":"mesh","ranks":4}
// CHECK-SAME: "parameters":[{"bytes_per_rank":320,"dtype":"f32","fqn":"net2.weight","local_shape":[10,8],"placements":["Replicate","Shard(1)"],"shape":[10,16]}]
// CHECK-SAME: "rank_classes":[{"count":4,"ranks":[{"offset":0,"sizes":[4],"strides":[1]}]}]
// CHECK-SAME: "schema":2,"totals":{"all_reduce":{"bytes_per_rank":320,"count":1}}
func.func @main(%x: tensor<8x8xf32> {tp.name = "x", tp.global_type = tensor<8x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x10xf32> {
  %w = nn.parameter "net2.weight" {tp.global_type = tensor<10x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x8xf32>
  %0 = nn.linear %x, %w : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} {fqn = "net2", reason = "plan.yaml:4:3: RowwiseParallel output_layouts Replicate"} : tensor<8x10xf32>
  return %1 : tensor<8x10xf32>
}
