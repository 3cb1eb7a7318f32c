/* Reading a recorded body through an adapter, without a network. */
#ifndef TESTS_FIXTURE_RUN_H
#define TESTS_FIXTURE_RUN_H

#include "provider/provider.h"
#include "provider/sse.h"

typedef struct fixture_result {
    int failed;
    barchan_error err;
    char *reply; /* the rendered reply, when not failed */
    char *shown; /* all text deltas since the last restart */
    size_t shown_len;
} fixture_result;

/* `stream`: server-sent events, else one body. `step`: bytes given at a time, 0: all. */
fixture_result fixture_read(const bc_provider *provider, int http_status, int stream,
                            const char *bytes, size_t len, size_t step);
void fixture_result_clear(fixture_result *result);

#endif
