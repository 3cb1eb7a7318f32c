/*
 * Who is connected to a detached sandbox. A client is of the same user and may do as it likes with
 * the sandbox, but not to the holder or to other clients: what it sends is bounded and checked, and
 * who breaks the rules is cut off, and who stops reading is not read from.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/limits.h"
#include "held_dir.h"
#include "hold.h"

static void free_deferred(bc_defer *defer)
{
    bc_hold_client *client = owner_of(defer, bc_hold_client, gone);
    bc_hold *hold = client->hold;
    bc_hold_client_free(client);
    bc_hold_client_left(hold);
}

void bc_hold_client_cut(bc_hold_client *client)
{
    bc_channel *channel = client->channel;
    if (channel == NULL) return;
    client->channel = NULL;
    bc_channel_close(channel);
    while (client->relays != NULL) {
        bc_relay_orphan(client->relays);
    }
    bc_defer_schedule(client->hold->rt, &client->gone, free_deferred);
}

void bc_hold_client_free(bc_hold_client *client)
{
    bc_hold *hold = client->hold;
    bc_channel_close(client->channel);
    bc_timer_close(client->hello);
    bc_defer_cancel(&client->gone);
    while (client->relays != NULL) {
        bc_relay_free(client->relays);
    }
    if (client->prev != NULL) client->prev->next = client->next;
    if (client->next != NULL) client->next->prev = client->prev;
    if (hold->clients == client) hold->clients = client->next;
    hold->client_count--;
    free(client);
}

/* ---- the greeting ---- */

static void fail(bc_hold_client *client, uint32_t status, const char *words)
{
    unsigned char bytes[BC_FRAME_MAX_MESSAGE + 16];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_u32(&out, status);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_string(&out, words, strlen(words));
    bc_hold_send(client, BC_FRAME_FAILED, 0, bytes, out.len, NULL, 0);
    bc_hold_client_cut(client);
}

static int put_ready(bc_buf *out, const barchan_sandbox *sbx)
{
    uint32_t count = 0;
    while (sbx->env != NULL && sbx->env[count] != NULL) {
        count++;
    }
    int rc = bc_put_wire_u64(out, (uint64_t)sbx->wall_ms);
    if (rc == 0) rc = bc_put_wire_string(out, sbx->template_name, strlen(sbx->template_name));
    if (rc == 0) rc = bc_put_wire_string(out, bc_buf_data(&sbx->layers), sbx->layers.len);
    if (rc == 0) rc = bc_put_wire_u32(out, count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = bc_put_wire_string(out, sbx->env[i], strlen(sbx->env[i]));
    }
    if (rc == 0) rc = bc_profile_put(sbx, out);
    return rc < 0 ? rc : bc_mounts_put(sbx, out);
}

static int greet(bc_hold_client *client, const bc_frame *frame)
{
    if (client->greeted || frame->length != 8) return -1;
    if (bc_get_u32(frame->payload) != BC_HELD_VERSION) {
        fail(client, BC_WIRE_EUNSUPPORTED,
             "it was made by another version of barchan: use that one for it");
        return 0;
    }
    bc_timer_close(client->hello);
    client->hello = NULL;
    client->greeted = 1;
    bc_buf ready cleanup_buf;
    bc_buf_init(&ready, BC_HELD_MAX_READY);
    if (put_ready(&ready, client->hold->sbx) < 0) {
        fail(client, BC_WIRE_ELIMIT, "its profile has too many variables to be told");
        return 0;
    }
    bc_hold_tell(client);
    bc_hold_send(client, BC_HELD_READY, 0, bc_buf_data(&ready), ready.len, NULL, 0);
    return 0;
}

/* That is no question: those have their own rule. */
static bool is_request(const bc_frame *frame)
{
    return frame->type == BC_FRAME_EXEC || frame->type == BC_FRAME_FILE ||
           frame->type == BC_HELD_TERMINATE;
}

static int on_frame(void *ud, const bc_frame *frame)
{
    bc_hold_client *client = ud;
    if (frame->stream == 0 && frame->type == BC_FRAME_HELLO) return greet(client, frame);
    if (!client->greeted) return -1;
    if (is_request(frame)) client->follows = 0; /* it does something else now */
    /* What was printed may be asked for; all else comes too late. */
    if (client->hold->ending && frame->type != BC_FRAME_ASK) {
        bool waits_for_end = client->hold->over && !client->follows && !client->told;
        if (waits_for_end) bc_hold_tell_end(client);
        return 0;
    }
    if (frame->stream == 0) {
        if (frame->type != BC_HELD_TERMINATE) return -1;
        barchan_sandbox_terminate(client->hold->sbx);
        return 0;
    }
    switch (frame->type) {
    case BC_FRAME_EXEC:
    case BC_FRAME_FILE:
    case BC_FRAME_ASK: return bc_relay_request(client, frame);
    default: return bc_relay_frame(client, frame);
    }
}

static void on_end(void *ud, const barchan_error *why)
{
    bc_hold_client *client = ud;
    if (why != NULL) {
        bc_log(client->hold->rt, BARCHAN_LOG_WARN, "sandbox %s: a connection was cut off: %s",
               client->hold->sbx->id, why->message);
    }
    bc_hold_client_cut(client);
}

/* It has been told that the sandbox has ended, and has taken it in. */
static void on_sent(void *ud)
{
    bc_hold_client *client = ud;
    if (client->told) bc_hold_client_cut(client);
}

static const bc_channel_handler handler = {.on_frame = on_frame,
                                           .on_end = on_end,
                                           .max_of = bc_held_max_to_holder,
                                           .asks = 1,
                                           .on_sent = on_sent};

static void on_silence(void *ud)
{
    bc_hold_client_cut(ud);
}

void bc_hold_accept(bc_hold *hold, int fd)
{
    bc_hold_client *client = bc_held_peer_is_own(fd) ? calloc(1, sizeof *client) : NULL;
    if (client == NULL) {
        close(fd);
        return;
    }
    client->hold = hold;
    client->next = hold->clients;
    if (client->next != NULL) client->next->prev = client;
    hold->clients = client;
    hold->client_count++;
    if (bc_channel_open(&client->channel, hold->rt, fd, &handler, client, NULL) < 0 ||
        bc_timer_open(&client->hello, hold->rt, on_silence, client, NULL) < 0) {
        bc_hold_client_free(client);
        return;
    }
    bc_timer_set(client->hello, BC_HOLD_HELLO_MS);
    client->spare = hold->client_count > BC_HOLD_MAX_CLIENTS;
    if (hold->client_count > BC_HOLD_MAX_CLIENTS + BC_HOLD_SPARE_CLIENTS) {
        fail(client, BC_WIRE_ELIMIT, "too many programs are connected to it");
    }
}
