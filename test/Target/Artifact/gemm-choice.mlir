// The library for a large product is measured once, and kept beside the artifact:
// two runs give the same bits. A file that holds no choices is replaced, with a
// note; where none can be kept, tiles compute everything.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %S/Inputs/gemm_choice.py
// RUN: tp-compile %s -o p.tpx
// RUN: tp-compile %s --emit=manifest -o - | FileCheck %s --check-prefix=MANIFEST
// RUN: tp-run p.tpx --weights w.safetensors --input x=x.npy --output one.npy --expect y=y.npy --rtol 1e-4 --atol 1e-4 --profile --json one.json 2> err.txt
// RUN: FileCheck %s --input-file=p.tpx.gemm.json
// RUN: FileCheck %s --input-file=one.json --check-prefix=REPORT
// RUN: cp p.tpx.gemm.json kept.json
// RUN: tp-run p.tpx --weights w.safetensors --input x=x.npy --output two.npy 2>> err.txt
// RUN: cmp one.npy two.npy && cmp p.tpx.gemm.json kept.json && test ! -s err.txt

// RUN: echo '{"schema": 1' > p.tpx.gemm.json
// RUN: tp-run p.tpx --weights w.safetensors --input x=x.npy --output three.npy 2>&1 | FileCheck %s --check-prefix=CORRUPT
// RUN: FileCheck %s --input-file=p.tpx.gemm.json

// RUN: tp-run p.tpx --weights w.safetensors --input x=x.npy --expect y=y.npy --rtol 1e-4 --atol 1e-4 --gemm=openblas --json - | FileCheck %s --check-prefix=FORCED
// RUN: not tp-run p.tpx --weights w.safetensors --input x=x.npy --gemm=mkl 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: rm p.tpx.gemm.json && mkdir p.tpx.gemm.json
// RUN: tp-run p.tpx --weights w.safetensors --input x=x.npy --expect y=y.npy --rtol 1e-4 --atol 1e-4 2>&1 | FileCheck %s --check-prefix=UNKEPT

// MANIFEST: "product":{"a":[96,1,0,0],"b":[1,96,0,0],"batch":[1,1],"c":[160,0,0],"sizes":[128,160,96],"weight":true}
// CHECK: "libraries": {
// CHECK: "openblas": "OpenBLAS
// CHECK: "a": "rows"
// CHECK: "b": "columns"
// CHECK: "k": 96
// CHECK: "library": "{{tiles|openblas|onednn}}"
// CHECK: "m": 128
// CHECK: "n": 160
// CHECK: "tiles": {{[0-9.e-]+}}
// CHECK: "weight": true
// CHECK: "schema": 1
// REPORT: "gemm": {
// REPORT: "file": "p.tpx.gemm.json"
// REPORT: "library": "{{tiles|openblas|onednn}}"
// REPORT: "profile": {
// REPORT: "kind": "gemm",
// REPORT: "library": "{{tiles|openblas|onednn}}"
// CORRUPT: tp-run: note: 'p.tpx.gemm.json' holds no choices: {{.*}}parse error
// FORCED: "gemm": {
// FORCED: "products": [],
// FORCED-NEXT: "library": "openblas"
// UNKNOWN: --gemm: mkl not in {measure,tiles,openblas,onednn}
// UNKEPT: tp-run: note: 'p.tpx.gemm.json' holds no choices: 
func.func @main(%x: tensor<128x96xf32> {tp.name = "x"}) -> (tensor<128x160xf32> {tp.name = "y"}) {
  %w = nn.parameter "w" : tensor<160x96xf32>
  %y = nn.linear %x, %w : (tensor<128x96xf32>, tensor<160x96xf32>) -> tensor<128x160xf32>
  return %y : tensor<128x160xf32>
}
