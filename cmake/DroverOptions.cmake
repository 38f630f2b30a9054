# Flags for the project's own code. Assertions stay on in every build type: a wrong gradient costs more than a compare.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

find_program(DROVER_CCACHE ccache)
if(DROVER_CCACHE)
  # base_dir lets worktrees share objects; precompiled headers need the two sloppiness entries.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DROVER_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(DROVER_LLD NAMES ld.lld-22 ld.lld)
if(DROVER_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(drover_warnings INTERFACE)
target_compile_options(drover_warnings INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter)

if(DROVER_SANITIZE)
  add_compile_options(-fsanitize=${DROVER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DROVER_SANITIZE})
endif()
