//===- State.cpp - Files of a session's state -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/State.h"

using namespace tprt;

std::vector<TensorSource>
tprt::collectSources(const Manifest &manifest, const GetParameter &getParameter,
                     const std::function<bool(const TensorInfo &)> &isWanted) {
  std::vector<TensorSource> sources;
  for (const TensorInfo &info : manifest.parameters)
    if (isWanted(info))
      sources.push_back(
          makeSource(info.name, info.dtype, info.shape, [&getParameter, &info] {
            return getParameter(info.name);
          }));
  return sources;
}

void tprt::writeState(const std::string &path, const Manifest &manifest,
                      const GetParameter &getParameter) {
  writeSafetensors(
      path, collectSources(manifest, getParameter, [](const TensorInfo &info) {
        return info.isUpdated;
      }));
}

TensorMap tprt::readState(const std::string &path, const Manifest &manifest) {
  std::vector<TensorInfo> wanted;
  for (const TensorInfo &info : manifest.parameters)
    if (info.isUpdated) {
      wanted.push_back(info);
      wanted.back().init.reset(); // a missing tensor is an error
    }
  TensorMap tensors;
  std::string problems;
  for (const auto &[name, entry] : Safetensors::open(path).getEntries()) {
    if (!entry.isSupported)
      problems += "tensor '" + name + "' is of type " + entry.dtypeName +
                  ", which programs don't compute with\n";
    tensors[name] = entry.tensor;
  }
  if (problems.empty())
    problems = checkTensors(wanted, tensors, "tensor", /*allowUnused=*/false);
  // A state isn't rounded.
  for (const TensorInfo &info : wanted)
    if (problems.empty() && tensors.at(info.name).dtype != info.dtype)
      problems = "tensor '" + info.name + "' has type " +
                 tensors.at(info.name).getTypeString() + ", expected " +
                 info.getTypeString();
  if (!problems.empty())
    throw inputError("'" + path + "' isn't a state of this artifact:\n" +
                     problems);
  return tensors;
}
