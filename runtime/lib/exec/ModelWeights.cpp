//===- ModelWeights.cpp - The weights of a program from a model's files ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/ModelWeights.h"

#include "support/Json.h"
#include "tprt/File.h"
#include "tprt/Weights.h"

#include <algorithm>
#include <filesystem>
#include <set>

using namespace tprt;
using nlohmann::json;
namespace fs = std::filesystem;

using Entries = std::map<std::string, SafetensorsEntry>;

namespace {

/// The prefix of the program's names, and the one that the files' names have
/// instead. Each is empty or ends with a dot.
struct Prefixes {
  std::string program, files;

  auto operator<=>(const Prefixes &) const = default;

  /// The files' name of a parameter; empty if the parameter lacks the prefix.
  std::string apply(const std::string &name) const {
    return name.starts_with(program) ? files + name.substr(program.size()) : "";
  }
  std::string describe() const {
    if (program.empty())
      return "with the prefix '" + files + "'";
    if (files.empty())
      return "without the prefix '" + program + "'";
    return "with the prefix '" + files + "' instead of '" + program + "'";
  }
};

/// Finds the entry of each parameter.
class NameMatcher {
public:
  NameMatcher(const std::string &path,
              const std::vector<TensorInfo> &parameters, const Entries &entries)
      : path(path), entries(entries) {
    for (const TensorInfo &info : parameters)
      if (entries.contains(info.name))
        found[info.name] = info.name;
      else if (!info.init)
        missing.push_back(&info);
  }

  void match(std::vector<std::string> &notes) {
    matchPrefix(notes);
    matchTied(notes);
  }

  /// By the parameter's name.
  std::map<std::string, std::string> found;

private:
  /// The entry of a parameter by a prefix; empty if there is none, or if the
  /// entry is another parameter's by its own name.
  std::string find(const Prefixes &prefixes, const TensorInfo &info) const {
    std::string name = prefixes.apply(info.name);
    return entries.contains(name) && !found.contains(name) ? name : "";
  }

  /// Calls `use` with each beginning of `name` that ends with a dot, and the
  /// rest of the name.
  template <typename Use>
  static void forEachPrefix(const std::string &name, Use use) {
    for (size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1))
      use(name.substr(0, dot + 1), name.substr(dot + 1));
  }

  /// For each change of the prefix, how many of the missing parameters it
  /// finds.
  std::map<Prefixes, ptrdiff_t> countFound() const {
    // A prefix of all parameters is that of a wrapper, and may stand for
    // another one.
    std::set<std::string> wrappers = {""};
    if (found.empty())
      forEachPrefix(missing.front()->name,
                    [&](const std::string &prefix, const std::string &) {
                      if (std::all_of(missing.begin(), missing.end(),
                                      [&](const TensorInfo *info) {
                                        return info->name.starts_with(prefix);
                                      }))
                        wrappers.insert(prefix);
                    });
    std::map<Prefixes, ptrdiff_t> counts;
    for (const TensorInfo *info : missing) {
      for (const std::string &wrapper : wrappers) {
        std::string_view rest =
            std::string_view(info->name).substr(wrapper.size());
        std::string end = "." + std::string(rest);
        for (const auto &[name, entry] : entries)
          if (name.ends_with(end) && !found.contains(name))
            ++counts[{wrapper, name.substr(0, name.size() - rest.size())}];
      }
      forEachPrefix(info->name,
                    [&](const std::string &prefix, const std::string &rest) {
                      if (entries.contains(rest) && !found.contains(rest))
                        ++counts[{prefix, ""}];
                    });
    }
    return counts;
  }

  void matchPrefix(std::vector<std::string> &notes) {
    if (missing.empty())
      return;
    std::vector<Prefixes> best;
    ptrdiff_t most = 0;
    for (const auto &[prefixes, count] : countFound()) {
      // Only a wrapper's prefix stands for another one, not that of a part.
      bool isReplaced = !prefixes.program.empty() && !prefixes.files.empty();
      if (count < (isReplaced ? std::ssize(missing) : most))
        continue;
      if (count > most)
        best.clear();
      most = std::max(most, count);
      // The same change may be written with a longer prefix on both sides.
      auto isSame = [&, &prefixes = prefixes](const TensorInfo *info) {
        return find(prefixes, *info) == find(best.front(), *info);
      };
      if (best.empty() ||
          (best.size() == 1 &&
           !std::all_of(missing.begin(), missing.end(), isSame)))
        best.push_back(prefixes);
    }
    if (best.empty())
      return;
    auto describe = [&](const Prefixes &prefixes) {
      const TensorInfo *example = *std::find_if(
          missing.begin(), missing.end(), [&](const TensorInfo *info) {
            return !find(prefixes, *info).empty();
          });
      return prefixes.describe() + ": '" + example->name + "' is '" +
             find(prefixes, *example) + "' there";
    };
    if (best.size() > 1)
      throw inputError("'" + path +
                       "' has the weights that the program lacks under two "
                       "names: " +
                       describe(best[0]) + ", or " + describe(best[1]));
    notes.push_back("'" + path + "' has " + std::to_string(most) +
                    (most == 1 ? " weight " : " weights ") +
                    describe(best.front()));
    std::map<std::string, std::string> byPrefix;
    std::erase_if(missing, [&](const TensorInfo *info) {
      std::string name = find(best.front(), *info);
      if (!name.empty())
        byPrefix[info->name] = name;
      return !name.empty();
    });
    found.merge(byPrefix);
  }

