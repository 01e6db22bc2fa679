//===- TorchArchive.h - which archive of PyTorch a file is ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_TORCHARCHIVE_H
#define TP_LIB_IMPORT_ATEN_TORCHARCHIVE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace caffe2::serialize {
class PyTorchStreamReader;
} // namespace caffe2::serialize

namespace mlir::tp {

/// By how many bytes the unpacked records of an archive may exceed its size.
/// Tensors are stored uncompressed; code compresses well.
constexpr uint64_t kMaxArchiveGrowth = uint64_t(256) << 20;

/// Why an archive of this size must not be unpacked, or an empty text.
std::string describeGrowth(caffe2::serialize::PyTorchStreamReader &reader,
                           uint64_t archiveSize);

enum class ArchiveFormat { TorchScript, TorchExport };

/// The format of the archive at `path`, which can be read and unpacked. If it
/// is another file, the error says what it looks like.
llvm::Expected<ArchiveFormat> identifyArchive(llvm::StringRef path);

/// Whether `identifyArchive` gives `format`.
bool isArchive(llvm::StringRef path, ArchiveFormat format);

/// An error if the bytes of a record of the archive at `path` aren't those that
/// were written: if its CRC-32 is another one.
llvm::Error checkRecords(llvm::StringRef path);

/// The error for a file that can't be loaded.
llvm::Error makeLoadError(llvm::StringRef path, const llvm::Twine &why);

/// LibTorch's message without its C++ backtrace, on one line.
std::string describeException(const std::exception &exception);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHARCHIVE_H
