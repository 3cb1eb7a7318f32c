/*
 * The holder of a detached sandbox between a guest and two clients that say whatever they like.
 * What reaches the guest is only what process 1 takes: it ends the sandbox over anything else, and
 * that must not be in a client's power. Nor does a client end the sandbox otherwise, but by asking
 * for it.
 *
 * Input: records {who, type, stream, u16 length, payload}; who: 0 and 1 the clients, 2 the guest, 3
 * the first client hangs up and comes again.
 */
#include "fuzz.h"

#include <barchan/detached.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "channel/held.h"
#include "sandbox/guest_image.h"
#include "sandbox/held_dir.h"
#include "sandbox/hold_check.h"
#include "sandbox/internal.h"

enum { CLIENTS = 2, STREAMS = 64, CLIENT_STREAMS = 12 };

static barchan_runtime *rt;
static barchan_sandbox *sbx;
static int guest = -1, clients[CLIENTS] = {-1, -1};
static int guest_spoke, asked_to_end, over;
static bc_buf heard; /* by the guest, not yet a whole frame */

/* Process 1's books of a stream. */
struct job {
    int open, input_ended;
    uint32_t type;
    uint32_t credit[2], input; /* what it may send, and what was sent to it without a grant */
};
static struct job jobs[STREAMS];

/* ---- a backend ---- */

static void kill_fake(barchan_sandbox *sandbox)
{
    (void)sandbox;
}

