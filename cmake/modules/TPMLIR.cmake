# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MLIR 22 and defines the functions that every folder of the project uses.
#
# MLIR and LLVM are only linked as the two shared libraries, MLIR and LLVM, because a static MLIR
# archive beside them would add a second copy of their globals.

find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "tp-mlir needs LLVM/MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(GNUInstallDirs)

set(TP_SANITIZE "" CACHE STRING "Sanitizers for all of the project's code, as -fsanitize= takes them")
option(TP_WERROR "Treat warnings as errors" OFF)

# Flags for our targets. MLIR is built without exceptions, and so is our code, except for the
# folders that use libraries which throw.
function(tp_compile_options target)
  cmake_parse_arguments(ARG "EXCEPTIONS" "" "" ${ARGN})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # A private header of another folder is included by its path in lib.
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib)
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter
    $<$<BOOL:${TP_WERROR}>:-Werror>
    # The tools spend their time in MLIR's and LLVM's libraries, so -O3 for our code would cost more
    # compile time than it gains.
    $<$<CONFIG:Release>:-O1>
    # std::stable_sort of libstdc++ 12 uses what it deprecates itself. A pragma around it says so,
    # which clang forgets when it reads a precompiled header.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
    # ccache identifies a precompiled header by its contents, not by its time stamp.
    $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  if(NOT ARG_EXCEPTIONS)
    target_compile_options(${target} PRIVATE -fno-exceptions)
  endif()
  if(TP_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TP_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize=vptr)
    target_link_options(${target} PUBLIC -fsanitize=${TP_SANITIZE})
  endif()
endfunction()

# The headers that most of our files include, compiled once. Most of a file's compile time is spent
# in parsing MLIR's headers. There is one target for each level of optimization: tp-pch and, for
# FAST libraries, tp-pch-fast.
function(tp_add_precompiled_headers)
  tp_add_precompiled_header(tp-pch)
  tp_add_precompiled_header(tp-pch-fast)
  tp_optimize(tp-pch-fast)
endfunction()

function(tp_add_precompiled_header name)
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.cpp "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cpp)
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  tp_compile_options(${name})
  add_dependencies(${name} tp-headers)
  target_precompile_headers(${name} PRIVATE
    <tp/Dialect/NN/NN.h>
    <mlir/Dialect/Arith/IR/Arith.h>
    <mlir/Dialect/Func/IR/FuncOps.h>
    <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h>
    <mlir/Dialect/Tensor/IR/Tensor.h>
    <mlir/IR/Builders.h>
    <mlir/IR/PatternMatch.h>
    <mlir/Pass/Pass.h>
    <mlir/Transforms/GreedyPatternRewriteDriver.h>)
endfunction()

# For code in which compilations of large programs spend their time.
function(tp_optimize target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
endfunction()

# tp_add_library(name [sources…] [EXCEPTIONS] [PRIVATE] [FAST] [DEPENDS targets…] [LINK libs…])
# A static library. Its sources, unless given, are those below the current folder, except in
# subfolders with a CMakeLists.txt. Targets that link it also link MLIR and LLVM. It is part of the
# CMake package (cmake/package) unless PRIVATE, and optimized if FAST.
function(tp_add_library name)
  cmake_parse_arguments(ARG "EXCEPTIONS;PRIVATE;FAST" "" "DEPENDS;LINK" ${ARGN})
  set(sources ${ARG_UNPARSED_ARGUMENTS})
  if(NOT sources)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
    file(GLOB_RECURSE folders CONFIGURE_DEPENDS */CMakeLists.txt)
    foreach(folder ${folders})
      cmake_path(GET folder PARENT_PATH folder)
      list(FILTER sources EXCLUDE REGEX "^${folder}/")
    endforeach()
  endif()
  add_library(${name} STATIC ${sources})
  if(ARG_EXCEPTIONS)
    tp_compile_options(${name} EXCEPTIONS)
  else()
    tp_compile_options(${name})
    if(ARG_FAST)
      tp_optimize(${name})
      target_precompile_headers(${name} REUSE_FROM tp-pch-fast)
    else()
      target_precompile_headers(${name} REUSE_FROM tp-pch)
    endif()
  endif()
  add_dependencies(${name} tp-headers ${ARG_DEPENDS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(NOT ARG_PRIVATE)
    install(TARGETS ${name} EXPORT TPMLIRTargets)
  endif()
endfunction()

# tp_add_plugin(name SHARED|MODULE sources… [LINK libs…])
# A shared library that contains the project's static ones. It only exports the C functions of its
# own sources.
function(tp_add_plugin name kind)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} ${kind} ${ARG_UNPARSED_ARGUMENTS})
  tp_compile_options(${name})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_definitions(${name} PRIVATE TP_MLIR_VERSION="${PROJECT_VERSION}")
  add_dependencies(${name} tp-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
endfunction()

# tp_add_tool(name sources… [EXCEPTIONS] [PLUGINS] [COMPONENT name] [LINK libs…])
# With PLUGINS, it exports its symbols and is part of the CMake package, so that plugins can link it.
function(tp_add_tool name)
  cmake_parse_arguments(ARG "EXCEPTIONS;PLUGINS" "COMPONENT" "LINK" ${ARGN})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT tools)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_EXCEPTIONS)
    tp_compile_options(${name} EXCEPTIONS)
  else()
    tp_compile_options(${name})
  endif()
  target_compile_definitions(${name} PRIVATE TP_MLIR_VERSION="${PROJECT_VERSION}")
  add_dependencies(${name} tp-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  if(ARG_PLUGINS)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
    install(TARGETS ${name} EXPORT TPMLIRTargets COMPONENT tools)
  else()
    install(TARGETS ${name} COMPONENT ${ARG_COMPONENT})
  endif()
endfunction()

# tp_tablegen(file.td  OUTPUT.inc -gen-flag …): pairs of output and flag. One
# target, tp-headers, generates all headers.
function(tp_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(args ${ARGN})
  while(args)
    list(POP_FRONT args output flags)
    separate_arguments(flags)
    mlir_tablegen(${output} ${flags} EXTRA_INCLUDES ${PROJECT_SOURCE_DIR}/include ${MLIR_INCLUDE_DIRS})
  endwhile()
  set(name ${CMAKE_CURRENT_SOURCE_DIR}/${td})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${name})
  string(REGEX REPLACE "[/.]" "-" name ${name})
  add_custom_target(${name} DEPENDS ${TABLEGEN_OUTPUT})
  add_dependencies(tp-headers ${name})
endfunction()
