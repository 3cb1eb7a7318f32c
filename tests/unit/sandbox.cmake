# barchan_unit_test(name file.c)
barchan_unit_test(frame test_frame.c)
barchan_unit_test(channel test_channel.c)
