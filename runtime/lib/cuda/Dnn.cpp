//===- Dnn.cpp - cuDNN ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Dnn.h"

using namespace tprt;
using namespace tprt::cuda;

Dnn::Dnn() {
  // Earlier versions reject some forms of attention, or compute them wrongly.
  // It finds its parts beside itself. Its engines that are compiled at run time
  // need NVRTC of the toolkit for which it was built.
  Library library({"cuDNN",
                   {"libcudnn.so.9"},
                   {9, 11},
                   {"libnvrtc.so.13", "libnvrtc-builtins.so.13.*",
                    "libnvrtc.so.12", "libnvrtc-builtins.so.12.*"}});
#define TPRT_FUNCTION(name, result, parameters) library.find(#name, name);
  TPRT_CUDNN_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION
  size_t version = cudnnGetVersion(); // 91900 is 9.19.0
  library.checkVersion({static_cast<int32_t>(version / 10000),
                        static_cast<int32_t>(version % 10000 / 100)});
}

const Dnn &Dnn::get() {
  static const Dnn dnn;
  return dnn;
}

std::string Dnn::getVersion() const {
  size_t version = cudnnGetVersion();
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

void Dnn::check(cudnnStatus_t status, const char *function) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return;
  char reason[1024] = {};
  cudnnGetLastErrorString(reason, sizeof(reason));
  throw executionError(std::string(function) + ": " +
                       cudnnGetErrorString(status) +
                       (reason[0] ? std::string(" (") + reason + ")" : ""));
}
