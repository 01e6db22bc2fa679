//===- GemmChoiceFile.cpp - Choices for products in a file ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/GemmChoiceFile.h"

#include "tprt/File.h"

#include <filesystem>
#include <unistd.h>

using namespace tprt;
using nlohmann::json;

static constexpr int64_t schema = 1;

GemmChoiceFile::GemmChoiceFile(std::string path, json conditions,
                               const std::function<void(const json &)> &parse)
    : path(std::move(path)), conditions(std::move(conditions)) {
  std::error_code error;
  if (!std::filesystem::exists(this->path, error))
    return;
  try {
    std::shared_ptr<const MappedFile> mapped = MappedFile::open(this->path);
    json document = parseJson<json>(asText(mapped->getBytes()));
    if (int64_t found = getInteger(document.at("schema")); found != schema)
      throw inputError("schema " + std::to_string(found) + ", expected " +
                       std::to_string(schema));
    json rest = json::array();
    bool isKnown = false;
    for (json &machine : document.at("machines").get_ref<json::array_t &>()) {
      json found = machine;
      found.erase("products");
      if (found != this->conditions) {
        rest.push_back(std::move(machine));
        continue;
      }
      isKnown = true;
      try {
        for (const json &object : machine.at("products"))
          parse(object);
      } catch (const std::exception &problem) {
        usable = false;
        note = "'" + this->path +
               "' holds no choices for this machine: " + problem.what();
      }
    }
    others = std::move(rest);
    if (!isKnown && !others.empty())
      note = "'" + this->path +
             "' has no entry for this machine: the device or processor, the "
             "libraries' versions or the number of threads differ";
  } catch (const std::exception &problem) {
    usable = false;
    note = "'" + this->path + "' holds no choices: " + problem.what();
  }
}

std::string GemmChoiceFile::findObstacle(bool mayMeasure) const {
  if (!mayMeasure)
    return "processes that share ranks don't measure";
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (::access(directory.empty() ? "." : directory.c_str(), W_OK) != 0)
    return "'" + path + "' can't be written";
  return "";
}

void GemmChoiceFile::write(json choices) const {
  json machines = others;
  json own = conditions;
  own["products"] = std::move(choices);
  machines.push_back(std::move(own));
  OutputFile output(path, /*followsLinks=*/false);
  output.write(json{{"schema", schema}, {"machines", machines}}.dump(1) + "\n");
  output.commit();
}
