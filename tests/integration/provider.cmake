# The provider adapters and HTTP, against recordings and real servers on loopback.
function(barchan_provider_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/core ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE barchan_build barchan_core_objects)
endfunction()

barchan_provider_program(provider_fixtures
  provider_fixtures.c fixture_check.c fixture_run.c)
add_test(NAME integration/provider_fixture COMMAND provider_fixtures
  ${PROJECT_SOURCE_DIR}/../shared/fixtures/llm
  ${PROJECT_SOURCE_DIR}/tests/data/provider/known_unmatched.txt)
set_tests_properties(integration/provider_fixture PROPERTIES SKIP_RETURN_CODE 77)

barchan_provider_program(provider_http provider_http.c peer.c)
target_link_libraries(provider_http PRIVATE PkgConfig::CHECK)
target_compile_definitions(provider_http PRIVATE
  BYTE_SERVER="${PROJECT_SOURCE_DIR}/tests/support/byte_server.py")
add_test(NAME integration/provider_http COMMAND provider_http)
set_tests_properties(integration/provider_http PROPERTIES SKIP_RETURN_CODE 77)
