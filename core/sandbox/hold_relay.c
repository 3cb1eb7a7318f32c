/*
 * Streams of those who are connected to a detached sandbox, each carried by one of the sandbox's
 * own. Credit goes from end to end, so that the holder keeps no more than a window of each; it
 * counts along, because process 1 ends the sandbox over a byte too much, and that must not be in a
 * client's power. What becomes of a stream whose client is gone is decided here, too.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/limits.h"
#include "hold.h"
#include "hold_check.h"

static const bc_stream_ops relay_ops;

static void link_to(bc_relay **head, bc_relay *relay)
{
    relay->prev = NULL;
    relay->next = *head;
    if (*head != NULL) (*head)->prev = relay;
    *head = relay;
}

static void unlink_from(bc_relay **head, bc_relay *relay)
{
    if (relay->prev != NULL) relay->prev->next = relay->next;
    if (relay->next != NULL) relay->next->prev = relay->prev;
    if (*head == relay) *head = relay->next;
}

static void count_running(bc_relay *relay, int change)
{
    if (relay->request != BC_FRAME_EXEC) return;
    relay->hold->sbx->running += change;
    if (relay->client != NULL) relay->client->running += (unsigned)change;
}

void bc_relay_free(bc_relay *relay)
{
    count_running(relay, -1);
    unlink_from(relay->client == NULL ? &relay->hold->orphans : &relay->client->relays, relay);
    bc_stream_close(&relay->stream);
    free(relay);
}

static void send_credit(bc_relay *relay, int which)
{
    uint32_t bytes = BC_FRAME_WINDOW - relay->credit[which];
    relay->credit[which] = BC_FRAME_WINDOW;
    if (bytes > 0) bc_stream_credit(&relay->stream, BC_FRAME_OUT + (uint32_t)which, bytes);
}

void bc_relay_orphan(bc_relay *relay)
{
    int lives_on = relay->request == BC_FRAME_EXEC && (relay->flags & BC_EXEC_DETACH) != 0;
    unlink_from(&relay->client->relays, relay);
    if (relay->request == BC_FRAME_EXEC) relay->client->running--;
    relay->client = NULL;
    link_to(&relay->hold->orphans, relay);
    if (!lives_on && relay->request != BC_FRAME_ASK) {
        bc_stream_send(&relay->stream, BC_FRAME_CANCEL, NULL, 0, NULL, 0, NULL);
    } else if (relay->in_open) {
        bc_stream_send(&relay->stream, BC_FRAME_INPUT_END, NULL, 0, NULL, 0, NULL);
    }
    relay->in_open = 0;
    if (relay->request == BC_FRAME_ASK) return;
    /* What the client has not taken is taken here from now on: nothing is held up. */
    send_credit(relay, 0);
    if (relay->request == BC_FRAME_EXEC) send_credit(relay, 1);
}

/* ---- from the sandbox ---- */

static void pass_on(bc_relay *relay, const bc_frame *frame)
{
    if (relay->client == NULL) return;
    bc_hold_send(relay->client, frame->type, relay->client_stream, frame->payload, frame->length,
                 NULL, 0);
}

static int on_output(bc_relay *relay, const bc_frame *frame)
{
    int which = frame->type == BC_FRAME_ERR;
    if (relay->request != BC_FRAME_EXEC && (relay->request != BC_FRAME_FILE || which != 0))
        return -1;
    if (frame->length > relay->credit[which]) return -1;
    relay->credit[which] -= frame->length;
    if (relay->request == BC_FRAME_EXEC) {
        bc_hold_log_add(&relay->hold->log, relay->command, frame->type, frame->payload,
                        frame->length);
        bc_hold_tell_followers(relay->hold);
    }
    pass_on(relay, frame);
    if (relay->client == NULL && relay->credit[which] < BC_FRAME_WINDOW / 2) {
        send_credit(relay, which);
    }
    return 0;
}

