/* Streams of a sandbox's channel: numbering, linking, sending. */
#include "internal.h"

int bc_sandbox_check(const barchan_sandbox *sbx, barchan_error *err)
{
    if (sbx == NULL) return bc_error_set(err, BARCHAN_EINVAL, "the sandbox is NULL");
    int rc = bc_runtime_check(sbx->rt, err);
    if (rc < 0) return rc;
    if (sbx->state == BARCHAN_SANDBOX_ENDED) {
        return bc_error_set(err, BARCHAN_ECLOSED, "the sandbox has ended: %s",
                            barchan_end_reason_name(sbx->end_reason));
    }
    return 0;
}

int bc_stream_open(bc_stream *stream, barchan_sandbox *sbx, const bc_stream_ops *ops,
                   barchan_error *err)
{
    if (sbx->stream_count >= BC_FRAME_MAX_STREAMS || sbx->last_stream == BC_FRAME_CARRIED - 1) {
        return bc_error_set(err, BARCHAN_ELIMIT,
                            "at most %u commands and file operations run in a sandbox at a time",
                            BC_FRAME_MAX_STREAMS);
    }
    *stream = (bc_stream){.next = sbx->streams, .sbx = sbx, .id = ++sbx->last_stream, .ops = ops};
    if (stream->next != NULL) stream->next->prev = stream;
    sbx->streams = stream;
    sbx->stream_count++;
    return 0;
}

void bc_stream_close(bc_stream *stream)
{
    barchan_sandbox *sbx = stream->sbx;
    if (sbx == NULL) return;
    if (stream->prev != NULL) stream->prev->next = stream->next;
    if (stream->next != NULL) stream->next->prev = stream->prev;
    if (sbx->streams == stream) sbx->streams = stream->next;
    sbx->stream_count--;
    stream->sbx = NULL;
    stream->next = stream->prev = NULL;
}

int bc_stream_send(bc_stream *stream, uint32_t type, const void *head, size_t head_len,
                   const void *body, size_t body_len, barchan_error *err)
{
    if (stream->sbx == NULL || stream->sbx->channel == NULL) {
        return bc_error_set(err, BARCHAN_ELOST, "the sandbox is gone");
    }
    int rc = bc_runtime_check(stream->sbx->rt, err);
    if (rc < 0) return rc;
    if (type == BC_FRAME_INPUT) stream->sbx->bytes_in += head_len + body_len;
    return bc_channel_send(stream->sbx->channel, type, stream->id, head, head_len, body, body_len,
                           err);
}

int bc_stream_credit(bc_stream *stream, uint32_t type, uint32_t bytes)
{
    unsigned char payload[5];
    payload[0] = (unsigned char)type;
    bc_put_u32(payload + 1, bytes);
    return bc_stream_send(stream, BC_FRAME_CREDIT, payload, sizeof payload, NULL, 0, NULL);
}
