# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tp_add_page(out PAGE page.html [STYLES a.css…] [SCRIPTS a.js…] [LIBRARIES folder…])
# Assembles a page for a web browser into the file `out`, a string literal of C++. All pages have the styles and scripts
# of this folder, before their own, and Chart.js. Libraries are folders of third_party.
function(tp_add_page out)
  cmake_parse_arguments(ARG "" "PAGE" "STYLES;SCRIPTS;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_STYLES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM ARG_SCRIPTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(styles ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/base.css ${ARG_STYLES})
  set(scripts ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/elements.js ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/charts.js ${ARG_SCRIPTS})
  set(libraries Chart.js ${ARG_LIBRARIES})
  list(TRANSFORM libraries PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../third_party/)
  set(library_files)
  foreach(library ${libraries})
    file(GLOB files ${library}/*)
    list(APPEND library_files ${files})
  endforeach()
  foreach(list styles scripts libraries)
    string(JOIN "," ${list}_text ${${list}})
  endforeach()
  set(page ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_PAGE})
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${page} -DSTYLES=${styles_text} -DSCRIPTS=${scripts_text}
      -DLIBRARIES=${libraries_text} -DOUT=${out} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/assemble.cmake
    DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/assemble.cmake ${page} ${styles} ${scripts} ${library_files}
    COMMENT "Assembling ${ARG_PAGE}" VERBATIM)
endfunction()
