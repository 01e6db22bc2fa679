// RUN: tp-opt %s | FileCheck %s

// CHECK: tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 4 stages 8
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 4 stages 8
