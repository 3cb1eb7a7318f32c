/*
 * What a job writes, on its way to the library: streamed as credit allows, or capped: the first
 * half of the limit as it comes, the rest through a ring that keeps the last bytes.
 */
#include "init.h"

#include <errno.h>
#include <stdlib.h>

void output_open(struct output *output, int fd, uint32_t type, uint64_t limit, bool capped)
{
    *output = (struct output){.fd = fd, .type = type, .capped = capped};
    output->credit = BC_FRAME_WINDOW;
    output->head_left = capped ? bc_output_head(limit) : 0;
    output->tail_max = capped ? limit - output->head_left : 0;
}

void output_free(struct output *output)
{
    if (output->fd >= 0) sys_close(output->fd);
    output->fd = -1;
    free(output->tail);
    output->tail = NULL;
}

/* Whether bytes read now would be sent at once (and so need credit). */
static bool sends_now(const struct output *output)
{
    return !output->discard && !output->complete && (!output->capped || output->head_left > 0);
}

bool output_wants_read(const struct init *init, const struct output *output)
{
    if (output->fd < 0) return false;
    return !sends_now(output) || (output->credit > 0 && init->out.len < OUT_QUEUE_HIGH);
}

static bool grow_tail(struct output *output, size_t len)
{
    size_t need = output->tail_len + len, cap = output->tail_cap == 0 ? 8192 : output->tail_cap;
    if (need > output->tail_max) need = (size_t)output->tail_max;
    while (cap < need) {
        cap *= 2;
    }
    if (cap > output->tail_max) cap = (size_t)output->tail_max;
    if (cap <= output->tail_cap) return true;
    /* It has not wrapped yet: it wraps only at its final size. */
    unsigned char *tail = realloc(output->tail, cap);
    if (tail == NULL) { /* the ring stays as large as it is */
        output->tail_max = output->tail_cap;
        return output->tail_cap > 0;
    }
    output->tail = tail;
    output->tail_cap = cap;
    return true;
}

static void keep_tail(struct output *output, const unsigned char *data, size_t len)
{
    if (output->tail_max == 0 || !grow_tail(output, len)) {
        output->dropped += len;
        return;
    }
    if (len > output->tail_cap) { /* only the end of it can stay */
        output->dropped += len - output->tail_cap;
        data += len - output->tail_cap;
        len = output->tail_cap;
    }
    size_t free_room = output->tail_cap - output->tail_len;
    if (len > free_room) { /* the oldest go */
        size_t gone = len - free_room;
        output->tail_at = (output->tail_at + gone) % output->tail_cap;
        output->tail_len -= gone;
        output->dropped += gone;
    }
    size_t to = (output->tail_at + output->tail_len) % output->tail_cap;
    size_t first = output->tail_cap - to < len ? output->tail_cap - to : len;
    memcpy(output->tail + to, data, first);
    memcpy(output->tail, data + first, len - first);
    output->tail_len += len;
}

static void send_data(struct init *init, struct job *job, struct output *output,
                      const unsigned char *data, size_t len)
{
    send_frame(init, output->type, job->stream, data, len);
    output->credit -= (uint32_t)len;
}

static void take(struct init *init, struct job *job, struct output *output,
                 const unsigned char *data, size_t len)
{
    if (len == 0 || output->discard || output->complete) return;
    if (!output->capped) {
        send_data(init, job, output, data, len);
        return;
    }
    size_t head = output->head_left < len ? (size_t)output->head_left : len;
    if (head > 0) {
        send_data(init, job, output, data, head);
        output->head_left -= head;
    }
    if (len > head) keep_tail(output, data + head, len - head);
}

void output_read(struct init *init, struct job *job, struct output *output, bool dead)
{
    static unsigned char chunk[BC_FRAME_MAX_DATA];
    size_t len = sizeof chunk;
    if (sends_now(output) && output->credit < len) len = output->credit;
    long n = sys_read(output->fd, chunk, len);
    if (n > 0) {
        take(init, job, output, chunk, (size_t)job_count_output(init, job, (uint64_t)n));
        if (dead) output->read_dead += (uint64_t)n;
        return;
    }
    if (n == -EINTR || (n == -EAGAIN && !dead)) return;
    sys_close(output->fd);
    output->fd = -1;
}

bool output_flush(struct init *init, struct job *job, struct output *output)
{
    while (output->tail_len > 0 && output->credit > 0 && init->out.len < OUT_QUEUE_HIGH) {
        size_t len = output->tail_cap - output->tail_at;
        if (len > output->tail_len) len = output->tail_len;
        if (len > BC_FRAME_MAX_DATA) len = BC_FRAME_MAX_DATA;
        if (len > output->credit) len = output->credit;
        send_data(init, job, output, output->tail + output->tail_at, len);
        output->tail_at = (output->tail_at + len) % output->tail_cap;
        output->tail_len -= len;
    }
    return output->tail_len == 0;
}
