/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// The same all-reduces over MPI; see all_reduce.cpp.
//
//     mpirun -n RANKS all_reduce_mpi BYTES CALLS [BYTES CALLS…]

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i + 1 < argc; i += 2) {
    int count = atoi(argv[i]) / 4, calls = atoi(argv[i + 1]);
    float *data = calloc(count, sizeof(float));
    double *seconds = calloc(calls, sizeof(double));
    for (int call = -calls / 5; call < calls; ++call) {
      double start = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      if (call >= 0)
        seconds[call] = MPI_Wtime() - start;
    }
    qsort(seconds, calls, sizeof(double), compare);
    if (rank == 0)
      printf("%.9f\n", seconds[calls / 2]);
    free(seconds);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
