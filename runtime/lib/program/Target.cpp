//===- Target.cpp - Compatibility of machines and code --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "program/Target.h"

#include <fstream>
#include <set>
#include <sstream>

using namespace tprt;

#if defined(__x86_64__)
static constexpr std::string_view hostArchitecture = "x86_64";
#elif defined(__aarch64__)
static constexpr std::string_view hostArchitecture = "aarch64";
#else
static constexpr std::string_view hostArchitecture = "";
#endif

namespace {
/// A feature's name in LLVM and in the kernel.
struct Feature {
  std::string_view llvm;
  std::string_view kernel;
};
} // namespace

static constexpr Feature checkedFeatures[] = {
    {"sse3", "pni"},
    {"ssse3", "ssse3"},
    {"sse4.1", "sse4_1"},
    {"sse4.2", "sse4_2"},
    {"sse4a", "sse4a"},
    {"popcnt", "popcnt"},
    {"lzcnt", "abm"},
    {"bmi", "bmi1"},
    {"bmi2", "bmi2"},
    {"adx", "adx"},
    {"movbe", "movbe"},
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"fma", "fma"},
    {"fma4", "fma4"},
    {"xop", "xop"},
    {"f16c", "f16c"},
    {"gfni", "gfni"},
    {"avxvnni", "avx_vnni"},
    {"avx512f", "avx512f"},
    {"avx512bw", "avx512bw"},
    {"avx512cd", "avx512cd"},
    {"avx512dq", "avx512dq"},
    {"avx512vl", "avx512vl"},
    {"avx512ifma", "avx512ifma"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512bitalg", "avx512_bitalg"},
    {"avx512vpopcntdq", "avx512_vpopcntdq"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512fp16", "avx512_fp16"},
    // AArch64
    {"neon", "asimd"},
    {"lse", "atomics"},
    {"fullfp16", "asimdhp"},
    {"dotprod", "asimddp"},
    {"bf16", "bf16"},
    {"i8mm", "i8mm"},
    {"sve", "sve"},
    {"sve2", "sve2"},
};

/// The words after "flags" (x86) or "Features" (AArch64) of the first CPU.
static std::set<std::string> readHostFeatures() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (!line.starts_with("flags") && !line.starts_with("Features"))
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> features;
    for (std::string word; words >> word;)
      features.insert(word);
    return features;
  }
  return {};
}

/// Those of `features` that are not among `host`, the kernel's names.
static std::vector<std::string>
getMissing(const std::vector<std::string> &features,
           const std::set<std::string> &host) {
  std::vector<std::string> missing;
  for (const std::string &feature : features)
    for (const Feature &known : checkedFeatures)
      if (feature == "+" + std::string(known.llvm) &&
          !host.contains(std::string(known.kernel)))
        missing.push_back(std::string(known.llvm));
  return missing;
}

size_t tprt::chooseCode(const Manifest &manifest) {
  std::string architecture =
      manifest.triple.substr(0, manifest.triple.find('-'));
  if (!hostArchitecture.empty() && architecture != hostArchitecture)
    throw inputError("compiled for '" + manifest.triple +
                     "', but this machine is " + std::string(hostArchitecture));
  std::set<std::string> host = readHostFeatures();
  if (host.empty())
    return 0;
  for (size_t i = manifest.variants.size(); i-- > 0;)
    if (getMissing(manifest.variants[i], host).empty())
      return i + 1;
  std::vector<std::string> missing = getMissing(manifest.features, host);
  if (!missing.empty())
    throw inputError("compiled for CPU features that this machine lacks: " +
                     quotedList(missing));
  return 0;
}
