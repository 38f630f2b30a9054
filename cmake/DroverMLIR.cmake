find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(LLVM_TABLEGEN_EXE ${LLVM_TOOLS_BINARY_DIR}/llvm-tblgen)
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Everything of the compiler links the shared libMLIR and libLLVM: a tool links in half a second.
add_library(drover_mlir INTERFACE)
target_include_directories(drover_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(drover_mlir INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include ${CMAKE_SOURCE_DIR}/runtime/include)
target_link_libraries(drover_mlir INTERFACE MLIR LLVM)

# One precompiled header of the MLIR core, shared by all libraries. Not CMake's own: its absolute paths in the command line
# would keep ccache from sharing objects between worktrees. The .sum file stands for the header's content (CCACHE_PCH_EXTSUM).
add_custom_target(drover_pch)
set(DROVER_PCH_FLAGS "")
if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_GENERATOR MATCHES Ninja)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  separate_arguments(pch_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} -std=c++17 -fPIC")
  file(SHA256 ${CMAKE_SOURCE_DIR}/cmake/drover_pch.h pch_hash)
  file(WRITE ${CMAKE_BINARY_DIR}/drover.pch.sum "${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION} ${pch_hash} ${pch_flags}\n")
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/drover.pch
    COMMAND ${CMAKE_CXX_COMPILER} ${pch_flags} -isystem ${MLIR_INCLUDE_DIRS} -x c++-header
            ${CMAKE_SOURCE_DIR}/cmake/drover_pch.h -o ${CMAKE_BINARY_DIR}/drover.pch
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/drover_pch.h VERBATIM)
  add_custom_target(drover_pch_file DEPENDS ${CMAKE_BINARY_DIR}/drover.pch)
  add_dependencies(drover_pch drover_pch_file)
  # Relative to the build folder, where ninja runs the compiler.
  set(DROVER_PCH_FLAGS -include-pch drover.pch)
endif()

add_custom_target(drover_tablegen)

# drover_tablegen_file(IN OUT args...): runs mlir-tblgen on IN (in the current folder) and makes drover_tablegen depend on it.
function(drover_tblgen in out)
  set(LLVM_TARGET_DEFINITIONS ${in})
  mlir_tablegen(${out} ${ARGN} -I${CMAKE_SOURCE_DIR}/include -I${MLIR_INCLUDE_DIRS})
  get_filename_component(stem ${out} NAME)
  string(MAKE_C_IDENTIFIER "tblgen_${CMAKE_CURRENT_SOURCE_DIR}_${stem}" id)
  add_custom_target(${id} DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${out})
  add_dependencies(drover_tablegen ${id})
endfunction()
