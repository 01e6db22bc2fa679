# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles SOURCE to PTX that all supported drivers take (PTX ISA 7.0: CUDA 11 and newer), and writes it to OUTPUT
# without comments, which name the compiler. With EXPECTED, also compares it with this file, if the compiler is the one
# that made it.
execute_process(COMMAND ${NVCC} -ptx -arch=compute_80 -std=c++17 -I${CMAKE_CURRENT_LIST_DIR}/../include ${SOURCE} -o ${OUTPUT}
  COMMAND_ERROR_IS_FATAL ANY)
file(READ ${OUTPUT} text)
string(REGEX REPLACE "\n//[^\n]*" "" text "\n${text}")
string(REGEX REPLACE "\n\t// [^\n]*" "" text "${text}")
string(REGEX REPLACE "\\.version [0-9.]+" ".version 7.0" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")
string(STRIP "${text}" text)
file(WRITE ${OUTPUT} "${text}\n")

if(EXPECTED)
  set(made_by "release 13.0")
  execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE version)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUTPUT} ${EXPECTED} RESULT_VARIABLE differs)
  if(differs AND version MATCHES "${made_by}")
    message(FATAL_ERROR "${EXPECTED} isn't what ${SOURCE} gives: build the target tprt-ptx")
  endif()
endif()
