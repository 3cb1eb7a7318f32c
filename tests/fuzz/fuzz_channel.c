/*
 * The library's end of a channel, read from a guest that says whatever it likes. A sandbox whose
 * backend is this program has commands, file operations and questions open; the input says which,
 * and then what the guest sends. Every call is answered exactly once, soundly, and the same way
 * however the bytes were cut; what the library sends is well-formed.
 *
 * Input: which calls (see open_calls), what the callbacks do, how the rest is read: bit 0 raw
 * bytes, otherwise records {type, stream, u16 length, payload}, so that most frames are whole; bit
 * 3 a sandbox with a network that its guest carries, whose streams have numbers from 128 on.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "sandbox/guest_image.h"
#include "sandbox/internal.h"

enum { CALLS = 12, STREAMS = 16 };
enum reaction { NOTHING, CANCEL, TERMINATE, PAUSE, REACTIONS };

static barchan_runtime *rt;
static barchan_sandbox *sbx;
static int guest = -1; /* this program's end of the channel */
static enum reaction reaction;
static barchan_exec *running;
static bc_buf said; /* by the library, not yet a whole frame */

struct answer {
    int given, code, exit_code;
    size_t out_len, err_len;
    uint64_t number;
};
static struct {
    struct answer calls[CALLS];
    int count;
    int created, created_code;
    uint64_t streamed;
} seen;

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
static const bc_backend fake_carrying = {.name = "fake",
                                         .start = start_fake,
                                         .kill = kill_fake,
                                         .extend = kill_fake,
                                         .carries_network = 1};

/* ---- what the calls are told ---- */

static struct answer *answered(void *ud, const barchan_error *err)
{
    struct answer *answer = ud;
    CLAIM(answer->given++ == 0);
    if (err != NULL) {
        CLAIM(err->code < 0 && err->message[0] != '\0');
        CLAIM(memchr(err->message, '\0', sizeof err->message) != NULL);
        for (const char *at = err->message; *at != '\0'; at++) {
            CLAIM((unsigned char)*at >= 0x20 && *at != 0x7F);
        }
        answer->code = err->code;
    }
    return answer;
}

static void on_created(barchan_sandbox *sandbox, const barchan_error *err, void *ud)
{
    (void)sandbox, (void)ud;
    CLAIM(seen.created++ == 0);
    seen.created_code = err == NULL ? 0 : err->code;
}

/* Nobody listens at port 9 of the loopback; whatever is dialled fails there. */
static int create(int carries)
{
    static const char *const allow[] = {"a.example", "127.0.0.1:9", "a.example:9", NULL};
    static const char *const hosts[] = {"a.example=127.0.0.1", NULL};
    const barchan_network_rules rules = {
        .struct_size = sizeof rules, .allow = allow, .hosts = hosts, .max_connections = 4};
    const barchan_profile profile = {
        .struct_size = sizeof profile, .network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules};
    return bc_sandbox_create_with(&sbx, rt, carries ? &profile : NULL,
                                  carries ? &fake_carrying : &fake, on_created, NULL, NULL);
}

static void on_exec(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    struct answer *answer = answered(ud, NULL);
    if (exec == running) running = NULL;
    CLAIM(result->out.data != NULL && result->err_out.data != NULL);
    CLAIM(result->out.len <= 2000 && result->out.head_len <= result->out.len);
    CLAIM(result->out.data[result->out.len] == '\0');
    CLAIM(result->exit_code >= -1 && result->exit_code <= 255);
    CLAIM(result->term_signal >= 0 && result->term_signal <= 64 && result->left_running >= 0);
    answer->code = (int)result->reason;
    answer->exit_code = result->exit_code;
    answer->out_len = result->out.len;
    answer->err_len = result->err_out.len;
    answer->number = result->out.dropped;
    if (reaction == TERMINATE) barchan_sandbox_terminate(sbx);
}

static void on_output(barchan_exec *exec, barchan_stream stream, const char *data, size_t len,
                      void *ud)
{
    (void)ud;
    CLAIM(stream == BARCHAN_STREAM_OUT || stream == BARCHAN_STREAM_ERR);
    for (size_t i = 0; i < len; i++) {
        seen.streamed += (unsigned char)data[i]; /* all of it can be read */
    }
    if (reaction == CANCEL) barchan_exec_cancel(exec);
    if (reaction == TERMINATE) barchan_sandbox_terminate(sbx);
    if (reaction == PAUSE) barchan_exec_pause(exec);
}

