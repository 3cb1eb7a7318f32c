/* What a detached sandbox has reached, and what not, for those who are connected. */
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

static void send_list(const bc_relay *relay, uint32_t type, const barchan_denied *list,
                      size_t count, uint64_t more)
{
    unsigned char *bytes = count + more == 0 ? NULL : malloc(BC_FRAME_MAX_FROM_GUEST);
    if (bytes == NULL) return;
    bc_wire_writer out = {.data = bytes, .cap = BC_FRAME_MAX_FROM_GUEST};
    bc_wire_put_u64(&out, more);
    bc_wire_put_u32(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        put_denied(&out, &list[i]);
    bc_hold_send(relay->client, type, relay->client_stream, bytes, out.len, NULL, 0);
    free(bytes);
}

void bc_hold_tell_refusals(bc_relay *relay)
{
    barchan_exec_result told = {0};
    if (relay->client == NULL) return;
    bc_egress_told_since(relay->hold->sbx->egress, relay->before, &told);
    send_list(relay, BC_HELD_DENIED, told.denied, told.denied_count, told.denied_more);
    send_list(relay, BC_HELD_UNREACHED, told.unreached, told.unreached_count, told.unreached_more);
    barchan_exec_result_clear(&told);
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
