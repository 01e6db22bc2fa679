//===- Weights.cpp - Models in one or several safetensors files -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Weights.h"

#include "support/Checksum.h"
#include "support/Json.h"
#include "support/Parallel.h"
#include "tprt/File.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <set>

using namespace tprt;
using nlohmann::json;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static std::map<std::string, std::string> readIndex(const std::string &path,
                                                    bool mayLeadOutside) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  json index;
  try {
    index = parseJson(asText(file->getBytes()));
  } catch (const Error &error) {
    throw inputError("'" + path +
                     "' is not an index of safetensors files: " + error.what());
  }
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    throw inputError("'" + path +
                     "' is not an index of safetensors files: expected a JSON "
                     "object with 'weight_map'");
  std::map<std::string, std::string> files;
  for (const auto &[name, value] : index["weight_map"].items()) {
    std::string fileName =
        value.is_string() ? value.get<std::string>() : std::string();
    bool isPath = !fileName.empty() && fileName.find('\0') == fileName.npos;
    if (!isPath || fs::path(fileName).is_absolute())
      throw inputError("'" + path + "': tensor '" + name +
                       "' has no file: found " + value.dump() +
                       ", expected a path relative to the index");
    fs::path normal = fs::path(fileName).lexically_normal();
    if (!mayLeadOutside && *normal.begin() == "..")
      throw inputError("'" + path + "': tensor '" + name + "' is in '" +
                       fileName +
                       "', outside of the index's directory: give "
                       "--allow-outside-weights if that file may be read");
    // Normalized, because ".." after a symbolic link would lead elsewhere.
    files[name] = normal.string();
  }
  return files;
}

/// The command that writes a directory's pickles as one safetensors file.
static std::string convertPickles(const std::string &directory) {
  // Tensors that share memory are refused there, hence the clones.
  std::string quoted = "'";
  for (char c : directory)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "python3 -c \"import glob, sys, torch; from safetensors.torch import "
         "save_file; w = {}; [w.update(torch.load(f, map_location='cpu', "
         "weights_only=True)) for f in glob.glob(sys.argv[1] + "
         "'/pytorch_model*.bin')]; save_file({k: v.clone().contiguous() for k, "
         "v in w.items()}, sys.argv[1] + '/model.safetensors', {'format': "
         "'pt'})\" " +
         quoted + "'";
}

/// What a directory holds instead of weights that can be found, and what to do.
static std::string describeLack(const std::string &directory) {
  std::set<std::string> shards;
  std::error_code error;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(directory, error))
    if (std::string name = entry.path().filename().string();
        name.starts_with("model-") && name.ends_with(".safetensors"))
      shards.insert(name);
  if (!shards.empty())
    return " holds " + quotedList({shards.begin(), shards.end()}, 2) +
           ", but not model.safetensors.index.json, which says which weight is "
           "in which file: download that file as well";
  std::string lack = " holds neither model.safetensors nor "
                     "model.safetensors.index.json";
  if (fs::exists(directory + "/config.json", error))
    lack += ", only the model's configuration: download its weights as well";
  return lack;
}

/// The safetensors file or the index that a file or a directory stands for.
static std::string findWeights(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) // opening it reports errors
    return path;
  std::string single = path + "/model.safetensors";
  std::string index = single + ".index.json";
  bool isSingle = fs::exists(single, error);
  bool isPickled = fs::exists(path + "/pytorch_model.bin", error) ||
                   fs::exists(path + "/pytorch_model.bin.index.json", error);
  if (!isSingle && !fs::exists(index, error) && isPickled)
    throw inputError("directory '" + path +
                     "' holds pickles, pytorch_model*.bin, expected "
                     "safetensors files: write them with\n" +
                     convertPickles(path));
  if (!isSingle && !fs::exists(index, error))
    throw inputError("directory '" + path + "'" + describeLack(path));
  return isSingle ? single : index;
}

static bool isIndex(const std::string &path) { return path.ends_with(".json"); }

/// A file that the index at `path` names.
static std::string getShard(const std::string &path, const std::string &name) {
  return (fs::path(path).parent_path() / name).string();
}