static void on_file(barchan_file_result *result, const barchan_error *err, void *ud)
{
    struct answer *answer = answered(ud, err);
    CLAIM((result == NULL) == (err != NULL));
    if (result == NULL) return;
    answer->out_len = result->entry_count;
    answer->number = result->bytes;
    answer->err_len = result->data.len;
    for (size_t i = 0; i < result->entry_count; i++) {
        const barchan_file_info *info = &result->entries[i];
        CLAIM(strlen(info->path) == info->path_len);
        CLAIM(info->type >= BARCHAN_FILE_REGULAR && info->type <= BARCHAN_FILE_DEVICE);
        CLAIM(info->change <= BARCHAN_FILE_DELETED);
        CLAIM(info->change == 0 || (info->path[0] != '/' && strstr(info->path, "/../") == NULL));
    }
    if (reaction == TERMINATE) barchan_sandbox_terminate(sbx);
}

static void on_usage(const barchan_usage *usage, const barchan_error *err, void *ud)
{
    /* Not compared: a sandbox that ends before a refusal was told gives what is known instead. */
    answered(ud, err)->code = 0;
    CLAIM((usage == NULL) == (err != NULL));
    if (usage != NULL) CLAIM(usage->user_us >= 0 && usage->system_us >= 0);
}

static void on_processes(barchan_process_list *list, const barchan_error *err, void *ud)
{
    struct answer *answer = answered(ud, err);
    CLAIM((list == NULL) == (err != NULL));
    if (list == NULL) return;
    CLAIM(list->count <= BC_PROCESS_MAX_LISTED);
    answer->out_len = list->count;
    for (size_t i = 0; i < list->count; i++) {
        answer->number += strlen(list->processes[i].command);
    }
}

static long source(void *buffer, size_t capacity, void *ud)
{
    (void)ud;
    memset(buffer, 'x', capacity);
    return reaction == PAUSE ? BARCHAN_FILE_LATER : (long)capacity;
}

static int sink(const void *data, size_t len, void *ud)
{
    (void)data, (void)len, (void)ud;
    return reaction == PAUSE ? BARCHAN_FILE_LATER : reaction == CANCEL ? -1 : 0;
}

/* ---- the calls ---- */

static struct answer *next_call(void)
{
    return &seen.calls[seen.count++];
}

static void start_exec(int streaming, int input)
{
    barchan_exec_options options = {.struct_size = sizeof options,
                                    .command = "x",
                                    .input = input ? "given" : NULL,
                                    .input_len = input ? 5 : 0,
                                    .streaming = streaming,
                                    .on_output = streaming ? on_output : NULL,
                                    .out_limit_bytes = streaming ? 0 : 1000,
                                    .err_limit_bytes = streaming ? 0 : 7};
    barchan_exec *exec;
    CLAIM(barchan_sandbox_exec_start(&exec, sbx, &options, on_exec, next_call(), NULL) == 0);
    if (streaming) running = exec;
}

static void start_file(barchan_file_op op, int through)
{
    barchan_file_request request = {.struct_size = sizeof request, .op = op};
    request.path = op == BARCHAN_FILE_CHANGES ? NULL : "p";
    if (through && op == BARCHAN_FILE_READ) request.sink = sink;
    if (through && op == BARCHAN_FILE_WRITE) request.source = source;
    CLAIM(barchan_sandbox_file_start(NULL, sbx, &request, on_file, next_call(), NULL) == 0);
}

static void open_calls(unsigned which)
{
    if (which & 1) start_exec(0, 1);
    if (which & 2) start_exec(1, 0);
    if (which & 4) start_file(which & 128 ? BARCHAN_FILE_CHANGES : BARCHAN_FILE_LIST, 0);
    if (which & 8) start_file(BARCHAN_FILE_STAT, 0);
    if (which & 16) start_file(BARCHAN_FILE_READ, which & 128);
    if (which & 32) start_file(BARCHAN_FILE_WRITE, which & 128);
    if (which & 64) {
        CLAIM(barchan_sandbox_usage_start(sbx, on_usage, next_call(), NULL) == 0);
        CLAIM(barchan_sandbox_processes_start(sbx, on_processes, next_call(), NULL) == 0);
    }
}

