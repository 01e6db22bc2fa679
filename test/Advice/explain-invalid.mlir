// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-explain 2>&1 | FileCheck %s --check-prefix=MESH
// MESH: error: no tp.mesh to explain placements over; declare one, or give a plan (plan=FILE)
// RUN: not tp-opt %t/meshed.mlir --tp-explain=plan=%t/plan.yaml 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: the model has been given a plan before
// TWICE: note: its mesh is declared here
// RUN: not tp-opt %t/model.mlir --tp-explain=plan=%t/missing.yaml 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: missing.yaml{{.*}}error:
// RUN: not tp-opt %t/meshed.mlir --tp-explain="value=fc2" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: no value with a placement has the name 'fc2'
// RUN: not tp-opt %t/meshed.mlir --tp-explain="file=%t/missing/e.txt" 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: cannot write '{{.*}}e.txt': No such file or directory
// RUN: not tp-opt %t/recursion.mlir --tp-explain 2>&1 | FileCheck %s --check-prefix=RECURSION
// RECURSION: error: every function is called by another; recursion can't be parallelized
// RUN: %python %S/../tools/tp-run/Inputs/expect_exit.py 2 tp-opt --tp-explain="format=xml" %t/meshed.mlir 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: 'xml'

//--- plan.yaml
mesh: {tp: 2}
plan:
  fc: ColwiseParallel

//--- model.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}

//--- meshed.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}

//--- recursion.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = func.call @main(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