/// Throws an input error that lists all files that the index names and that
/// aren't there, as after an interrupted download.
static void checkShardsExist(const std::string &path,
                             const std::map<std::string, std::string> &index) {
  std::set<std::string> names, missing;
  for (const auto &[name, fileName] : index) {
    std::error_code error;
    names.insert(fileName);
    if (!fs::exists(getShard(path, fileName), error))
      missing.insert(fileName);
  }
  if (!missing.empty())
    throw inputError("'" + path + "' names " + std::to_string(names.size()) +
                     (names.size() == 1 ? " file, of which "
                                        : " files, of "
                                          "which ") +
                     std::to_string(missing.size()) +
                     (missing.size() == 1 ? " isn't" : " aren't") + " there: " +
                     quotedList({missing.begin(), missing.end()}, 4));
}

std::vector<std::string> tprt::listWeightFiles(const std::string &given,
                                               bool mayLeadOutside) {
  std::string path = findWeights(given);
  std::set<std::string> files = {path};
  if (isIndex(path))
    for (const auto &[name, fileName] : readIndex(path, mayLeadOutside))
      files.insert(getShard(path, fileName));
  return {files.begin(), files.end()};
}

std::map<std::string, SafetensorsEntry>
tprt::readWeights(const std::string &given, bool mayLeadOutside) {
  std::string path = findWeights(given);
  if (std::string foreign = describeTorchFile(path); !foreign.empty())
    throw inputError("'" + path + "' is " + foreign +
                     ", expected a safetensors file: tp-import --weights "
                     "writes a traced model's, safetensors.torch.save_file a "
                     "state_dict");
  if (!isIndex(path))
    return Safetensors::open(path).getEntries();
  std::map<std::string, std::map<std::string, SafetensorsEntry>> files;
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> index = readIndex(path, mayLeadOutside);
  checkShardsExist(path, index);
  for (const auto &[name, fileName] : index) {
    std::string filePath = getShard(path, fileName);
    auto [file, isNew] = files.try_emplace(fileName);
    if (isNew)
      file->second = Safetensors::open(filePath).getEntries();
    auto found = file->second.find(name);
    if (found == file->second.end())
      throw inputError("'" + filePath + "' has no tensor '" + name +
                       "', which '" + path + "' says is there");
    entries.insert(*found);
  }
  return entries;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

TensorSource tprt::makeSource(const std::string &name,
                              const SafetensorsEntry &entry) {
  return {name, entry.dtypeName, entry.shape, entry.numBytes,
          [data = entry.data] { return data; }};
}

TensorSource tprt::makeSource(const std::string &name, Dtype dtype,
                              const Shape &shape,
                              std::function<Tensor()> read) {
  return {name, std::string(getSafetensorsName(dtype)), shape,
          numElements(shape) * byteWidth(dtype),
          [read = std::move(read)] { return read().data; }};
}

static int64_t sumBytes(const std::vector<TensorSource> &tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), int64_t(0),
                         [](int64_t sum, const TensorSource &tensor) {
                           return sum + tensor.numBytes;
                         });
}

WrittenFile tprt::checksumFile(const std::string &directory,
                               const std::string &name) {
  std::shared_ptr<const MappedFile> file =
      MappedFile::open(directory + "/" + name);
  std::span<const std::byte> bytes = file->getBytes();
  return {name, static_cast<int64_t>(bytes.size()),
          updateCrc(0, bytes.data(), bytes.size())};
}

namespace {

/// A file whose checksum is computed as it is written.
class SummedFile {
public:
  explicit SummedFile(const std::string &path)
      : file(path), written{std::filesystem::path(path).filename()} {}

  void write(const void *data, size_t bytes) {
    file.write(data, bytes);
    written.numBytes += bytes;
    written.crc = updateCrc(written.crc, data, bytes);
  }
  void write(std::string_view text) { write(text.data(), text.size()); }
  WrittenFile commit() {
    file.commit();
    return written;
  }

private:
  OutputFile file;
  WrittenFile written;
};

} // namespace

