# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes a page, with its styles, libraries and scripts in it, as a string literal of C++. The places for data stay.
#
#   cmake -DPAGE=page.html -DSTYLES=a.css,b.css -DSCRIPTS=a.js,b.js -DLIBRARIES=third_party/Chart.js,… -DOUT=file
#     -P assemble.cmake
#
# The page has a mark for each: @STYLES@, @SCRIPTS@, @LIBRARIES@ for their script elements, and @LICENSES@ for the text
# of their licenses.
cmake_minimum_required(VERSION 3.25)
foreach(part STYLES SCRIPTS)
  set(${part}_TEXT "")
  string(REPLACE "," ";" files "${${part}}")
  foreach(file ${files})
    file(READ ${file} text)
    string(APPEND ${part}_TEXT "${text}")
  endforeach()
endforeach()
set(LIBRARIES_TEXT "")
set(LICENSES_TEXT "")
string(REPLACE "," ";" libraries "${LIBRARIES}")
foreach(library ${libraries})
  cmake_path(GET library FILENAME name)
  file(GLOB script ${library}/*.min.js)
  file(READ ${script} text)
  string(APPEND LIBRARIES_TEXT "<script>\n${text}\n</script>\n")
  file(READ ${library}/LICENSE text)
  string(APPEND LICENSES_TEXT "${name} is under the following license.\n\n${text}\n")
endforeach()
file(READ ${PAGE} page)
foreach(part STYLES LICENSES LIBRARIES SCRIPTS)
  string(REPLACE "@${part}@" "${${part}_TEXT}" page "${page}")
endforeach()
file(WRITE ${OUT} "R\"PAGE(${page})PAGE\"\n")
