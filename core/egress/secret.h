/*
 * One secret: reading what the host's program says of it, and what a request must look like.
 * Pure but for its memory.
 */
#ifndef BC_EGRESS_SECRET_H
#define BC_EGRESS_SECRET_H

#include <stdbool.h>
#include <barchan/secret.h>
#include "base/buf.h"
#include "egress/host_name.h"

#define BC_SECRET_MAX 16u  /* of a sandbox; each is a tag of the redactor */
#define BC_SECRET_OLDER 7u /* values that are still looked for */
#define BC_SECRET_MAX_LIST 16u
#define BC_SECRET_MAX_NAME 128u
#define BC_SECRET_MAX_TEXT 256u
/* "barchan-secret-" and 128 random bits */
#define BC_PLACEHOLDER_LENGTH (15u + 32u)

typedef struct bc_secret_host {
    char name[BC_HOST_NAME_MAX + 1];
    unsigned port;
} bc_secret_host;

typedef struct bc_secret_value {
    char *data; /* bc_secret_alloc */
    size_t len;
} bc_secret_value;

typedef struct bc_secret {
    char *name, *header, *user, *ca_file; /* the last two may be NULL */
    char *before, *after;                 /* what `format` has around "{}" */
    char **methods, **paths;              /* NULL: all */
    bc_secret_host *hosts;
    size_t host_count;
    bool refuse; /* a program's own authorization */
    char placeholder[BC_PLACEHOLDER_LENGTH + 1];
    bc_secret_value value, older[BC_SECRET_OLDER]; /* those that it had, the last one first */
} bc_secret;

/* Zeroed before. On failure it is to be cleared all the same. No message says anything of a value
 * but its length. */
int bc_secret_read(bc_secret *secret, const barchan_secret *given, barchan_error *err);
void bc_secret_clear(bc_secret *secret);
/* The value becomes the first of the older ones, of which the last is gone. 1: it is the same
 * value, and nothing has changed. */
int bc_secret_set(bc_secret *secret, const char *value, size_t len, barchan_error *err);

/* secret_match.c */
bool bc_secret_is_bound(const bc_secret *secret, const char *host, unsigned port);
bool bc_secret_has_method(const bc_secret *secret, const char *method);
/* `target`: of an origin-form request line; what stands behind '?' is no path. */
bool bc_secret_has_path(const bc_secret *secret, const char *target, size_t len);
/* Whether a field's value is the format with the placeholder in it. */
bool bc_secret_is_asked_for(const bc_secret *secret, const char *value, size_t len);
/* Appends the format with the value in it. */
int bc_secret_write(const bc_secret *secret, bc_buf *out);
/* ASCII, whatever the host's locale. */
bool bc_same_word(const char *a, size_t a_len, const char *b);
/* Whether `text` holds the placeholder. */
bool bc_secret_is_in(const bc_secret *secret, const char *text, size_t len);

#endif
