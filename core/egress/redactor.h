/*
 * Takes the values of secrets out of a stream of bytes, wherever its pieces were cut. Each byte of
 * a value, or of its base64 form at any alignment, becomes a '*': the stream keeps its length.
 *
 * What is held back tells nothing of the values but how long they are: of printable ASCII at the
 * end, as much as the longest form but one byte. A line that has ended passes at once. (If it were
 * what may begin a value, whoever sees where the pieces end could try prefixes.) Searching takes
 * the same time whatever the text. A set of values never changes; who rotates one makes a new set,
 * to which a stream can change over.
 *
 *     bc_redactor_feed(&redactor, data, len, &out) …; bc_redactor_end(&redactor, &out);
 *
 * Pure: no I/O, no clock.
 */
#ifndef BC_EGRESS_REDACTOR_H
#define BC_EGRESS_REDACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

/* Longer ones no server takes in a header. */
#define BC_REDACTOR_MAX_VALUE 4096u
#define BC_REDACTOR_MAX_TAGS 32u

typedef struct bc_patterns bc_patterns;

typedef struct bc_pattern_source {
    const char *data;
    size_t len;   /* printable ASCII, 1 to BC_REDACTOR_MAX_VALUE; 0: left out */
    unsigned tag; /* below BC_REDACTOR_MAX_TAGS: what is told when it is found */
    int base64;   /* its base64 forms, too */
} bc_pattern_source;

/* Copies the sources. `secret`: into memory of bc_secret_alloc, as do those who search for them
 * with what they hold back; that may be locked, of which there is little. NULL: out of memory. One
 * reference. */
bc_patterns *bc_patterns_create(const bc_pattern_source *sources, size_t count, bool secret);
bc_patterns *bc_patterns_ref(bc_patterns *patterns);
void bc_patterns_unref(bc_patterns *patterns); /* NULL is ignored */

typedef struct bc_redactor {
    bc_patterns *patterns;
    char *bytes; /* printable ones at the end that have not passed, then the piece at hand */
    char *stars; /* for each of them: it is to be masked */
    size_t held_len;
    uint32_t hits; /* a bit for each tag that was found; the caller clears it */
} bc_redactor;

/* 0 or BARCHAN_ENOMEM. Takes a reference of its own. */
int bc_redactor_init(bc_redactor *redactor, bc_patterns *patterns);
void bc_redactor_clear(bc_redactor *redactor); /* zeroed is fine */
/* Appends what may pass to `out`. 0, or the buffer's failure. */
int bc_redactor_feed(bc_redactor *redactor, const char *data, size_t len, bc_buf *out);
/* Appends what was held back, and begins anew. */
int bc_redactor_end(bc_redactor *redactor, bc_buf *out);
/* Goes on with another set in the midst of a stream. 0, or a failure, which changes nothing. */
int bc_redactor_change(bc_redactor *redactor, bc_patterns *patterns, bc_buf *out);
/* Begins anew; what was held back is gone. */
void bc_redactor_forget(bc_redactor *redactor);
/* Only looks: sets `hits`. Not together with feed. */
void bc_redactor_look(bc_redactor *redactor, const char *data, size_t len);

#endif
