# What a sandbox may reach: pure decisions, and readers that are given every cut of their input.
foreach(name address client_hello entries host_name names name_query policy
  redactor registries request_head request_stream response)
  barchan_unit_test(egress_${name} test_egress_${name}.c)
endforeach()
barchan_unit_test(egress_secret test_egress_secret.c secret_given.c)
barchan_unit_test(egress_secret_head test_egress_secret_head.c secret_given.c)
target_compile_definitions(test_egress_address PRIVATE
  EGRESS_README="${PROJECT_SOURCE_DIR}/core/egress/README.md")
barchan_unit_test(egress_alloc test_egress_alloc.c)
target_link_options(test_egress_alloc PRIVATE
  -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
