#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "exec.h"

/* Credit is given back in steps, not frame by frame. */
#define CREDIT_STEP (BC_FRAME_WINDOW / 4)

void bc_exec_output_init(struct bc_exec_output *output, uint64_t limit, int streaming)
{
    *output = (struct bc_exec_output){.limit = streaming ? BC_FRAME_WINDOW : limit};
    bc_buf_init(&output->data, (size_t)output->limit);
}

void bc_exec_output_clear(struct bc_exec_output *output)
{
    bc_buf_clear(&output->data);
}

/* Gives back what has been given out or kept for good; what waits for a paused reader is not. */
static void give_back(barchan_exec *exec, struct bc_exec_output *output, uint32_t type)
{
    uint32_t waiting = exec->streaming ? (uint32_t)output->data.len : 0;
    uint32_t bytes = output->uncredited - waiting;
    if (bytes < CREDIT_STEP || exec->stream.sbx == NULL) return;
    output->uncredited = waiting;
    bc_stream_credit(&exec->stream, type, bytes);
}

int bc_exec_on_output(barchan_exec *exec, const bc_frame *frame)
{
    int is_out = frame->type == BC_FRAME_OUT;
    struct bc_exec_output *output = is_out ? &exec->out : &exec->err_out;
    if (exec->exit_pending || frame->length > BC_FRAME_WINDOW - output->uncredited) return -1;
    output->uncredited += frame->length;
    /* Behind what still waits after a pause, bytes wait too: they must not overtake it. */
    if (exec->streaming && !exec->paused && output->data.len == 0) {
        if (exec->on_output != NULL) {
            exec->on_output(exec, is_out ? BARCHAN_STREAM_OUT : BARCHAN_STREAM_ERR,
                            (const char *)frame->payload, frame->length, exec->ud);
        }
        give_back(exec, output, frame->type);
        return 0;
    }
    int rc = bc_buf_append(&output->data, frame->payload, frame->length);
    if (rc == BARCHAN_ELIMIT) return -1;
    if (rc < 0) { /* out of memory: this command's end, not the sandbox's */
        barchan_exec_cancel(exec);
        return 0;
    }
    if (!exec->streaming) give_back(exec, output, frame->type);
    return 0;
}

static int deliver_one(barchan_exec *exec, struct bc_exec_output *output, barchan_stream stream)
{
    while (output->data.len > 0 && !exec->paused) {
        /* Taken out first: the callback may pause, cancel or write. */
        size_t len;
        char *data = bc_buf_take(&output->data, &len);
        if (data == NULL) return 0;
        if (exec->on_output != NULL) exec->on_output(exec, stream, data, len, exec->ud);
        free(data);
        give_back(exec, output, stream == BARCHAN_STREAM_OUT ? BC_FRAME_OUT : BC_FRAME_ERR);
    }
    return output->data.len == 0;
}

int bc_exec_deliver(barchan_exec *exec)
{
    if (!exec->streaming) return 1;
    return deliver_one(exec, &exec->out, BARCHAN_STREAM_OUT) &
           deliver_one(exec, &exec->err_out, BARCHAN_STREAM_ERR);
}

/* Cuts the two kept parts at the borders of characters; what goes is counted as dropped. */
static void cut_at_characters(bc_buf *data, uint64_t *dropped, size_t *head_len)
{
    char *text = bc_buf_data(data);
    size_t head = *head_len, tail = head, cut = 0;
    size_t whole = bc_utf8_whole(text, head);
    while (tail < data->len && cut < 3 && ((unsigned char)text[tail] & 0xC0) == 0x80) {
        tail++;
        cut++;
    }
    size_t gone = tail - whole;
    if (gone == 0) return;
    memmove(text + whole, text + tail, data->len - tail);
    data->len -= gone;
    text[data->len] = '\0';
    *dropped += gone;
    *head_len = whole;
}

int bc_exec_take_output(struct bc_exec_output *output, uint64_t dropped, barchan_bytes *bytes)
{
    size_t head_len = 0;
    if (dropped > 0) {
        /* The head is whole then; of the tail, a guest short of memory keeps less. */
        head_len = (size_t)bc_output_head(output->limit);
        if (output->data.len < head_len) return -1;
        cut_at_characters(&output->data, &dropped, &head_len);
    }
    bytes->data = bc_buf_take(&output->data, &bytes->len);
    bytes->dropped = dropped;
    bytes->head_len = head_len;
    return bytes->data == NULL ? BARCHAN_ENOMEM : 0;
}
