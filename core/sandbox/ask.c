#include "ask.h"

#include <stdlib.h>
#include "base/limits.h"
#include "channel/held.h"

struct ask {
    bc_stream stream; /* first */
    barchan_runtime *rt;
    uint32_t what;
    bc_ask_fn done;
    void *ud;
    bc_timer *timer;
    bc_defer defer; /* for ends that do not come from the guest */
    barchan_error error;
};

static void free_ask(struct ask *ask)
{
    bc_stream_close(&ask->stream);
    bc_timer_close(ask->timer);
    bc_defer_cancel(&ask->defer);
    free(ask);
}

static const char *operation_of(const struct ask *ask)
{
    switch (ask->what) {
    case BC_ASK_EXTEND: return "sandbox.extend";
    case BC_ASK_PAUSE: return "sandbox.pause";
    case BC_ASK_RESUME: return "sandbox.resume";
    case BC_ASK_USAGE: return "sandbox.usage";
    case BC_ASK_PROCESSES: return "sandbox.processes";
    case BC_HELD_ASK_NETWORK: return "sandbox.network";
    default: return "sandbox.logs";
    }
}

static void fail_deferred(bc_defer *defer)
{
    struct ask *ask = owner_of(defer, struct ask, defer);
    bc_error_where(&ask->error, operation_of(ask));
    ask->done(NULL, &ask->error, ask->ud);
    free_ask(ask);
}

static void fail_later(struct ask *ask)
{
    bc_stream_close(&ask->stream);
    bc_timer_close(ask->timer);
    ask->timer = NULL;
    bc_defer_schedule(ask->rt, &ask->defer, fail_deferred);
}

static void on_lost(bc_stream *stream)
{
    struct ask *ask = owner_of(stream, struct ask, stream);
    bc_error_set(&ask->error, BARCHAN_ELOST, "the sandbox ended");
    fail_later(ask);
}

static void on_late(void *ud)
{
    struct ask *ask = ud;
    ask->stream.sbx->abandoned = 1;
    bc_error_set(&ask->error, BARCHAN_ETIMEDOUT, "process 1 of the sandbox does not answer");
    fail_later(ask);
}

static int on_frame(bc_stream *stream, const bc_frame *frame)
{
    struct ask *ask = owner_of(stream, struct ask, stream);
    if (frame->type != BC_FRAME_ANSWER) return -1;
    bc_wire_reader in = bc_wire_read(frame);
    int rc = bc_read_status(&in, &ask->error);
    if (rc < 0) return -1;
    if (ask->error.code != 0) {
        fail_later(ask);
        return 0;
    }
    bc_stream_close(&ask->stream);
    rc = ask->done(&in, NULL, ask->ud);
    if (rc < 0) { /* the sandbox is about to end for it, and the asker hears of that */
        bc_error_set(&ask->error, BARCHAN_EPROTOCOL, "a malformed answer");
        fail_later(ask);
        return -1;
    }
    free_ask(ask);
    return 0;
}

static const bc_stream_ops ask_ops = {.on_frame = on_frame, .on_lost = on_lost};

int bc_ask_start(barchan_sandbox *sbx, uint32_t what, uint64_t argument, int64_t patience_ms,
                 bc_ask_fn done, void *ud, barchan_error *err)
{
    struct ask *ask = calloc(1, sizeof *ask);
    if (ask == NULL) return bc_error_nomem(err);
    ask->rt = sbx->rt;
    ask->what = what;
    ask->done = done;
    ask->ud = ud;
    unsigned char payload[12];
    bc_put_u32(payload, what);
    bc_put_u64(payload + 4, argument);
    int rc = bc_stream_open(&ask->stream, sbx, &ask_ops, err);
    if (rc == 0) rc = bc_timer_open(&ask->timer, sbx->rt, on_late, ask, err);
    if (rc == 0) {
        bc_timer_set(ask->timer, patience_ms);
        rc = bc_stream_send(&ask->stream, BC_FRAME_ASK, payload, sizeof payload, NULL, 0, err);
    }
    if (rc < 0) free_ask(ask);
    return rc;
}
