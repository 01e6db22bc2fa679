//===- Dataset.cpp - Examples and the order they are taken in -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Dataset.h"

#include "tprt/File.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace tprt;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// The finaliser of splitmix64: a bijection that looks random.
static uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

EpochOrder::EpochOrder(int64_t count, uint64_t seed, int64_t epoch)
    : count(count), halfBits((std::bit_width(this->count - 1) + 1) / 2) {
  uint64_t state =
      mix(seed + 0x9e3779b97f4a7c15) ^ static_cast<uint64_t>(epoch);
  for (uint64_t &key : keys)
    key = mix(state += 0x9e3779b97f4a7c15);
}

int64_t EpochOrder::operator[](int64_t index) const {
  uint64_t mask = (uint64_t(1) << halfBits) - 1;
  uint64_t value = index;
  do {
    uint64_t left = value >> halfBits, right = value & mask;
    for (uint64_t key : keys) {
      uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = left << halfBits | right;
  } while (value >= count);
  return value;
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

using Convert = std::function<void(const std::byte *, std::byte *, int64_t)>;

template <typename To, typename From>
static void convertElements(const std::byte *src, std::byte *dst,
                            int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    From from;
    std::memcpy(&from, src + i * sizeof(From), sizeof(From));
    To to = castElement<To>(from);
    std::memcpy(dst + i * sizeof(To), &to, sizeof(To));
  }
}

/// The conversion from NumPy's type `code` ("u2") to `dtype`. Empty if it isn't
/// exact, except for f32 to bf16.
static Convert getConversion(std::string_view code, Dtype dtype) {
  struct Conversion {
    std::string_view code;
    Dtype dtype;
    Convert convert;
  };
  static const Conversion conversions[] = {
      {"u1", Dtype::I64, convertElements<int64_t, uint8_t>},
      {"i1", Dtype::I64, convertElements<int64_t, int8_t>},
      {"u2", Dtype::I64, convertElements<int64_t, uint16_t>},
      {"i2", Dtype::I64, convertElements<int64_t, int16_t>},
      {"u4", Dtype::I64, convertElements<int64_t, uint32_t>},
      {"i4", Dtype::I64, convertElements<int64_t, int32_t>},
      {"i8", Dtype::I64, convertElements<int64_t, int64_t>},
      {"u1", Dtype::I32, convertElements<int32_t, uint8_t>},
      {"i1", Dtype::I32, convertElements<int32_t, int8_t>},
      {"u2", Dtype::I32, convertElements<int32_t, uint16_t>},
      {"i2", Dtype::I32, convertElements<int32_t, int16_t>},
      {"i4", Dtype::I32, convertElements<int32_t, int32_t>},
      {"u1", Dtype::I16, convertElements<int16_t, uint8_t>},
      {"i1", Dtype::I16, convertElements<int16_t, int8_t>},
      {"i2", Dtype::I16, convertElements<int16_t, int16_t>},
      {"i1", Dtype::I8, convertElements<int8_t, int8_t>},
      {"u1", Dtype::UI8, convertElements<uint8_t, uint8_t>},
      {"f2", Dtype::F32, convertElements<float, Half>},
      {"f4", Dtype::F32, convertElements<float, float>},
      {"f2", Dtype::F64, convertElements<double, Half>},
      {"f4", Dtype::F64, convertElements<double, float>},
      {"f8", Dtype::F64, convertElements<double, double>},
      {"f2", Dtype::F16, convertElements<Half, Half>},
      {"V2", Dtype::BF16, convertElements<uint16_t, uint16_t>},
      {"f4", Dtype::BF16, convertElements<BFloat16, float>},
      {"b1", Dtype::I1, convertElements<uint8_t, uint8_t>},
  };
  for (const Conversion &conversion : conversions)
    if (conversion.code == code && conversion.dtype == dtype)
      return conversion.convert;
  return nullptr;
}

/// NumPy's spelling of a dtype, for hints in errors.
static std::string_view getNumPyName(Dtype dtype) {
  switch (dtype) {
  case Dtype::F32:
  case Dtype::BF16:
    return "float32";
  case Dtype::F64:
    return "float64";
  case Dtype::F16:
    return "float16";
  case Dtype::I64:
    return "int64";
  case Dtype::I32:
    return "int32";
  case Dtype::I16:
    return "int16";
  case Dtype::I8:
    return "int8";
  case Dtype::UI8:
    return "uint8";
  case Dtype::I1:
    return "bool";
  }
  return "";
}

std::optional<TokenType> tprt::parseTokenType(std::string_view name) {
  static constexpr std::string_view names[] = {"u16", "u32", "i32", "i64"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<TokenType>(i);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Datasets
//===----------------------------------------------------------------------===//

static const TensorInfo &getInput(const Manifest &manifest,
                                  const std::string &name) {
  std::vector<std::string> names;
  for (const TensorInfo &info : manifest.programs.front().inputs) {
    if (info.name == name)
      return info;
    names.push_back(info.name);
  }
  throw inputError("the program has no input '" + name + "', expected " +
                   quotedList(names, 8) + didYouMean(name, names));
}

static std::string toText(const Shape &shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// Sets the batch size. Checks that all inputs agree on it and that there are
/// enough examples.
void Dataset::setBatchSize(const std::string &what) {
  batchSize = sources.front().input.shape.front();
  for (const Source &source : sources)
    if (source.input.shape.front() != batchSize)
      throw inputError("input '" + source.input.name + "' has " +
                       std::to_string(source.input.shape.front()) +
                       " rows, input '" + sources.front().input.name +
                       "' has " + std::to_string(batchSize) +
                       ": batches need one size");
  if (batchSize < 1)
    throw inputError("input '" + sources.front().input.name +
                     "' takes no examples: its dimension 0 is 0");
  if (numExamples < batchSize)
    throw inputError(what + " " + std::to_string(numExamples) +
                     " examples, too few for a batch of " +
                     std::to_string(batchSize));
}

Dataset Dataset::fromArrays(const Manifest &manifest,
                            const std::map<std::string, std::string> &paths) {
  Dataset dataset;
  std::string firstPath;
  for (const auto &[name, path] : paths) {
    const TensorInfo &info = getInput(manifest, name);
    NpyArray array = readNpyArray(path);
    if (info.shape.empty())
      throw inputError("input '" + name +
                       "' is a scalar, which has no row for each example: "
                       "give it as --input " +
                       name + "=PATH, the same for all steps");
    Shape wanted = info.shape, found = array.shape;
    bool fits = found.size() == wanted.size() &&
                std::equal(found.begin() + 1, found.end(), wanted.begin() + 1);
    if (!fits) {
      std::string text = toText(wanted);
      text.replace(1, std::to_string(wanted[0]).size(), "examples");
      throw inputError("'" + path + "' has shape " + toText(found) +
                       ", expected " + text + " for input '" + name +
                       "' of type " + info.getTypeString());
    }
    Convert convert = getConversion(array.code, info.dtype);
    if (!convert)
      throw inputError(
          "'" + path + "' has elements of type '" + array.code + "', input '" +
          name + "' is " + std::string(toString(info.dtype)) +
          ", which doesn't hold them all exactly: save a.astype('" +
          std::string(getNumPyName(info.dtype)) + "')");
    if (dataset.sources.empty()) {
      dataset.numExamples = found[0];
      firstPath = path;
    } else if (found[0] != dataset.numExamples) {
      throw inputError("'" + path + "' has " + std::to_string(found[0]) +
                       " examples, '" + firstPath + "' has " +
                       std::to_string(dataset.numExamples));
    }
    int64_t elements = 1;
    for (size_t d = 1; d < found.size(); ++d)
      elements *= found[d];
    dataset.sources.push_back({info, array.data, elements * array.elementBytes,
                               elements, std::move(convert)});
  }
  if (dataset.sources.empty())
    throw inputError("no data");
  dataset.setBatchSize("'" + firstPath + "' has");
  return dataset;
}

Dataset Dataset::fromTokens(const Manifest &manifest, const std::string &path,
                            TokenType type, const std::string &ids,
                            const std::string &target) {
  static constexpr std::string_view codes[] = {"u2", "u4", "i4", "i8"};
  std::string_view code = codes[static_cast<size_t>(type)];
  int64_t width = code[1] - '0';
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  int64_t size = file->getBytes().size();
  if (size % width != 0)
    throw inputError("'" + path + "' has " + std::to_string(size) +
                     " bytes, which isn't a multiple of a token's " +
                     std::to_string(width));
  Dataset dataset;
  for (const std::string &name : {ids, target}) {
    const TensorInfo &info = getInput(manifest, name);
    if (info.shape.size() != 2 || info.shape[1] < 1)
      throw inputError("input '" + name + "' has type " + info.getTypeString() +
                       ", expected (batch, tokens) for windows of a token "
                       "file");
    if (!dataset.sources.empty() &&
        info.shape != dataset.sources.front().input.shape)
      throw inputError("input '" + name + "' has type " + info.getTypeString() +
                       ", input '" + ids + "' " +
                       dataset.sources.front().input.getTypeString() +
                       ": windows of a token file need one shape");
    Convert convert = getConversion(code, info.dtype);
    if (!convert)
      throw inputError(
          "input '" + name + "' is " + std::string(toString(info.dtype)) +
          ", which doesn't hold all tokens of '" + path + "' exactly");
    int64_t window = info.shape[1];
    const std::byte *data = file->getBytes().data();
    if (!dataset.sources.empty() && size > 0)
      data += width; // one token further
    dataset.windowSize = window;
    dataset.numExamples = std::max<int64_t>(size / width - 1, 0) / window;
    dataset.sources.push_back(
        {info, {file, data}, window * width, window, std::move(convert)});
  }
  dataset.setBatchSize("'" + path + "' has " + std::to_string(size / width) +
                       " tokens, which are");
  return dataset;
}

bool Dataset::hasInput(std::string_view name) const {
  return std::any_of(sources.begin(), sources.end(), [&](const Source &source) {
    return source.input.name == name;
  });
}

TensorMap Dataset::readBatch(
    int64_t position, std::optional<uint64_t> seed,
    const std::function<bool(const std::string &, int64_t)> &needsRow) const {
  std::vector<int64_t> examples;
  std::optional<EpochOrder> order;
  int64_t orderEpoch = -1;
  for (int64_t i = 0; i < batchSize; ++i) {
    int64_t epoch = (position + i) / numExamples;
    int64_t index = (position + i) % numExamples;
    if (seed && epoch != orderEpoch)
      order.emplace(numExamples, *seed, orderEpoch = epoch);
    examples.push_back(order ? (*order)[index] : index);
  }
  TensorMap batch;
  for (const Source &source : sources) {
    Tensor tensor{source.input.dtype, source.input.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(tensor.getNumBytes());
    int64_t rowBytes = source.elements * byteWidth(tensor.dtype);
    for (int64_t i = 0; i < batchSize; ++i)
      if (needsRow(source.input.name, i))
        source.convert(source.data.get() + examples[i] * source.stride,
                       data.get() + i * rowBytes, source.elements);
    tensor.data = data;
    batch[source.input.name] = tensor;
  }
  return batch;
}

TensorMap Dataset::getBatch(int64_t position,
                            std::optional<uint64_t> seed) const {
  return readBatch(position, seed,
                   [](const std::string &, int64_t) { return true; });
}

TensorMap Dataset::getBatch(int64_t position, std::optional<uint64_t> seed,
                            const Manifest &manifest,
                            const std::vector<int64_t> &ranks) const {
  std::map<std::string, std::vector<bool>> rows;
  for (const TensorInfo &info : manifest.programs.front().inputs) {
    if (!hasInput(info.name))
      continue;
    std::vector<bool> &needed = rows[info.name];
    needed.resize(info.shape[0]);
    for (int64_t rank : ranks)
      for (const Piece &piece : info.shards[rank].dims[0])
        std::fill_n(needed.begin() + piece.offset, piece.size, true);
  }
  return readBatch(position, seed, [&](const std::string &name, int64_t row) {
    return bool(rows.at(name)[row]);
  });
}
