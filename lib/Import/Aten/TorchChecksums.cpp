//===- TorchChecksums.cpp - Checksums of an archive's records -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LibTorch reads the records of a zip file without comparing their checksums,
// and its reader doesn't give them. So they are read from the file's central
// directory.
// Source: PKWARE, ".ZIP File Format Specification", 4.3.12 to 4.3.16.
//
//===----------------------------------------------------------------------===//

#include "TorchArchive.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include <caffe2/serialize/inline_container.h>

using namespace mlir;
using namespace mlir::tp;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::read64le;

namespace {
/// A place in the file, which is checked against the file's size.
struct Bytes {
  StringRef file;

  /// The `size` bytes from `offset` on; none if the file ends before.
  std::optional<StringRef> at(uint64_t offset, uint64_t size) const {
    if (offset > file.size() || size > file.size() - offset)
      return std::nullopt;
    return file.substr(offset, size);
  }
};
} // namespace

/// Where the entries of the central directory begin.
static std::optional<uint64_t> findDirectory(Bytes bytes) {
  size_t end = bytes.file.rfind(StringRef("PK\5\6", 4));
  auto record = bytes.at(end, 22);
  if (end == StringRef::npos || !record)
    return std::nullopt;
  uint32_t offset = read32le(record->data() + 16);
  if (offset != UINT32_MAX)
    return offset;
  // The offset of a large file is in a record that another one points to.
  auto locator = bytes.at(end - 20, 20);
  if (end < 20 || !locator || !locator->starts_with("PK\6\7"))
    return std::nullopt;
  auto large = bytes.at(read64le(locator->data() + 8), 56);
  if (!large || !large->starts_with("PK\6\6"))
    return std::nullopt;
  return read64le(large->data() + 48);
}

/// The CRC-32 of each record, by its name without the archive's folder.
static llvm::StringMap<uint32_t> readChecksums(StringRef file) {
  llvm::StringMap<uint32_t> checksums;
  Bytes bytes{file};
  std::optional<uint64_t> offset = findDirectory(bytes);
  while (offset) {
    auto entry = bytes.at(*offset, 46);
    if (!entry || !entry->starts_with("PK\1\2"))
      break;
    uint16_t nameSize = read16le(entry->data() + 28);
    auto name = bytes.at(*offset + 46, nameSize);
    if (!name)
      break;
    checksums[name->split('/').second] = read32le(entry->data() + 16);
    *offset += 46 + nameSize + read16le(entry->data() + 30) +
               read16le(entry->data() + 32);
  }
  return checksums;
}

static uint32_t sumRecord(caffe2::serialize::PyTorchStreamReader &reader,
                          const std::string &record) {
  uint64_t size = reader.getRecordSize(record);
  std::vector<uint8_t> chunk(std::min<uint64_t>(size, uint64_t(1) << 20));
  uint32_t sum = 0;
  auto chunks = reader.createChunkReaderIter(record, size, chunk.size());
  for (uint64_t left = size; left > 0;) {
    size_t count = chunks.next(chunk.data());
    if (count == 0)
      break;
    sum = llvm::crc32(sum, ArrayRef(chunk).take_front(count));
    left -= count;
  }
  return sum;
}

llvm::Error mlir::tp::checkRecords(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return makeLoadError(path, file.getError().message());
  llvm::StringMap<uint32_t> checksums = readChecksums((*file)->getBuffer());
  try {
    caffe2::serialize::PyTorchStreamReader reader(path.str());
    for (const std::string &record : reader.getAllRecords()) {
      auto expected = checksums.find(record);
      if (expected == checksums.end())
        return makeLoadError(path,
                             "the archive has no checksum of '" + record + "'");
      if (uint32_t sum = sumRecord(reader, record); sum != expected->second)
        return makeLoadError(path, "'" + record +
                                       "' is damaged: its checksum is 0x" +
                                       llvm::utohexstr(sum) + ", expected 0x" +
                                       llvm::utohexstr(expected->second) +
                                       "; copy or save the file again");
    }
  } catch (const std::exception &exception) {
    return makeLoadError(path, describeException(exception));
  }
  return llvm::Error::success();
}
