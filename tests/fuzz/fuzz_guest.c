/*
 * Process 1's end of a channel: its reader and the requests for commands, file operations and
 * questions, on a system that only pretends (guest_fake.c). Whatever comes, it ends itself or goes
 * on with all that was asked for under way; what it says is well-formed, and when all is over no
 * descriptor and no memory is left.
 *
 * Input: what fails, how the rest is read: bit 0 raw bytes, otherwise records as in fuzz_channel.c;
 * bit 6: it carries the network.
 */
#include "fuzz.h"
#include "guest_fake.h"

#include <stdlib.h>
#include "guest/carry.h"
#include "guest/census.h"
#include "guest/file.h"
#include "guest/init.c" /* for the reader, which nobody else calls */

static struct init *init;
static const struct mount_list mounts = {
    .count = 2,
    .of = {{.target = "/mnt/r", .mode = BC_MOUNT_READ_ONLY},
           {.target = "/mnt/c",
            .mode = BC_MOUNT_COPY_ON_WRITE,
            .lower_fd = 90,
            .upper_fd = 91,
            .merged_fd = 92}},
};

/* ---- what is not linked ---- */

struct reaper *reaper_new(void)
{
    return calloc(1, sizeof(struct reaper));
}

void reaper_free(struct reaper *reaper)
{
    free(reaper);
}

/* Reads what the command's process would. */
long reaper_start(struct reaper *reaper)
{
    const struct command *command = &reaper->command;
    size_t bytes = strlen(command->cwd);
    CLAIM(command->argv[0] != NULL);
    command->argv[-1] = command->argv[-2] = "";
    for (size_t i = 0; command->argv[i] != NULL; i++) {
        bytes += strlen(command->argv[i]);
    }
    for (size_t i = 0; command->envp[i] != NULL; i++) {
        bytes += strlen(command->envp[i]);
    }
    CLAIM(bytes <= BC_FRAME_MAX_TO_GUEST);
    return fake.forks_fail ? -EAGAIN : 1000;
}

int reaper_kill_tree(struct tree *tree, char *stack_top, bool (*spare)(void *ud, int pid), void *ud)
{
    (void)tree, (void)stack_top, (void)spare, (void)ud;
    return 0;
}

_Noreturn void file_worker(const struct file_request *request, bool change_user)
{
    (void)request, (void)change_user;
    abort();
}

void file_encode_result(bc_wire_writer *out, const struct file_result *result)
{
    bc_wire_put_u32(out, result->status);
    bc_wire_put_u32(out, result->os_error);
    bc_wire_put_u64(out, result->bytes);
    bc_wire_put_u64(out, result->size);
    bc_wire_put_u32(out, result->truncated);
    bc_wire_put_string(out, "", 0);
}

void pause_start(struct init *in, uint32_t stream)
{
    in->paused = true;
    if (stream != 0) ask_answer(in, stream, 0, "");
}

void pause_end(struct init *in, uint32_t stream)
{
    in->paused = false;
    ask_answer(in, stream, 0, "");
}

void pause_step(struct init *in)
{
    (void)in;
}

void usage_add_ended(struct init *in, const struct job *job)
{
    (void)in, (void)job;
}

/* As many processes as a snapshot is refused for. */
bool census_take(const struct init *in, struct census *census, int most)
{
    (void)most;
    census->count = fake.forks_fail ? 9 : 0;
    for (int i = 0; i < census->count; i++) {
        census->of[i] = (struct person){.pid = 2 + i, .state = i == 3 ? 'Z' : 'S', .job = -1};
    }
    return !in->paused;
}

bool census_is_supervisor(const struct init *in, const struct person *person)
{
    (void)in;
    return person->pid == 4;
}

size_t usage_command_line(int pid, char *text, size_t cap)
{
    memset(text, 'c', cap);
    return pid % 2 == 0 ? cap - 1 : 0;
}

bool usage_sample_counted(struct init *in)
{
    (void)in;
    return false;
}

bc_usage usage_now(struct init *in)
{
    (void)in;
    return (bc_usage){0};
}

void usage_list(struct init *in, bc_wire_writer *out)
{
    (void)in;
    bc_wire_put_u64(out, 0);
}

int64_t watch_interval(const struct init *in)
{
    (void)in;
    return 0;
}

void watch_look(struct init *in)
{
    (void)in;
}

uint64_t meter_oom_kills(const struct init *in)
{
    (void)in;
    return 0;
}

uint64_t meter_pid_refusals(const struct init *in)
{
    (void)in;
    return 0;
}

bool meter_cpu(const struct init *in, uint64_t *user_us, uint64_t *system_us)
{
    (void)in, (void)user_us, (void)system_us;
    return false;
}

bool meter_storage(uint64_t *used_bytes, bool *full)
{
    *used_bytes = *full = 0;
    return false;
}

int fail_os(struct failure *why, int os_error, const char *format, ...)
{
    (void)why, (void)os_error, (void)format;
    return -1;
}

void failure_send(int fd, uint32_t type, uint32_t stream, const struct failure *why)
{
    (void)fd, (void)type, (void)stream, (void)why;
}

/* ---- the run ---- */

