# The provider room. Small data of our own; recordings are read by integration/provider_fixture.
foreach(name message sse)
  barchan_unit_test(${name} test_${name}.c)
endforeach()
barchan_unit_test(replay test_replay.c)
target_compile_definitions(test_replay PRIVATE TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/provider")
