/* Reads a descriptor of the host's own (standard input) without blocking the loop and without
 * making it non-blocking: its open file description may be shared with a shell or with stdout. */
#ifndef BC_RUNTIME_READER_H
#define BC_RUNTIME_READER_H

#include "loop.h"

typedef struct bc_reader bc_reader;
/* Bytes (borrowed), or len 0 at the end of the input, or len -1 with a system error number. */
typedef void (*bc_reader_fn)(const char *data, long len, int os_error, void *ud);

/* Opens paused. The descriptor stays the caller's and must stay open. */
int bc_reader_open(bc_reader **out, barchan_runtime *rt, int fd, bc_reader_fn fn, void *ud,
                   barchan_error *err);
/* Asks for one more call of fn. */
int bc_reader_next(bc_reader *reader, barchan_error *err);
void bc_reader_close(bc_reader *reader);

/* Whether a descriptor of the host's is a terminal. */
int bc_is_terminal(int fd);

#endif
