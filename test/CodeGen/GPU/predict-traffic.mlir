// RUN: tp-opt %s --tp-map-kernels-to-gpu --canonicalize --cse --tp-predict-traffic --remarks-filter=tp-predict-traffic --remark-format=emitRemark -o %t 2>&1 | FileCheck %s
// RUN: tp-opt %s --tp-map-kernels-to-gpu --canonicalize --cse --tp-predict-traffic=max-blocks=2 --remarks-filter=tp-predict-traffic --remark-format=emitRemark -o %t 2>&1 | FileCheck %s

// Bytes that each kernel reads and writes: 2 × 64 KiB of @copy, also where only some of its blocks are counted.
// CHECK: copy {{.*}}Blocks=16, Launches=2, LeastBytes=131072, LeastSharedPasses=0, MovedBytes=131072, RequestedBytes=131072, SharedPasses=0, Threads=256

// Every second element: all sectors of the source are read for half of what is in them, and each is asked for four times.
// CHECK: stride {{.*}}Blocks=8, Launches=1, LeastBytes=98304, {{.*}}MovedBytes=98304, RequestedBytes=294912,

// A transpose by tiles reads and writes each sector once; no two threads want different words of one bank.
// CHECK: transpose {{.*}}LeastBytes=131072, LeastSharedPasses=1024, MovedBytes=131072, RequestedBytes=131072, SharedPasses=1024

#id = affine_map<(i) -> (i)>
#double = affine_map<(i) -> (i * 2)>
#id2 = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>

func.func @main(%a: memref<16384xf32>, %b: memref<16384xf32>, %c: memref<128x128xf32>, %d: memref<128x128xf32>, %e: memref<8192xf32>) {
  call @copy(%a, %b) : (memref<16384xf32>, memref<16384xf32>) -> ()
  call @copy(%b, %a) : (memref<16384xf32>, memref<16384xf32>) -> ()
  call @stride(%a, %e) : (memref<16384xf32>, memref<8192xf32>) -> ()
  call @transpose(%c, %d) : (memref<128x128xf32>, memref<128x128xf32>) -> ()
  return
}
func.func private @copy(%a: memref<16384xf32>, %b: memref<16384xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<16384xf32>) outs(%b : memref<16384xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }
  return
}
func.func private @stride(%a: memref<16384xf32>, %b: memref<8192xf32>) {
  linalg.generic {indexing_maps = [#double, #id], iterator_types = ["parallel"]} ins(%a : memref<16384xf32>) outs(%b : memref<8192xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }
  return
}
func.func private @transpose(%a: memref<128x128xf32>, %b: memref<128x128xf32>) {
  linalg.generic {indexing_maps = [#swap, #id2], iterator_types = ["parallel", "parallel"]} ins(%a : memref<128x128xf32>) outs(%b : memref<128x128xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }
  return
}
