/* What a detached sandbox has reached, and what it was refused, for those who are connected. */
#include <stdlib.h>
#include "hold.h"

static void put_denied(bc_wire_writer *out, const barchan_denied *denied)
{
    bc_wire_put_string(out, denied->host, strlen(denied->host));
    bc_wire_put_string(out, denied->rule, strlen(denied->rule));
    bc_wire_put_u64(out, (uint64_t)denied->time_ms);
    bc_wire_put_u32(out, (uint32_t)denied->port);
    bc_wire_put_u32(out, denied->tries);
}

void bc_hold_tell_denied(bc_relay *relay)
{
    barchan_exec_result told = {0};
    if (relay->client == NULL) return;
    bc_egress_denied_since(relay->hold->sbx->egress, relay->denied_before, &told);
    unsigned char *bytes =
        told.denied_count + told.denied_more == 0 ? NULL : malloc(BC_FRAME_MAX_FROM_GUEST);
    if (bytes != NULL) {
        bc_wire_writer out = {.data = bytes, .cap = BC_FRAME_MAX_FROM_GUEST};
        bc_wire_put_u64(&out, told.denied_more);
        bc_wire_put_u32(&out, (uint32_t)told.denied_count);
        for (size_t i = 0; i < told.denied_count; i++)
            put_denied(&out, &told.denied[i]);
        bc_hold_send(relay->client, BC_HELD_DENIED, relay->client_stream, bytes, out.len, NULL, 0);
    }
    free(bytes);
    free(told.denied);
}

static void put_host(bc_wire_writer *out, const barchan_network_host *host)
{
    bc_wire_put_string(out, host->host, strnlen(host->host, sizeof((barchan_denied *)0)->host - 1));
    bc_wire_put_u64(out, host->connections);
    bc_wire_put_u64(out, host->denied);
    bc_wire_put_u64(out, host->failed);
    bc_wire_put_u64(out, host->bytes_sent);
    bc_wire_put_u64(out, host->bytes_received);
}

/* As many as one frame takes: who wants the rest asks again. */
static void put_hosts(bc_wire_writer *out, const barchan_network_usage *usage, uint64_t from)
{
    bc_wire_put_u32(out, (uint32_t)usage->open);
    bc_wire_put_u32(out, (uint32_t)usage->count);
    size_t head = out->len;
    uint32_t count = 0;
    bc_wire_put_u32(out, 0);
    for (uint64_t i = from; i < usage->count; i++, count++) {
        bc_wire_writer before = *out;
        put_host(out, &usage->hosts[i]);
        if (!out->full) continue;
        *out = before;
        break;
    }
    bc_put_u32(out->data + head, count);
}

void bc_hold_answer_network(bc_hold_client *client, uint32_t stream, uint64_t from)
{
    const bc_egress *egress = client->hold->sbx->egress;
    barchan_network_usage usage = {0};
    unsigned char *bytes = malloc(BC_FRAME_MAX_FROM_GUEST);
    if (bytes == NULL || (egress != NULL && bc_egress_usage(egress, &usage, NULL) < 0)) {
        free(bytes);
        bc_hold_client_cut(client);
        return;
    }
    bc_wire_writer out = {.data = bytes, .cap = BC_FRAME_MAX_FROM_GUEST};
    bc_hold_put_success(&out);
    put_hosts(&out, &usage, from);
    bc_hold_send(client, BC_FRAME_ANSWER, stream, bytes, out.len, NULL, 0);
    barchan_network_usage_clear(&usage);
    free(bytes);
}