  /// The size of the vocabulary, if the directory's model ties its word
  /// embeddings.
  std::optional<int64_t> readTiedVocabulary() const {
    std::string file = path + "/config.json";
    std::error_code error;
    if (!fs::exists(file, error))
      return std::nullopt;
    std::shared_ptr<const MappedFile> mapped = MappedFile::open(file);
    json config;
    try {
      config = parseJson(asText(mapped->getBytes()));
    } catch (const Error &problem) {
      throw inputError("'" + file + "': " + problem.what());
    }
    if (!config.is_object())
      return std::nullopt;
    const json &text =
        config.contains("text_config") && config["text_config"].is_object()
            ? config["text_config"]
            : config;
    auto get = [&](const char *key) {
      return config.contains(key) ? config[key] : text.value(key, json());
    };
    json isTied = get("tie_word_embeddings"), size = get("vocab_size");
    if (!isTied.is_boolean() || !isTied.get<bool>() ||
        !size.is_number_integer())
      return std::nullopt;
    return size.get<int64_t>();
  }

  void matchTied(std::vector<std::string> &notes) {
    if (missing.size() != 1 || missing.front()->shape.size() != 2)
      return;
    const TensorInfo &info = *missing.front();
    if (readTiedVocabulary() != info.shape.front())
      return;
    std::vector<std::string> candidates;
    for (const auto &[name, entry] : entries)
      if (entry.shape == info.shape)
        candidates.push_back(name);
    if (candidates.size() != 1)
      return;
    found[info.name] = candidates.front();
    missing.clear();
    notes.push_back("'" + path + "' has the weight '" + info.name + "' as '" +
                    candidates.front() +
                    "': its config.json ties the word embeddings");
  }

  const std::string &path;
  const Entries &entries;
  /// Not found yet, and without an initial value.
  std::vector<const TensorInfo *> missing;
};

} // namespace

/// Renames what transformers renames when it loads a model (its
/// conversion_mapping.py), in the models that can be imported: parameters of
/// old norms, and GPT-NeoX's head. A name that the program has is left alone.
static void renameAsTransformers(const std::vector<TensorInfo> &parameters,
                                 Entries &entries) {
  static constexpr std::pair<std::string_view, std::string_view> ends[] = {
      {"LayerNorm.gamma", "LayerNorm.weight"},
      {"LayerNorm.beta", "LayerNorm.bias"},
      {"embed_out.weight", "lm_head.weight"},
  };
  for (auto [from, to] : ends) {
    if (std::any_of(parameters.begin(), parameters.end(),
                    [from = from](const TensorInfo &info) {
                      return info.name.ends_with(from);
                    }))
      continue;
    std::vector<std::string> names;
    for (const auto &[name, entry] : entries)
      if (name.ends_with(from))
        names.push_back(name);
    for (const std::string &name : names) {
      std::string renamed = name.substr(0, name.size() - from.size());
      renamed += to;
      if (entries.count(renamed)) // the old name stays, as a surplus weight
        continue;
      auto node = entries.extract(name);
      node.key() = renamed;
      entries.insert(std::move(node));
    }
  }
}

static std::string countWeights(size_t count) {
  return std::to_string(count) + (count == 1 ? " weight" : " weights");
}

/// A note for each pair of float types.
static void noteConversions(const std::vector<TensorInfo> &parameters,
                            ModelWeights &weights) {
  std::map<std::pair<Dtype, Dtype>, size_t> counts;
  for (const TensorInfo &info : parameters)
    if (auto it = weights.tensors.find(info.name); it != weights.tensors.end())
      if (Dtype from = it->second.dtype;
          from != info.dtype && isFloat(from) && isFloat(info.dtype))
        ++counts[{from, info.dtype}];
  for (const auto &[types, count] : counts) {
    auto [from, to] = types;
    bool isExact = to == Dtype::F64 ||
                   (to == Dtype::F32 && byteWidth(from) < byteWidth(to));
    weights.notes.push_back(
        countWeights(count) + (count == 1 ? " is" : " are") +
        (isExact ? " converted from " : " rounded from ") +
        std::string(toString(from)) + " to " + std::string(toString(to)) +
        ", in which the program computes");
  }
}

ModelWeights tprt::readModelWeights(const std::string &path,
                                    const std::vector<TensorInfo> &parameters,
                                    const ModelWeightsOptions &options) {
  Entries entries = readWeights(path, options.mayLeadOutside);
  renameAsTransformers(parameters, entries);
  ModelWeights weights;
  NameMatcher matcher(path, parameters, entries);
  matcher.match(weights.notes);
  std::set<std::string> used;
  for (const auto &[name, entryName] : matcher.found) {
    const SafetensorsEntry &entry = entries.at(entryName);
    if (!entry.isSupported)
      throw inputError("'" + path + "': weight '" + entryName + "' has type " +
                       entry.dtypeName + ", which programs don't compute with");
    weights.tensors[name] = entry.tensor;
    used.insert(entryName);
  }
  std::error_code error;
  bool isDirectory = fs::is_directory(path, error);
  std::vector<std::string> unused;
  for (const auto &[name, entry] : entries)
    if (!used.contains(name))
      unused.push_back(name);
  if (isDirectory && !unused.empty() && !options.allowUnused)
    weights.notes.push_back("the program doesn't use " +
                            countWeights(unused.size()) + " of '" + path +
                            "': " + quotedList(unused, 4));
  if (!isDirectory && !options.allowUnused)
    for (const std::string &name : unused)
      weights.tensors.emplace(name, entries.at(name).tensor);
  noteConversions(parameters, weights);
  return weights;
}
