barchan_unit_test(runtime test_runtime.c)
barchan_unit_test(child test_child.c)
barchan_unit_test(runtime_end test_runtime_end.c)
barchan_unit_test(cancel test_cancel.c)
