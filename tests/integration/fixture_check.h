/* What a recording must give: the turn, its echo, and an error wherever it is cut. Each check
 * returns 1, or 0 with the reason in `why`. */
#ifndef TESTS_FIXTURE_CHECK_H
#define TESTS_FIXTURE_CHECK_H

#include "adapter_run.h"

/* The recorded APIs, by the name that the index gives them; an address of each ends with `tail`,
 * of a stream with `stream_tail`. */
enum { FIXTURE_APIS = 4 };
typedef struct fixture_api {
    const char *name;
    const bc_provider *provider;
    const char *tail, *stream_tail;
} fixture_api;
extern const fixture_api fixture_apis[FIXTURE_APIS];

typedef struct fixture {
    const json_t *entry, *expect;
    const char *file;
    const fixture_api *api;
    const bc_provider *provider;
    int stream, status;
    int lines; /* it was kept as one event a line */
    bc_buf bytes;
    char why[400]; /* why it does not match */
} fixture;

#define MISMATCH(f, ...) (snprintf((f)->why, sizeof(f)->why, __VA_ARGS__), 0)

/* The folder of the recordings, NULL when there are none; `path` becomes that of its index. */
const char *fixture_folder(const char *beside, char *path, size_t size);
int fixture_file(const char *path, bc_buf *out);
/* The place of its API in fixture_apis, -1 for another one. `why` is set when it cannot be read. */
int fixture_load(fixture *f, const char *folder, const json_t *entry);

int fixture_check(fixture *f, const adapter_result *got);
int fixture_check_echo(fixture *f, const adapter_result *got);
int fixture_check_cuts(fixture *f);

#endif
