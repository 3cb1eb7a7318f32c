# What a sandbox may reach: pure decisions, and readers that are given every cut of their input.
foreach(name address client_hello entries host_name name_query policy
  registries request_head)
  barchan_unit_test(egress_${name} test_egress_${name}.c)
endforeach()
target_compile_definitions(test_egress_address PRIVATE
  EGRESS_README="${PROJECT_SOURCE_DIR}/core/egress/README.md")
