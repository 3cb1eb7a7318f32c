/* The few things that scripts of the operator's need of the host's file system and terminal, and
 * that Lua's own library lacks. Nothing here is reached by a guest, a model or a safe script. */
#ifndef BC_RUNTIME_HOST_FILES_H
#define BC_RUNTIME_HOST_FILES_H

#include <stddef.h>
#include "base/error.h"

/* The names in a directory, without "." and "..", sorted by bytes. `*names` is freed with
 * bc_free_names. At most BC_LIST_DIR_MAX entries. */
#define BC_LIST_DIR_MAX 10000
int bc_list_dir(const char *path, char ***names, size_t *count, barchan_error *err);
void bc_free_names(char **names, size_t count);

int bc_is_terminal(int fd);

#endif
