#include <string.h>
#include "base/clock.h"
#include "internal.h"
#include "network.h"

const char *barchan_sandbox_state_name(barchan_sandbox_state state)
{
    switch (state) {
    case BARCHAN_SANDBOX_STARTING: return "starting";
    case BARCHAN_SANDBOX_READY: return "ready";
    case BARCHAN_SANDBOX_ENDED: return "ended";
    case BARCHAN_SANDBOX_PAUSED: return "paused";
    }
    return "unknown";
}

const char *barchan_end_reason_name(barchan_end_reason reason)
{
    switch (reason) {
    case BARCHAN_END_NONE: return "none";
    case BARCHAN_END_TERMINATED: return "terminated";
    case BARCHAN_END_LEASE_EXPIRED: return "lease_expired";
    case BARCHAN_END_HOST_GONE: return "host_gone";
    case BARCHAN_END_PROTOCOL_ERROR: return "protocol_error";
    case BARCHAN_END_CRASHED: return "crashed";
    case BARCHAN_END_CREATE_FAILED: return "create_failed";
    case BARCHAN_END_IDLE: return "idle";
    case BARCHAN_END_OOM: return "oom";
    case BARCHAN_END_DETACHED: return "detached";
    }
    return "unknown";
}

int barchan_sandbox_status(const barchan_sandbox *sbx, barchan_sandbox_info *info,
                           barchan_error *err)
{
    BC_OPERATION("sandbox.status");
    if (sbx == NULL || info == NULL || info->struct_size < sizeof info->struct_size) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "sandbox and info with its struct_size are needed");
    }
    int ended = sbx->state == BARCHAN_SANDBOX_ENDED;
    int64_t age = (ended ? sbx->ended_ms : bc_clock_ms()) - sbx->born_ms;
    barchan_sandbox_info full = {
        .struct_size = info->struct_size,
        .id = sbx->id,
        .state = sbx->state,
        .end_reason = sbx->end_reason,
        .template_name = sbx->template_name,
        .age_ms = age,
        .lease_left_ms = bc_lease_left_ms(sbx),
        .running = sbx->running + sbx->running_elsewhere,
        .layers = sbx->layers.len == 0 ? "{}" : bc_buf_data(&sbx->layers),
    };
    memcpy(info, &full, info->struct_size < sizeof full ? info->struct_size : sizeof full);
    return 0;
}

void bc_sandbox_set_network_ud(barchan_sandbox *sbx, void *ud)
{
    bc_egress_set_ud(sbx->egress, ud);
}

int barchan_sandbox_set_network(barchan_sandbox *sbx, barchan_network network,
                                const barchan_network_rules *rules, barchan_error *err)
{
    BC_OPERATION("sandbox.set_network");
    const char *why = NULL;
    if (sbx == NULL) return bc_error_set(err, BARCHAN_EINVAL, "sandbox is needed");
    if (network == BARCHAN_NETWORK_OFF) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "set network: it cannot be off; an empty allow-list refuses what no "
                            "answer of on_connect has allowed");
    }
    if (sbx->egress == NULL) why = "the sandbox was made without a network";
    if (sbx->connection != NULL) why = "the sandbox is detached, and its holder decides";
    if (why != NULL) return bc_error_set(err, BARCHAN_EUNSUPPORTED, "set network: %s", why);
    int rc = bc_egress_set_rules(sbx->egress, network, rules, err);
    if (rc < 0) bc_error_context(err, "set network");
    return rc;
}

int barchan_sandbox_network(const barchan_sandbox *sbx, barchan_network_usage *usage,
                            barchan_error *err)
{
    BC_OPERATION("sandbox.network");
    if (sbx == NULL || usage == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "sandbox and usage are needed");
    }
    *usage = (barchan_network_usage){0};
    if (sbx->connection != NULL) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "network: the sandbox is detached, and its holder counts: "
                            "barchan_sandbox_network_start asks it");
    }
    return sbx->egress == NULL ? 0 : bc_egress_usage(sbx->egress, usage, err);
}

size_t barchan_sandbox_list(barchan_runtime *rt, barchan_sandbox **list, size_t capacity)
{
    size_t count = 0;
    if (bc_runtime_check(rt, NULL) < 0) return 0;
    bc_room *room = bc_runtime_room(rt, BC_ROOM_SANDBOX);
    for (barchan_sandbox *sbx = room == NULL ? NULL : room->sandboxes; sbx != NULL;
         sbx = sbx->next) {
        if (sbx->handle_dropped) continue;
        if (count < capacity) list[count] = sbx;
        count++;
    }
    return count;
}
