find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Everything of the compiler links the shared libMLIR and libLLVM: a tool links in half a second.
add_library(drover_mlir INTERFACE)
target_include_directories(drover_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(drover_mlir INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include ${CMAKE_SOURCE_DIR}/runtime/include)
target_link_libraries(drover_mlir INTERFACE MLIR LLVM)

# One precompiled header of the MLIR core, shared by all libraries.
file(WRITE ${CMAKE_BINARY_DIR}/drover_pch.cpp "// precompiled header carrier\n")
add_library(drover_pch STATIC ${CMAKE_BINARY_DIR}/drover_pch.cpp)
target_link_libraries(drover_pch PUBLIC drover_mlir PRIVATE drover_warnings)
target_precompile_headers(drover_pch PRIVATE
  <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/BuiltinAttributes.h> <mlir/IR/PatternMatch.h>
  <mlir/IR/OpImplementation.h> <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h>
  <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/Tensor/IR/Tensor.h> <llvm/ADT/StringRef.h> <llvm/ADT/TypeSwitch.h> <map> <string> <vector>)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(drover_pch PUBLIC -Xclang -fno-pch-timestamp)
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
