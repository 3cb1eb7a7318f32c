/* Questions about the sandbox as a whole, and what process 1 answers. */
#include "init.h"

static void answer(struct init *init, uint32_t stream, uint32_t status, const char *message,
                   const void *payload, size_t len)
{
    static unsigned char bytes[BC_FRAME_MAX_FROM_GUEST];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_u32(&out, status);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_string(&out, message, strlen(message));
    bc_wire_put(&out, payload, len);
    send_frame(init, BC_FRAME_ANSWER, stream, bytes, out.len);
}

static void answer_usage(struct init *init, uint32_t stream)
{
    unsigned char bytes[BC_USAGE_BYTES];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_usage usage = usage_now(init);
    bc_wire_put_usage(&out, &usage);
    answer(init, stream, 0, "", bytes, out.len);
}

static void answer_processes(struct init *init, uint32_t stream)
{
    static unsigned char bytes[BC_FRAME_MAX_FROM_GUEST - 64];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    usage_list(init, &out);
    answer(init, stream, 0, "", bytes, out.len);
}

void ask_answer(struct init *init, uint32_t stream, uint32_t status, const char *message)
{
    answer(init, stream, status, message, NULL, 0);
}

static void extend(struct init *init, uint32_t stream, uint64_t ms)
{
    init->lease_end_us = sys_boot_us() + us_of_ms((int64_t)ms);
    init->armed_us = 0; /* the timer may be set to a later time than the new end */
    ask_answer(init, stream, 0, "");
}

void ask_start(struct init *init, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t what = bc_wire_u32(&in);
    uint64_t argument = bc_wire_u64(&in);
    if (!bc_wire_done(&in) || frame->stream == 0) init_die(init, "malformed question");
    switch (what) {
    case BC_ASK_USAGE: answer_usage(init, frame->stream); break;
    case BC_ASK_PROCESSES: answer_processes(init, frame->stream); break;
    case BC_ASK_EXTEND: extend(init, frame->stream, argument); break;
    case BC_ASK_PAUSE: pause_start(init, frame->stream); break;
    case BC_ASK_RESUME: pause_end(init, frame->stream); break;
    default: answer(init, frame->stream, BC_WIRE_EUNSUPPORTED, "unknown question", NULL, 0);
    }
}