static int on_grant(bc_relay *relay, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t bytes = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || bytes > BC_FRAME_WINDOW - relay->in_credit) return -1;
    relay->in_credit += bytes;
    pass_on(relay, frame);
    return 0;
}

static int on_exit_frame(bc_relay *relay, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    bc_exit e;
    bc_wire_get_exit(&in, &e);
    if (!bc_wire_done(&in)) return -1;
    bc_usage_add(relay->hold->sbx,
                 &(barchan_exec_usage){.user_us = (int64_t)bc_usage_bound(e.user_us),
                                       .system_us = (int64_t)bc_usage_bound(e.system_us)});
    bc_hold_tell_refusals(relay);
    pass_on(relay, frame);
    return 0;
}

/* The client knows its own streams: it gets their numbers, and 0 for the commands of others. */
static void own_numbers(const bc_relay *relay, unsigned char *payload, size_t len)
{
    bc_frame frame = {.payload = payload, .length = (uint32_t)len};
    bc_wire_reader in = bc_wire_read(&frame);
    barchan_error status;
    if (bc_read_status(&in, &status) < 0) return;
    bc_wire_u32(&in);
    uint32_t count = bc_wire_u32(&in);
    for (uint32_t i = 0; i < count && !in.bad; i++) {
        unsigned char *record = payload + (in.at - payload);
        bc_process process;
        bc_wire_get_process(&in, &process);
        bc_wire_string(&in, BC_PROCESS_MAX_COMMAND);
        if (in.bad) return;
        uint32_t number = 0;
        for (const bc_relay *r = relay->client->relays; r != NULL; r = r->next) {
            if (r->stream.id == process.exec) number = r->client_stream;
        }
        bc_put_u32(record + 16, number); /* behind pid, parent, threads, state */
    }
}

static int on_answer(bc_relay *relay, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    barchan_error status;
    if (bc_read_status(&in, &status) < 0) return -1;
    if (status.code == 0 && relay->ask == BC_ASK_PAUSE) bc_sandbox_set_paused(relay->hold->sbx, 1);
    if (status.code == 0 && relay->ask == BC_ASK_RESUME) bc_sandbox_set_paused(relay->hold->sbx, 0);
    if (relay->client == NULL) return 0;
    bc_hold_tell(relay->client);
    if (relay->client == NULL || relay->ask != BC_ASK_PROCESSES) {
        pass_on(relay, frame);
        return 0;
    }
    unsigned char *copy = malloc(frame->length + 1);
    if (copy == NULL) return -1;
    memcpy(copy, frame->payload, frame->length);
    own_numbers(relay, copy, frame->length);
    bc_hold_send(relay->client, frame->type, relay->client_stream, copy, frame->length, NULL, 0);
    free(copy);
    return 0;
}

static int on_frame(bc_stream *stream, const bc_frame *frame)
{
    bc_relay *relay = owner_of(stream, bc_relay, stream);
    uint32_t end = relay->request == BC_FRAME_EXEC   ? BC_FRAME_EXIT
                   : relay->request == BC_FRAME_FILE ? BC_FRAME_FILE_DONE
                                                     : BC_FRAME_ANSWER;
    if (frame->type == BC_FRAME_OUT || frame->type == BC_FRAME_ERR) return on_output(relay, frame);
    if (frame->type == BC_FRAME_GRANT && relay->request != BC_FRAME_ASK) {
        return on_grant(relay, frame);
    }
    if (frame->type != end) return -1;
    int rc = 0;
    if (end == BC_FRAME_EXIT) rc = on_exit_frame(relay, frame);
    if (end == BC_FRAME_FILE_DONE) pass_on(relay, frame);
    if (end == BC_FRAME_ANSWER) rc = on_answer(relay, frame);
    if (rc == 0) bc_relay_free(relay);
    return rc;
}

/* The sandbox has ended, of which the client is told as a whole. */
static void on_lost(bc_stream *stream)
{
    bc_relay_free(owner_of(stream, bc_relay, stream));
}

