# The engine, the Lua suites, the program and the examples.
add_executable(test_engine test_engine.c)
target_link_libraries(test_engine PRIVATE barchan::engine barchan_build PkgConfig::CHECK)
add_test(NAME integration/engine COMMAND test_engine)
