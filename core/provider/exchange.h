/* A request and its answer: over HTTP, recorded or not, or played from a recording. */
#ifndef BC_PROVIDER_EXCHANGE_H
#define BC_PROVIDER_EXCHANGE_H

#include "recorded.h"
#include "runtime/http.h"

typedef struct bc_exchange bc_exchange;

/* As those of bc_http. They run in a dispatch and may close the exchange. */
typedef struct bc_exchange_handlers {
    void (*on_head)(void *ud);
    void (*on_body)(const char *data, size_t len, void *ud);
    void (*on_done)(const barchan_error *err, void *ud);
    void *ud;
} bc_exchange_handlers;

/* Where exchanges go: a recording or a playback, or neither, of a model. */
typedef struct bc_exchange_means {
    barchan_runtime *rt;
    bc_recording *recording;
    bc_playback *playback;
    const bc_secrets *secrets;
    const char *request_id_header; /* is looked at, besides others */
} bc_exchange_means;

/* The url and the body of the options are borrowed until the exchange is closed, the rest is
 * copied.
 * `*out` is the caller's to close. */
int bc_exchange_start(bc_exchange **out, const bc_exchange_means *means,
                      const bc_http_options *options, const bc_exchange_handlers *handlers,
                      barchan_error *err);
void bc_exchange_close(bc_exchange *exchange);

/* From on_head on; as those of bc_http. 0, NULL and -1 before. */
int bc_exchange_status(const bc_exchange *exchange);
const char *bc_exchange_header(const bc_exchange *exchange, const char *name);
long bc_exchange_retry_after_ms(const bc_exchange *exchange);
/* Of which missing ids of calls are to be made; "" when by chance. */
const char *bc_exchange_id_seed(const bc_exchange *exchange);

#endif
