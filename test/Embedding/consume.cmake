# Builds the consumer against a tree of the project and checks what it prints.
#
# cmake -DPREFIX=build-or-install-tree [-DINSTALL_FROM=build-tree]
#       -DOUT=folder -DMODELS=test/Plan/Inputs
#       -DGENERATOR=… -DCC=… -DCXX=… -DLINK_FLAGS=… -P consume.cmake
#
# With INSTALL_FROM, PREFIX is made first.
function(run)
  cmake_parse_arguments(ARG "" "STATUS;EXPECT" "COMMAND" ${ARGN})
  execute_process(COMMAND ${ARG_COMMAND}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL "${ARG_STATUS}")
    message(FATAL_ERROR "${ARG_COMMAND}: exit code ${status}, expected ${ARG_STATUS}\n${output}")
  endif()
  if(NOT output MATCHES "${ARG_EXPECT}")
    message(FATAL_ERROR "${ARG_COMMAND}: no '${ARG_EXPECT}' in\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${OUT})
if(INSTALL_FROM)
  run(STATUS 0 COMMAND ${CMAKE_COMMAND} --install ${INSTALL_FROM} --prefix ${PREFIX})
endif()
run(STATUS 0 COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${OUT}/build
  -DCMAKE_PREFIX_PATH=${PREFIX} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_EXE_LINKER_FLAGS=${LINK_FLAGS})
run(STATUS 0 COMMAND ${CMAKE_COMMAND} --build ${OUT}/build)

file(WRITE ${OUT}/plan.yaml "{mesh: {tp: 2}, plan: {net1: ColwiseParallel, net2: RowwiseParallel}}\n")
file(WRITE ${OUT}/bad.yaml "{mesh: {tp: 2}, plan: {net3: ColwiseParallel}}\n")
file(WRITE ${OUT}/bad.mlir "func.func @main() {\n  nn.nothing\n}\n")
set(model ${MODELS}/mlp.mlir)

file(GLOB tools ${PREFIX}/bin/tp-opt ${PREFIX}/bin/tp-compile ${PREFIX}/bin/tp-import ${PREFIX}/bin/tp-run ${PREFIX}/bin/tp-ckpt
  ${PREFIX}/bin/tp-reduce ${PREFIX}/bin/tp-lsp-server)
foreach(tool ${tools})
  run(STATUS 0 COMMAND ${tool} --help)
endforeach()

set(compiler ${OUT}/build/compiler)
run(STATUS 0 EXPECT "tp.all_reduce sum .* over @mesh {tp}"
  COMMAND ${compiler} ${model} ${OUT}/plan.yaml)
run(STATUS 1 EXPECT "bad.yaml\":1:24.*'net3'.*1 error\\(s\\), nothing compiled"
  COMMAND ${compiler} ${model} ${OUT}/bad.yaml)
run(STATUS 1 EXPECT "bad.mlir\":2:3" COMMAND ${compiler} ${OUT}/bad.mlir ${OUT}/plan.yaml)

set(plan_option --tp-apply-plan=plan=${OUT}/style.yaml)
file(GLOB style ${OUT}/build/libstyle.*)
file(WRITE ${OUT}/style.yaml "{mesh: {tp: 2}, plan: {net1: {style: ShardedWeights, dim: 1}}}\n")
run(STATUS 0 EXPECT "nn.parameter \"net1.weight\" {tp.sharding = #tp.sharding<@mesh, \\[{}, {tp}\\]>}"
  COMMAND ${PREFIX}/bin/tp-opt ${model} --load-dialect-plugin=${style} ${plan_option})
run(STATUS 1 EXPECT "style.yaml:1:38: error: unknown style 'ShardedWeights'"
  COMMAND ${PREFIX}/bin/tp-opt ${model} ${plan_option})
file(WRITE ${OUT}/style.yaml "{mesh: {tp: 2}, plan: {net1: {style: ShardedWeights, dm: 1}}}\n")
run(STATUS 1 EXPECT "style.yaml:1:[0-9]+: error: ShardedWeights has no argument 'dm'; did you mean 'dim'"
  COMMAND ${PREFIX}/bin/tp-opt ${model} --load-dialect-plugin=${style} ${plan_option})

set(compiler ${OUT}/build/compiler-c)
run(STATUS 0 EXPECT "tp.all_reduce sum .* over @mesh {tp}.*\"kind\": \"all_reduce\""
  COMMAND ${compiler} ${model} plan=${OUT}/plan.yaml ${OUT}/mlp.tpx)
if(NOT EXISTS ${OUT}/mlp.tpx)
  message(FATAL_ERROR "no artifact was written")
endif()
run(STATUS 1 EXPECT "bad.yaml:1:24: error: .*'net3'.*nothing compiled:.*bad.yaml:1:24: error: .*1 error"
  COMMAND ${compiler} ${model} plan=${OUT}/bad.yaml)
run(STATUS 1 EXPECT "bad.mlir:2:3: error" COMMAND ${compiler} ${OUT}/bad.mlir plan=${OUT}/plan.yaml)
run(STATUS 1 EXPECT "no such option pln" COMMAND ${compiler} ${model} pln=${OUT}/plan.yaml)
run(STATUS 1 EXPECT "no.mlir.*No such file" COMMAND ${compiler} ${OUT}/no.mlir plan=${OUT}/plan.yaml)
run(STATUS 1 EXPECT "cannot write" COMMAND ${compiler} ${model} plan=${OUT}/plan.yaml ${OUT}/no/mlp.tpx)
run(STATUS 1 EXPECT "no tp.mesh" COMMAND ${compiler} ${model} strict=true)

file(READ ${model} text)
string(REPLACE "tensor<8x" "tensor<6x" text "${text}")
file(WRITE ${OUT}/short.mlir "${text}")
set(compiler ${OUT}/build/programs-c)
run(STATUS 0 COMMAND ${compiler} ${OUT}/both.tpx plan=${OUT}/plan.yaml ${OUT}/short.mlir ${model})
run(STATUS 0 EXPECT "result0: 6x10xf32"
  COMMAND ${PREFIX}/bin/tp-run ${OUT}/both.tpx --random 1 --program 0)
run(STATUS 0 EXPECT "result0: 8x10xf32"
  COMMAND ${PREFIX}/bin/tp-run ${OUT}/both.tpx --random 1 --program 1)
string(REPLACE "16" "12" text "${text}")
file(WRITE ${OUT}/other.mlir "${text}")
run(STATUS 1 EXPECT "nothing compiled:.*'net1.weight' is 16x10xf32 in program '1', 12x10xf32 in '0'"
  COMMAND ${compiler} ${OUT}/no.tpx plan=${OUT}/plan.yaml ${OUT}/other.mlir ${model})
