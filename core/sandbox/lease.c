/* How long a sandbox lives: extending its lease, pausing it, and going on. */
#include <stdlib.h>
#include "ask.h"
#include "base/clock.h"
#include "base/limits.h"
#include "launcher.h"

int64_t bc_lease_left_ms(const barchan_sandbox *sbx)
{
    int64_t left = sbx->lease_end_ms - bc_clock_ms();
    return sbx->state == BARCHAN_SANDBOX_ENDED || left < 0 ? 0 : left;
}

static int ignore_answer(bc_wire_reader *in, const barchan_error *err, void *ud)
{
    (void)in, (void)err, (void)ud;
    return 0;
}

int barchan_sandbox_extend(barchan_sandbox *sbx, int64_t more_ms, barchan_error *err)
{
    BC_OPERATION("sandbox.extend");
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    int64_t left = bc_lease_left_ms(sbx);
    if (more_ms <= 0 || more_ms > BC_SANDBOX_MAX_LEASE_MS - left) {
        bc_error_set(err, BARCHAN_EINVAL, "a lease lasts up to 7 days; %.15g s are left of it",
                     (double)left / 1000);
        return BARCHAN_EINVAL;
    }
    rc = bc_ask_start(sbx, BC_ASK_EXTEND, (uint64_t)(left + more_ms), BC_ASK_PATIENCE_MS,
                      ignore_answer, NULL, err);
    if (rc < 0) return rc;
    sbx->lease_end_ms = bc_clock_ms() + left + more_ms;
    sbx->backend->extend(sbx);
    return 0;
}

/* ---- pause and resume ---- */

struct pause_call {
    barchan_sandbox *sbx;
    int pause;
    barchan_sandbox_done_fn done;
    void *ud;
};

void bc_sandbox_set_paused(barchan_sandbox *sbx, int paused)
{
    barchan_sandbox_state state = paused ? BARCHAN_SANDBOX_PAUSED : BARCHAN_SANDBOX_READY;
    if (sbx->state == BARCHAN_SANDBOX_ENDED || sbx->state == state) return;
    sbx->state = state;
    for (bc_stream *stream = sbx->streams; stream != NULL; stream = stream->next) {
        if (stream->ops->on_paused != NULL) stream->ops->on_paused(stream, paused);
    }
}

static int on_answer(bc_wire_reader *in, const barchan_error *err, void *ud)
{
    struct pause_call *call = ud;
    if (err == NULL && !bc_wire_done(in)) return -1;
    if (call->pause) call->sbx->pauses_asked--;
    if (err == NULL) bc_sandbox_set_paused(call->sbx, call->pause);
    call->done(err, call->ud);
    bc_sandbox_unref(call->sbx);
    free(call);
    return 0;
}

static int start(barchan_sandbox *sbx, int pause, barchan_sandbox_done_fn done, void *ud,
                 barchan_error *err)
{
    if (done == NULL) return bc_error_set(err, BARCHAN_EINVAL, "done is NULL");
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && sbx->state == BARCHAN_SANDBOX_STARTING) {
        rc = bc_error_busy(err, "the sandbox is not ready yet");
    }
    if (rc < 0) return rc;
    struct pause_call *call = malloc(sizeof *call);
    if (call == NULL) return bc_error_nomem(err);
    *call = (struct pause_call){.sbx = sbx, .pause = pause, .done = done, .ud = ud};
    bc_sandbox_ref(sbx);
    rc = bc_ask_start(sbx, pause ? BC_ASK_PAUSE : BC_ASK_RESUME, 0, BC_ASK_PATIENCE_MS, on_answer,
                      call, err);
    if (rc == 0) {
        if (pause) sbx->pauses_asked++;
        return 0;
    }
    bc_sandbox_unref(sbx);
    free(call);
    return rc;
}

int barchan_sandbox_pause_start(barchan_sandbox *sbx, barchan_sandbox_done_fn done, void *ud,
                                barchan_error *err)
{
    BC_OPERATION("sandbox.pause");
    return start(sbx, 1, done, ud, err);
}

int barchan_sandbox_resume_start(barchan_sandbox *sbx, barchan_sandbox_done_fn done, void *ud,
                                 barchan_error *err)
{
    BC_OPERATION("sandbox.resume");
    return start(sbx, 0, done, ud, err);
}

static void on_done(const barchan_error *err, void *ud)
{
    bc_outcome_set(ud, err);
}

static int start_and_wait(barchan_sandbox *sbx, int pause, barchan_error *err)
{
    bc_outcome outcome = {0};
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    barchan_runtime *rt = sbx->rt;
    rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = start(sbx, pause, on_done, &outcome, err);
    return rc < 0 ? rc : bc_outcome_wait(&outcome, rt, err);
}

int barchan_sandbox_pause(barchan_sandbox *sbx, barchan_error *err)
{
    BC_OPERATION("sandbox.pause");
    return start_and_wait(sbx, 1, err);
}

int barchan_sandbox_resume(barchan_sandbox *sbx, barchan_error *err)
{
    BC_OPERATION("sandbox.resume");
    return start_and_wait(sbx, 0, err);
}
