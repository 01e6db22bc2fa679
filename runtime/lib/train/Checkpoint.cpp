//===- Checkpoint.cpp - The state of a training on disk -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Checkpoint.h"

#include "support/Json.h"
#include "support/Parallel.h"
#include "tprt/File.h"
#include "tprt/Report.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <numeric>
#include <set>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace tprt;
using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

static constexpr int64_t schema = 1;
static constexpr const char *manifestName = "checkpoint.json";
static constexpr const char *stems[] = {"model", "optimizer"};
static constexpr std::string_view namePrefix = "step-";
static constexpr std::string_view temporaryMark = ".tmp-";

static std::string nameCheckpoint(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%08lld",
                static_cast<long long>(step));
  return name;
}

int64_t Checkpoint::getNumBytes() const {
  return std::accumulate(
      files.begin(), files.end(), int64_t(0),
      [](int64_t sum, const WrittenFile &file) { return sum + file.numBytes; });
}

//===----------------------------------------------------------------------===//
// checkpoint.json
//===----------------------------------------------------------------------===//

static std::string makeManifest(const Checkpoint &checkpoint) {
  json axes = json::array(), files = json::array();
  for (const MeshAxis &axis : checkpoint.axes)
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  for (const WrittenFile &file : checkpoint.files) {
    char crc[16];
    std::snprintf(crc, sizeof(crc), "%08x", file.crc);
    files.push_back(
        {{"name", file.name}, {"bytes", file.numBytes}, {"crc32", crc}});
  }
  json data = {{"examples", checkpoint.data.numExamples},
               {"position", checkpoint.data.position},
               {"shuffle_seed", nullptr}};
  if (checkpoint.data.seed)
    data["shuffle_seed"] = *checkpoint.data.seed;
  json manifest = {{"schema", schema},
                   {"producer", checkpoint.producer},
                   {"step", checkpoint.step},
                   {"data", data},
                   {"mesh", {{"name", checkpoint.meshName}, {"axes", axes}}},
                   {"files", files}};
  return manifest.dump(2) + "\n";
}

/// Reads checkpoint.json's parsed JSON. Throws if a member is missing or has
/// another type.
static Checkpoint parseManifest(const json &manifest) {
  Checkpoint checkpoint;
  checkpoint.producer = manifest.at("producer").get<std::string>();
  checkpoint.step = getInteger(manifest.at("step"));
  const json &data = manifest.at("data");
  checkpoint.data.numExamples = getInteger(data.at("examples"));
  checkpoint.data.position = getInteger(data.at("position"));
  if (const json &seed = data.at("shuffle_seed"); !seed.is_null()) {
    if (!seed.is_number_unsigned())
      throw inputError("found " + seed.dump() +
                       " as the seed, expected an integer of 0 to 2^64 - 1");
    checkpoint.data.seed = seed.get<uint64_t>();
  }
  const json &mesh = manifest.at("mesh");
  checkpoint.meshName = mesh.at("name").get<std::string>();
  for (const json &axis : mesh.at("axes"))
    checkpoint.axes.push_back(
        {axis.at("name").get<std::string>(), getInteger(axis.at("size"))});
  for (const json &file : manifest.at("files")) {
    std::string name = file.at("name").get<std::string>();
    if (name.empty() || fs::path(name).filename() != name || name == "." ||
        name == ".." || name.find('\0') != name.npos)
      throw inputError("'" + name +
                       "' can't be the name of a checkpoint's file");
    std::string crc = file.at("crc32").get<std::string>();
    uint32_t value = 0;
    auto [end, error] =
        std::from_chars(crc.data(), crc.data() + crc.size(), value, 16);
    if (error != std::errc() || end != crc.data() + crc.size())
      throw inputError("found '" + crc + "' as the crc32 of '" + name +
                       "', expected a hexadecimal number of 32 bits");
    checkpoint.files.push_back(
        {std::move(name), getInteger(file.at("bytes")), value});
  }
  return checkpoint;
}

