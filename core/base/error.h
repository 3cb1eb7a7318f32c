/* Filling a barchan_error. Those that begin one return the status, so that callers can write
 * `return bc_error_set(err, BARCHAN_EINVAL, "…")`. err may be NULL everywhere: what a function
 * returns never depends on it. */
#ifndef BC_BASE_ERROR_H
#define BC_BASE_ERROR_H

#include <barchan/error.h>

#define BC_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* A fresh error: every field is written. */
int bc_error_set(barchan_error *err, int code, const char *format, ...) BC_PRINTF(3, 4);
/* The same for a failed system call: picks the status that fits and adds the system's words. */
int bc_error_set_os(barchan_error *err, int os_error, const char *format, ...) BC_PRINTF(3, 4);
int bc_error_nomem(barchan_error *err);
/* BARCHAN_EBUSY over what passes by itself: the same call may succeed later. */
int bc_error_busy(barchan_error *err, const char *format, ...) BC_PRINTF(2, 3);
/* Puts outer context before the message of a filled error: "create sandbox: mount overlay: …". */
void bc_error_context(barchan_error *err, const char *format, ...) BC_PRINTF(2, 3);
/* Another status for the same words. Returns it. */
int bc_error_recode(barchan_error *err, int code);
/* Names the operation, unless an inner one did. */
void bc_error_where(barchan_error *err, const char *where);
/* First in a function of the API whose last parameter is `err`: what fails in it has this name in
 * `where`, unless an inner operation did. */
typedef struct bc_operation {
    const char *where;
    barchan_error *to; /* the caller's, which success does not touch */
    barchan_error error;
} bc_operation;
void bc_operation_end(bc_operation *operation);
#define BC_OPERATION(name)                                 \
    __attribute__((cleanup(bc_operation_end)))             \
    bc_operation operation = {.where = (name), .to = err}; \
    err = &operation.error
/* The status of this name; 0 when none has it. */
int bc_status_of_name(const char *name);
/* The status that fits a system error number. */
int bc_status_of_os(int os_error);

#endif
