# The provider adapters and HTTP, against recordings and real servers on loopback.
function(barchan_provider_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/tests/support ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE barchan_build barchan_core_objects)
endfunction()

set(fixture_sources fixture_check.c fixture_load.c
  ${PROJECT_SOURCE_DIR}/tests/support/adapter_run.c)
barchan_provider_program(provider_fixtures provider_fixtures.c ${fixture_sources})
target_link_options(provider_fixtures PRIVATE -Wl,--wrap=bc_random_hex)
add_test(NAME integration/provider_fixture COMMAND provider_fixtures
  ${PROJECT_SOURCE_DIR}/../shared/fixtures/llm
  ${PROJECT_SOURCE_DIR}/tests/data/provider/known_unmatched.txt)
set_tests_properties(integration/provider_fixture PROPERTIES SKIP_RETURN_CODE 77)

barchan_provider_program(provider_fixtures_http provider_fixtures_http.c peer.c ${fixture_sources})
add_test(NAME integration/provider_fixture_http COMMAND provider_fixtures_http
  ${PROJECT_SOURCE_DIR}/../shared/fixtures/llm
  ${PROJECT_SOURCE_DIR}/tests/support/byte_server.py)
set_tests_properties(integration/provider_fixture_http PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${BARCHAN_TEST_TIMEOUT})

function(barchan_server_suite name)
  barchan_provider_program(${name} ${name}.c server_suite.c peer.c ${ARGN})
  target_link_libraries(${name} PRIVATE PkgConfig::CHECK)
  target_compile_definitions(${name} PRIVATE
    BYTE_SERVER="${PROJECT_SOURCE_DIR}/tests/support/byte_server.py")
endfunction()

barchan_provider_program(provider_scale provider_scale.c)
target_link_libraries(provider_scale PRIVATE PkgConfig::CHECK)
add_test(NAME integration/provider_scale COMMAND provider_scale)

barchan_server_suite(http_client)
barchan_server_suite(provider_cancel)
foreach(name provider_http provider_errors provider_addresses provider_retry provider_record)
  barchan_server_suite(${name} provider_server.c)
endforeach()
foreach(name http_client provider_cancel provider_http provider_errors provider_addresses
        provider_retry provider_record)
  add_test(NAME integration/${name} COMMAND ${name})
  set_tests_properties(integration/${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
endforeach()

barchan_server_suite(provider_aimock)
add_test(NAME integration/provider_aimock COMMAND provider_aimock
  ${PROJECT_SOURCE_DIR}/tests/support/aimock.mjs ${PROJECT_BINARY_DIR}/aimock
  ${PROJECT_SOURCE_DIR}/tests/data/provider/aimock_prime.json)
set_tests_properties(integration/provider_aimock PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${BARCHAN_TEST_TIMEOUT})

barchan_provider_program(provider_tls provider_tls.c)
add_test(NAME integration/provider_tls COMMAND python3
  ${CMAKE_CURRENT_SOURCE_DIR}/test_provider_tls.py $<TARGET_FILE:provider_tls>
  ${PROJECT_SOURCE_DIR}/tests/support)
set_tests_properties(integration/provider_tls PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)

add_test(NAME integration/provider_names COMMAND python3
  ${CMAKE_CURRENT_SOURCE_DIR}/test_provider_names.py $<TARGET_FILE:provider_tls>
  ${PROJECT_SOURCE_DIR}/tests/support)
set_tests_properties(integration/provider_names PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 240)

# The same where the time of day jumps: deadlines, idle times and pauses do not notice. (A
# sanitizer's own library must be loaded first.)
if(NOT BARCHAN_SANITIZE)
  add_library(clock_jump MODULE ${PROJECT_SOURCE_DIR}/tests/support/clock_jump.c)
  set_target_properties(clock_jump PROPERTIES PREFIX "" C_VISIBILITY_PRESET default)
  target_compile_definitions(clock_jump PRIVATE _GNU_SOURCE)
  target_link_libraries(clock_jump PRIVATE barchan_warnings ${CMAKE_DL_LIBS})
  foreach(name provider_errors provider_retry)
    add_test(NAME integration/${name}_clock COMMAND ${CMAKE_COMMAND} -E env
      LD_PRELOAD=$<TARGET_FILE:clock_jump> $<TARGET_FILE:${name}>)
    set_tests_properties(integration/${name}_clock PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${BARCHAN_TEST_TIMEOUT})
  endforeach()
endif()

add_test(NAME integration/provider_slow_name COMMAND python3
  ${CMAKE_CURRENT_SOURCE_DIR}/test_provider_slow_name.py $<TARGET_FILE:provider_cancel>)
set_tests_properties(integration/provider_slow_name PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)

add_test(NAME integration/connect COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/test_connect.py
  $<TARGET_FILE:barchan_cli> ${PROJECT_SOURCE_DIR}/tests/support/aimock.mjs
  ${PROJECT_BINARY_DIR}/aimock ${PROJECT_SOURCE_DIR}/tests/data/provider/aimock_prime.json)
set_tests_properties(integration/connect PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${BARCHAN_TEST_TIMEOUT}
  RESOURCE_LOCK aimock)
set_tests_properties(integration/provider_aimock PROPERTIES RESOURCE_LOCK aimock)

add_test(NAME integration/echo COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/test_echo.py
  $<TARGET_FILE:barchan_cli> ${PROJECT_SOURCE_DIR}/tests/support/byte_server.py)