static void hear(void)
{
    bc_frame frame;
    int64_t size;
    size_t at = 0;
    while ((size = bc_frame_parse(&frame, fake.said + at, fake.said_len - at,
                                  bc_frame_max_from_guest)) > 0) {
        bool end = frame.type == BC_FRAME_EXIT || frame.type == BC_FRAME_FILE_DONE ||
                   frame.type == BC_FRAME_ANSWER;
        bool carried = frame.type >= BC_FRAME_NET_CONNECT && frame.type <= BC_FRAME_NET_QUERY;
        CLAIM(end || carried || frame.type == BC_FRAME_GRANT || frame.type == BC_FRAME_OUT ||
              frame.type == BC_FRAME_ERR);
        CLAIM(carried == (frame.stream >= BC_FRAME_CARRIED) || end);
        if (frame.type == BC_FRAME_NET_GRANT) {
            CLAIM(bc_get_u32(frame.payload) <= BC_FRAME_NET_WINDOW);
        }
        if (frame.type == BC_FRAME_GRANT) CLAIM(bc_get_u32(frame.payload) <= BC_FRAME_WINDOW);
        at += (size_t)size;
    }
    CLAIM(size == 0 && at == fake.said_len);
    fake.said_len = 0;
}

/* Whatever the network waits for, happens. */
static void serve_network(void)
{
    struct watch_list *list = &init->watched;
    if (init->carry == NULL) return;
    list->count = FIXED_FDS;
    carry_watch(init, list);
    for (unsigned i = FIXED_FDS; i < list->count; i++) {
        list->fds[i].revents = list->fds[i].events;
    }
    serve(init, list);
    CLAIM(init->carry->count <= init->carry->plan->connections);
    CLAIM(init->carry->question_count <= BC_FRAME_MAX_QUERIES);
}

/* The library closes what is left; what was sent before has still to be taken. */
static void end_network(void)
{
    struct carry *carry = init->carry;
    if (carry == NULL) return;
    fake.connections = fake.questions = 0;
    for (unsigned i = carry->count; i-- > 0;) {
        unsigned char bytes[4] = {BC_NET_RESET};
        const bc_frame frame = {BC_FRAME_NET_CLOSE, carry->of[i]->stream, 4, bytes};
        if (!carry->of[i]->heard_close) carry_frame(init, &frame);
    }
    for (int round = 0; round < 1000 && carry->count > 0; round++) {
        serve_network();
    }
    CLAIM(carry->count == 0);
    free(carry);
    init->carry = NULL;
}

static void settle(void)
{
    serve_network();
    step_jobs(init);
    send_flush(init);
    hear();
    CLAIM(init->job_count <= MAX_JOBS);
}

static void live(void)
{
    while (fake.in_len > 0) {
        serve_network();
        read_channel(init);
        settle();
    }
    end_network();
    fake.now_ns += 1000000000ll << 33; /* whatever time they had is over, twice */
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < init->job_count; i++) {
            job_deadline(init, init->jobs[i], sys_boot_us());
        }
    }
    while (init->job_count > 0) {
        job_died(init, init->jobs[0], SIGKILL);
        init->strays = false;
        settle();
    }
    queue_free(&init->in);
    queue_free(&init->out);
    if (init->spare != NULL) reaper_free(init->spare);
    init->spare = NULL;
    CLAIM(fake.open_fds == 0);
    CLAIM(fake.blocks == 1); /* process 1's own state */
}

static void begin_network(void)
{
    static const struct plan plan = {.network = {.connections = 5, .port_count = 1, .ports = {80}},
                                     .sockets = {.count = 2, .fds = {80, 81}}};
    init->carry = carry_new(&plan);
    fake.connections = 9;
    fake.questions = 100;
}

static void run(const uint8_t *bytes, size_t len, unsigned how, size_t step)
{
    memset(&fake, 0, offsetof(struct fake_system, said));
    fake.in = bytes;
    fake.in_len = len;
    fake.step = step;
    fake.now_ns = 1;
    fake.words = 20; /* of the jobs' output, and of connections */
    fake.pipes_break = how >> 1 & 1;
    fake.forks_fail = how >> 2 & 3;
    init = calloc(1, sizeof *init);
    init->channel_fd = init->out_fd = FAKE_CHANNEL;
    if (how >> 6 & 1) begin_network();
    init->privileged = how >> 4 & 1;
    init->mounts = &mounts;
    for (int i = 0; i < GROUP_FILES; i++) {
        init->group_files[i] = -1;
    }
    if (setjmp(fake.exit) == 0) live();
    fake_free_all();
}

/* Whole frames of the records. */
static size_t encode(const uint8_t *data, size_t size, unsigned char *out, size_t cap)
{
    size_t used = 0;
    while (size >= 4) {
        uint32_t type = data[0] < 128 ? 1 + data[0] % 16u : data[0];
        size_t len = (size_t)data[2] | (size_t)data[3] << 8;
        uint32_t stream = data[1] % 32;
        if (data[1] >= 128) stream |= BC_FRAME_CARRIED;
        data += 4;
        size -= 4;
        if (len > size) len = size;
        if (cap - used < BC_FRAME_HEADER + len) break;
        bc_frame_put_header(out + used, type, stream, (uint32_t)len);
        memcpy(out + used + BC_FRAME_HEADER, data, len);
        used += BC_FRAME_HEADER + len;
        data += len;
        size -= len;
    }
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[1 << 18];
    if (size < 1) return 0;
    unsigned how = data[0];
    size_t len = size - 1;
    if (how & 1) {
        memcpy(bytes, data + 1, len < sizeof bytes ? len : sizeof bytes);
        if (len > sizeof bytes) len = sizeof bytes;
    } else {
        len = encode(data + 1, size - 1, bytes, sizeof bytes);
    }
    run(bytes, len, how, 1 << 16);
    run(bytes, len, how, how & 32 ? 1 : 13);
    return 0;
}
