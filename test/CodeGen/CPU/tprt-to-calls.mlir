// RUN: tp-opt %s --convert-tprt-to-calls --canonicalize | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @[[ARGS:gemm_args_[0-9]+]]() {{.*}} !llvm.struct<(array<2 x i32>, array<23 x i64>)>
// CHECK-DAG: llvm.mlir.constant(dense<[0, 1]> : tensor<2xi32>)
// CHECK-DAG: llvm.mlir.constant(dense<[1, 1, 8, 16, 4, 4, 1, 0, 0, 1, 4, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0]> : tensor<23xi64>)

// Behind C's strides the activation, and those of the addend and the factor.
// CHECK-DAG: llvm.mlir.constant(dense<[1, 1, 8, 16, 4, 4, 1, 0, 0, 1, 4, 0, 0, 16, 0, 0, 4, 16, 1, 2, 32, 3, 4]> : tensor<23xi64>)

// CHECK-DAG: llvm.mlir.global internal constant @[[WHAT:what_[0-9]+]]("ids: embedding\00")

// Scale and causal, the last four loops, batches; strides of query, key, value, no mask, output.
// CHECK-DAG: llvm.mlir.constant(dense<[4602678819172646912, 1, 8, 16, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 8]> : tensor<64xi64>)

// And of its gradient: no causal mask, and the strides of the gradients of query, key and value at the end.
// CHECK-DAG: llvm.mlir.constant(dense<[4602678819172646912, 0, 8, 16, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1]> : tensor<94xi64>)

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (e, t)>
#n = affine_map<(t, s, d, e) -> ()>
#l = affine_map<(t, s, d, e) -> (t)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[CTX:.+]]: !llvm.ptr {tprt.role = "context"}, %[[IDS:[^:]+]]: memref<2x3xi64>
// CHECK-SAME: -> i32
func.func @main(%ids: memref<2x3xi64>, %a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>, %o: memref<4x8xf32>, %n: memref<i64>, %l: memref<8xf32>) {
  // The last index is looked at first, so that the first bad one is what stays.
  // CHECK: %[[BAD:.+]]:2 = scf.for
  // CHECK: scf.for
  // CHECK: %[[INDEX:.+]] = memref.load %[[IDS]]
  // CHECK: arith.cmpi uge, %[[INDEX]], %c10
  // CHECK: scf.if %[[BAD]]#1 -> (i32)
  // CHECK: func.call @tprt_index_error(%[[CTX]], %{{.+}}, %[[BAD]]#0, %c10
  // CHECK: cf.cond_br %{{.+}}, ^[[EXIT:bb[0-9]+]](%{{.+}} : i32), ^[[GEMM:bb[0-9]+]]
  tprt.check_index %ids below 10 what "ids: embedding" : memref<2x3xi64>
  // CHECK: ^[[GEMM]]:
  // CHECK: call @tprt_gemm(%[[CTX]], {{.*}}, %[[NULL:[0-9]+]], %[[NULL]], %[[NULL]])
  // CHECK: cf.cond_br %{{.+}}, ^[[EXIT]]
  tprt.gemm %a, %b into %c accumulate sizes [8, 16, 4] batch [1, 1] a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32>
  // CHECK-COUNT-3: llvm.inttoptr
  // CHECK: %[[ADDEND:.+]] = llvm.inttoptr
  // CHECK: %[[FACTOR:.+]] = llvm.inttoptr
  // CHECK: call @tprt_gemm(%[[CTX]], {{.*}}, %[[NULL]], %[[ADDEND]], %[[FACTOR]])
  tprt.gemm %a, %b into %c addend %a [16, 1, 2] activation silu factor %b [32, 3, 4] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> addend memref<8x4xf32> factor memref<16x4xf32>
  // In place: one pointer twice.
  // CHECK: call @tprt_collective(%[[CTX]], %c3_i32, %[[P:.+]], %[[P]])
  tprt.collective 3 into %c : memref<8x16xf32>
  // CHECK: %[[STARTED:.+]] = call @tprt_collective_start(%[[CTX]], %c4_i32, %{{.+}}, %{{.+}}) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
  // CHECK: arith.cmpi ne, %[[STARTED]]
  tprt.collective_start 4 %a : memref<8x4xf32> into %o : memref<4x8xf32>
  // CHECK: %[[DONE:.+]] = call @tprt_collective_wait(%[[CTX]], %c4_i32) : (!llvm.ptr, i32) -> i32
  // CHECK: arith.cmpi ne, %[[DONE]]
  tprt.collective_wait 4 of %a : memref<8x4xf32> into %o : memref<4x8xf32>
  // CHECK: call @tprt_attention(%[[CTX]],
  tprt.attention causal %a, %b, %b into %o scale 0.5 maps [#q, #k, #v, #o]
    : memref<8x4xf32>, memref<16x4xf32>, memref<16x4xf32> into memref<4x8xf32>
  // CHECK: call @tprt_attention_gradient(%[[CTX]],
  tprt.attention_gradient %a, %b, %b gradient %o into %a, %b, %b scale 0.5 maps [#q, #k, #v, #o, #q, #k, #v]
    : memref<8x4xf32>, memref<16x4xf32>, memref<16x4xf32> gradient memref<4x8xf32>
      into memref<8x4xf32>, memref<16x4xf32>, memref<16x4xf32>
  // Of a block, the log-sum-exp; the offset's address is null unless the attention is causal.
  // CHECK: call @tprt_attention_block(%[[CTX]],
  tprt.attention_block %a, %b, %b offset %n into %o, %l scale 0.5 maps [#q, #k, #v, #n, #o, #l]
    : memref<8x4xf32>, memref<16x4xf32>, memref<16x4xf32> offset memref<i64> into memref<4x8xf32>, memref<8xf32>
  // CHECK: call @tprt_attention_block_gradient(%[[CTX]],
  tprt.attention_block_gradient %a, %b, %b gradient %o lse %l delta %l into %a, %b, %b scale 0.5
      maps [#q, #k, #v, #o, #l, #l, #q, #k, #v]
    : memref<8x4xf32>, memref<16x4xf32>, memref<16x4xf32> gradient memref<4x8xf32> lse memref<8xf32> delta memref<8xf32>
      into memref<8x4xf32>, memref<16x4xf32>, memref<16x4xf32>
  // CHECK: ^[[EXIT]](%[[STATUS:.+]]: i32):
  // CHECK: return %[[STATUS]] : i32
  return
}