/* ---- the guest ---- */

/* What the library sends is a row of frames that a guest accepts. */
static void hear(void)
{
    char bytes[65536];
    bc_frame frame;
    ssize_t n;
    int64_t size;
    while ((n = recv(guest, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        CLAIM(bc_buf_append(&said, bytes, (size_t)n) == 0);
        while ((size = bc_frame_parse(&frame, (unsigned char *)bc_buf_data(&said), said.len,
                                      bc_frame_max_to_guest)) > 0) {
            CLAIM(frame.type == BC_FRAME_HELLO || frame.stream > 0);
            bc_buf_consume(&said, (size_t)size);
        }
        CLAIM(size == 0);
    }
}

static void pump(void)
{
    for (int i = 0; i < 3; i++) {
        barchan_runtime_pump(rt, 0, NULL);
        hear();
    }
}

static void say(const void *data, size_t len, size_t step)
{
    const char *at = data;
    for (size_t done = 0; done < len;) {
        size_t part = len - done < step ? len - done : step;
        ssize_t n = send(guest, at + done, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno != EAGAIN) return; /* the library has closed it */
        if (step < len || n < 0) pump();
    }
}

static void say_frame(uint32_t type, uint32_t stream, const void *payload, size_t len, size_t step)
{
    static unsigned char frame[BC_FRAME_HEADER + 65536];
    bc_frame_put_header(frame, type, stream, (uint32_t)len);
    if (len > 0) memcpy(frame + BC_FRAME_HEADER, payload, len);
    say(frame, BC_FRAME_HEADER + len, step);
}

static void say_ready(void)
{
    static const unsigned char ready[12] = {BC_FRAME_VERSION};
    say_frame(BC_FRAME_READY, 0, ready, sizeof ready, 4096);
    pump();
}

static void say_records(const uint8_t *data, size_t size, size_t step)
{
    while (size >= 4) {
        uint32_t type = data[0] < 128 ? BC_FRAME_READY + data[0] % 16u : data[0];
        size_t len = (size_t)data[2] | (size_t)data[3] << 8;
        uint32_t stream = data[1] % STREAMS;
        if (data[1] >= 128) stream |= BC_FRAME_CARRIED;
        data += 4;
        size -= 4;
        if (len > size) len = size;
        say_frame(type, stream, data, len, step);
        data += len;
        size -= len;
    }
}

static void run(const uint8_t *data, size_t size, size_t step)
{
    unsigned which = data[0], how = data[2];
    reaction = step == 0 || data[1] < 128 ? NOTHING : (enum reaction)(data[1] % REACTIONS);
    memset(&seen, 0, sizeof seen);
    running = NULL;
    bc_buf_init(&said, 1 << 24);
    CLAIM(create(how & 8) == 0);
    if (!(how & 2)) say_ready();
    if (seen.created == 0 || seen.created_code == 0) open_calls(which);
    if (how & 1) {
        say(data + 3, size - 3, step);
    } else {
        say_records(data + 3, size - 3, step);
    }
    pump();
    if (running != NULL && reaction == PAUSE) barchan_exec_resume(running);
    pump();
    if (how & 4) {
        close(guest); /* in the middle of whatever it was saying */
        guest = -1;
        pump();
    }
    bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    for (int i = 0; i < 3; i++) {
        barchan_runtime_pump(rt, 0, NULL);
    }
    CLAIM(seen.created == 1);
    for (int i = 0; i < seen.count; i++) {
        CLAIM(seen.calls[i].given == 1);
    }
    barchan_sandbox_destroy(sbx);
    if (guest >= 0) close(guest);
    guest = -1;
    bc_buf_clear(&said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    if (rt == NULL) CLAIM(barchan_runtime_create(&rt, NULL, NULL) == 0);
    run(data, size, 1 << 20);
    if (data[2] & 8) return 0;         /* what the world answers has its own time */
    if (reaction != NOTHING) return 0; /* what it stops depends on where it was told */
    struct answer whole[CALLS];
    memcpy(whole, seen.calls, sizeof whole);
    uint64_t streamed = seen.streamed;
    run(data, size, size > 600 ? 97 : 5);
    CLAIM(memcmp(whole, seen.calls, sizeof whole) == 0);
    CLAIM(streamed == seen.streamed);
    return 0;
}
