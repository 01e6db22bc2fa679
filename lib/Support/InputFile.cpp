//===- InputFile.cpp - Files that are read --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/InputFile.h"
#include "OpenFile.h"
#include "mlir/IR/Location.h"
#include "tp/Support/MemoryFiles.h"
#include "tp/Support/OutputFile.h"
#include "tprt/abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::tp;
namespace fs = llvm::sys::fs;

/// What kind of file a binary file is, judging by its first bytes.
static StringRef describeBinary(StringRef head) {
  if (head.starts_with("PK\x03\x04"))
    return "this is a zip archive; tp-import reads those of torch.export.save "
           "and torch.jit.save";
  if (head.size() > 9 && head[8] == '{' && (head[9] == '"' || head[9] == '}'))
    return "this is a safetensors file: weights without a program";
  if (head.starts_with("\x93NUMPY"))
    return "this is a NumPy array";
  if (head.starts_with(TPRT_ARTIFACT_MAGIC))
    return "this is an artifact, which tp-run runs";
  return "this is not a text file";
}

std::optional<ControlCharacter> tp::findControlCharacter(StringRef text) {
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = text[i];
    if (byte >= 0x20 && byte < 0x7f)
      continue;
    bool endsLine = byte == '\n' || text.substr(i).starts_with("\r\n");
    if ((byte < 0x20 && byte != '\t' && !endsLine) || byte == 0x7f)
      return ControlCharacter{i, byte};
    // In UTF-8, U+0080 to U+009F begin with the byte C2. U+0085 ends a line.
    unsigned char next = i + 1 < text.size() ? text[i + 1] : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0 && next != 0x85)
      return ControlCharacter{i, next};
  }
  return std::nullopt;
}

std::string tp::escapeControlCharacters(StringRef text) {
  std::string result;
  while (std::optional<ControlCharacter> found = findControlCharacter(text)) {
    StringRef character =
        text.substr(found->offset, found->code < 0x80 ? 1 : 2);
    result += text.take_front(found->offset);
    for (unsigned char byte : character)
      result += "\\x" + llvm::utohexstr(byte, /*LowerCase=*/false, /*Width=*/2);
    text = text.drop_front(found->offset + character.size());
  }
  return result + text.str();
}

llvm::Error tp::checkInput(StringRef path) {
  fs::file_status status;
  bool isOpen = path == "-" || findDescriptor(resolveLinks(path));
  if (!isOpen && !fs::status(path, status) && fs::exists(status) &&
      !fs::is_regular_file(status) && !fs::is_directory(status))
    return llvm::createStringError("this is not a regular file");
  return llvm::Error::success();
}

/// The contents of a file, without any check of them.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readBytes(StringRef path) {
  if (const MemoryFiles *files = MemoryFiles::getCurrent())
    if (std::optional<StringRef> text = files->getInput(path))
      return llvm::MemoryBuffer::getMemBufferCopy(*text, path);
  if (llvm::Error error = checkInput(path))
    return std::move(error);
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(file.getError().message());
  DistinctOutputs::noteInput(path);
  return std::move(*file);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
tp::readInput(StringRef path) {
  auto file = readBytes(path);
  if (!file)
    return file.takeError();
  StringRef text = (*file)->getBuffer(), head = text.take_front(4096);
  if (text.starts_with("ML\xefR")) // bytecode
    return std::move(*file);
  if (head.contains('\0'))
    return llvm::createStringError(describeBinary(head));
  if (std::optional<ControlCharacter> found = findControlCharacter(text))
    return llvm::createStringError(
        "line %zu has the control character U+%04X, which isn't text; strings "
        "of MLIR have escapes such as \\1B",
        text.take_front(found->offset).count('\n') + 1, found->code);
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  if (!llvm::isASCII(text) &&
      !llvm::isLegalUTF8String(
          &begin, reinterpret_cast<const llvm::UTF8 *>(text.end())))
    return llvm::createStringError(
        "line %zu isn't UTF-8",
        text.take_front(reinterpret_cast<const char *>(begin) - text.begin())
                .count('\n') +
            1);
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
