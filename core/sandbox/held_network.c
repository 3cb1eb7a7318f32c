/* What a sandbox has reached, and what not: of a detached one its holder tells that. */
#include <stdio.h>
#include <stdlib.h>
#include "ask.h"
#include "base/limits.h"
#include "channel/held.h"
#include "egress/ledger.h"
#include "exec.h"

/* ---- refusals and failures ---- */

static void take_denied(bc_wire_reader *in, barchan_denied *denied)
{
    const char *host = bc_wire_string(in, sizeof denied->host - 1);
    const char *rule = bc_wire_string(in, sizeof denied->rule - 1);
    snprintf(denied->host, sizeof denied->host, "%s", host);
    snprintf(denied->rule, sizeof denied->rule, "%s", rule);
    denied->time_ms = (int64_t)bc_usage_bound(bc_wire_u64(in));
    denied->port = (int)(bc_wire_u32(in) & 0xFFFF);
    denied->tries = bc_wire_u32(in);
}

int bc_held_take_told(const bc_frame *frame, barchan_exec_result *result)
{
    int denied = frame->type == BC_HELD_DENIED;
    barchan_denied **to = denied ? &result->denied : &result->unreached, unkept;
    uint64_t *more_to = denied ? &result->denied_more : &result->unreached_more;
    bc_wire_reader in = bc_wire_read(frame);
    uint64_t more = bc_usage_bound(bc_wire_u64(&in));
    uint32_t count = bc_wire_u32(&in);
    int again = *to != NULL || *more_to > 0;
    if (in.bad || again || count > BC_LEDGER_MAX_TOLD || count + more == 0) return -1;
    barchan_denied *list = calloc(count + 1, sizeof *list);
    size_t kept = list == NULL ? 0 : count;
    for (uint32_t i = 0; i < count; i++)
        take_denied(&in, list == NULL ? &unkept : &list[i]);
    *to = list;
    *(denied ? &result->denied_count : &result->unreached_count) = kept;
    *more_to = more + count - kept;
    return bc_wire_done(&in) ? 0 : -1;
}

/* ---- hosts ---- */

struct network_call {
    barchan_sandbox *sbx;
    barchan_network_usage usage;
    barchan_network_usage_fn done;
    void *ud;
    bc_defer defer;
};

static void tell(struct network_call *call, const barchan_error *err)
{
    call->done(err == NULL ? &call->usage : NULL, err, call->ud);
    barchan_network_usage_clear(&call->usage);
    bc_sandbox_unref(call->sbx);
    free(call);
}

static void tell_own(bc_defer *defer)
{
    struct network_call *call = owner_of(defer, struct network_call, defer);
    barchan_error err;
    int rc = barchan_sandbox_network(call->sbx, &call->usage, &err);
    tell(call, rc < 0 ? &err : NULL);
}

static int take_host(bc_wire_reader *in, barchan_network_host *host)
{
    uint64_t *const fields[] = {&host->connections, &host->denied, &host->failed, &host->bytes_sent,
                                &host->bytes_received};
    const char *name = bc_wire_string(in, sizeof((barchan_denied *)0)->host - 1);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i] = bc_usage_bound(bc_wire_u64(in));
    host->host = in->bad ? NULL : strdup(name);
    return host->host == NULL ? -1 : 0;
}

/* 1: there are more, 0: these were the last. */
static int take_hosts(bc_wire_reader *in, barchan_network_usage *usage)
{
    usage->open = bc_wire_u32(in);
    uint32_t total = bc_wire_u32(in), count = bc_wire_u32(in);
    if (in->bad || total > BC_LEDGER_MAX_HOSTS + 1 || usage->count > total ||
        count > total - usage->count) {
        return -1;
    }
    barchan_network_host *hosts = realloc(usage->hosts, (total + 1) * sizeof *hosts);
    if (hosts == NULL) return -1;
    usage->hosts = hosts;
    for (uint32_t i = 0; i < count; i++) {
        if (take_host(in, &hosts[usage->count]) < 0) return -1;
        usage->count++;
    }
    if (!bc_wire_done(in)) return -1;
    return count > 0 && usage->count < total;
}

static int on_answer(bc_wire_reader *in, const barchan_error *err, void *ud)
{
    struct network_call *call = ud;
    barchan_error why;
    int rc = err == NULL ? take_hosts(in, &call->usage) : 0;
    if (rc < 0) return -1; /* asked again, with an error */
    if (rc > 0) {
        rc = bc_ask_start(call->sbx, BC_HELD_ASK_NETWORK, call->usage.count, BC_ASK_PATIENCE_MS,
                          on_answer, call, &why);
        if (rc == 0) return 0;
        err = &why;
    }
    tell(call, err);
    return 0;
}

int barchan_sandbox_network_start(barchan_sandbox *sbx, barchan_network_usage_fn done, void *ud,
                                  barchan_error *err)
{
    BC_OPERATION("sandbox.network");
    if (sbx == NULL || done == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "sandbox and done are needed");
    }
    int rc = bc_runtime_check(sbx->rt, err);
    if (rc < 0) return rc;
    struct network_call *call = calloc(1, sizeof *call);
    if (call == NULL) return bc_error_nomem(err);
    *call = (struct network_call){.sbx = sbx, .done = done, .ud = ud};
    bc_sandbox_ref(sbx);
    if (sbx->connection == NULL) {
        bc_defer_schedule(sbx->rt, &call->defer, tell_own);
        return 0;
    }
    rc = bc_ask_start(sbx, BC_HELD_ASK_NETWORK, 0, BC_ASK_PATIENCE_MS, on_answer, call, err);
    if (rc == 0) return 0;
    bc_sandbox_unref(sbx);
    free(call);
    return rc;
}
