// RUN: tp-opt %s --tp-plan-arena --tp-insert-profile-marks | FileCheck %s
// RUN: tp-opt %s --tp-plan-arena --tp-insert-profile-marks --convert-tprt-to-calls | FileCheck %s --check-prefix=TABLE

// A call counts as the ops of its function: b's place may be y's, which the first call writes last.
// The marks of a call have the FQNs of its origins.

// CHECK: tprt.manifest = {arena_bytes = 384 : i64, ops = [{{.*}}fqn = "layers.0", {{.*}}fqn = "layers.1",
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[ARENA:[^:]+]]: memref<384xi8> {tprt.role = "arena"}
// CHECK: tprt.call @layer {{.*}} origins ["layers.0"] collectives [4] offsets [{{[0-9]+}}, {{[0-9]+}}] marks [0, 0, 0]
// CHECK: tprt.call @layer {{.*}} origins ["layers.1"] collectives [5] offsets [{{[0-9]+}}, {{[0-9]+}}] marks [1, 1, 1]

// CHECK-LABEL: func.func private @layer
// CHECK-SAME: %[[ARENA:[^:]+]]: memref<384xi8> {tprt.role = "arena"}, %[[NUMBERS:[^:]+]]: memref<2xi64> {tprt.role = "numbers"}
// CHECK: %[[NUMBER:.+]] = memref.load %[[NUMBERS]][%c0]
// CHECK: %[[OFFSET:.+]] = arith.index_cast %[[NUMBER]] : i64 to index
// CHECK: memref.view %[[ARENA]][%[[OFFSET]]][] : memref<384xi8> to memref<48xf32>
// CHECK: tprt.mark 0
// CHECK: tprt.mark 1
// CHECK: tprt.mark 2

// Where x, y and the arena are, two offsets, three marks and a collective. The first input is at 0 in
// table 0, the first output in table 2; the arena, which has y, is at 0 in table 3.
// TABLE-DAG: llvm.mlir.global internal constant @[[FIRST:numbers_[0-9]+]](dense<[0, 0, 0, 3, 0, [[Y:[0-9]+]], 3, 0, 0, {{[0-9]+}}, {{[0-9]+}}, 0, 0, 0, 4]> : tensor<15xi64>)
// TABLE-DAG: llvm.mlir.global internal constant @[[SECOND:numbers_[0-9]+]](dense<[3, 0, [[Y]], 2, 0, 0, 3, 0, 0, {{[0-9]+}}, {{[0-9]+}}, 1, 1, 1, 5]> : tensor<15xi64>)
// TABLE-LABEL: func.func @main
// TABLE-SAME: (%[[CTX:[^:]+]]: !llvm.ptr {tprt.role = "context"}, %[[TABLES:[^:]+]]: !llvm.ptr {tprt.role = "tables"}, %[[RANK:[^:]+]]: index {tprt.role = "rank"}, %[[ARENA:[^:]+]]: memref<384xi8> {tprt.role = "arena"}) -> i32
// TABLE: %[[OWN:.+]] = llvm.alloca
// TABLE: %[[SLOT:.+]] = llvm.getelementptr %[[TABLES]][3]
// TABLE: llvm.store %[[OWN]], %[[SLOT]]
// TABLE: memref.extract_aligned_pointer_as_index %[[ARENA]]
// TABLE: llvm.getelementptr %[[OWN]][0]
// TABLE: %[[T0:.+]] = llvm.mlir.addressof @[[FIRST]]
// TABLE: %[[R0:.+]] = arith.index_cast %[[RANK]] : index to i64
// TABLE: llvm.call @layer_call(%[[CTX]], %[[R0]], %[[TABLES]], %[[T0]])
// TABLE: %[[T1:.+]] = llvm.mlir.addressof @[[SECOND]]
// TABLE: llvm.call @layer_call(%[[CTX]], %{{.+}}, %[[TABLES]], %[[T1]])
// TABLE-LABEL: func.func private @layer
// TABLE-SAME: %[[CTX:[^:]+]]: !llvm.ptr {tprt.role = "context"}, {{.*}}, %[[TABLE:[^:]+]]: memref<6xi64> {tprt.role = "numbers"}) -> i32
// TABLE: %[[M:.+]] = memref.load %[[TABLE]][%c2
// TABLE: %[[MARK:.+]] = arith.trunci %[[M]] : i64 to i32
// TABLE: call @tprt_mark(%[[CTX]], %[[MARK]])
// TABLE: %[[C:.+]] = memref.load %[[TABLE]][%c5
// TABLE: %[[ID:.+]] = arith.trunci %[[C]] : i64 to i32
// TABLE: call @tprt_collective(%[[CTX]], %[[ID]]
// TABLE: llvm.func @layer_call(!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32 attributes {tprt.call_of = @layer}
#relu = loc(fused<{fqn = "layers.0", op = "relu", position = 0 : i64}>["m.py":1:1])
func.func private @kernel_0(%x: memref<48xf32>, %y: memref<48xf32>) {
  return
}
func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<48xf32> {tprt.role = "input"}, %out: memref<48xf32> {tprt.role = "output"}) {
  %y = memref.alloc() : memref<48xf32>
  tprt.call @layer rank %rank ins(%x : memref<48xf32>) outs(%y : memref<48xf32>) origins ["layers.0"] collectives [4]
  tprt.call @layer rank %rank ins(%y : memref<48xf32>) outs(%out : memref<48xf32>) origins ["layers.1"] collectives [5]
  return
}
func.func private @layer(%rank: index {tprt.role = "rank"}, %x: memref<48xf32>, %y: memref<48xf32>) attributes {tprt.repeated} {
  %a = memref.alloc() : memref<48xf32>
  %b = memref.alloc() : memref<48xf32>
  call @kernel_0(%x, %b) : (memref<48xf32>, memref<48xf32>) -> () loc(#relu)
  call @kernel_0(%b, %a) : (memref<48xf32>, memref<48xf32>) -> () loc(#relu)
  tprt.collective 0 into %a : memref<48xf32>
  call @kernel_0(%a, %y) : (memref<48xf32>, memref<48xf32>) -> () loc(#relu)
  return
}
