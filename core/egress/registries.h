/*
 * The package registries that this machine's own package managers are configured to use, so that
 * "restricted" reaches what they reach, company mirrors included. Reads files, runs nothing.
 *
 * No registry's name stands in our code: where no configuration names one, the default is read
 * from the installed package manager itself, and if that has none we say so.
 */
#ifndef BC_EGRESS_REGISTRIES_H
#define BC_EGRESS_REGISTRIES_H

#include "base/buf.h"

/* The value of an environment variable, NULL when it is not set. Borrowed until the next call. */
typedef const char *(*bc_registries_env_fn)(const char *name, void *ud);

typedef struct bc_registries_options {
    const char *root; /* put before every absolute path; NULL or "": this machine. For tests */
    const char *home; /* the user's home directory; NULL: none is looked at */
    bc_registries_env_fn env; /* NULL: no variable is set */
    void *env_ud;
} bc_registries_options;

/*
 * Appends, without credentials and without repetitions:
 *   { "registries": [ { "entry": "pypi.example.com:443", "from": "pip: /etc/pip.conf" }, … ],
 *     "notes": [ "npm: not installed", … ] }
 * Entries are those of an allow-list. Configuration that cannot be read or is not understood is a
 * note, never a failure. 0, BARCHAN_ENOMEM, or BARCHAN_ELIMIT when `out` is too small.
 */
int bc_registries_read(const bc_registries_options *options, bc_buf *out, barchan_error *err);

#endif
