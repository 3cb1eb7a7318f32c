#include "upload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "sandbox_support.h"

void upload_probe(void)
{
    struct stat st;
    int fd = open(PROBE_PATH, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    fstat(fd, &st);
    char *bytes = malloc((size_t)st.st_size);
    ck_assert_int_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_WRITE,
                                          .path = "probe",
                                          .data = bytes,
                                          .data_len = (size_t)st.st_size,
                                          .mode = 0755};
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_file(sbx, &request, NULL, &err) == 0, "%s", err.message);
    free(bytes);
}
