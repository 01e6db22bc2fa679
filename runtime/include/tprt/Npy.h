//===- Npy.h - NumPy's .npy files -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Little-endian, C-order arrays of versions 1 to 3. The element types map to f2
// f4 f8 i8 i4 b1. NumPy has no bf16: it is written as the raw two-byte type
// '<V2', which np.load(...).view(ml_dtypes.bfloat16) or torch's
// view(torch.bfloat16) turn back.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_NPY_H
#define TPRT_NPY_H

#include "tprt/File.h"
#include "tprt/Tensor.h"

#include <string>

namespace tprt {

/// A .npy file of any plain element type, even one without a Dtype.
struct NpyArray {
  std::string code; ///< NumPy's, without the byte order: "u2"
  int64_t elementBytes;
  Shape shape;
  std::shared_ptr<const std::byte> data;
};

/// Maps a .npy file. Throws an input error that names the file and the problem:
/// wrong magic, truncated or trailing data, big-endian, Fortran order, or
/// elements that aren't numbers.
TPRT_API NpyArray readNpyArray(const std::string &path);

/// Maps a .npy file. A two-byte void type ('V2') reads as bf16. Throws an input
/// error like readNpyArray, and for an element type without a matching Dtype.
TPRT_API Tensor readNpy(const std::string &path);

/// Writes a temporary file, then renames it. Throws an input error when the
/// path can't be written.
TPRT_API void writeNpy(const std::string &path, const Tensor &tensor);
/// Appends header and data to `file`, which the caller commits.
TPRT_API void writeNpy(OutputFile &file, const Tensor &tensor);

} // namespace tprt

#endif // TPRT_NPY_H
