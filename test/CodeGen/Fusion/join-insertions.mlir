// RUN: %python %S/Inputs/insertions.py 17 | tp-opt --tp-join-insertions | FileCheck %s --check-prefix=LONG
// RUN: %python %S/Inputs/insertions.py 16 | tp-opt --tp-join-insertions | FileCheck %s --check-prefix=SHORT
// RUN: %python %S/Inputs/insertions.py 17 --gap | tp-opt --tp-join-insertions | FileCheck %s --check-prefix=GAP
// RUN: %python %S/Inputs/insertions.py 16 --twice | tp-opt --tp-join-insertions | FileCheck %s --check-prefix=TWICE
// RUN: %python %S/Inputs/insertions.py 17 --read | tp-opt --tp-join-insertions | FileCheck %s --check-prefix=READ

// The pieces are in the order of their offsets, not in that of the insertions.

// LONG: @f(%[[X:.+]]: tensor<1x4xf32>, %[[Y:.+]]: tensor<1x4xf32>
// LONG-NOT: tensor.insert_slice
// LONG: tensor.concat dim(0) %[[Y]], %[[X]], %[[X]],
// LONG-NOT: tensor.insert_slice

// SHORT-NOT: tensor.concat
// SHORT-COUNT-16: tensor.insert_slice

// Nothing is written to the elements after the last one.
// GAP: @f(%{{.+}}: tensor<1x4xf32>, %{{.+}}: tensor<1x4xf32>, %[[INIT:.+]]: tensor<18x4xf32>)
// GAP: %[[REST:.+]] = tensor.extract_slice %[[INIT]][17, 0] [1, 4] [1, 1]
// GAP: tensor.concat dim(0) {{.*}}, %[[REST]] :

// A row that is written twice ends a chain.
// TWICE-NOT: tensor.concat

// A read in between takes its elements from the piece, or from before the chain.
// READ: @f(%[[X:.+]]: tensor<1x4xf32>, %{{.+}}: tensor<1x4xf32>, %[[INIT:.+]]: tensor<17x4xf32>)
// READ-NOT: tensor.insert_slice
// READ: tensor.extract_slice %[[X]][0, 1] [1, 2] [1, 1]
// READ-NOT: tensor.insert_slice
// READ: tensor.extract_slice %[[INIT]][16, 0] [1, 4] [1, 1]
// READ-NOT: tensor.insert_slice
// READ: tensor.concat