Checkpoint tprt::readCheckpoint(const std::string &path) {
  std::string manifestPath = path + "/" + manifestName;
  std::error_code none;
  if (!fs::exists(manifestPath, none))
    throw inputError("'" + path + "' is not a checkpoint: it has no " +
                     manifestName);
  std::shared_ptr<const MappedFile> file = MappedFile::open(manifestPath);
  Checkpoint checkpoint;
  try {
    json manifest = parseJson(asText(file->getBytes()));
    int64_t found = getInteger(manifest.at("schema"));
    if (found != schema)
      throw inputError("schema " + std::to_string(found) + ", expected " +
                       std::to_string(schema));
    checkpoint = parseManifest(manifest);
  } catch (const std::exception &error) {
    throw inputError("'" + manifestPath + "' is damaged: " + error.what());
  }
  if (checkpoint.step < 0 || checkpoint.data.position < 0 ||
      checkpoint.data.numExamples < 0)
    throw inputError("'" + manifestPath + "' is damaged: negative numbers");
  checkpoint.path = path;
  std::set<std::string> names;
  for (const WrittenFile &file : checkpoint.files) {
    std::string filePath = path + "/" + file.name;
    if (!names.insert(file.name).second)
      throw inputError("'" + manifestPath + "' lists '" + file.name +
                       "' twice");
    std::error_code error;
    auto size = fs::file_size(filePath, error);
    if (error)
      throw inputError("'" + filePath + "' is missing");
    if (size != static_cast<uint64_t>(file.numBytes))
      throw inputError("'" + filePath + "' has " + std::to_string(size) +
                       " bytes, expected " + std::to_string(file.numBytes));
  }
  for (const char *stem : stems)
    if (std::string index = std::string(stem) + ".safetensors.index.json";
        !names.contains(index))
      throw inputError("'" + manifestPath + "' lists no '" + index + "'");
  return checkpoint;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::vector<std::string> tprt::verifyCheckpoint(const Checkpoint &checkpoint) {
  std::vector<std::string> ofFiles(checkpoint.files.size());
  parallelFor(
      ofFiles.size(), std::thread::hardware_concurrency(), [&](int64_t i) {
        const WrittenFile &file = checkpoint.files[i];
        try {
          if (checksumFile(checkpoint.path, file.name) != file)
            ofFiles[i] = "'" + checkpoint.path + "/" + file.name +
                         "' is damaged: its size or checksum isn't the one "
                         "in " +
                         manifestName;
        } catch (const Error &error) {
          ofFiles[i] = error.what();
        }
      });
  std::vector<std::string> problems;
  std::copy_if(ofFiles.begin(), ofFiles.end(), std::back_inserter(problems),
               [](const std::string &problem) { return !problem.empty(); });
  try {
    readCheckpointTensors(checkpoint);
  } catch (const Error &error) {
    problems.push_back(error.what());
  }
  return problems;
}

std::map<std::string, SafetensorsEntry>
tprt::readCheckpointTensors(const Checkpoint &checkpoint, bool withModel,
                            bool withOptimizer) {
  std::map<std::string, SafetensorsEntry> tensors;
  for (const char *stem : stems)
    if (stem == stems[0] ? withModel : withOptimizer)
      tensors.merge(readWeights(checkpoint.path + "/" + stem +
                                ".safetensors.index.json"));
  return tensors;
}

TensorMap tprt::loadCheckpoint(const Checkpoint &checkpoint,
                               const Manifest &manifest) {
  TensorMap tensors;
  for (const auto &[name, entry] : readCheckpointTensors(checkpoint))
    tensors[name] = entry.tensor;
  // Initial values don't count here: silently resetting state would be worse
  // than an error.
  std::vector<TensorInfo> wanted = manifest.parameters;
  for (TensorInfo &info : wanted)
    info.init.reset();
  std::string problems =
      checkTensors(wanted, tensors, "parameter", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError("checkpoint '" + checkpoint.path +
                     "' doesn't fit the program:\n" + problems);
  return tensors;
}

CheckpointList tprt::listCheckpoints(const std::string &directory) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error)
    throw inputError("cannot list '" + directory + "': " + error.message());
  CheckpointList list;
  for (const fs::directory_entry &entry : entries) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(namePrefix) ||
        name.find(temporaryMark) != std::string::npos)
      continue;
    try {
      list.complete.push_back(readCheckpoint(entry.path().string()));
    } catch (const Error &problem) {
      list.broken.emplace_back(entry.path().string(), problem.what());
    }
  }
  std::sort(
      list.complete.begin(), list.complete.end(),
      [](const Checkpoint &a, const Checkpoint &b) { return a.step < b.step; });
  std::sort(list.broken.begin(), list.broken.end());
  return list;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

