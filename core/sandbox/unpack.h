/* From the stream of a guest's files (channel/pack.h) to trees on the host. The stream is hostile:
 * whatever it says, nothing is made or changed but new names below the given folder. */
#ifndef BC_SANDBOX_UNPACK_H
#define BC_SANDBOX_UNPACK_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

typedef struct bc_unpack bc_unpack;

typedef struct bc_unpack_limits {
    uint64_t bytes, entries;
} bc_unpack_limits;

typedef struct bc_unpack_totals {
    uint64_t bytes, entries, left_out;
} bc_unpack_totals;

/* `folder_fd` is empty and the caller's. */
int bc_unpack_open(bc_unpack **out, int folder_fd, const bc_unpack_limits *limits,
                   barchan_error *err);
/* BARCHAN_EPROTOCOL: it breaks the rules of the format. After a failure nothing more is taken. */
int bc_unpack_write(bc_unpack *unpack, const void *data, size_t len, barchan_error *err);
/* The stream has ended, which is a failure before its last record. Makes the places that did not
 * come. */
int bc_unpack_finish(bc_unpack *unpack, bc_unpack_totals *totals, barchan_error *err);
/* What was made stays. NULL is ignored. */
void bc_unpack_free(bc_unpack *unpack);

#endif
