//===- OneDnn.cpp - Products by oneDNN, where it is installed -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/OneDnn.h"

#include "tprt/Error.h"

#include <dlfcn.h>

using namespace tprt;

namespace {

/// The beginning of dnnl_version_t.
struct VersionNumbers {
  int major, minor, patch;
};

} // namespace

std::optional<OneDnn> OneDnn::load() {
  for (const char *file : {"libdnnl.so.3", "libdnnl.so.2"}) {
    void *handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      continue;
    OneDnn library;
    auto find = [&](const char *symbol, auto *&function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          ::dlsym(handle, symbol)); // also searches its dependencies
      return function != nullptr;
    };
    const VersionNumbers *(*getNumbers)() = nullptr;
    if (!find("dnnl_sgemm", library.sgemm) ||
        !find("dnnl_version", getNumbers) ||
        !find("omp_set_num_threads", library.setThreads))
      continue;
    const VersionNumbers &numbers = *getNumbers();
    library.version = std::to_string(numbers.major) + "." +
                      std::to_string(numbers.minor) + "." +
                      std::to_string(numbers.patch);
    return library;
  }
  return std::nullopt;
}

const OneDnn *OneDnn::get() {
  static const std::optional<OneDnn> library = load();
  return library ? &*library : nullptr;
}

void OneDnn::multiply(bool isATransposed, bool isBTransposed, int64_t m,
                      int64_t n, int64_t k, const float *a, int64_t leadingA,
                      const float *b, int64_t leadingB, float beta, float *c,
                      int64_t leadingC, int numThreads) const {
  setThreads(numThreads); // for this thread's calls
  int status = sgemm(isATransposed ? 'T' : 'N', isBTransposed ? 'T' : 'N', m, n,
                     k, 1.0f, a, leadingA, b, leadingB, beta, c, leadingC);
  if (status != 0)
    throw executionError("dnnl_sgemm of a " + std::to_string(m) + " x " +
                         std::to_string(n) + " x " + std::to_string(k) +
                         " product failed with status " +
                         std::to_string(status));
}