CheckpointDirectory::CheckpointDirectory(std::string directory)
    : path(std::move(directory)) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw inputError("cannot create directory '" + path +
                     "': " + error.message());
  std::string lockPath = path + "/lock";
  lock = ::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0)
    throw inputError("cannot open '" + lockPath + "': " + std::strerror(errno));
  // The kernel releases it however this process ends.
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    throw inputError("another process writes checkpoints to '" + path + "'");
  }
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(namePrefix) &&
        name.find(temporaryMark) != std::string::npos)
      fs::remove_all(entry.path(), error);
  }
}

CheckpointDirectory::~CheckpointDirectory() {
  if (lock >= 0)
    ::close(lock);
}

std::string CheckpointDirectory::write(const Session &session, int64_t step,
                                       const DataState &data) {
  return write(
      session.getManifest(),
      [&](const std::string &name) { return session.getParameter(name); }, step,
      data, session.getManifest().worldSize);
}

std::string CheckpointDirectory::write(const Manifest &manifest,
                                       const GetParameter &getParameter,
                                       int64_t step, const DataState &data,
                                       int64_t numThreads) {
  std::string finalPath = path + "/" + nameCheckpoint(step);
  Checkpoint checkpoint;
  checkpoint.path = makeTemporaryName(finalPath + std::string(temporaryMark));
  checkpoint.producer = "tp-run " + std::string(getVersion());
  checkpoint.step = step;
  checkpoint.data = data;
  checkpoint.meshName = manifest.meshName;
  checkpoint.axes = manifest.axes;
  std::error_code error;
  if (!fs::create_directory(checkpoint.path, error))
    throw inputError("cannot create directory '" + checkpoint.path +
                     "': " + error.message());
  try {
    for (const char *stem : stems)
      for (WrittenFile &file : writeShardedSafetensors(
               checkpoint.path, stem,
               distributeOverFiles(collectSources(manifest, getParameter,
                                                  [&](const TensorInfo &info) {
                                                    return isOfOptimizer(
                                                               info) ==
                                                           (stem != stems[0]);
                                                  }),
                                   manifest.worldSize),
               numThreads))
        checkpoint.files.push_back(std::move(file));
    OutputFile file(checkpoint.path + "/" + manifestName);
    file.write(makeManifest(checkpoint));
    file.commit();
    if (fs::exists(finalPath))
      remove(finalPath);
    fs::rename(checkpoint.path, finalPath, error);
    if (error)
      throw inputError("cannot create '" + finalPath + "': " + error.message());
  } catch (...) {
    fs::remove_all(checkpoint.path, error);
    throw;
  }
  syncDirectory(path);
  return finalPath;
}

/// Renames the checkpoint first, so that at any moment it is either complete or
/// gone.
void CheckpointDirectory::remove(const std::string &checkpoint) {
  std::string doomed =
      makeTemporaryName(checkpoint + std::string(temporaryMark));
  std::error_code error;
  fs::rename(checkpoint, doomed, error);
  if (error)
    throw inputError("cannot remove '" + checkpoint + "': " + error.message());
  fs::remove_all(doomed, error);
}

void CheckpointDirectory::keepLast(int64_t count, int64_t step) {
  std::vector<Checkpoint> complete = listCheckpoints(path).complete;
  std::erase_if(complete, [&](const Checkpoint &checkpoint) {
    return checkpoint.step > step;
  });
  for (size_t i = 0; i + count < complete.size(); ++i)
    remove(complete[i].path);
}