static int start_fake(barchan_sandbox *sandbox, int *channel_fd, barchan_error *err)
{
    int pair[2];
    (void)sandbox, (void)err;
    CLAIM(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    *channel_fd = pair[0];
    guest = pair[1];
    return 0;
}

/* No launcher is started here. */
int bc_guest_image_open(const char *path, barchan_error *err)
{
    (void)path;
    return bc_error_set(err, BARCHAN_EUNSUPPORTED, "no guest");
}

static const bc_backend fake = {
    .name = "fake", .start = start_fake, .kill = kill_fake, .extend = kill_fake};

/* ---- what the guest hears ---- */

static void hear_request(const bc_frame *frame)
{
    CLAIM(frame->stream > 0);
    if (frame->type == BC_FRAME_EXEC) CLAIM(bc_hold_exec_is_valid(bc_wire_read(frame)));
    if (frame->type == BC_FRAME_FILE) CLAIM(bc_hold_file_is_valid(bc_wire_read(frame)));
    if (frame->type == BC_FRAME_ASK) CLAIM(frame->length == 12 && bc_get_u32(frame->payload) <= 5);
    if (frame->stream >= STREAMS) return;
    struct job *job = &jobs[frame->stream];
    CLAIM(!job->open);
    *job =
        (struct job){.open = 1, .type = frame->type, .credit = {BC_FRAME_WINDOW, BC_FRAME_WINDOW}};
}

static void hear_sequel(const bc_frame *frame)
{
    struct job *job = frame->stream < STREAMS ? &jobs[frame->stream] : NULL;
    if (job == NULL) return;
    CLAIM(job->open && job->type != BC_FRAME_ASK);
    uint32_t which, bytes;
    switch (frame->type) {
    case BC_FRAME_INPUT:
        CLAIM(!job->input_ended && frame->length <= BC_FRAME_WINDOW - job->input);
        job->input += frame->length;
        break;
    case BC_FRAME_INPUT_END: CLAIM(!job->input_ended++); break;
    case BC_FRAME_CREDIT:
        CLAIM(frame->length == 5);
        which = frame->payload[0] == BC_FRAME_ERR;
        bytes = bc_get_u32(frame->payload + 1);
        CLAIM(bytes <= BC_FRAME_WINDOW - job->credit[which]);
        job->credit[which] += bytes;
        break;
    case BC_FRAME_SIGNAL: CLAIM(frame->length == 4 && bc_get_u32(frame->payload) - 1 < 64); break;
    case BC_FRAME_RESIZE: CLAIM(frame->length == 8); break;
    default: CLAIM(frame->type == BC_FRAME_CANCEL);
    }
}

static void hear(void)
{
    char bytes[65536];
    ssize_t n;
    bc_frame frame;
    int64_t size;
    while ((n = recv(guest, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        CLAIM(bc_buf_append(&heard, bytes, (size_t)n) == 0);
    }
    while ((size = bc_frame_parse(&frame, (unsigned char *)bc_buf_data(&heard), heard.len,
                                  bc_frame_max_to_guest)) > 0) {
        if (frame.type == BC_FRAME_EXEC || frame.type == BC_FRAME_FILE ||
            frame.type == BC_FRAME_ASK) {
            hear_request(&frame);
        } else if (frame.type != BC_FRAME_HELLO) {
            hear_sequel(&frame);
        }
        bc_buf_consume(&heard, (size_t)size);
    }
    CLAIM(size == 0);
}

/* ---- who speaks ---- */

static void pump(void)
{
    char bytes[65536];
    for (int i = 0; i < 3; i++) {
        barchan_runtime_pump(rt, 0, NULL);
        hear();
        for (int c = 0; c < CLIENTS; c++) {
            while (clients[c] >= 0 && recv(clients[c], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
        }
    }
}

static void say(int fd, uint32_t type, uint32_t stream, const void *payload, size_t len)
{
    unsigned char header[BC_FRAME_HEADER];
    bc_frame_put_header(header, type, stream, (uint32_t)len);
    if (fd < 0 || send(fd, header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    if (len > 0 && send(fd, payload, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    pump();
}

static void dial(int c)
{
    static const unsigned char hello[8] = {BC_HELD_VERSION};
    if (clients[c] >= 0) close(clients[c]);
    clients[c] = -1;
    pump();
    if (bc_held_connect(sbx->id, &clients[c], NULL) == 0) {
        say(clients[c], BC_FRAME_HELLO, 0, hello, sizeof hello);
    }
}

/* Within its credit, or what breaks the rules: from then on it may be ended for that. */
static void guest_says(uint32_t type, uint32_t stream, const uint8_t *data, size_t len)
{
    struct job *job = &jobs[stream % STREAMS];
    int which = type == BC_FRAME_ERR, bytes = which || type == BC_FRAME_OUT;
    int may = job->type == BC_FRAME_EXEC || (job->type == BC_FRAME_FILE && !which);
    if (bytes && may && job->open && len <= job->credit[which]) {
        job->credit[which] -= (uint32_t)len;
    } else {
        guest_spoke = 1;
    }
    say(guest, type, stream % STREAMS, data, len);
}

static void on_over(const barchan_error *err, void *ud)
{
    (void)err, (void)ud;
    over++;
}

static void say_records(const uint8_t *data, size_t size)
{
    while (size >= 5) {
        int who = data[0] % 4;
        uint32_t type = data[1], stream = data[2] % CLIENT_STREAMS;
        size_t len = (size_t)data[3] | (size_t)data[4] << 8;
        data += 5;
        size -= 5;
        if (len > size) len = size;
        if (who == 3) {
            dial(0);
        } else if (who == 2) {
            guest_says(type < 128 ? BC_FRAME_READY + type % 10u : type, stream, data, len);
        } else {
            type = type < 128 ? BC_FRAME_HELLO + type % 10u : type - 128;
            if (type == BC_HELD_TERMINATE) asked_to_end = 1;
            say(clients[who], type, stream, data, len);
        }
        data += len;
        size -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char ready[12] = {BC_FRAME_VERSION};
    if (rt == NULL) CLAIM(barchan_runtime_create(&rt, NULL, NULL) == 0);
    guest_spoke = asked_to_end = over = 0;
    memset(jobs, 0, sizeof jobs);
    bc_buf_init(&heard, 1 << 24);
    CLAIM(bc_sandbox_create_with(&sbx, rt, NULL, &fake, NULL, NULL, NULL) == 0);
    say(guest, BC_FRAME_READY, 0, ready, sizeof ready);
    CLAIM(barchan_sandbox_hold(sbx, on_over, NULL, NULL) == 0);
    for (int c = 0; c < CLIENTS; c++) {
        dial(c);
    }
    say_records(data, size);
    pump();
    if (!guest_spoke && !asked_to_end) CLAIM(sbx->state != BARCHAN_SANDBOX_ENDED);
    bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    for (int c = 0; c < CLIENTS; c++) {
        if (clients[c] >= 0) close(clients[c]);
        clients[c] = -1;
    }
    pump();
    pump();
    CLAIM(over == 1);
    barchan_sandbox_destroy(sbx);
    close(guest);
    guest = -1;
    bc_buf_clear(&heard);
    return 0;
}
