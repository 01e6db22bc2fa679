// RUN: tp-opt %s --tp-map-kernels-to-gpu --split-input-file --verify-diagnostics

#mod = affine_map<(i) -> (i mod 4)>
#id = affine_map<(i) -> (i)>
func.func @main(%a: memref<4xf32>, %b: memref<8xf32>) {
  call @kernel(%a, %b) : (memref<4xf32>, memref<8xf32>) -> ()
  return
}
func.func private @kernel(%a: memref<4xf32>, %b: memref<8xf32>) {
  // expected-error @+1 {{can't be lowered for CUDA: operand #0 isn't linear in the loops}}
  linalg.generic {indexing_maps = [#mod, #id], iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

#id = affine_map<(i) -> (i)>
func.func @main(%a: memref<4x15000xf32>) {
  call @kernel(%a) : (memref<4x15000xf32>) -> ()
  return
}
func.func private @kernel(%a: memref<4x15000xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %row = memref.alloca() : memref<15000xf32>
  // expected-error @+1 {{can't be lowered for CUDA: the buffers of a row take 60000 bytes of shared memory, which has 45056}}
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.subview %a[%i, 0] [1, 15000] [1, 1] : memref<4x15000xf32> to memref<15000xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<15000xf32, strided<[1], offset: ?>>) outs(%row : memref<15000xf32>) {
    ^bb0(%in: f32, %o: f32):
      linalg.yield %in : f32
    }
  }
  return
}

// -----

func.func @main(%a: memref<4xindex>, %b: memref<4xf32>) {
  call @kernel(%a, %b) : (memref<4xindex>, memref<4xf32>) -> ()
  return
}
func.func private @kernel(%a: memref<4xindex>, %b: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  // expected-error @+1 {{can't be lowered for CUDA: no loop of the nest has iterations that are known to write different elements}}
  scf.for %i = %c0 to %c4 step %c1 {
    %at = memref.load %a[%i] : memref<4xindex>
    memref.store %one, %b[%at] : memref<4xf32>
  }
  return
}

// -----

func.func @main(%a: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{can't be lowered for CUDA: it touches the device's memory outside of a kernel}}
  %0 = memref.load %a[%c0] : memref<4xf32>
  return
}

// -----

memref.global "private" constant @table : memref<4xf32> = dense<1.0>
func.func @main(%a: memref<4xf32>) {
  %t = memref.get_global @table : memref<4xf32>
  // expected-error @+1 {{can't be lowered for CUDA: it touches the device's memory outside of a kernel}}
  tprt.collective 0 %t : memref<4xf32> into %a : memref<4xf32>
  return
}

// -----

#id = affine_map<(i) -> (i)>
func.func @main(%a: memref<4x16xf32>, %row: memref<16xf32>) {
  call @kernel(%a, %row) : (memref<4x16xf32>, memref<16xf32>) -> ()
  return
}
func.func private @kernel(%a: memref<4x16xf32>, %row: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.subview %a[%i, 0] [1, 16] [1, 1] : memref<4x16xf32> to memref<16xf32, strided<[1], offset: ?>>
    // expected-error @+1 {{can't be lowered for CUDA: all rows write the same elements}}
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<16xf32, strided<[1], offset: ?>>) outs(%row : memref<16xf32>) {
    ^bb0(%in: f32, %o: f32):
      linalg.yield %in : f32
    }
  }
  return
}
