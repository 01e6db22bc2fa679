# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Assembles the file PTX by PTXAS for the devices that the library has machine code for. No kernel
# may spill registers.
cmake_path(GET PTX STEM name)
foreach(architecture sm_80 sm_90 sm_100)
  execute_process(COMMAND ${PTXAS} -v -arch=${architecture} ${PTX} -o ${FOLDER}/${name}.${architecture}.cubin
    OUTPUT_VARIABLE log ERROR_VARIABLE log COMMAND_ERROR_IS_FATAL ANY COMMAND_ECHO STDOUT)
  string(REGEX MATCHALL "Compiling entry function '[^\n]*|[1-9][0-9]* bytes spill [^\n]*" lines "${log}")
  string(REGEX MATCH "[^;]*;[1-9][0-9]* bytes spill [^;]*" spilled "${lines}")
  if(spilled)
    message(FATAL_ERROR "${architecture}: ${spilled}")
  endif()
endforeach()
