//===- Safetensors.h - Files in the safetensors format ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   u64 size of the header | JSON header | tensor data
//
// The header maps names to {"dtype", "shape", "data_offsets": [begin, end)},
// offsets counted from the end of the header.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_SAFETENSORS_H
#define TPRT_SAFETENSORS_H

#include "tprt/Tensor.h"

#include <map>
#include <string>
#include <utility>

namespace tprt {

/// One entry of a file. An entry of a type that programs don't compute with
/// (F8_E4M3, …) has no `tensor`.
struct SafetensorsEntry {
  std::string dtypeName; ///< as spelled in the file, e.g. "F32"
  Shape shape;
  std::shared_ptr<const std::byte> data; ///< of any type
  int64_t numBytes = 0;
  bool isSupported = true;
  Tensor tensor;
};

/// "F32" for f32: a type's name in files.
TPRT_API std::string_view getSafetensorsName(Dtype dtype);

/// The tensors of one file, which is mapped: data are read only when they are
/// used.
class TPRT_API Safetensors {
public:
  /// Throws an input error that names the file, the tensor and the problem:
  /// truncated file, malformed JSON, unknown dtype, offsets out of range,
  /// overlapping, or not fitting to shape and dtype.
  static Safetensors open(const std::string &path);

  const std::map<std::string, SafetensorsEntry> &getEntries() const & {
    return entries;
  }
  /// By value, so that a loop over a temporary's entries keeps them alive.
  std::map<std::string, SafetensorsEntry> getEntries() && {
    return std::move(entries);
  }
  const std::string &getPath() const { return path; }

private:
  std::string path;
  std::map<std::string, SafetensorsEntry> entries;
};

} // namespace tprt

#endif // TPRT_SAFETENSORS_H