static const bc_stream_ops relay_ops = {.on_frame = on_frame, .on_lost = on_lost};

/* ---- requests ---- */

/* The answer that process 1 would give where there can be no more streams. */
static void refuse(bc_hold_client *client, const bc_frame *frame)
{
    const char *words = client->spare
                            ? "too many programs are connected to it: this one may only ask"
                            : "too many commands and file operations run in the sandbox";
    unsigned char bytes[256];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    uint32_t type = BC_FRAME_ANSWER;
    if (frame->type == BC_FRAME_EXEC) {
        type = BC_FRAME_EXIT;
        bc_wire_put_exit(&out, &(bc_exit){.reason = BC_EXIT_SPAWN_FAILED, .spawn_errno = EAGAIN});
    } else {
        bc_wire_put_u32(&out, BC_WIRE_ELIMIT);
        bc_wire_put_u32(&out, 0);
        if (frame->type == BC_FRAME_FILE) {
            type = BC_FRAME_FILE_DONE;
            bc_wire_put_u64(&out, 0);
            bc_wire_put_u64(&out, 0);
            bc_wire_put_u32(&out, 0);
        }
        bc_wire_put_string(&out, words, strlen(words));
    }
    bc_hold_send(client, type, frame->stream, bytes, out.len, NULL, 0);
}

/* 1: it has been answered, 0: it is process 1's to answer. */
static int ask(bc_hold_client *client, bc_relay *relay, const bc_frame *frame)
{
    bc_hold *hold = client->hold;
    bc_wire_reader in = bc_wire_read(frame);
    relay->ask = bc_wire_u32(&in);
    uint64_t argument = bc_wire_u64(&in);
    if (!bc_wire_done(&in)) return -1;
    if (client->told || (hold->ending && relay->ask != BC_HELD_ASK_FOLLOW)) return 1; /* too late */
    client->follows &= relay->ask == BC_HELD_ASK_FOLLOW;
    switch (relay->ask) {
    case BC_ASK_USAGE:
    case BC_ASK_PAUSE:
    case BC_ASK_RESUME:
    case BC_ASK_PROCESSES: return 0;
    case BC_ASK_EXTEND:
        if (argument == 0 || argument > BC_SANDBOX_MAX_LEASE_MS) return -1;
        hold->sbx->lease_end_ms = bc_clock_ms() + (int64_t)argument;
        hold->sbx->backend->extend(hold->sbx);
        bc_hold_tell_all(hold);
        return client->channel == NULL ? 1 : 0;
    case BC_HELD_ASK_LOGS: bc_hold_answer_logs(client, frame->stream, argument); return 1;
    case BC_HELD_ASK_NETWORK: bc_hold_answer_network(client, frame->stream, argument); return 1;
    case BC_HELD_ASK_FOLLOW: bc_hold_follow(client, frame->stream, argument); return 1;
    default: return -1;
    }
}

static int takes_input(const bc_frame *frame)
{
    uint32_t first = bc_get_u32(frame->payload); /* the flags of an exec, the file operation */
    if (frame->type == BC_FRAME_EXEC) return (first & (BC_EXEC_INPUT | BC_EXEC_PTY)) != 0;
    return frame->type == BC_FRAME_FILE &&
           (first == BC_FILE_OP_WRITE || first == BC_FILE_OP_APPEND);
}

static int open_relay(bc_hold_client *client, bc_relay *relay, const bc_frame *frame)
{
    bc_hold *hold = client->hold;
    unsigned char head[12];
    if (bc_stream_open(&relay->stream, hold->sbx, &relay_ops, NULL) < 0) {
        free(relay);
        refuse(client, frame);
        return 0;
    }
    link_to(&client->relays, relay);
    count_running(relay, 1);
    memcpy(head, frame->payload, sizeof head);
    if (frame->type == BC_FRAME_EXEC) {
        relay->flags = bc_get_u32(head);
        relay->command = ++hold->commands;
        relay->before = bc_egress_mark(hold->sbx->egress);
        hold->sbx->execs++;
        int64_t wall = hold->sbx->wall_ms, timeout = (int64_t)bc_get_u64(head + 4);
        if (wall > 0 && (timeout <= 0 || timeout > wall)) bc_put_u64(head + 4, (uint64_t)wall);
    }
    int rc = bc_stream_send(&relay->stream, frame->type, head, sizeof head,
                            frame->payload + sizeof head, frame->length - sizeof head, NULL);
    if (rc == 0) return 0;
    bc_relay_free(relay);
    refuse(client, frame);
    return 0;
}

