/* Questions about the sandbox as a whole, and what process 1 answers. */
#include "init.h"

static void answer(struct init *init, uint32_t stream, uint32_t status, const char *message,
                   const void *payload, size_t len)
{
    unsigned char bytes[BC_USAGE_BYTES + 256];
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

void ask_start(struct init *init, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t what = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || frame->stream == 0) init_die(init, "malformed question");
    switch (what) {
    case BC_ASK_USAGE: answer_usage(init, frame->stream); break;
    default: answer(init, frame->stream, BC_WIRE_EUNSUPPORTED, "unknown question", NULL, 0);
    }
}
