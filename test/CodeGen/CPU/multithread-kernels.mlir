// RUN: tp-opt %s --tp-multithread-kernels --split-input-file --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --tp-multithread-kernels=min-nanoseconds=1000000000 --split-input-file | FileCheck %s --check-prefix=SMALL

// SMALL-NOT: tprt.parallel
// SMALL: call @rows
// SMALL-NOT: tprt.parallel

// Rows of an elementwise op: all loops but the contiguous one are joined, as far
// as it takes for enough iterations. The second call is of the same kernel; a
// call without a mark, and one that its mark says is short, stay.

// CHECK-LABEL: func.func @main
// CHECK: tprt.parallel @rows(%{{.+}}, %{{.+}}) count 64 nanoseconds 90000 : memref<4x16x512xf32>, memref<4x16x512xf32>
// CHECK-NEXT: tprt.mark 0
// CHECK-NEXT: tprt.parallel @rows
// CHECK: call @short
// CHECK: call @unmarked
// CHECK: func.func private @rows(%[[X:.+]]: memref<4x16x512xf32>, %[[Y:.+]]: memref<4x16x512xf32>, %[[BEGIN:.+]]: index, %[[END:.+]]: index)
// CHECK: scf.for %[[I:.+]] = %[[BEGIN]] to %[[END]] step %c1
// CHECK: %[[MINOR:.+]] = arith.remui %[[I]], %c16
// CHECK: %[[MAJOR:.+]] = arith.divui %[[I]], %c16
// CHECK-NOT: scf.for
// CHECK: memref.subview %[[X]][%[[MAJOR]], %[[MINOR]], 0] [1, 1, 512]
// CHECK: memref.subview %[[Y]][%[[MAJOR]], %[[MINOR]], 0] [1, 1, 512]
// CHECK: linalg.generic

#id = affine_map<(a, b, c) -> (a, b, c)>
module attributes {tprt.manifest = {ops = [{bytes = 1400000 : i64, flops = 20000 : i64}, {bytes = 8000 : i64, flops = 0 : i64}]}} {
  func.func @main(%x: memref<4x16x512xf32>, %y: memref<4x16x512xf32>) {
    tprt.mark 0
    call @rows(%x, %y) : (memref<4x16x512xf32>, memref<4x16x512xf32>) -> ()
    tprt.mark 0
    call @rows(%y, %x) : (memref<4x16x512xf32>, memref<4x16x512xf32>) -> ()
    tprt.mark 1
    call @short(%x, %y) : (memref<4x16x512xf32>, memref<4x16x512xf32>) -> ()
    call @unmarked(%x, %y) : (memref<4x16x512xf32>, memref<4x16x512xf32>) -> ()
    return
  }
  func.func private @rows(%x: memref<4x16x512xf32>, %y: memref<4x16x512xf32>) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<4x16x512xf32>) outs(%y : memref<4x16x512xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    return
  }
  func.func private @short(%x: memref<4x16x512xf32>, %y: memref<4x16x512xf32>) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<4x16x512xf32>) outs(%y : memref<4x16x512xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @unmarked(%x: memref<4x16x512xf32>, %y: memref<4x16x512xf32>) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<4x16x512xf32>) outs(%y : memref<4x16x512xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
}

// -----

// A sum over rows is shared out by blocks of columns; a vector's elements by
// blocks, the last one shorter; a number that all elements add to isn't at all.

// CHECK-LABEL: func.func @main
// CHECK: tprt.parallel @columns{{.*}} count 8
// CHECK: tprt.parallel @vector{{.*}} count 63
// CHECK: call @number
// CHECK: func.func private @columns(%[[X:.+]]: memref<4096x512xf32>, %[[Y:.+]]: memref<512xf32>, %[[BEGIN:.+]]: index, %[[END:.+]]: index)
// CHECK: scf.for %[[I:.+]] = %[[BEGIN]] to %[[END]] step %c1
// CHECK: %[[AT:.+]] = arith.muli %[[I]], %c64
// CHECK: memref.subview %[[X]][0, %[[AT]]] [4096, 64] [1, 1]
// CHECK: memref.subview %[[Y]][%[[AT]]] [64] [1]
// CHECK: func.func private @vector(%[[X:.+]]: memref<100000xf32>, %[[BEGIN:.+]]: index, %[[END:.+]]: index)
// CHECK: scf.for %[[I:.+]] = %[[BEGIN]] to %[[END]] step %c1
// CHECK: %[[AT:.+]] = arith.muli %[[I]], %c1600
// CHECK: %[[SIZE:.+]] = affine.min {{.+}}(%[[AT]])
// CHECK: memref.subview %[[X]][%[[AT]]] [%[[SIZE]]] [1]

