/*
 * Reads a directory of scripts as one snapshot. Scripts are the operator's own code: a directory or
 * file that somebody else could have written is refused, with the reason.
 */
#ifndef BC_RUNTIME_SCRIPT_DIR_H
#define BC_RUNTIME_SCRIPT_DIR_H

#include <stddef.h>
#include "base/error.h"

typedef struct bc_script_file {
    char *name; /* "word_count.lua" */
    char *text; /* NUL-terminated as a courtesy */
    size_t len;
} bc_script_file;

/* Every "*.lua" whose name does not begin with a dot, sorted by name; other names (an editor's swap
 * and backup files) are passed over. `*files` is freed with bc_script_files_free. Errors name the
 * file. Not followed, and refused: symbolic links, FIFOs, devices, directories named so. */
int bc_script_dir_read(const char *path, bc_script_file **files, size_t *count, barchan_error *err);
void bc_script_files_free(bc_script_file *files, size_t count);

#endif
