# barchan_unit_test(name file.c)
