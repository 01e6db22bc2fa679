//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>

using namespace tprt;

static constexpr std::string_view magic("\x93NUMPY", 6);

namespace {

/// Reads the header, a Python dict literal such as
///   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 64), }
class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &path)
      : text(text), path(path) {}

  void parse() {
    expect('{');
    while (!consume('}')) {
      std::string_view key = parseString();
      expect(':');
      if (key == "descr")
        descr = parseDescr();
      else if (key == "fortran_order")
        isFortranOrder = parseBool();
      else if (key == "shape")
        parseShape();
      else
        fail("unknown key '" + std::string(key) + "'");
      if (!consume(',')) {
        expect('}');
        break;
      }
    }
    skipSpace();
    if (!text.empty())
      fail("text after the dictionary");
    if (descr.empty() || !hasShape)
      fail("missing 'descr' or 'shape'");
  }

  std::string descr;
  bool isFortranOrder = false;
  Shape shape;

private:
  [[noreturn]] void fail(const std::string &why) {
    throw inputError("'" + path + "': malformed .npy header: " + why);
  }
  void skipSpace() {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n'))
      text.remove_prefix(1);
  }
  bool consume(char c) {
    skipSpace();
    if (text.empty() || text[0] != c)
      return false;
    text.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!consume(c))
      fail(std::string("expected '") + c + "'");
  }
  bool consumeWord(std::string_view word) {
    skipSpace();
    if (!text.starts_with(word))
      return false;
    text.remove_prefix(word.size());
    return true;
  }
  std::string_view parseString() {
    skipSpace();
    char quote = text.empty() ? 0 : text[0];
    if (quote != '\'' && quote != '"')
      fail("expected a string");
    size_t end = text.find(quote, 1);
    if (end == std::string_view::npos)
      fail("unterminated string");
    std::string_view value = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return value;
  }
  std::string parseDescr() {
    skipSpace();
    if (text.starts_with('['))
      throw inputError("'" + path +
                       "': structured arrays are not supported; save one "
                       "array of a plain type");
    return std::string(parseString());
  }
  bool parseBool() {
    if (consumeWord("True"))
      return true;
    if (!consumeWord("False"))
      fail("expected True or False");
    return false;
  }
  void parseShape() {
    hasShape = true;
    shape.clear();
    expect('(');
    while (!consume(')')) {
      skipSpace();
      int64_t size = 0;
      auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || size < 0)
        fail("expected a dimension");
      text.remove_prefix(end - text.data());
      consumeWord("L");
      shape.push_back(size);
      if (!consume(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text;
  const std::string &path;
  bool hasShape = false;
};

struct TypeCode {
  std::string_view code; // without the byte order
  Dtype dtype;
};

} // namespace

static Error unknownType(const std::string &descr, const std::string &path) {
  return inputError("'" + path + "' has elements of type '" + descr +
                    "', expected one of f4, f8, f2, V2 (bf16), i8, i4, i2, i1, "
                    "u1, b1 (little-endian)");
}

static constexpr TypeCode typeCodes[] = {
    {"f4", Dtype::F32},  {"f8", Dtype::F64}, {"f2", Dtype::F16},
    {"V2", Dtype::BF16}, {"i8", Dtype::I64}, {"i4", Dtype::I32},
    {"i2", Dtype::I16},  {"i1", Dtype::I8},  {"u1", Dtype::UI8},
    {"b1", Dtype::I1},
};

static std::optional<Dtype> findDtype(std::string_view code) {
  for (const TypeCode &known : typeCodes)
    if (known.code == code)
      return known.dtype;
  return std::nullopt;
}

/// "i32" for i4, as diagnostics name types.
static std::string describeCode(const std::string &code) {
  if (std::optional<Dtype> dtype = findDtype(code))
    return std::string(toString(*dtype));
  return "ui" + std::to_string((code[1] - '0') * 8);
}

/// NumPy's code without the byte order, and the size of an element.
static std::pair<std::string, int64_t> parseTypeCode(const std::string &descr,
                                                     const std::string &path) {
  if (descr[0] == '>')
    throw inputError("'" + path + "' is big-endian ('" + descr +
                     "'), expected little-endian: save "
                     "a.astype(a.dtype.newbyteorder('<'))");
  size_t begin = descr.find_first_not_of("<|=");
  std::string code = begin == std::string::npos ? "" : descr.substr(begin);
  static constexpr std::string_view numbers[] = {"f4", "f8", "f2", "V2", "i8",
                                                 "i4", "i2", "i1", "u8", "u4",
                                                 "u2", "u1", "b1"};
  if (std::find(std::begin(numbers), std::end(numbers), code) ==
      std::end(numbers))
    throw unknownType(descr, path);
  return {code, code[1] - '0'};
}

Tensor tprt::readNpy(const std::string &path) {
  NpyArray array = readNpyArray(path);
  if (std::optional<Dtype> dtype = findDtype(array.code))
    return {*dtype, array.shape, array.data};
  throw unknownType("<" + array.code, path);
}

NpyArray tprt::readNpyArray(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::span<const std::byte> bytes = file->getBytes();
  std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  if (!text.starts_with(magic))
    throw inputError("'" + path + "' is not a .npy file");
  auto truncated = [&] {
    return inputError("'" + path + "' is truncated: " +
                      std::to_string(bytes.size()) + " bytes");
  };
  if (bytes.size() < 8)
    throw truncated();
  int major = static_cast<int>(bytes[6]);
  if (major < 1 || major > 3)
    throw inputError("'" + path + "' has .npy version " +
                     std::to_string(major) + ", expected 1, 2 or 3");
  size_t lengthBytes = major == 1 ? 2 : 4;
  size_t headerStart = 8 + lengthBytes;
  if (bytes.size() < headerStart)
    throw truncated();
  size_t headerSize = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    headerSize |= static_cast<size_t>(bytes[8 + i]) << (8 * i);
  if (bytes.size() - headerStart < headerSize)
    throw truncated();

  HeaderParser header(text.substr(headerStart, headerSize), path);
  header.parse();
  NpyArray array;
  std::tie(array.code, array.elementBytes) = parseTypeCode(header.descr, path);
  array.shape = header.shape;
  // Both orders are the same if at most one dimension isn't 1.
  int64_t numReal = 0;
  for (int64_t size : array.shape)
    numReal += size != 1;
  if (header.isFortranOrder && numReal > 1)
    throw inputError("'" + path +
                     "' is in Fortran order, expected C order: save "
                     "np.ascontiguousarray(a)");
  std::optional<int64_t> count = checkedNumElements(array.shape);
  std::string type = describeCode(array.code);
  for (auto size = array.shape.rbegin(); size != array.shape.rend(); ++size)
    type = std::to_string(*size) + "x" + type;
  if (!count)
    throw inputError("'" + path + "': shape " + type + " is too large");
  size_t dataStart = headerStart + headerSize;
  size_t found = bytes.size() - dataStart;
  size_t required = *count * array.elementBytes;
  if (found != required)
    throw inputError("'" + path + "' holds " + std::to_string(found) +
                     " bytes of data, expected " + std::to_string(required) +
                     " for " + type);
  array.data = {file, bytes.data() + dataStart};
  return array;
}

static std::string makeHeader(const Tensor &tensor) {
  std::string descr;
  for (const TypeCode &known : typeCodes)
    if (known.dtype == tensor.dtype)
      descr = known.code;
  descr.insert(0, byteWidth(tensor.dtype) == 1 ? "|" : "<");
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': False, " + "'shape': (";
  for (int64_t size : tensor.shape)
    dict += std::to_string(size) + ", ";
  dict += "), }";
  // The data start at a multiple of 64; the header ends with a newline.
  size_t prefix = magic.size() + 4;
  size_t total = (prefix + dict.size() + 1 + blockAlignment - 1) /
                 blockAlignment * blockAlignment;
  dict.append(total - prefix - dict.size() - 1, ' ');
  dict += '\n';
  std::string header(magic);
  header += std::string("\x01\x00", 2);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

void tprt::writeNpy(OutputFile &file, const Tensor &tensor) {
  file.write(makeHeader(tensor));
  file.write(tensor.data.get(), tensor.getNumBytes());
}

void tprt::writeNpy(const std::string &path, const Tensor &tensor) {
  OutputFile file(path);
  writeNpy(file, tensor);
  file.commit();
}