#whole = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>
#one = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
module attributes {tprt.manifest = {ops = [{bytes = 8000000 : i64, flops = 0 : i64}]}} {
  func.func @main(%x: memref<4096x512xf32>, %y: memref<512xf32>, %z: memref<100000xf32>, %s: memref<f32>) {
    tprt.mark 0
    call @columns(%x, %y) : (memref<4096x512xf32>, memref<512xf32>) -> ()
    tprt.mark 0
    call @vector(%z) : (memref<100000xf32>) -> ()
    tprt.mark 0
    call @number(%z, %s) : (memref<100000xf32>, memref<f32>) -> ()
    return
  }
  func.func private @columns(%x: memref<4096x512xf32>, %y: memref<512xf32>) {
    linalg.generic {indexing_maps = [#whole, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4096x512xf32>) outs(%y : memref<512xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %a, %o : f32
      linalg.yield %n : f32
    }
    return
  }
  func.func private @vector(%x: memref<100000xf32>) {
    linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
        ins(%x : memref<100000xf32>) outs(%x : memref<100000xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    return
  }
  func.func private @number(%x: memref<100000xf32>, %s: memref<f32>) {
    linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
        ins(%x : memref<100000xf32>) outs(%s : memref<f32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %a, %o : f32
      linalg.yield %n : f32
    }
    return
  }
}

// -----

// A nest over rows: each part has the stack for itself. What one iteration leaves
// on the stack for the next one, or writes where others read, is no row of its own.

// CHECK-LABEL: func.func @main
// CHECK: tprt.parallel @own(%{{.+}}, %{{.+}}, %{{.+}}) count 4096 nanoseconds 500000 : memref<4096x512xf32>, memref<4096x512xf32>, memref<512xf32>
// CHECK: call @carried
// CHECK: call @reversed
// CHECK: call @common
// CHECK: func.func private @own({{.+}}, %[[BEGIN:[^ ]+]]: index, %[[END:[^ ]+]]: index)
// CHECK: memref.alloca
// CHECK: scf.for %{{.+}} = %[[BEGIN]] to %[[END]]

#id = affine_map<(i) -> (i)>
#sum = affine_map<(i) -> ()>
!row = memref<512xf32, strided<[1], offset: ?>>
module attributes {tprt.manifest = {ops = [{bytes = 8000000 : i64, flops = 0 : i64}]}} {
  func.func @main(%x: memref<4096x512xf32>, %y: memref<4096x512xf32>, %v: memref<512xf32>) {
    tprt.mark 0
    call @own(%x, %y, %v) : (memref<4096x512xf32>, memref<4096x512xf32>, memref<512xf32>) -> ()
    tprt.mark 0
    call @carried(%x, %y) : (memref<4096x512xf32>, memref<4096x512xf32>) -> ()
    tprt.mark 0
    call @reversed(%x) : (memref<4096x512xf32>) -> ()
    tprt.mark 0
    call @common(%x, %v) : (memref<4096x512xf32>, memref<512xf32>) -> ()
    return
  }
  func.func private @own(%x: memref<4096x512xf32>, %y: memref<4096x512xf32>, %v: memref<512xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4096 = arith.constant 4096 : index
    %zero = arith.constant 0.0 : f32
    %s = memref.alloca() : memref<f32>
    scf.for %i = %c0 to %c4096 step %c1 {
      %a = memref.subview %x[%i, 0] [1, 512] [1, 1] : memref<4096x512xf32> to !row
      %b = memref.subview %y[%i, 0] [1, 512] [1, 1] : memref<4096x512xf32> to !row
      linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%s : memref<f32>) {
      ^bb0(%o: f32):
        linalg.yield %zero : f32
      }
      linalg.generic {indexing_maps = [#id, #sum], iterator_types = ["reduction"]} ins(%a : !row) outs(%s : memref<f32>) {
      ^bb0(%p: f32, %o: f32):
        %n = arith.addf %p, %o : f32
        linalg.yield %n : f32
      }
      linalg.generic {indexing_maps = [#id, #sum, #id, #id], iterator_types = ["parallel"]}
          ins(%a, %s, %v : !row, memref<f32>, memref<512xf32>) outs(%b : !row) {
      ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
        %n = arith.divf %p, %q : f32
        %m = arith.mulf %n, %r : f32
        linalg.yield %m : f32
      }
    }
    return
  }
  func.func private @carried(%x: memref<4096x512xf32>, %y: memref<4096x512xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4096 = arith.constant 4096 : index
    %s = memref.alloca() : memref<f32>
    scf.for %i = %c0 to %c4096 step %c1 {
      %a = memref.subview %x[%i, 0] [1, 512] [1, 1] : memref<4096x512xf32> to !row
      linalg.generic {indexing_maps = [#id, #sum], iterator_types = ["reduction"]} ins(%a : !row) outs(%s : memref<f32>) {
      ^bb0(%p: f32, %o: f32):
        %n = arith.addf %p, %o : f32
        linalg.yield %n : f32
      }
    }
    return
  }
  func.func private @reversed(%x: memref<4096x512xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4095 = arith.constant 4095 : index
    %c4096 = arith.constant 4096 : index
    scf.for %i = %c0 to %c4096 step %c1 {
      %j = arith.subi %c4095, %i : index
      %a = memref.subview %x[%i, 0] [1, 512] [1, 1] : memref<4096x512xf32> to !row
      %b = memref.subview %x[%j, 0] [1, 512] [1, 1] : memref<4096x512xf32> to !row
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : !row) outs(%b : !row) {
      ^bb0(%p: f32, %o: f32):
        linalg.yield %p : f32
      }
    }
    return
  }
  func.func private @common(%x: memref<4096x512xf32>, %v: memref<512xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4096 = arith.constant 4096 : index
    scf.for %i = %c0 to %c4096 step %c1 {
      %a = memref.subview %x[%i, 0] [1, 512] [1, 1] : memref<4096x512xf32> to !row
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : !row) outs(%v : memref<512xf32>) {
      ^bb0(%p: f32, %o: f32):
        %n = arith.addf %p, %o : f32
        linalg.yield %n : f32
      }
    }
    return
  }
}

// -----

// A kernel has one signature: it stays as it is where one of its calls would, without a mark, in a region, or in a
// function that is no entry program.

// CHECK-LABEL: func.func @main
// CHECK-NOT: tprt.parallel
// CHECK: func.func private @sometimes_marked(%{{[a-z0-9]+}}: memref<512x512xf32>, %{{[a-z0-9]+}}: memref<512x512xf32>) {
// CHECK: func.func private @also_in_loop(%{{[a-z0-9]+}}: memref<512x512xf32>, %{{[a-z0-9]+}}: memref<512x512xf32>) {
// CHECK: func.func private @also_elsewhere(%{{[a-z0-9]+}}: memref<512x512xf32>, %{{[a-z0-9]+}}: memref<512x512xf32>) {

#id = affine_map<(a, b) -> (a, b)>
!b = memref<512x512xf32>
module attributes {tprt.manifest = {ops = [{bytes = 2097152 : i64, flops = 0 : i64}]}} {
  func.func @main(%x: !b, %y: !b) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    tprt.mark 0
    call @sometimes_marked(%x, %y) : (!b, !b) -> ()
    call @sometimes_marked(%x, %y) : (!b, !b) -> ()
    tprt.mark 0
    call @also_in_loop(%x, %y) : (!b, !b) -> ()
    scf.for %i = %c0 to %c2 step %c1 {
      tprt.mark 0
      func.call @also_in_loop(%x, %y) : (!b, !b) -> ()
    }
    tprt.mark 0
    call @also_elsewhere(%x, %y) : (!b, !b) -> ()
    return
  }
  func.func @other(%x: !b, %y: !b) {
    tprt.mark 0
    call @also_elsewhere(%x, %y) : (!b, !b) -> ()
    return
  }
  func.func private @sometimes_marked(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @also_in_loop(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @also_elsewhere(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
}

// -----

// Without flops and bytes in the manifest, a kernel stays a call.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: call @
// CHECK: tprt.parallel @known

#id = affine_map<(a, b) -> (a, b)>
!b = memref<512x512xf32>
module attributes {tprt.manifest = {ops = [{bytes = 2097152 : i64, flops = 0 : i64}, {bytes = 2097152 : i64}, {flops = 0 : i64}, "?"]}} {
  func.func @main(%x: !b, %y: !b) {
    tprt.mark 1
    call @no_flops(%x, %y) : (!b, !b) -> ()
    tprt.mark 2
    call @no_bytes(%x, %y) : (!b, !b) -> ()
    tprt.mark 3
    call @no_dictionary(%x, %y) : (!b, !b) -> ()
    tprt.mark 4
    call @no_entry(%x, %y) : (!b, !b) -> ()
    tprt.mark 0
    call @known(%x, %y) : (!b, !b) -> ()
    return
  }
  func.func private @no_flops(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @no_bytes(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @no_dictionary(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @no_entry(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
  func.func private @known(%x: !b, %y: !b) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !b) outs(%y : !b) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    return
  }
}

// -----

// The source of these rows is another in each iteration: all of them write to the last one.

// CHECK-LABEL: func.func @main
// CHECK: call @moving

!row = memref<1x512xf32, strided<[512, 1], offset: ?>>
!rest = memref<?x512xf32, strided<[512, 1], offset: ?>>
#id2 = affine_map<(i, j) -> (i, j)>
module attributes {tprt.manifest = {ops = [{bytes = 2097152 : i64, flops = 0 : i64}]}} {
  func.func @main(%x: memref<512x512xf32>) {
    tprt.mark 0
    call @moving(%x) : (memref<512x512xf32>) -> ()
    return
  }
  func.func private @moving(%x: memref<512x512xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c511 = arith.constant 511 : index
    %c512 = arith.constant 512 : index
    scf.for %i = %c0 to %c512 step %c1 {
      %j = arith.subi %c511, %i : index
      %n = arith.addi %i, %c1 : index
      %rest = memref.subview %x[%j, 0] [%n, 512] [1, 1] : memref<512x512xf32> to !rest
      %a = memref.subview %rest[%i, 0] [1, 512] [1, 1] : !rest to !row
      linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%a : !row) {
      ^bb0(%o: f32):
        %m = arith.addf %o, %o : f32
        linalg.yield %m : f32
      }
    }
    return
  }
}
