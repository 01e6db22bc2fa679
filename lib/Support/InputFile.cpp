//===- InputFile.cpp - Files that are read --------------------------------===//

#include "tp/Support/InputFile.h"
#include "OpenFile.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::tp;
namespace fs = llvm::sys::fs;

/// What a file that isn't text may be, by its first bytes.
static StringRef describeBinary(StringRef head) {
  if (head.starts_with("PK\x03\x04"))
    return "this is a zip archive; tp-import reads those of torch.jit.save";
  if (head.size() > 9 && head[8] == '{' && (head[9] == '"' || head[9] == '}'))
    return "this is a safetensors file: weights without a program";
  if (head.starts_with("\x93NUMPY"))
    return "this is a NumPy array";
  if (head.starts_with("TPMLIRX"))
    return "this is an artifact, which tp-run runs";
  return "this is not a text file";
}

static bool isText(StringRef head) {
  return !head.contains('\0') || head.starts_with("ML\xefR"); // or bytecode
}

llvm::Error tp::checkInput(StringRef path) {
  fs::file_status status;
  bool isOpen = path == "-" || findDescriptor(resolveLinks(path));
  if (!isOpen && !fs::status(path, status) && fs::exists(status) &&
      !fs::is_regular_file(status) && !fs::is_directory(status))
    return llvm::createStringError("this is not a regular file");
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
tp::readInput(StringRef path) {
  if (llvm::Error error = checkInput(path))
    return std::move(error);
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(file.getError().message());
  StringRef head = (*file)->getBuffer().take_front(4096);
  if (!isText(head))
    return llvm::createStringError(describeBinary(head));
  return std::move(*file);
}

InFlightDiagnostic tp::emitInputError(MLIRContext *context, StringRef path,
                                      StringRef what, llvm::Error error) {
  Location loc = UnknownLoc::get(context);
  if (!fs::exists(path))
    loc = FileLineColLoc::get(context, path, 1, 1);
  return emitError(loc) << "can't read the " << what << " '" << path
                        << "': " << llvm::toString(std::move(error));
}
