//===- corrupt.c - Changes a message of MPI on its way --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With LD_PRELOAD=libtp-corrupt.so and TP_CORRUPT=RANK:NUMBER, one bit in the
// middle of that rank's message of this number, counted from 0, isn't what it
// was. Handles of MPI are ints or pointers; both take a register.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Send(const void *, int, void *, int, int, void *, void *);

int MPI_Isend(const void *data, int bytes, void *type, int destination, int tag,
              void *communicator, void *request) {
  static long sent = 0;
  Send *send = (Send *)dlsym(RTLD_DEFAULT, "PMPI_Isend");
  const char *where = getenv("TP_CORRUPT"), *rank = getenv("PMI_RANK");
  long chosen = -1, number = -1;
  if (!rank)
    rank = getenv("OMPI_COMM_WORLD_RANK");
  if (where && rank && bytes > 0 &&
      sscanf(where, "%ld:%ld", &chosen, &number) == 2 && atol(rank) == chosen &&
      sent++ == number) {
    char *other = malloc(bytes); // for as long as the message needs it
    memcpy(other, data, bytes);
    other[bytes / 2] ^= 4;
    data = other;
  }
  return send(data, bytes, type, destination, tag, communicator, request);
}
