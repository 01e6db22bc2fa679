// RUN: tp-opt %s --convert-program-to-llvm --split-input-file | FileCheck %s

// CHECK: llvm.func internal @main(%{{.+}}: !llvm.ptr, %{{.+}}: i64, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr) -> i32 attributes {{.*}}passthrough = ["noinline", "optnone"]
func.func @main(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                %x: memref<8xf32> {tprt.role = "input"}, %w: memref<8xf32> {tprt.role = "parameter"},
                %y: memref<8xf32> {tprt.role = "output"}, %arena: memref<64xi8> {tprt.role = "arena"}) -> i32 {
  call @kernel_0(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  %0 = arith.constant 0 : i32
  return %0 : i32
}

// CHECK: llvm.func internal @kernel_0(%{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: !llvm.ptr) attributes {{.*}}passthrough = ["noinline"]
func.func private @kernel_0(%x: memref<8xf32> {llvm.noalias}, %y: memref<8xf32>) {
  return
}

// CHECK: llvm.func @tpx_main(%[[CTX:.+]]: !llvm.ptr, %[[RANK:.+]]: i64, %[[INPUTS:.+]]: !llvm.ptr, %[[PARAMETERS:.+]]: !llvm.ptr, %[[OUTPUTS:.+]]: !llvm.ptr, %[[ARENA:.+]]: !llvm.ptr) -> i32 attributes {{.*}}passthrough = ["noinline", "optnone"]
// CHECK: %[[XSLOT:.+]] = llvm.getelementptr %[[INPUTS]][0]
// CHECK: %[[X:.+]] = llvm.load %[[XSLOT]]
// CHECK: %[[WSLOT:.+]] = llvm.getelementptr %[[PARAMETERS]][0]
// CHECK: %[[W:.+]] = llvm.load %[[WSLOT]]
// CHECK: %[[YSLOT:.+]] = llvm.getelementptr %[[OUTPUTS]][0]
// CHECK: %[[Y:.+]] = llvm.load %[[YSLOT]]
// CHECK: %[[STATUS:.+]] = llvm.call @main(%[[CTX]], %[[RANK]], %[[X]], %[[W]], %[[Y]], %[[ARENA]])
// CHECK: llvm.return %[[STATUS]]

// -----

// A program that calls layers takes the tables of addresses, and only the buffers that it uses itself:
// here the third input. The function for calls finds the layer's two buffers by six numbers.

// CHECK: llvm.func internal @main(%{{.+}}: !llvm.ptr, %{{.+}}: i64, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr) -> i32
func.func @main(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                %tables: !llvm.ptr {tprt.role = "tables"},
                %x: memref<8xf32> {tprt.role = "input", tprt.place = 2 : i64}) -> i32 {
  %numbers = llvm.mlir.zero : !llvm.ptr
  %0 = arith.index_cast %rank : index to i64
  %1 = llvm.call @layer_call(%ctx, %0, %tables, %numbers) : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
  return %1 : i32
}
func.func private @layer(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                         %x: memref<8xf32>, %y: memref<8xf32>, %numbers: memref<1xi64> {tprt.role = "numbers"}) -> i32
    attributes {tprt.repeated} {
  %0 = arith.constant 0 : i32
  return %0 : i32
}
// CHECK: llvm.func internal @layer_call(%[[CTX:.+]]: !llvm.ptr, %[[RANK:.+]]: i64, %[[TABLES:.+]]: !llvm.ptr, %[[NUMBERS:.+]]: !llvm.ptr) -> i32
// CHECK-DAG: %[[S0:.+]] = llvm.getelementptr %[[NUMBERS]][0] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG: %[[T:.+]] = llvm.load %[[S0]] : !llvm.ptr -> i64
// CHECK-DAG: %[[S1:.+]] = llvm.getelementptr %[[NUMBERS]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG: %[[P:.+]] = llvm.load %[[S1]] : !llvm.ptr -> i64
// CHECK-DAG: %[[S2:.+]] = llvm.getelementptr %[[NUMBERS]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG: %[[B:.+]] = llvm.load %[[S2]] : !llvm.ptr -> i64
// CHECK: %[[TSLOT:.+]] = llvm.getelementptr %[[TABLES]][%[[T]]] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[TABLE:.+]] = llvm.load %[[TSLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[PSLOT:.+]] = llvm.getelementptr %[[TABLE]][%[[P]]] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[BASE:.+]] = llvm.load %[[PSLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[X:.+]] = llvm.getelementptr %[[BASE]][%[[B]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK: llvm.getelementptr %[[NUMBERS]][3]
// CHECK: llvm.getelementptr %[[NUMBERS]][5]
// CHECK: %[[Y:.+]] = llvm.getelementptr %{{.+}}[%{{.+}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK: %[[REST:.+]] = llvm.getelementptr %[[NUMBERS]][6]
// CHECK: %[[STATUS:.+]] = llvm.call @layer(%[[CTX]], %[[RANK]], %[[X]], %[[Y]], %[[REST]])
// CHECK: llvm.return %[[STATUS]]
llvm.func @layer_call(!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32 attributes {tprt.call_of = @layer}

// CHECK: llvm.func @tpx_main(%{{.+}}: !llvm.ptr, %{{.+}}: i64, %[[INPUTS:.+]]: !llvm.ptr, %[[PARAMETERS:.+]]: !llvm.ptr, %[[OUTPUTS:.+]]: !llvm.ptr, %{{.+}}: !llvm.ptr)
// CHECK: %[[TABLES:.+]] = llvm.alloca
// CHECK: %[[SLOT0:.+]] = llvm.getelementptr %[[TABLES]][0]
// CHECK: llvm.store %[[INPUTS]], %[[SLOT0]]
// CHECK: %[[SLOT1:.+]] = llvm.getelementptr %[[TABLES]][1]
// CHECK: llvm.store %[[PARAMETERS]], %[[SLOT1]]
// CHECK: %[[SLOT2:.+]] = llvm.getelementptr %[[TABLES]][2]
// CHECK: llvm.store %[[OUTPUTS]], %[[SLOT2]]
// CHECK: %[[XSLOT:.+]] = llvm.getelementptr %[[INPUTS]][2]
// CHECK: %[[X:.+]] = llvm.load %[[XSLOT]]
// CHECK: llvm.call @main(%{{.+}}, %{{.+}}, %[[TABLES]], %[[X]])

// -----

// The entry calls the rank's program.

// CHECK: llvm.func @tpx_main(%{{.+}}: !llvm.ptr, %[[RANK:[a-z0-9]+]]: i64
// CHECK-NEXT: llvm.switch %[[RANK]] : i64, ^[[LONG:.+]] [
// CHECK-NEXT: 0: ^[[LONG]],
// CHECK-NEXT: 2: ^[[LONG]],
// CHECK-NEXT: 1: ^[[SHORT:.+]]
// CHECK: ^[[LONG]]:
// CHECK: llvm.call @long
// CHECK: ^[[SHORT]]:
// CHECK: llvm.call @short
func.func @long(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                %x: memref<8xf32> {tprt.role = "input"}) -> i32 attributes {tp.ranks = array<i64: 0, 2>} {
  %0 = arith.constant 0 : i32
  return %0 : i32
}
func.func @short(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                 %x: memref<4xf32> {tprt.role = "input"}) -> i32 attributes {tp.ranks = array<i64: 1>} {
  %0 = arith.constant 0 : i32
  return %0 : i32
}

// -----

// A CPU without instructions for bf16 can only move its bits.
// CHECK: llvm.mlir.global private constant @table(dense<[16256, 16384]> : tensor<2xi16>)
// CHECK-NOT: bf16
// CHECK: llvm.func internal @kernel_0
// CHECK: %[[ONE:.+]] = llvm.mlir.constant(16256 : i16) : i16
// CHECK: %[[X:.+]] = llvm.load %{{.+}} : !llvm.ptr -> i16
// CHECK: llvm.select %{{.+}}, %[[ONE]], %[[X]] : i1, i16
// CHECK-NOT: bf16
memref.global "private" constant @table : memref<2xbf16> = dense<[1.0, 2.0]>
func.func @main(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                %x: memref<2xbf16> {tprt.role = "input"}, %y: memref<2xbf16> {tprt.role = "output"}) -> i32 {
  call @kernel_0(%x, %y) : (memref<2xbf16>, memref<2xbf16>) -> ()
  %0 = arith.constant 0 : i32
  return %0 : i32
}
func.func private @kernel_0(%x: memref<2xbf16>, %y: memref<2xbf16>) {
  %i = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %table = memref.get_global @table : memref<2xbf16>
  %a = memref.load %x[%i] : memref<2xbf16>
  %t = memref.load %table[%i] : memref<2xbf16>
  %bits = arith.bitcast %t : bf16 to i16
  %zero = arith.constant 0 : i16
  %is = arith.cmpi ne, %bits, %zero : i16
  %s = arith.select %is, %one, %a : bf16
  memref.store %s, %y[%i] : memref<2xbf16>
  return
}
