//===- Safetensors.cpp - Files in the safetensors format ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Safetensors.h"

#include "support/Json.h"
#include "tprt/File.h"

#include <algorithm>
#include <cstring>

using namespace tprt;
using nlohmann::json;

namespace {

struct TypeName {
  std::string_view name;
  int64_t bits;
  std::optional<Dtype> dtype;
};

/// A tensor's bytes within the data section.
struct Range {
  size_t begin, end;
  std::string name;
};

} // namespace

static constexpr TypeName typeNames[] = {
    {"F32", 32, Dtype::F32},   {"F64", 64, Dtype::F64}, {"F16", 16, Dtype::F16},
    {"BF16", 16, Dtype::BF16}, {"I64", 64, Dtype::I64}, {"I32", 32, Dtype::I32},
    {"BOOL", 8, Dtype::I1},    {"I8", 8, Dtype::I8},    {"I16", 16, Dtype::I16},
    {"U8", 8, Dtype::UI8},     {"U16", 16, {}},         {"U32", 32, {}},
    {"U64", 64, {}},           {"C64", 64, {}},         {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},        {"F8_E8M0", 8, {}},
};

/// The value of the required member `key`, checked by `is`.
static const json &getMember(const json &object, const char *key,
                             bool (json::*is)() const noexcept,
                             const char *required, const std::string &where) {
  auto found = object.find(key);
  if (found == object.end())
    throw inputError(where + " has no '" + key + "'");
  if (!((*found).*is)())
    throw inputError(where + ": '" + key + "' must be " + required +
                     ", found " + found->dump());
  return *found;
}

static int64_t getSize(const json &value, const std::string &where) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX)
    throw inputError(where + ": expected a non-negative integer, found " +
                     value.dump());
  return value.get<int64_t>();
}

std::string_view tprt::getSafetensorsName(Dtype dtype) {
  return std::find_if(std::begin(typeNames), std::end(typeNames),
                      [&](const TypeName &t) { return t.dtype == dtype; })
      ->name;
}

/// Checks one header entry against the data section and fills in `entry`.
static Range parseEntry(const std::string &name, const json &object,
                        size_t dataSize, const std::string &where,
                        SafetensorsEntry &entry) {
  if (!object.is_object())
    throw inputError(where + " must be an object, found " + object.dump());
  entry.dtypeName =
      getMember(object, "dtype", &json::is_string, "a string", where)
          .get<std::string>();
  const TypeName *type = std::find_if(
      std::begin(typeNames), std::end(typeNames),
      [&](const TypeName &t) { return t.name == entry.dtypeName; });
  if (type == std::end(typeNames))
    throw inputError(where + " has unknown dtype '" + entry.dtypeName + "'");
  entry.isSupported = type->dtype.has_value();
  entry.tensor.dtype = type->dtype.value_or(Dtype::F32);

  for (const json &size :
       getMember(object, "shape", &json::is_array, "an array", where))
    entry.shape.push_back(getSize(size, where + ": 'shape'"));
  std::optional<int64_t> count = checkedNumElements(entry.shape);
  if (!count)
    throw inputError(where + ": its shape is too large");

  const json &offsets =
      getMember(object, "data_offsets", &json::is_array, "an array", where);
  if (offsets.size() != 2)
    throw inputError(where + ": 'data_offsets' must hold 2 integers, found " +
                     std::to_string(offsets.size()));
  Range range{static_cast<size_t>(getSize(offsets[0], where)),
              static_cast<size_t>(getSize(offsets[1], where)), name};
  if (range.begin > range.end || range.end > dataSize)
    throw inputError(where + ": data_offsets [" + std::to_string(range.begin) +
                     ", " + std::to_string(range.end) +
                     ") lie outside of the " + std::to_string(dataSize) +
                     " bytes of data");
  size_t required = static_cast<size_t>(*count) * type->bits / 8;
  if (range.end - range.begin != required)
    throw inputError(
        where + " holds " + std::to_string(range.end - range.begin) +
        " bytes, expected " + std::to_string(required) + " for shape " +
        json(entry.shape).dump() + " of " + entry.dtypeName);
  return range;
}

/// The limit of the format's own library.
static constexpr uint64_t maxHeaderSize = 100'000'000;

Safetensors Safetensors::open(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::span<const std::byte> bytes = file->getBytes();
  if (asText(bytes).starts_with("version https://git-lfs.github.com/spec/"))
    throw inputError("'" + path +
                     "' is a pointer of Git LFS instead of a safetensors file: "
                     "fetch the file itself, with 'git lfs pull' in its "
                     "repository");
  uint64_t headerSize = 0;
  if (bytes.size() < sizeof(headerSize))
    throw inputError("'" + path + "' is not a safetensors file: " +
                     std::to_string(bytes.size()) +
                     " bytes, expected at least 8");
  std::memcpy(&headerSize, bytes.data(), sizeof(headerSize));
  if (headerSize > bytes.size() - sizeof(headerSize))
    throw inputError("'" + path + "' is truncated or not a safetensors file: " +
                     "its header should take " + std::to_string(headerSize) +
                     " bytes, the file has " + std::to_string(bytes.size()));
  if (headerSize > maxHeaderSize)
    throw inputError("'" + path + "' is not a safetensors file: its header " +
                     "takes " + std::to_string(headerSize) +
                     " bytes, expected at most " +
                     std::to_string(maxHeaderSize));
  json header;
  try {
    header = parseJson(asText(bytes).substr(sizeof(headerSize), headerSize));
  } catch (const Error &error) {
    throw inputError("'" + path +
                     "' has a malformed safetensors header: " + error.what());
  }
  if (!header.is_object())
    throw inputError(
        "'" + path +
        "' has a malformed safetensors header: expected an object");

  Safetensors result;
  result.path = path;
  size_t dataStart = sizeof(headerSize) + headerSize;
  std::vector<Range> ranges;
  for (const auto &[name, object] : header.items()) {
    if (name == "__metadata__") {
      if (!object.is_object() ||
          !std::all_of(object.begin(), object.end(),
                       [](const json &value) { return value.is_string(); }))
        throw inputError("'" + path +
                         "': __metadata__ must be an object of strings");
      continue;
    }
    SafetensorsEntry &entry = result.entries[name];
    Range range = parseEntry(name, object, bytes.size() - dataStart,
                             "'" + path + "': tensor '" + name + "'", entry);
    entry.data = {file, bytes.data() + dataStart + range.begin};
    entry.numBytes = range.end - range.begin;
    if (entry.isSupported)
      entry.tensor = {entry.tensor.dtype, entry.shape, entry.data};
    if (range.begin != range.end)
      ranges.push_back(std::move(range));
  }

  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      throw inputError("'" + path + "': the data of tensors '" +
                       ranges[i - 1].name + "' and '" + ranges[i].name +
                       "' overlap");
  // The format's own library requires this, too.
  size_t end = 0;
  auto checkFollows = [&](size_t begin, const std::string &what) {
    if (begin != end)
      throw inputError("'" + path + "' has " + std::to_string(begin - end) +
                       " bytes of no tensor before " + what);
  };
  for (const Range &range : ranges) {
    checkFollows(range.begin, "'" + range.name + "'");
    end = range.end;
  }
  checkFollows(bytes.size() - dataStart, "its end");
  return result;
}
