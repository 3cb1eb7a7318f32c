/* What a sandbox has used: asked of it while it lives, remembered once it has ended. */
#include <stdlib.h>
#include <string.h>
#include "ask.h"
#include "base/clock.h"
#include "base/limits.h"

struct usage_call {
    struct usage_call *next; /* of those that wait for the end's last count */
    barchan_sandbox *sbx;
    barchan_usage_fn done;
    void *ud;
    bc_defer defer;
};

/* The library's own counts, and the last that the sandbox has told. */
static barchan_usage known(const barchan_sandbox *sbx)
{
    const bc_usage *told = &sbx->used;
    int ended = sbx->state == BARCHAN_SANDBOX_ENDED;
    return (barchan_usage){
        .wall_us = ((ended ? sbx->ended_ms : bc_clock_ms()) - sbx->born_ms) * 1000,
        .user_us = (int64_t)told->user_us,
        .system_us = (int64_t)told->system_us,
        .cpu_counted = told->cpu_counted != 0,
        .memory_bytes = ended ? 0 : told->memory_bytes,
        .memory_peak_bytes = told->memory_peak_bytes,
        .memory_byte_seconds = (double)told->memory_kib_ms * 1024 / 1000,
        .memory_counted = told->memory_counted != 0,
        .disk_bytes = ended ? 0 : told->disk_bytes,
        .bytes_in = sbx->bytes_in,
        .bytes_out = sbx->bytes_out,
        .execs = sbx->execs,
    };
}

uint64_t bc_usage_bound(uint64_t told)
{
    return told < BC_USAGE_MAX ? told : BC_USAGE_MAX;
}

void bc_usage_told(barchan_sandbox *sbx, const bc_usage *told)
{
    sbx->used = *told;
    uint64_t *const fields[] = {&sbx->used.user_us,       &sbx->used.system_us,
                                &sbx->used.memory_bytes,  &sbx->used.memory_peak_bytes,
                                &sbx->used.memory_kib_ms, &sbx->used.disk_bytes};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i] = bc_usage_bound(*fields[i]);
    }
}

void bc_usage_ended(barchan_sandbox *sbx, uint64_t user_us, uint64_t system_us)
{
    sbx->used.user_us = bc_usage_bound(user_us);
    sbx->used.system_us = bc_usage_bound(system_us);
    sbx->used.cpu_counted = 1;
}

/* Where nothing counts the whole, at least what the commands' results say. */
void bc_usage_add(barchan_sandbox *sbx, const barchan_exec_usage *usage)
{
    if (sbx->used.cpu_counted) return;
    sbx->exec_us[0] = bc_usage_bound(sbx->exec_us[0] + (uint64_t)usage->user_us);
    sbx->exec_us[1] = bc_usage_bound(sbx->exec_us[1] + (uint64_t)usage->system_us);
    if (sbx->exec_us[0] > sbx->used.user_us) sbx->used.user_us = sbx->exec_us[0];
    if (sbx->exec_us[1] > sbx->used.system_us) sbx->used.system_us = sbx->exec_us[1];
}

static void tell(struct usage_call *call)
{
    barchan_usage usage = known(call->sbx);
    call->done(&usage, NULL, call->ud);
    bc_sandbox_unref(call->sbx);
    free(call);
}

static void tell_deferred(bc_defer *defer)
{
    tell(owner_of(defer, struct usage_call, defer));
}

void bc_usage_settle(barchan_sandbox *sbx)
{
    while (sbx->last_calls != NULL) {
        struct usage_call *call = sbx->last_calls;
        sbx->last_calls = call->next;
        bc_defer_schedule(sbx->rt, &call->defer, tell_deferred);
    }
}

/* Of a sandbox that has ended: the last count comes with the news that nothing of it runs. */
static void tell_at_end(struct usage_call *call)
{
    call->next = call->sbx->last_calls;
    call->sbx->last_calls = call;
    if (!call->sbx->backend_held) bc_usage_settle(call->sbx);
}

static int on_answer(bc_wire_reader *in, const barchan_error *err, void *ud)
{
    struct usage_call *call = ud;
    bc_usage told;
    if (err == NULL) {
        bc_wire_get_usage(in, &told);
        if (!bc_wire_done(in)) return -1;
        bc_usage_told(call->sbx, &told);
        tell(call);
    } else if (call->sbx->state == BARCHAN_SANDBOX_ENDED) {
        tell_at_end(call);
    } else {
        call->done(NULL, err, call->ud);
        bc_sandbox_unref(call->sbx);
        free(call);
    }
    return 0;
}

int barchan_sandbox_usage_start(barchan_sandbox *sbx, barchan_usage_fn done, void *ud,
                                barchan_error *err)
{
    BC_OPERATION("sandbox.usage");
    if (sbx == NULL || done == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "sandbox and done are needed");
    }
    int rc = bc_runtime_check(sbx->rt, err);
    if (rc < 0) return rc;
    struct usage_call *call = calloc(1, sizeof *call);
    if (call == NULL) return bc_error_nomem(err);
    *call = (struct usage_call){.sbx = sbx, .done = done, .ud = ud};
    bc_sandbox_ref(sbx);
    if (sbx->state == BARCHAN_SANDBOX_ENDED) {
        tell_at_end(call);
        return 0;
    }
    rc = bc_ask_start(sbx, BC_ASK_USAGE, 0, BC_ASK_PATIENCE_MS, on_answer, call, err);
    if (rc == 0) return 0;
    bc_sandbox_unref(sbx);
    free(call);
    return rc;
}

/* ---- the same, waiting ---- */

struct usage_wait {
    bc_outcome outcome;
    barchan_usage usage;
};

static void on_usage(const barchan_usage *usage, const barchan_error *err, void *ud)
{
    struct usage_wait *wait = ud;
    bc_outcome_set(&wait->outcome, err);
    if (usage != NULL) wait->usage = *usage;
}

int barchan_sandbox_usage(barchan_sandbox *sbx, barchan_usage *usage, barchan_error *err)
{
    BC_OPERATION("sandbox.usage");
    struct usage_wait wait = {0};
    if (sbx == NULL || usage == NULL || usage->struct_size < sizeof usage->struct_size) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "sandbox and usage with its struct_size are needed");
    }
    barchan_runtime *rt = sbx->rt;
    int rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_sandbox_usage_start(sbx, on_usage, &wait, err);
    if (rc == 0) rc = bc_outcome_wait(&wait.outcome, rt, err);
    if (rc < 0) return rc;
    size_t size = usage->struct_size;
    wait.usage.struct_size = size;
    memcpy(usage, &wait.usage, size < sizeof *usage ? size : sizeof *usage);
    return 0;
}
