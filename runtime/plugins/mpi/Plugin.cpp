//===- Plugin.cpp - The calls of one implementation of MPI ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/mpi/Plugin.h"

#include <cstring>
#include <mpi.h>

using namespace tprt::mpi;

/// Handles are pointers in some implementations, and numbers in others.
template <typename Own>
static Handle toHandle(Own own) {
  static_assert(sizeof(Own) <= sizeof(Handle));
  Handle handle = 0;
  std::memcpy(&handle, &own, sizeof(Own));
  return handle;
}

template <typename Own>
static Own fromHandle(Handle handle) {
  Own own;
  std::memcpy(&own, &handle, sizeof(Own));
  return own;
}

/// The first line of `text`.
static void copyLine(const char *text, char *line, size_t size) {
  size_t length = std::strcspn(text, "\n");
  length = length < size ? length : size - 1;
  std::memcpy(line, text, length);
  line[length] = '\0';
}

static int isInitialized(int *flag, char *version, size_t size) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  copyLine(text, version, size);
  return MPI_Initialized(flag);
}

static int initialize(int *rank, int *worldSize, int *numLocal,
                      int *isThreadSafe) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Comm local = MPI_COMM_NULL;
  int code =
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  *isThreadSafe = provided >= MPI_THREAD_SERIALIZED;
  if (code == MPI_SUCCESS)
    code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_size(MPI_COMM_WORLD, worldSize);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, *rank,
                               MPI_INFO_NULL, &local);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_size(local, numLocal);
  return code == MPI_SUCCESS ? MPI_Comm_free(&local) : code;
}

static int duplicateWorld(Handle *comm) {
  MPI_Comm made = MPI_COMM_NULL;
  int code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
  *comm = toHandle(made);
  return code;
}

static int send(Handle comm, const void *data, int bytes, int destination,
                int tag, Handle *request) {
  MPI_Request made = MPI_REQUEST_NULL;
  int code = MPI_Isend(data, bytes, MPI_BYTE, destination, tag,
                       fromHandle<MPI_Comm>(comm), &made);
  *request = toHandle(made);
  return code;
}

static int receive(Handle comm, void *data, int bytes, int source, int tag,
                   Handle *request) {
  MPI_Request made = MPI_REQUEST_NULL;
  int code = MPI_Irecv(data, bytes, MPI_BYTE, source, tag,
                       fromHandle<MPI_Comm>(comm), &made);
  *request = toHandle(made);
  return code;
}

static int test(Handle *request, int *isDone, int *bytes) {
  auto own = fromHandle<MPI_Request>(*request);
  MPI_Status status;
  int code = MPI_Test(&own, isDone, &status);
  *request = toHandle(own);
  return code == MPI_SUCCESS && *isDone
             ? MPI_Get_count(&status, MPI_BYTE, bytes)
             : code;
}

static int cancel(Handle request) {
  auto own = fromHandle<MPI_Request>(request);
  int code = MPI_Cancel(&own);
  return code == MPI_SUCCESS ? MPI_Request_free(&own) : code;
}

static void describeError(int code, char *text, size_t size) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, whole, &length);
  copyLine(whole, text, size);
}

extern "C" __attribute__((visibility("default"))) const Plugin *
tprt_mpi_plugin() {
  static const Plugin plugin = {.version = pluginVersion,
                                .isInitialized = isInitialized,
                                .initialize = initialize,
                                .finalize = [] { return MPI_Finalize(); },
                                .duplicateWorld = duplicateWorld,
                                .send = send,
                                .receive = receive,
                                .test = test,
                                .cancel = cancel,
                                .describeError = describeError};
  return &plugin;
}
