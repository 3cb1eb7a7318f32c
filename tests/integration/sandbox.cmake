# Each program runs as whoever runs the tests, and again as an ordinary user when that is root.
add_library(sandbox_support STATIC sandbox_support.c)
target_link_libraries(sandbox_support PUBLIC barchan_build PkgConfig::CHECK)
target_include_directories(sandbox_support PUBLIC ${PROJECT_SOURCE_DIR}/tests/support
  ${PROJECT_SOURCE_DIR}/core/include ${CMAKE_CURRENT_SOURCE_DIR})

function(barchan_sandbox_test name)
  add_executable(sandbox_${name}_test sandbox_${name}_test.c)
  target_link_libraries(sandbox_${name}_test PRIVATE
    sandbox_support barchan_build barchan_core_objects PkgConfig::CHECK)
  add_test(NAME sandbox/${name} COMMAND sandbox_${name}_test)
  add_test(NAME sandbox/${name}_as_user
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/as_user.sh $<TARGET_FILE:sandbox_${name}_test>)
  set_tests_properties(sandbox/${name} sandbox/${name}_as_user PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()

barchan_sandbox_test(crash)
barchan_sandbox_test(death)
barchan_sandbox_test(detached)
barchan_sandbox_test(detached_crash)
barchan_sandbox_test(detached_hostile)
foreach(name detached detached_crash detached_hostile)
  target_sources(sandbox_${name}_test PRIVATE detached_support.c)
endforeach()
barchan_sandbox_test(exec)
barchan_sandbox_test(files)
barchan_sandbox_test(host)
target_compile_definitions(sandbox_host_test PRIVATE
  GUEST_PATH="$<TARGET_FILE:barchan_guest>")
barchan_sandbox_test(host_end)
barchan_sandbox_test(lease)
barchan_sandbox_test(life)
barchan_sandbox_test(limits)
barchan_sandbox_test(mounts)
barchan_sandbox_test(programs)
barchan_sandbox_test(setup)
barchan_sandbox_test(spawn)
barchan_sandbox_test(stream)
barchan_sandbox_test(template)
barchan_sandbox_test(transfer)
barchan_sandbox_test(tree)
barchan_sandbox_test(usage)
barchan_sandbox_test(started)
