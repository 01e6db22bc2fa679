# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs the tests of collectives in SIZE processes that MPIRUN starts. Each process runs all of them
# as its rank.
if(NOT MPIRUN)
  message(STATUS "skipped: this implementation of MPI isn't installed")
  return()
endif()
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
execute_process(COMMAND ${MPIRUN} -n ${SIZE} ${PROGRAM} --gtest_filter=*CollectiveTest*/mpi_* --gtest_brief=1 --gtest_color=no
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
string(REGEX MATCHALL "[1-9][0-9]* tests[.]" passed "${output}") # of each process
list(LENGTH passed count)
if(NOT result EQUAL 0 OR NOT count EQUAL SIZE)
  message(FATAL_ERROR "${output}\n${count} of ${SIZE} processes have passed, ${MPIRUN} has ended with ${result}")
endif()
message(STATUS "${count} processes: ${passed}")
