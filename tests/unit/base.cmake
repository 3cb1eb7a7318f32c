# Pure helpers: no I/O, no time, every rule by its own small data.
foreach(name buf error options json_scan json_view json_write utf8)
  barchan_unit_test(${name} test_${name}.c)
endforeach()
target_link_libraries(test_json_write PRIVATE m)
