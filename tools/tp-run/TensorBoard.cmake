# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The messages of TensorBoard's event files, from third_party, for the library without reflection.
cmake_path(SET protos NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../third_party/tensorboard)
file(GLOB messages CONFIGURE_DEPENDS RELATIVE ${protos} ${protos}/tensorboard/compat/proto/*.proto)
set(paths ${messages})
list(TRANSFORM paths PREPEND ${protos}/)
set(generated)
foreach(message ${messages})
  string(REGEX REPLACE "\\.proto$" ".pb" file ${CMAKE_CURRENT_BINARY_DIR}/${message})
  list(APPEND generated ${file}.cc ${file}.h)
endforeach()
add_custom_command(OUTPUT ${generated}
  COMMAND protobuf::protoc --cpp_out=lite:${CMAKE_CURRENT_BINARY_DIR} -I ${protos} ${messages}
  DEPENDS ${paths}
  WORKING_DIRECTORY ${protos}
  COMMENT "Generating the messages of TensorBoard" VERBATIM)
add_library(tp-tensorboard OBJECT ${generated})
target_include_directories(tp-tensorboard SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(tp-tensorboard PUBLIC protobuf::libprotobuf-lite)
target_compile_definitions(tp-run PRIVATE TP_TENSORBOARD)
target_link_libraries(tp-run PRIVATE tp-tensorboard)