int bc_relay_request(bc_hold_client *client, const bc_frame *frame)
{
    if (frame->stream <= client->last_stream) return -1; /* each number once, upwards */
    client->last_stream = frame->stream;
    if (frame->type == BC_FRAME_EXEC && !bc_hold_exec_is_valid(bc_wire_read(frame))) return -1;
    if (frame->type == BC_FRAME_FILE && !bc_hold_file_is_valid(bc_wire_read(frame))) return -1;
    if (client->hold->client_count <= BC_HOLD_MAX_CLIENTS) client->spare = 0;
    int barred = client->spare && frame->type != BC_FRAME_ASK;
    bc_relay *relay = barred ? NULL : calloc(1, sizeof *relay);
    if (relay == NULL) {
        refuse(client, frame);
        return 0;
    }
    relay->hold = client->hold;
    relay->client = client;
    relay->client_stream = frame->stream;
    relay->request = frame->type;
    relay->credit[0] = relay->credit[1] = relay->in_credit = BC_FRAME_WINDOW;
    int rc = frame->type == BC_FRAME_ASK ? ask(client, relay, frame) : 0;
    if (rc != 0) {
        free(relay);
        return rc < 0 ? -1 : 0;
    }
    relay->in_open = takes_input(frame);
    return open_relay(client, relay, frame);
}

/* ---- what comes after a request ---- */

static int is_valid(bc_relay *relay, const bc_frame *frame)
{
    const unsigned char *at = frame->payload;
    uint32_t which, bytes;
    if (relay->request == BC_FRAME_ASK) return frame->type == BC_FRAME_CANCEL && frame->length == 0;
    switch (frame->type) {
    case BC_FRAME_INPUT:
        if (!relay->in_open || frame->length > relay->in_credit) return 0;
        relay->in_credit -= frame->length;
        return 1;
    case BC_FRAME_INPUT_END:
        if (!relay->in_open || frame->length != 0) return 0;
        relay->in_open = 0;
        return 1;
    case BC_FRAME_CREDIT:
        if (frame->length != 5 || (at[0] != BC_FRAME_OUT && at[0] != BC_FRAME_ERR)) return 0;
        which = at[0] == BC_FRAME_ERR;
        bytes = bc_get_u32(at + 1);
        if (bytes > BC_FRAME_WINDOW - relay->credit[which]) return 0;
        relay->credit[which] += bytes;
        return 1;
    case BC_FRAME_SIGNAL: return frame->length == 4 && bc_get_u32(at) >= 1 && bc_get_u32(at) <= 64;
    case BC_FRAME_CANCEL: return frame->length == 0;
    case BC_FRAME_RESIZE:
        return frame->length == 8 && bc_get_u32(at) <= 0xFFFF && bc_get_u32(at + 4) <= 0xFFFF;
    default: return 0;
    }
}

int bc_relay_frame(bc_hold_client *client, const bc_frame *frame)
{
    bc_relay *relay = client->relays;
    while (relay != NULL && relay->client_stream != frame->stream) {
        relay = relay->next;
    }
    if (relay == NULL) return frame->stream <= client->last_stream ? 0 : -1; /* it has just ended */
    if (!is_valid(relay, frame)) return -1;
    if (relay->request == BC_FRAME_ASK) return 0; /* it is answered at once, given up or not */
    return bc_stream_send(&relay->stream, frame->type, frame->payload, frame->length, NULL, 0,
                          NULL);
}
