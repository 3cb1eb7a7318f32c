# barchan_unit_test(name file.c)
barchan_unit_test(frame test_frame.c)
foreach(name channel channel_answers)
  barchan_unit_test(${name} test_${name}.c fake_guest.c)
endforeach()
barchan_unit_test(hold test_hold.c fake_guest.c)
barchan_unit_test(hold_log test_hold_log.c)
barchan_unit_test(seccomp test_seccomp.c)
target_include_directories(test_seccomp PRIVATE ${CMAKE_BINARY_DIR}/core/guest)
add_dependencies(test_seccomp barchan_guest) # which has the filter made
barchan_unit_test(landlock test_landlock.c ${PROJECT_SOURCE_DIR}/core/guest/landlock.c)
barchan_unit_test(slots test_slots.c ${PROJECT_SOURCE_DIR}/core/guest/slots.c
  ${PROJECT_SOURCE_DIR}/core/guest/failure.c)
set_tests_properties(unit/slots PROPERTIES SKIP_RETURN_CODE 77)
