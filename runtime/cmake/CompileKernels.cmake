# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles SOURCE to PTX that all supported drivers take (PTX ISA 7.0: CUDA 11 and newer),
# OUTPUT.ptx, without comments, and to machine code, which the driver need not compile in each
# process, OUTPUT.fatbin. OUTPUT.d lists the headers that it has read.
execute_process(COMMAND ${NVCC} -ptx -arch=compute_80 -std=c++17 -MD -MF ${OUTPUT}.d -MT ${OUTPUT}.ptx
  -I${CMAKE_CURRENT_LIST_DIR}/../include ${SOURCE} -o ${OUTPUT}.ptx COMMAND_ERROR_IS_FATAL ANY)
file(READ ${OUTPUT}.ptx text)
string(REGEX REPLACE "\n//[^\n]*" "" text "\n${text}")
string(REGEX REPLACE "\n\t// [^\n]*" "" text "${text}")
string(REGEX REPLACE "\n[\t ]*\\.pragma \"used_bytes_mask[^\n]*" "" text "${text}") # of a newer ISA
string(REGEX REPLACE "\\.version [0-9.]+" ".version 7.0" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")
string(STRIP "${text}" text)
file(WRITE ${OUTPUT}.ptx "${text}\n")
execute_process(COMMAND ${NVCC} -fatbin -compress-mode=size -gencode arch=compute_80,code=[sm_80,sm_90,sm_100] ${OUTPUT}.ptx
  -o ${OUTPUT}.fatbin COMMAND_ERROR_IS_FATAL ANY)
