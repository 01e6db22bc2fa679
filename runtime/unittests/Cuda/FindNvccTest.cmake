# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests which nvcc the build chooses. FOLDER: for programs that stand for it.
file(REMOVE_RECURSE ${FOLDER})
# The folder has the place of the project's.
file(COPY ${CMAKE_CURRENT_LIST_DIR}/../../cmake/FindNvcc.cmake DESTINATION ${FOLDER}/runtime/cmake)
file(WRITE ${FOLDER}/find.cmake
  "include(${FOLDER}/runtime/cmake/FindNvcc.cmake)\nmessage(STATUS \"found '\${nvcc}'\")\n")

function(make_nvcc path version)
  file(WRITE ${FOLDER}/${path}/nvcc
    "#!/bin/sh\necho 'Cuda compilation tools, release ${version}, V${version}.1'\n")
  file(CHMOD ${FOLDER}/${path}/nvcc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
make_nvcc(old/bin 12.7)
make_nvcc(home/bin 12.10)
make_nvcc(path 12.8)
set(venv .venv/lib/python3.11/site-packages/nvidia/cu13/bin)

# check(EXPECTED [MESSAGE…] [OPTIONS options…]): what is chosen, and said.
function(check expected)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env CUDA_HOME=${FOLDER}/${home} CUDA_PATH= PATH=${FOLDER}/path
      ${CMAKE_COMMAND} ${ARG_OPTIONS} -P ${FOLDER}/find.cmake
    OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  foreach(part "found '${expected}'" ${ARG_UNPARSED_ARGUMENTS})
    string(FIND "${text}" "${part}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "expected \"${part}\" in: ${text}")
    endif()
  endforeach()
endfunction()

set(home home)
check(${FOLDER}/home/bin/nvcc)
set(home none)
check(${FOLDER}/path/nvcc)
make_nvcc(${venv} 13.0)
check(${FOLDER}/${venv}/nvcc)
# One that is too old counts as none.
set(old "old/bin/nvcc isn't used: it has version 12.7, version 12.8 or newer is needed")
set(home old)
check(${FOLDER}/${venv}/nvcc "${old}")
check("" "${old}" "libtprt will lack its own kernels" OPTIONS -DTPRT_NVCC=${FOLDER}/old/bin/nvcc)
check("" "isn't used: it doesn't say its version" OPTIONS -DTPRT_NVCC=${FOLDER}/none)
check(${FOLDER}/path/nvcc OPTIONS -DTPRT_NVCC=${FOLDER}/path/nvcc)
