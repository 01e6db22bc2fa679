# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sets nvcc to the compiler of the runtime's kernels, or to nothing. It is TPRT_NVCC if that is
# given, else the first one in $CUDA_HOME, $CUDA_PATH, .venv, $PATH and /usr/local/cuda that is new
# enough.

# Sets the variable that `result` names to FALSE, and says why, if the program can't compile the
# kernels. find_program() calls it for each program that it finds.
function(tprt_check_nvcc result program)
  set(oldest 12.8) # the first one for sm_100
  execute_process(COMMAND ${program} --version
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT text MATCHES "release ([0-9]+\\.[0-9]+)")
    message(WARNING "${program} isn't used: it doesn't say its version")
    set(${result} FALSE PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 VERSION_LESS oldest)
    message(WARNING
      "${program} isn't used: it has version ${CMAKE_MATCH_1}, version ${oldest} or newer is needed")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

file(GLOB wheels ${CMAKE_CURRENT_LIST_DIR}/../../.venv/lib/python3.*/site-packages/nvidia/cu13)
find_program(TPRT_NVCC nvcc HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${wheels} PATHS /usr/local/cuda
  PATH_SUFFIXES bin VALIDATOR tprt_check_nvcc)
set(nvcc)
if(TPRT_NVCC)
  set(is_usable TRUE)
  tprt_check_nvcc(is_usable ${TPRT_NVCC}) # which find_program() doesn't do if it is given
  if(is_usable)
    set(nvcc ${TPRT_NVCC})
  endif()
endif()
if(NOT nvcc)
  message(STATUS "No nvcc (TPRT_NVCC, CUDA_HOME): libtprt will lack its own kernels for CUDA devices")
endif()
