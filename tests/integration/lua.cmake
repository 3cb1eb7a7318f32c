# The engine, the Lua suites, the program and the examples.
add_library(engine_support STATIC engine_support.c)
target_link_libraries(engine_support PUBLIC barchan::engine barchan_build PkgConfig::CHECK)
target_include_directories(engine_support PUBLIC
  ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_SOURCE_DIR}/tests/unit)

foreach(name calls ends hostile life limits misuse options reload safe scale tools)
  add_executable(engine_${name}_test engine_${name}_test.c)
  target_link_libraries(engine_${name}_test PRIVATE engine_support)
  add_test(NAME engine/${name} COMMAND engine_${name}_test)
  target_compile_definitions(engine_${name}_test PRIVATE
    TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/engine")
  set_tests_properties(engine/${name} PROPERTIES TIMEOUT ${BARCHAN_TEST_TIMEOUT})
endforeach()

# The library's objects themselves, so that the linker can send their allocations to the test.
add_executable(engine_alloc_test engine_alloc_test.c)
target_include_directories(engine_alloc_test PRIVATE
  ${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_SOURCE_DIR}/bindings/include)
target_link_libraries(engine_alloc_test PRIVATE barchan_build barchan_core_objects barchan_lua_objects
  barchan_engine_objects PkgConfig::LUA PkgConfig::CJSON PkgConfig::UV PkgConfig::CURL
  PkgConfig::JANSSON Threads::Threads m PkgConfig::CHECK)
target_link_options(engine_alloc_test PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc
  -Wl,--wrap=realloc -Wl,--wrap=strdup -Wl,--wrap=strndup)
add_test(NAME engine/alloc COMMAND engine_alloc_test)
set_tests_properties(engine/alloc PROPERTIES TIMEOUT ${BARCHAN_TEST_TIMEOUT})

set(_python python3)
set(_as_user setpriv --reuid=65534 --regid=65534 --clear-groups)

# barchan_program_test(NAME COMMAND...): runs with the program's and the build's places in the
# environment; as root, also a second time as an ordinary user.
function(barchan_program_test name)
  set(env BARCHAN_BIN=$<TARGET_FILE:barchan_cli> BARCHAN_BUILD=${PROJECT_BINARY_DIR}
    LUA_CPATH=$<TARGET_FILE_DIR:barchan_module>/?.so)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E env ${env}
    XDG_DATA_HOME=${PROJECT_BINARY_DIR}/tests/share ${ARGN})
  if(BARCHAN_RUNS_AS_ROOT)
    add_test(NAME ${name}-as-user COMMAND ${_as_user} ${CMAKE_COMMAND} -E env ${env} HOME=/tmp
      XDG_DATA_HOME=/tmp/barchan-tests-share ${ARGN})
  endif()
endfunction()

execute_process(COMMAND id -u OUTPUT_VARIABLE _uid OUTPUT_STRIP_TRAILING_WHITESPACE)
if(_uid STREQUAL "0")
  set(BARCHAN_RUNS_AS_ROOT TRUE)
endif()

# A program of someone else's that loads the sanitized library must have the sanitizer first.
if(BARCHAN_SANITIZE)
  string(SUBSTRING ${BARCHAN_SANITIZE} 0 1 _initial)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${_initial}san.so
    OUTPUT_VARIABLE _sanitizer OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(_preload ${CMAKE_COMMAND} -E env LD_PRELOAD=${_sanitizer})
endif()

barchan_program_test(lua/suites $<TARGET_FILE:barchan_cli> run ${PROJECT_SOURCE_DIR}/tests/lua/run.lua)
foreach(name cli cli_ask cli_scripts)
  barchan_program_test(integration/${name} ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.py)
endforeach()
barchan_program_test(integration/detached ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_detached.py)
barchan_program_test(integration/template ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_template.py)
barchan_program_test(integration/network ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_network.py)
barchan_program_test(integration/network_names ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_network_names.py)
if(BARCHAN_TESTS_LONG)
  barchan_program_test(integration/registry ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_registry.py)
endif()
barchan_program_test(integration/secret_run ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_secret_run.py)
foreach(name integration/network_names integration/network_names-as-user)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endforeach()
add_executable(two_states_test two_states_test.c)
target_include_directories(two_states_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
target_link_libraries(two_states_test PRIVATE barchan_build PkgConfig::LUA PkgConfig::CHECK)
barchan_program_test(integration/two_states $<TARGET_FILE:two_states_test>)
barchan_program_test(integration/stock-lua ${_preload} lua5.4 ${PROJECT_SOURCE_DIR}/tests/lua/stock.lua)
add_test(NAME integration/examples COMMAND ${CMAKE_COMMAND} -E env BARCHAN_BUILD=${PROJECT_BINARY_DIR}
  XDG_DATA_HOME=${PROJECT_BINARY_DIR}/tests/share
  BARCHAN_SANITIZE=${BARCHAN_SANITIZE} ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_examples.py)
add_library(gc_stress MODULE ${PROJECT_SOURCE_DIR}/tests/support/gc_stress.c)
set_target_properties(gc_stress PROPERTIES PREFIX "" C_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_include_directories(gc_stress PRIVATE ${LUA_INCLUDE_DIRS})
target_compile_definitions(gc_stress PRIVATE _GNU_SOURCE)
target_link_libraries(gc_stress PRIVATE barchan_warnings ${CMAKE_DL_LIBS})
add_test(NAME integration/examples_gc COMMAND ${CMAKE_COMMAND} -E env BARCHAN_BUILD=${PROJECT_BINARY_DIR}
  XDG_DATA_HOME=${PROJECT_BINARY_DIR}/tests/share-gc
  BARCHAN_PRELOAD=$<TARGET_FILE:gc_stress> ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_examples.py)
add_test(NAME integration/idle COMMAND ${CMAKE_COMMAND} -E env BARCHAN_BUILD=${PROJECT_BINARY_DIR}
  ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_idle.py)
add_test(NAME integration/summary COMMAND ${_python} ${CMAKE_CURRENT_SOURCE_DIR}/test_summary.py)
add_test(NAME integration/two_runtimes COMMAND two_runtimes)
if(NOT BARCHAN_SANITIZE)
  add_test(NAME integration/install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/test_install.sh
    ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
endif()
