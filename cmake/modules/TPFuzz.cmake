# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fuzzers, built with libFuzzer. Each runs for a while as a test; scripts/fuzz.sh runs them for
# longer, with sanitizers. The seeds of tp-fuzz-NAME are in test/Fuzz/NAME.
#
# If the compiler has no libFuzzer, there are no fuzzers.

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_cxx_source_compiles([[
  #include <cstddef>
  #include <cstdint>
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t *, size_t) { return 0; }
]] TP_HAS_FUZZER)
unset(CMAKE_REQUIRED_FLAGS)
set(TP_FUZZ_SECONDS 1 CACHE STRING "How long each fuzzer runs as a test")

set(TP_FUZZ_SEEDS ${PROJECT_SOURCE_DIR}/test/Fuzz) # the project's folder, also for runtime/

add_custom_target(tp-fuzzers)

# tp_fuzz_test(name): makes the executable tp-fuzz-NAME a fuzzer. libFuzzer sees which code of its
# own sources an input reaches. Libraries must be compiled with -fsanitize=fuzzer-no-link for that.
# With SEEDS_ONLY the test only runs the seeds, without mutating them.
function(tp_fuzz_test name)
  cmake_parse_arguments(ARG "SEEDS_ONLY" "" "" ${ARGN})
  set(target tp-fuzz-${name})
  set(corpus ${CMAKE_CURRENT_BINARY_DIR}/${name})
  tp_test_program(${target})
  add_dependencies(tp-fuzzers ${target})
  target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  file(MAKE_DIRECTORY ${corpus})
  if(ARG_SEEDS_ONLY)
    set(inputs -runs=0 ${TP_FUZZ_SEEDS}/${name})
  else()
    set(inputs -max_total_time=${TP_FUZZ_SECONDS} ${corpus} ${TP_FUZZ_SEEDS}/${name})
  endif()
  add_test(NAME fuzz-${name}
    COMMAND ${target} -timeout=10 -rss_limit_mb=4096 -verbosity=0 -max_len=8192
            -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}- ${inputs})
  set_tests_properties(fuzz-${name} PROPERTIES TIMEOUT 300)
endfunction()
