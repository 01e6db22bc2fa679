//===- TorchArchive.cpp - load a TorchScript archive ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchArchive.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import.h>

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

/// Describes what a file that isn't a TorchScript archive may be, and what to
/// do.
static std::string describeFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return buffer.getError().message();
  llvm::StringRef head = (*buffer)->getBuffer();
  const char *advice =
      "; save the model with torch.jit.save(torch.jit.trace(model, inputs), …)";
  if (head.empty())
    return "the file is empty";
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x04"))
    return std::string("this is a pickle (an old state_dict, say), not a "
                       "TorchScript archive") +
           advice;
  if (head.size() > 9 && head[8] == '{' && head[9] == '"')
    return std::string("this is a safetensors file: weights without a model") +
           advice;
  if (head.starts_with("\x93NUMPY"))
    return std::string("this is a NumPy array, not a model") + advice;
  if (head.starts_with("PK"))
    return "the archive is truncated or damaged";
  return std::string("this isn't a TorchScript archive (not a zip file)") +
         advice;
}

/// By how many bytes the unpacked records of an archive may exceed the size of
/// the file. Tensors are stored uncompressed; code compresses well.
static constexpr uint64_t maxGrowth = uint64_t(256) << 20;

/// Describes a readable zip file that isn't TorchScript: which kind of PyTorch
/// archive it is, or why it can't be unpacked.
static std::string describeZip(llvm::StringRef path, uint64_t fileSize) {
  const char *advice =
      "; save the model with torch.jit.save(torch.jit.trace(model, inputs), …)";
  try {
    caffe2::serialize::PyTorchStreamReader reader(path.str());
    std::vector<std::string> records = reader.getAllRecords();
    auto has = [&](llvm::StringRef part) {
      return llvm::any_of(records, [&](const std::string &record) {
        return llvm::StringRef(record).contains(part);
      });
    };
    uint64_t unpacked = 0;
    for (const std::string &record : records)
      unpacked =
          llvm::SaturatingAdd<uint64_t>(unpacked, reader.getRecordSize(record));
    if (unpacked > fileSize + maxGrowth)
      return "the archive of " + std::to_string(fileSize) +
             " bytes says that it unpacks to " + std::to_string(unpacked) +
             ", expected at most " + std::to_string(maxGrowth >> 20) +
             " MiB more than its own size";
    if (reader.hasRecord("constants.pkl") || has("code/"))
      return "";
    if (has("models/") || has("serialized_exported_program") ||
        has("archive_format"))
      return std::string("this is a torch.export archive (.pt2), not "
                         "TorchScript") +
             advice;
    if (reader.hasRecord("data.pkl"))
      return std::string("this was written by torch.save (a state_dict or a "
                         "pickled module), not by torch.jit.save") +
             advice;
    return std::string("this is a zip file, but no TorchScript archive") +
           advice;
  } catch (const std::exception &) {
    return describeFile(path);
  }
}

bool mlir::tp::isTorchArchive(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) &&
         llvm::sys::fs::is_regular_file(status) &&
         describeZip(path, status.getSize()).empty();
}

llvm::Expected<torch::jit::Module>
mlir::tp::loadTorchArchive(llvm::StringRef path, bool eval) {
  auto error = [&](const llvm::Twine &why) {
    return llvm::createStringError("cannot load '" + path + "': " + why);
  };
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return error(code.message());
  if (llvm::sys::fs::is_directory(status))
    return error("this is a directory");
  if (!llvm::sys::fs::is_regular_file(status))
    return error("this is not a regular file");
  std::string kind = describeZip(path, status.getSize());
  if (!kind.empty())
    return error(kind);
  try {
    torch::jit::Module module = torch::jit::load(path.str(), at::kCPU);
    if (eval)
      module.eval();
    return module;
  } catch (const std::exception &exception) {
    return error(describeException(exception));
  }
}
