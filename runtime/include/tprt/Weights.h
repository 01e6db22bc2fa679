//===- Weights.h - Models in one or several safetensors files ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hugging Face's sharded format: files NAME-00001-of-00003.safetensors, each
// with some of the tensors, and NAME.safetensors.index.json, which says which
// file has which tensor:
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
/// or of the directory that holds model.safetensors or its index. The files are
/// mapped, so data are read only when they are used. Throws an input error that
/// names the file and the problem, for instance a tensor that isn't in its
/// file. An index may only name files in or below its own directory, unless
/// `mayLeadOutside`.
TPRT_API std::map<std::string, SafetensorsEntry>
readWeights(const std::string &path, bool mayLeadOutside = false);

/// The files that readWeights() reads.
TPRT_API std::vector<std::string> listWeightFiles(const std::string &path,
                                                  bool mayLeadOutside = false);

/// A tensor to be written. Its elements are computed when it is written.
struct TensorSource {
  std::string name;
  std::string dtypeName; ///< as in safetensors files, "F32"
  Shape shape;
  int64_t numBytes;
  std::function<std::shared_ptr<const std::byte>()> read;
};

TPRT_API TensorSource makeSource(const std::string &name,
                                 const SafetensorsEntry &entry);
/// `read` returns the tensor, of `dtype` and `shape`.
TPRT_API TensorSource makeSource(const std::string &name, Dtype dtype,
                                 const Shape &shape,
                                 std::function<Tensor()> read);

/// A file that has been written completely, and its expected size and checksum.
struct WrittenFile {
  std::string name; ///< within its directory
  int64_t numBytes = 0;
  uint32_t crc = 0; ///< CRC-32 (zlib)

  bool operator==(const WrittenFile &) const = default;
};

/// CRC-32 (zlib) of a file's bytes, read by mapping.
TPRT_API WrittenFile checksumFile(const std::string &directory,
                                  const std::string &name);

/// Writes `tensors` to one file, synchronized with the disk. Tensors whose size
/// is a multiple of 64 bytes come first and begin at such multiples, so that
/// the runtime can use them in place.
TPRT_API WrittenFile writeSafetensors(const std::string &directory,
                                      const std::string &name,
                                      std::vector<TensorSource> tensors);

/// The same for a path.
TPRT_API WrittenFile writeSafetensors(const std::string &path,
                                      std::vector<TensorSource> tensors);

/// Distributes tensors over at most `numFiles` files of about equal size. No
/// file is empty, but if there are no tensors, there is still one file.
TPRT_API std::vector<std::vector<TensorSource>>
distributeOverFiles(std::vector<TensorSource> tensors, int64_t numFiles);
/// Distributes tensors over files of at most `maxBytes` bytes of tensors each,
/// in the given order. A larger tensor gets a file of its own.
TPRT_API std::vector<std::vector<TensorSource>>
distributeByBytes(std::vector<TensorSource> tensors, int64_t maxBytes);

/// Writes STEM-0000i-of-0000N.safetensors, each in a thread of its own, at most
/// `numThreads` at a time, and the index, all synchronized with the disk.
/// Existing files are replaced, each when its replacement is complete. Returns
/// the written files, the index last.
TPRT_API std::vector<WrittenFile>
writeShardedSafetensors(const std::string &directory, const std::string &stem,
                        const std::vector<std::vector<TensorSource>> &files,
                        int64_t numThreads);

} // namespace tprt

#endif // TPRT_WEIGHTS_H
