/* Reading an answer through an adapter, without a network. */
#ifndef TESTS_ADAPTER_RUN_H
#define TESTS_ADAPTER_RUN_H

#include "provider/provider.h"
#include "provider/sse.h"

typedef struct adapter_result {
    int failed;
    barchan_error err;
    char *reply; /* the rendered reply, when not failed */
    char *shown; /* all text deltas since the last restart */
    size_t shown_len;
} adapter_result;

/* `stream`: server-sent events, else one body. `step`: bytes given at a time, 0: all. */
adapter_result adapter_read(const bc_provider *provider, int http_status, int stream,
                            const char *bytes, size_t len, size_t step);
void adapter_result_clear(adapter_result *result);

#endif
