//===- TorchArchive.cpp - which archive of PyTorch a file is --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchArchive.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>

using namespace mlir;
using namespace mlir::tp;

std::string mlir::tp::describeException(const std::exception &exception) {
  std::string text = exception.what();
  if (auto *error = dynamic_cast<const c10::Error *>(&exception))
    text = error->what_without_backtrace();
  llvm::StringRef first =
      llvm::StringRef(text).split("\nException raised").first;
  std::string line;
  for (char c : first.trim())
    line += c == '\n' ? ' ' : c;
  return line;
}

static constexpr StringLiteral kAdvice =
    "; save the model with torch.export.save(torch.export.export(model, "
    "inputs), …), or with torch.jit.save(torch.jit.trace(model, inputs), …)";
static constexpr StringLiteral kOldExport =
    "this is a torch.export program of a PyTorch before 2.8; load it with "
    "torch.export.load, and save it again with PyTorch 2.8 or later";

/// Describes what a file that is no archive may be, and what to do.
static std::string describeFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return buffer.getError().message();
  llvm::StringRef head = (*buffer)->getBuffer();
  if (head.empty())
    return "the file is empty";
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x04"))
    return ("this is a pickle (an old state_dict, say), not an archive" +
            kAdvice)
        .str();
  if (head.size() > 9 && head[8] == '{' && head[9] == '"')
    return ("this is a safetensors file: weights without a model" + kAdvice)
        .str();
  if (head.starts_with("\x93NUMPY"))
    return ("this is a NumPy array, not a model" + kAdvice).str();
  if (head.starts_with("version https://git-lfs.github.com/spec/"))
    return "this is a pointer of Git LFS; fetch the file itself, with 'git lfs "
           "pull' in its repository";
  // The name of the first record, at the place that zip files have it.
  if (head.starts_with("PK") &&
      head.substr(30).starts_with("serialized_exported_program"))
    return kOldExport.str();
  if (head.starts_with("PK"))
    return "the archive is truncated or damaged";
  return ("this is no archive of PyTorch (not a zip file)" + kAdvice).str();
}

std::string
mlir::tp::describeGrowth(caffe2::serialize::PyTorchStreamReader &reader,
                         uint64_t archiveSize) {
  uint64_t unpacked = 0;
  for (const std::string &record : reader.getAllRecords())
    unpacked =
        llvm::SaturatingAdd<uint64_t>(unpacked, reader.getRecordSize(record));
  if (unpacked <= archiveSize + kMaxArchiveGrowth)
    return "";
  return "the archive of " + std::to_string(archiveSize) +
         " bytes says that it unpacks to " + std::to_string(unpacked) +
         ", expected at most " + std::to_string(kMaxArchiveGrowth >> 20) +
         " MiB more than its own size";
}

/// The format of a readable zip file. If there is none, `why` says which kind
/// of file it is, or why it can't be unpacked.
static std::optional<ArchiveFormat>
identifyZip(llvm::StringRef path, uint64_t fileSize, std::string &why) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(path.str());
    std::vector<std::string> records = reader.getAllRecords();
    auto has = [&](llvm::StringRef part) {
      return llvm::any_of(records, [&](const std::string &record) {
        return llvm::StringRef(record).contains(part);
      });
    };
    why = describeGrowth(reader, fileSize);
    if (!why.empty())
      return std::nullopt;
    if (reader.hasRecord("constants.pkl") || has("code/"))
      return ArchiveFormat::TorchScript;
    if (reader.hasRecord("archive_format") || has("models/"))
      return ArchiveFormat::TorchExport;
    if (has("serialized_exported_program"))
      why = kOldExport.str();
    else if (reader.hasRecord("data.pkl"))
      why = ("this was written by torch.save (a state_dict or a pickled "
             "module), which saves no code" +
             kAdvice)
                .str();
    else
      why = ("this is a zip file, but no archive of PyTorch" + kAdvice).str();
  } catch (const std::exception &) {
    why = describeFile(path);
  }
  return std::nullopt;
}

llvm::Error mlir::tp::makeLoadError(llvm::StringRef path,
                                    const llvm::Twine &why) {
  return llvm::createStringError("cannot load '" + path + "': " + why);
}

llvm::Expected<ArchiveFormat> mlir::tp::identifyArchive(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return makeLoadError(path, code.message());
  if (llvm::sys::fs::is_directory(status))
    return makeLoadError(path, "this is a directory");
  if (!llvm::sys::fs::is_regular_file(status))
    return makeLoadError(path, "this is not a regular file");
  std::string why;
  if (auto format = identifyZip(path, status.getSize(), why))
    return *format;
  return makeLoadError(path, why);
}

bool mlir::tp::isArchive(llvm::StringRef path, ArchiveFormat format) {
  auto found = identifyArchive(path);
  if (found)
    return *found == format;
  llvm::consumeError(found.takeError());
  return false;
}
