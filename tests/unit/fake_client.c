#include "fake_client.h"

#include <barchan/detached.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/limits.h"
#include "channel/held.h"
#include "sandbox/held_dir.h"
#include "suite.h"

int client = -1; /* a connection that the test speaks by itself */
int over;
static char scratch[64];

static void on_over(const barchan_error *err, void *ud)
{
    (void)err, (void)ud;
    over++;
}

void set_up_held(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/barchan-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    setenv("XDG_RUNTIME_DIR", scratch, 1); /* not as root, whose place is fixed */
    over = 0;
    set_up_ready();
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_hold(sbx, on_over, NULL, &err) == 0, "%s", err.message);
    ck_assert_int_eq(bc_held_connect(status().id, &client, &err), 0);
}

void tear_down_held(void)
{
    char command[100];
    tear_down();
    ck_assert_int_eq(over, 1);
    if (client >= 0) close(client);
    client = -1;
    snprintf(command, sizeof command, "rm -r %s", scratch);
    ck_assert_int_eq(system(command), 0);
}

/* ---- what the client says and hears ---- */

void client_says(uint32_t type, uint32_t stream, const void *data, size_t len)
{
    unsigned char header[BC_FRAME_HEADER];
    bc_frame_put_header(header, type, stream, (uint32_t)len);
    ck_assert_int_eq(send(client, header, sizeof header, MSG_NOSIGNAL), (int)sizeof header);
    for (size_t at = 0; at < len;) {
        ssize_t n = send(client, (const char *)data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) at += (size_t)n;
        ck_assert(n > 0 || errno == EAGAIN);
        pump();
    }
    pump();
}

/* The next frame that a socket has; 0: none, -1: it is closed. */
int next_frame(int fd, bc_frame *frame)
{
    static unsigned char bytes[BC_FRAME_MAX_TO_GUEST];
    ssize_t n = recv(fd, bytes, BC_FRAME_HEADER, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) return -1;
    ck_assert_int_eq(n, BC_FRAME_HEADER);
    *frame = (bc_frame){.length = bc_get_u32(bytes),
                        .type = bc_get_u32(bytes + 4),
                        .stream = bc_get_u32(bytes + 8),
                        .payload = bytes};
    for (size_t at = 0; at < frame->length;) {
        n = recv(fd, bytes + at, frame->length - at, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) return -1; /* cut off in its midst */
        if (n > 0) at += (size_t)n;
        pump();
    }
    return 1;
}

void client_hears(uint32_t type, uint32_t stream, bc_frame *frame)
{
    pump();
    ck_assert_int_eq(next_frame(client, frame), 1);
    ck_assert_uint_eq(frame->type, type);
    ck_assert_uint_eq(frame->stream, stream);
}

void guest_hears(uint32_t type, uint32_t stream, bc_frame *frame)
{
    pump();
    ck_assert_int_eq(next_frame(guest, frame), 1);
    ck_assert_uint_eq(frame->type, type);
    ck_assert_uint_eq(frame->stream, stream);
}

void is_cut_off(void)
{
    bc_frame frame;
    int rc;
    pump();
    while ((rc = next_frame(client, &frame)) > 0) {}
    ck_assert_int_eq(rc, -1);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}

void greet(void)
{
    unsigned char hello[8] = {BC_HELD_VERSION};
    bc_frame frame;
    client_says(BC_FRAME_HELLO, 0, hello, sizeof hello);
    client_hears(BC_HELD_NEWS, 0, &frame);
    ck_assert_uint_eq(frame.length, BC_HELD_NEWS_BYTES);
    client_hears(BC_HELD_READY, 0, &frame);
    ck_assert_int_eq(next_frame(guest, &frame), 1); /* the library's own greeting */
    ck_assert_uint_eq(frame.type, BC_FRAME_HELLO);
}

bc_wire_writer exec_payload(struct exec e)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, e.flags);
    bc_wire_put_u64(&out, (uint64_t)e.timeout_ms);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, e.limit);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u32(&out, e.columns);
    bc_wire_put_u32(&out, e.rows);
    bc_wire_put_string(&out, "/", 1);
    bc_wire_put_u32(&out, e.argc);
    for (uint32_t i = 0; i < e.argc; i++) {
        bc_wire_put_string(&out, "x", 1);
    }
    bc_wire_put_u32(&out, 0);
    return out;
}

void say_exec(uint32_t stream, struct exec e)
{
    bc_wire_writer out = exec_payload(e);
    client_says(BC_FRAME_EXEC, stream, out.data, out.len);
}

void say_file(uint32_t stream, uint32_t op, uint32_t flags)
{
    bc_wire_writer out = payload();
    const uint32_t small[] = {op, flags, 0, 0};
    for (int i = 0; i < 4; i++) {
        bc_wire_put_u32(&out, small[i]);
    }
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_string(&out, "p", 1);
    bc_wire_put_string(&out, "", 0);
    client_says(BC_FRAME_FILE, stream, out.data, out.len);
}

void say_ask(uint32_t stream, uint32_t what, uint64_t argument)
{
    unsigned char bytes[12];
    bc_put_u32(bytes, what);
    bc_put_u64(bytes + 4, argument);
    client_says(BC_FRAME_ASK, stream, bytes, sizeof bytes);
}

/* Client stream 5 is the guest's 2: the holder itself has 1, of which the guest never hears. */
void start_command(uint32_t flags)
{
    bc_frame frame;
    greet();
    say_exec(5, (struct exec){.flags = flags, .argc = 1});
    guest_hears(BC_FRAME_EXEC, 2, &frame);
}
