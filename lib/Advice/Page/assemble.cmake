# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes the report's page, with its style and scripts in it, as a string literal of C++. The two places for the data stay.
#
#   cmake -DPAGE=page.html -DSTYLE=page.css -DSCRIPTS=a.js,b.js -DCHART=chart.min.js -DCHART_LICENSE=LICENSE
#     -DGRAPH=dagre.min.js -DGRAPH_LICENSE=LICENSE -DOUT=file -P assemble.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${PAGE} page)
string(REPLACE "," ";" scripts "${SCRIPTS}")
set(SCRIPTS_TEXT "")
foreach(script ${scripts})
  file(READ ${script} text)
  string(APPEND SCRIPTS_TEXT "${text}")
endforeach()
foreach(part STYLE CHART_LICENSE CHART GRAPH_LICENSE GRAPH)
  file(READ ${${part}} text)
  string(REPLACE "@${part}@" "${text}" page "${page}")
endforeach()
string(REPLACE "@SCRIPTS@" "${SCRIPTS_TEXT}" page "${page}")
file(WRITE ${OUT} "R\"PAGE(${page})PAGE\"\n")
