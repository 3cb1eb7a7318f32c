/* Files of the host's that scripts of the operator's write: what Lua's own library
 * cannot do. Nothing here is reached by a guest, a model or a safe script. */
#ifndef BC_RUNTIME_HOST_FILE_H
#define BC_RUNTIME_HOST_FILE_H

#include "base/error.h"

/* Makes an empty file that only this user can read; BARCHAN_EEXISTS when there is something of that
 * name, a dangling link included. */
int bc_host_file_create(const char *path, barchan_error *err);
/* The same; its descriptor, for appending, or negative. */
int bc_host_file_create_open(const char *path, barchan_error *err);
/* Fails unless the name is a regular file's: opening a FIFO would wait. */
int bc_host_file_check(const char *path, barchan_error *err);

/* Removes a last line that has no end, as a program that was killed while it wrote leaves it. */
int bc_host_file_cut_line(const char *path, barchan_error *err);

#endif
