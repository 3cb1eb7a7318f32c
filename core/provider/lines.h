/* JSON Lines from a file: transcripts and recordings. */
#ifndef BC_PROVIDER_LINES_H
#define BC_PROVIDER_LINES_H

#include "base/json_view.h"

/* `view` is the line's tree, borrowed; `line` its own bytes, which stand in `file`. */
typedef int (*bc_line_fn)(const json_t *view, bc_json_span line, void *ud, barchan_error *err);

/* Reads the whole regular file into `file` and gives each line that is not blank to `fn`, whose
 * failure ends it. `what` is for errors, which name the file and the line: "transcript". */
int bc_lines_read(const char *path, const char *what, bc_buf *file, bc_line_fn fn, void *ud,
                  barchan_error *err);

#endif
