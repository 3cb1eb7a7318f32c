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
