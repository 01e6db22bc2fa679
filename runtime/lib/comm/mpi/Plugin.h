//===- Plugin.h - MPI, independent of its implementation --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Implementations of MPI differ in their ABIs. So the runtime makes its calls
// through a small library for each of them, libtprt-mpi-NAME.so, which is
// compiled with that implementation's mpi.h, linked to it, and loaded if that
// implementation has started the process. Functions return MPI's error codes; 0
// is success.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_MPI_PLUGIN_H
#define TPRT_LIB_COMM_MPI_PLUGIN_H

#include <cstddef>
#include <cstdint>

namespace tprt::mpi {

/// An MPI_Comm or an MPI_Request.
using Handle = uint64_t;

/// Raised with each change of this structure.
constexpr int32_t pluginVersion = 1;

struct Plugin {
  int32_t version;

  /// Whether somebody has called MPI_Init. Sets the implementation's own
  /// version.
  int (*isInitialized)(int *flag, char *version, size_t size);
  /// Initializes MPI for calls from any thread, one at a time; `isThreadSafe`
  /// says if it supports that. Errors are returned from now on. `numLocal` are
  /// the ranks on this host.
  int (*initialize)(int *rank, int *worldSize, int *numLocal,
                    int *isThreadSafe);
  int (*finalize)();
  /// A communicator of all ranks, for the runtime alone.
  int (*duplicateWorld)(Handle *comm);

  int (*send)(Handle comm, const void *data, int bytes, int destination,
              int tag, Handle *request);
  int (*receive)(Handle comm, void *data, int bytes, int source, int tag,
                 Handle *request);
  /// If the request is done, frees it; `bytes` are those that it has received.
  int (*test)(Handle *request, int *isDone, int *bytes);
  /// Gives a receive up.
  int (*cancel)(Handle request);

  void (*describeError)(int code, char *text, size_t size);
};

/// The only symbol of a plug-in.
using GetPlugin = const Plugin *();
constexpr const char *getPluginSymbol = "tprt_mpi_plugin";

} // namespace tprt::mpi

#endif // TPRT_LIB_COMM_MPI_PLUGIN_H
