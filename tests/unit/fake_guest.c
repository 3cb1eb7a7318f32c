#include "fake_guest.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

barchan_runtime *rt;
barchan_sandbox *sbx;
int guest;
static int killed;

static void kill_fake(barchan_sandbox *sandbox)
{
    (void)sandbox;
    killed++;
}

static int start_fake(barchan_sandbox *sandbox, int *channel_fd, barchan_error *err)
{
    int pair[2];
    (void)sandbox, (void)err;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *channel_fd = pair[0];
    guest = pair[1];
    return 0;
}

static void extend_fake(barchan_sandbox *sandbox)
{
    (void)sandbox;
}

static const bc_backend fake = {
    .name = "fake", .start = start_fake, .kill = kill_fake, .extend = extend_fake};
static const bc_backend fake_carrying = {.name = "fake",
                                         .start = start_fake,
                                         .kill = kill_fake,
                                         .extend = extend_fake,
                                         .carries_network = 1};

struct seen seen;

static void on_created(barchan_sandbox *sandbox, const barchan_error *err, void *ud)
{
    (void)sandbox, (void)ud;
    seen.created++;
    seen.created_code = err == NULL ? 0 : err->code;
}

void on_exec(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec, (void)ud;
    seen.exec_done++;
    seen.reason = result->reason;
    seen.out_len = result->out.len;
    seen.dropped = result->out.dropped;
    ck_assert_ptr_nonnull(result->out.data);
    ck_assert_ptr_nonnull(result->err_out.data);
}

void on_file(barchan_file_result *result, const barchan_error *err, void *ud)
{
    (void)result, (void)ud;
    seen.file_done++;
    seen.file_code = err == NULL ? 0 : err->code;
    if (err != NULL) memcpy(seen.message, err->message, sizeof err->message);
}

void pump(void)
{
    for (int i = 0; i < 10; i++) {
        barchan_runtime_pump(rt, 0, NULL);
    }
}

/* ---- what the fake guest says ---- */

void say_raw(const void *data, size_t len)
{
    ck_assert_int_eq(send(guest, data, len, MSG_NOSIGNAL), (int)len);
    pump();
}

void say(uint32_t type, uint32_t stream, const void *payload, size_t len)
{
    unsigned char *frame = malloc(BC_FRAME_HEADER + len);
    bc_frame_put_header(frame, type, stream, (uint32_t)len);
    if (len > 0) memcpy(frame + BC_FRAME_HEADER, payload, len);
    say_raw(frame, BC_FRAME_HEADER + len);
    free(frame);
}

bc_wire_writer payload(void)
{
    static unsigned char bytes[70000];
    return (bc_wire_writer){.data = bytes, .cap = sizeof bytes};
}

void say_ready(void)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, BC_FRAME_VERSION);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 1);
    bc_wire_put_string(&out, "lay\"er", 6);
    bc_wire_put_string(&out, "ho\nw", 4);
    say(BC_FRAME_READY, 0, out.data, out.len);
}

void say_exit(bc_exit e)
{
    bc_wire_writer out = payload();
    bc_wire_put_exit(&out, &e);
    say(BC_FRAME_EXIT, 1, out.data, out.len);
}

void say_file_done(uint32_t stream, uint32_t status, const char *words)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, status);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_string(&out, words, strlen(words));
    say(BC_FRAME_FILE_DONE, stream, out.data, out.len);
}

/* ---- fixtures ---- */

static void create(const bc_backend *backend, const barchan_profile *profile)
{
    memset(&seen, 0, sizeof seen);
    killed = 0;
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert_int_eq(bc_sandbox_create_with(&sbx, rt, profile, backend, on_created, NULL, NULL), 0);
}

void set_up(void)
{
    create(&fake, NULL);
}

void set_up_carrying(const barchan_network_rules *rules)
{
    const barchan_profile profile = {
        .struct_size = sizeof profile, .network = BARCHAN_NETWORK_ALLOW, .network_rules = rules};
    create(&fake_carrying, &profile);
    say_ready();
}

void set_up_ready(void)
{
    set_up();
    say_ready();
    ck_assert_int_eq(seen.created, 1);
    ck_assert_int_eq(seen.created_code, 0);
}

void start_exec(int64_t limit)
{
    const barchan_exec_options options = {
        .struct_size = sizeof options, .command = "x", .out_limit_bytes = limit};
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, &options, on_exec, NULL, NULL), 0);
}

void start_file(barchan_file_op op)
{
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = op,
                                          .path = op == BARCHAN_FILE_CHANGES ? NULL : "p",
                                          .data = "d",
                                          .data_len = 1};
    ck_assert_int_eq(barchan_sandbox_file_start(NULL, sbx, &request, on_file, NULL, NULL), 0);
}

void tear_down(void)
{
    if (sbx != NULL) bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    close(guest);
    barchan_runtime_destroy(rt);
}

barchan_sandbox_info status(void)
{
    barchan_sandbox_info info = {.struct_size = sizeof info};
    barchan_sandbox_status(sbx, &info, NULL);
    return info;
}

void broke_the_protocol(void)
{
    pump();
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_ENDED);
    ck_assert_int_eq(status().end_reason, BARCHAN_END_PROTOCOL_ERROR);
    ck_assert_int_ge(killed, 1);
}

void bury(void)
{
    bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    pump();
}
