# Compiler settings that every target of the tree shares.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON) # gnu11: Linux interfaces need it
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(BARCHAN_CCACHE ccache)
if(BARCHAN_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${BARCHAN_CCACHE})
endif()

# Warnings, for all; sanitizers and coverage for everything but the guest, which is a static
# program with no run time of theirs.
add_library(barchan_warnings INTERFACE)
target_compile_options(barchan_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes
  -Wwrite-strings -Wundef -Wformat=2 -Wvla -Wno-unused-parameter
  $<$<BOOL:${BARCHAN_WERROR}>:-Werror>)

add_library(barchan_build INTERFACE)
target_link_libraries(barchan_build INTERFACE barchan_warnings)
target_compile_definitions(barchan_build INTERFACE _GNU_SOURCE
  BARCHAN_BUILDING BARCHAN_VERSION="${PROJECT_VERSION}")
target_compile_options(barchan_build INTERFACE -fstack-protector-strong)

if(BARCHAN_SANITIZE STREQUAL "address")
  set(_sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(BARCHAN_SANITIZE STREQUAL "thread")
  set(_sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(BARCHAN_SANITIZE)
  message(FATAL_ERROR "BARCHAN_SANITIZE is '${BARCHAN_SANITIZE}'; use address or thread")
endif()
if(_sanitize)
  target_compile_options(barchan_build INTERFACE ${_sanitize})
  target_link_options(barchan_build INTERFACE ${_sanitize})
endif()
if(BARCHAN_COVERAGE)
  target_compile_options(barchan_build INTERFACE --coverage)
  target_link_options(barchan_build INTERFACE --coverage)
endif()
