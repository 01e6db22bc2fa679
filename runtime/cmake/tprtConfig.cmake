# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# find_package(tprt): the target tprt::tprt, the runtime that executes artifacts.
include(${CMAKE_CURRENT_LIST_DIR}/tprtTargets.cmake)
