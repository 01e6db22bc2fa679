//===- Weights.h - Models in one or several safetensors files ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hugging Face's sharded form: files NAME-00001-of-00003.safetensors, each with
// some whole tensors, and NAME.safetensors.index.json, which says where each
// is:
//
//   {"metadata": {"total_size": 96},
//    "weight_map": {"w": "model-00001-of-00003.safetensors", …}}
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_WEIGHTS_H
#define TPRT_WEIGHTS_H

#include "tprt/Safetensors.h"

#include <functional>

namespace tprt {

/// The tensors of a safetensors file, of all files of an index (….index.json),
/// or of the directory that holds model.safetensors or its index. Mapped:
/// nothing is read until a block is. Throws an input error that names the file
/// and what is wrong, a tensor included that its file doesn't have. An index
/// names files in or below its own directory, unless `mayLeadOutside`.
TPRT_API std::map<std::string, SafetensorsEntry>
readWeights(const std::string &path, bool mayLeadOutside = false);

/// The files that readWeights() reads.
TPRT_API std::vector<std::string> listWeightFiles(const std::string &path,
                                                  bool mayLeadOutside = false);

/// A tensor to be written, whose elements are made when it is its turn.
struct TensorSource {
  std::string name;
  std::string dtypeName; ///< as in safetensors files, "F32"
  Shape shape;
  int64_t numBytes;
  std::function<std::shared_ptr<const std::byte>()> read;
};

TPRT_API TensorSource makeSource(const std::string &name,
                                 const SafetensorsEntry &entry);
/// `read` gives the tensor of `info`'s dtype and shape.
TPRT_API TensorSource makeSource(const std::string &name, Dtype dtype,
                                 const Shape &shape,
                                 std::function<Tensor()> read);

/// A file that is complete, and what it must hold from now on.
struct WrittenFile {
  std::string name; ///< within its directory
  int64_t numBytes = 0;
  uint32_t crc = 0; ///< CRC-32 (zlib)

  bool operator==(const WrittenFile &) const = default;
};

/// CRC-32 (zlib) of a file's bytes, read by mapping.
TPRT_API WrittenFile checksumFile(const std::string &directory,
                                  const std::string &name);

/// Writes `tensors` to one file, synchronised with the disk. Tensors whose size
/// is a multiple of 64 bytes come first and begin at such multiples, so that
/// the runtime uses them in place.
TPRT_API WrittenFile writeSafetensors(const std::string &directory,
                                      const std::string &name,
                                      std::vector<TensorSource> tensors);

/// Tensors by the file that they go to: at most `numFiles`, none empty (but one
/// file if there is no tensor), of about one size.
TPRT_API std::vector<std::vector<TensorSource>>
distributeOverFiles(std::vector<TensorSource> tensors, int64_t numFiles);
/// As many files as it takes for none to have more than `maxBytes` bytes of
/// tensors, unless it has one tensor alone; in the order given.
TPRT_API std::vector<std::vector<TensorSource>>
distributeByBytes(std::vector<TensorSource> tensors, int64_t maxBytes);

/// Writes STEM-0000i-of-0000N.safetensors, each in a thread of its own, at most
/// `numThreads` at a time, and the index, all synchronised with the disk. Files
/// that exist are replaced, each when it is complete. Returns what was written,
/// the index last.
TPRT_API std::vector<WrittenFile>
writeShardedSafetensors(const std::string &directory, const std::string &stem,
                        const std::vector<std::vector<TensorSource>> &files,
                        int64_t numThreads);

} // namespace tprt

#endif // TPRT_WEIGHTS_H
