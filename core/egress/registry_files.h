/* What the readers of pip's, npm's and apt's configuration share: bounded files, lines, and the
 * list that they fill. */
#ifndef BC_EGRESS_REGISTRY_FILES_H
#define BC_EGRESS_REGISTRY_FILES_H

#include <stdbool.h>
#include "base/error.h"
#include "base/limits.h"
#include "egress/host_name.h"
#include "egress/registries.h"

/* Where an entry is from, cut when a path is longer. */
#define BC_REGISTRY_FROM 256
#define BC_REGISTRY_PATH 4096

typedef struct bc_registry {
    char entry[BC_HOST_NAME_MAX + 10];
    char from[BC_REGISTRY_FROM];
} bc_registry;

typedef struct bc_registries {
    const bc_registries_options *options;
    size_t count, note_count;
    bc_registry list[BC_REGISTRIES_MAX];
    char notes[BC_REGISTRIES_MAX_NOTES][BC_REGISTRY_FROM];
    bool no_memory;
} bc_registries;

typedef struct bc_text {
    const char *data;
    size_t len;
} bc_text;

/* ---- the list ---- */

/* Adds the host and port of a URL of http or https; other schemes and paths are no registries of
 * the network. What is not understood is noted without its text, which may hold a password. */
void bc_registries_add_url(bc_registries *r, bc_text url, const char *from);
/* Of each URL in a text that is split by white space. */
void bc_registries_add_urls(bc_registries *r, bc_text urls, const char *from);
void bc_registries_note(bc_registries *r, const char *format, ...) BC_PRINTF(2, 3);

/* ---- the machine ---- */

/* NULL when it is not set or empty. */
const char *bc_registries_env(const bc_registries *r, const char *name);
/* The whole of a regular file, false when there is none; one that cannot be read or is larger than
 * BC_REGISTRIES_MAX_FILE_BYTES is noted. `path` is without the root. */
bool bc_registries_file(bc_registries *r, const char *path, bc_buf *out);
bool bc_registries_exists(const bc_registries *r, const char *path);

typedef void (*bc_registries_name_fn)(bc_registries *r, const char *path, void *ud);
/* Calls `fn` with dir/name for each name of a directory that begins and ends so, in order. */
void bc_registries_each(bc_registries *r, const char *dir, const char *begin, const char *end,
                        bc_registries_name_fn fn, void *ud);
/* Calls `fn` with the parent of each directory of $PATH: where programs have their libraries. */
void bc_registries_each_prefix(bc_registries *r, bc_registries_name_fn fn, void *ud);

/* ---- text ---- */

bc_text bc_text_trim(bc_text text);
bool bc_text_is(bc_text text, const char *word); /* in ASCII, whatever the case of `text` */
bool bc_text_begins(bc_text text, const char *word);
/* The next line, without its end; false at the end of the text. */
bool bc_text_line(bc_text *rest, bc_text *line);
/* The next word between white space. */
bool bc_text_word(bc_text *rest, bc_text *word);
/* What stands between the first two quotes, of one kind, behind `after`; empty when nothing. */
bc_text bc_text_quoted(bc_text text, const char *after);
/* As a string; false and "" when it does not fit or holds a NUL. */
bool bc_text_copy(bc_text text, char *out, size_t size);

bc_text bc_text_of(const char *string);
/* "a/b", false when it does not fit. */
bool bc_path_join(char out[BC_REGISTRY_PATH], const char *a, const char *b);
/* "who: path", cut where it does not fit. */
void bc_registry_from(char out[BC_REGISTRY_FROM], const char *who, const char *path);

/* ---- the readers ---- */

void bc_registries_pip(bc_registries *r);
void bc_registries_npm(bc_registries *r);
void bc_registries_apt(bc_registries *r);

#endif
