# drover_library(NAME sources... [LINK libs...] [DEPENDS targets...]): a static library of the compiler that loads MLIR.
function(drover_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC drover_mlir ${ARG_LINK} PRIVATE drover_warnings)
  add_dependencies(${name} drover_tablegen ${ARG_DEPENDS})
  drover_reuse_pch(${name})
endfunction()

# drover_tool(NAME sources... LINK libs...): a thin main in build/bin.
function(drover_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE drover_mlir ${ARG_LINK} drover_warnings)
  add_dependencies(${name} drover_tablegen)
  drover_reuse_pch(${name})
endfunction()

# The shared precompiled header is compiled with -fPIC; CMake would give an executable -fPIE.
function(drover_reuse_pch name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC ${DROVER_PCH_FLAGS})
  add_dependencies(${name} drover_pch)
endfunction()

# drover_unittest(NAME sources... [MLIR] LINK libs...): a GoogleTest binary in build/unittests, run by scripts/check and ctest.
function(drover_unittest name)
  cmake_parse_arguments(ARG "MLIR" "" "LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # gtest_main first: libdrover_rt.a holds a main of its own.
  target_link_libraries(${name} PRIVATE GTest::gtest_main GTest::gtest ${ARG_LINK} drover_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  set_property(GLOBAL APPEND PROPERTY DROVER_UNITTESTS ${name})
  if(ARG_MLIR)
    target_link_libraries(${name} PRIVATE drover_mlir)
    add_dependencies(${name} drover_tablegen)
    drover_reuse_pch(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
endfunction()