WrittenFile tprt::writeSafetensors(const std::string &path,
                                   std::vector<TensorSource> tensors) {
  // Readers don't allow gaps between tensors.
  auto isOdd = [](const TensorSource &tensor) {
    return tensor.numBytes % static_cast<int64_t>(blockAlignment) != 0;
  };
  std::sort(tensors.begin(), tensors.end(),
            [&](const TensorSource &a, const TensorSource &b) {
              return std::pair(isOdd(a), std::string_view(a.name)) <
                     std::pair(isOdd(b), std::string_view(b.name));
            });
  // transformers asks which framework's layout this is.
  json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (const TensorSource &tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtypeName},
        {"shape", tensor.shape},
        {"data_offsets", {offset, offset + tensor.numBytes}}};
    offset += tensor.numBytes;
  }
  std::string text = header.dump();
  uint64_t size = text.size();
  size += -(size + sizeof(size)) % blockAlignment;
  text.resize(size, ' ');

  SummedFile file(path);
  file.write(&size, sizeof(size));
  file.write(text);
  for (const TensorSource &tensor : tensors)
    file.write(tensor.read().get(), tensor.numBytes);
  return file.commit();
}

WrittenFile tprt::writeSafetensors(const std::string &directory,
                                   const std::string &name,
                                   std::vector<TensorSource> tensors) {
  return writeSafetensors(directory + "/" + name, std::move(tensors));
}

std::vector<std::vector<TensorSource>>
tprt::distributeOverFiles(std::vector<TensorSource> tensors, int64_t numFiles) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSource &a, const TensorSource &b) {
              return std::pair(-a.numBytes, std::string_view(a.name)) <
                     std::pair(-b.numBytes, std::string_view(b.name));
            });
  numFiles =
      std::clamp<int64_t>(numFiles, 1, std::max<int64_t>(tensors.size(), 1));
  std::vector<std::vector<TensorSource>> files(numFiles);
  std::vector<int64_t> bytes(numFiles);
  for (TensorSource &tensor : tensors) {
    // Among equally filled files, takes the one with the fewest tensors, so
    // that none stays empty.
    size_t least = 0;
    for (size_t i = 1; i < files.size(); ++i)
      if (std::pair(bytes[i], files[i].size()) <
          std::pair(bytes[least], files[least].size()))
        least = i;
    bytes[least] += tensor.numBytes;
    files[least].push_back(std::move(tensor));
  }
  return files;
}

std::vector<std::vector<TensorSource>>
tprt::distributeByBytes(std::vector<TensorSource> tensors, int64_t maxBytes) {
  std::vector<std::vector<TensorSource>> files(1);
  int64_t bytes = 0;
  for (TensorSource &tensor : tensors) {
    if (!files.back().empty() && bytes + tensor.numBytes > maxBytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += tensor.numBytes;
    files.back().push_back(std::move(tensor));
  }
  return files;
}

/// "model-00001-of-00003.safetensors".
static std::string nameShard(const std::string &stem, size_t index,
                             size_t count) {
  char numbers[48];
  std::snprintf(numbers, sizeof(numbers), "-%05zu-of-%05zu.safetensors",
                index + 1, count);
  return stem + numbers;
}

static WrittenFile
writeIndex(const std::string &directory, const std::string &stem,
           const std::vector<std::vector<TensorSource>> &files) {
  json weightMap = json::object();
  int64_t totalBytes = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    for (const TensorSource &tensor : files[i])
      weightMap[tensor.name] = nameShard(stem, i, files.size());
    totalBytes += sumBytes(files[i]);
  }
  json index = {{"metadata", {{"total_size", totalBytes}}},
                {"weight_map", std::move(weightMap)}};
  SummedFile file(directory + "/" + stem + ".safetensors.index.json");
  file.write(index.dump(2) + "\n");
  return file.commit();
}

std::vector<WrittenFile> tprt::writeShardedSafetensors(
    const std::string &directory, const std::string &stem,
    const std::vector<std::vector<TensorSource>> &files, int64_t numThreads) {
  std::vector<WrittenFile> written(files.size());
  parallelFor(files.size(), numThreads, [&](int64_t i) {
    written[i] =
        writeSafetensors(directory, nameShard(stem, i, files.size()), files[i]);
  });
  written.push_back(writeIndex(directory, stem, files));
  return written;
}
