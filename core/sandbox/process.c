/*
 * Commands that are held rather than waited for. Their output is taken as it comes and kept, the
 * latest of it: a reader that is late finds out exactly how much it has missed, and the command is
 * never held up by it.
 */
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "exec.h"

/* The last bytes of a stream. */
struct backlog {
    char *data;
    size_t cap, max, at, len;
    uint64_t start; /* how many bytes of the stream came before the kept ones */
};

struct barchan_process {
    barchan_runtime *rt;
    barchan_exec *exec; /* NULL once it has ended */
    struct backlog out, err_out;
    int ended;
    int out_of_memory;
    barchan_exec_result result;
    barchan_process_news_fn news;
    void *ud;
    int dropped; /* destroyed by its owner while it was running */
};

/* ---- the backlog ---- */

static int grow(struct backlog *b, size_t len)
{
    size_t cap = b->cap == 0 ? 4096 : b->cap;
    while (cap < b->len + len && cap < b->max) {
        cap *= 2;
    }
    if (cap > b->max) cap = b->max;
    if (cap <= b->cap) return 0;
    char *data = realloc(b->data, cap); /* it wraps only at its final size */
    if (data == NULL) return -1;
    b->data = data;
    b->cap = cap;
    return 0;
}

static void forget(struct backlog *b, size_t len)
{
    b->at = (b->at + len) % b->cap;
    b->len -= len;
    b->start += len;
}

static int keep(struct backlog *b, const char *data, size_t len)
{
    if (grow(b, len) < 0) return -1;
    if (len > b->cap) { /* only the end of it can stay */
        size_t skipped = len - b->cap;
        b->start += b->len + skipped;
        b->at = b->len = 0;
        data += skipped;
        len = b->cap;
    }
    if (b->len + len > b->cap) forget(b, b->len + len - b->cap);
    size_t to = (b->at + b->len) % b->cap, first = b->cap - to < len ? b->cap - to : len;
    memcpy(b->data + to, data, first);
    memcpy(b->data, data + first, len - first);
    b->len += len;
    return 0;
}

static void copy_out(const struct backlog *b, size_t skip, char *to, size_t len)
{
    size_t from = (b->at + skip) % (b->cap == 0 ? 1 : b->cap);
    size_t first = b->cap - from < len ? b->cap - from : len;
    memcpy(to, b->data + from, first);
    memcpy(to + first, b->data, len - first);
}

/* ---- from the exec ---- */

static void free_process(barchan_process *process)
{
    free(process->out.data);
    free(process->err_out.data);
    barchan_exec_result_clear(&process->result);
    free(process);
}

static void on_output(barchan_exec *exec, barchan_stream stream, const char *data, size_t len,
                      void *ud)
{
    barchan_process *process = ud;
    if (process->dropped) return;
    struct backlog *b = stream == BARCHAN_STREAM_OUT ? &process->out : &process->err_out;
    if (keep(b, data, len) < 0) {
        process->out_of_memory = 1;
        barchan_exec_cancel(exec);
    }
    if (process->news != NULL) process->news(process, process->ud);
}

static void on_drain(barchan_exec *exec, void *ud)
{
    barchan_process *process = ud;
    (void)exec;
    if (!process->dropped && process->news != NULL) process->news(process, process->ud);
}

static void on_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    barchan_process *process = ud;
    (void)exec;
    if (process->dropped) {
        free_process(process);
        return;
    }
    process->exec = NULL;
    process->ended = 1;
    process->result = *result;
    *result = (barchan_exec_result){0};
    if (process->news != NULL) process->news(process, process->ud);
}

/* ---- the handle ---- */

static int check(const barchan_exec_options *options, const barchan_sandbox *sbx,
                 barchan_error *err)
{
    if (options->on_output != NULL || options->on_drain != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "on_output and on_drain are not for spawn: its handle reads");
    }
    if (options->detach && sbx->connection == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "detach is not for spawn but in a detached sandbox: its handle holds "
                            "the command");
    }
    if (options->backlog_bytes > BC_PROCESS_MAX_BACKLOG_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "backlog_bytes is at most %u",
                            BC_PROCESS_MAX_BACKLOG_BYTES);
    }
    return 0;
}

int barchan_sandbox_spawn(barchan_process **out, barchan_sandbox *sbx,
                          const barchan_exec_options *given, barchan_process_news_fn news, void *ud,
                          barchan_error *err)
{
    BC_OPERATION("sandbox.spawn");
    barchan_exec_options options;
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0) rc = bc_options_copy(&options, sizeof options, given, err);
    if (rc == 0) rc = check(&options, sbx, err);
    if (rc < 0) return rc;
    barchan_process *process = calloc(1, sizeof *process);
    if (process == NULL) return bc_error_nomem(err);
    size_t backlog =
        options.backlog_bytes == 0 ? BC_PROCESS_DEFAULT_BACKLOG_BYTES : options.backlog_bytes;
    process->rt = sbx->rt;
    process->out.max = process->err_out.max = backlog;
    process->news = news;
    process->ud = ud;
    options.struct_size = sizeof options;
    options.streaming = 1;
    options.input_streaming = options.input == NULL;
    options.on_output = on_output;
    options.on_drain = on_drain;
    options.ud = process;
    if (options.timeout_ms == 0) options.timeout_ms = -1;
    rc = barchan_sandbox_exec_start(&process->exec, sbx, &options, on_done, process, err);
    if (rc < 0) {
        free_process(process);
        return rc;
    }
    *out = process;
    return 0;
}

void barchan_process_destroy(barchan_process *process)
{
    if (process == NULL) return;
    if (process->exec == NULL) {
        free_process(process);
        return;
    }
    process->dropped = 1; /* the last callback frees it */
    barchan_exec_cancel(process->exec);
}

barchan_exec *barchan_process_exec(barchan_process *process)
{
    return process == NULL ? NULL : process->exec;
}

const barchan_exec_result *barchan_process_result(const barchan_process *process)
{
    return process != NULL && process->ended ? &process->result : NULL;
}

int barchan_process_read(barchan_process *process, barchan_stream stream, uint64_t cursor,
                         void *buffer, size_t capacity, barchan_process_chunk *chunk,
                         barchan_error *err)
{
    BC_OPERATION("process.read");
    if (process == NULL || chunk == NULL || (buffer == NULL && capacity > 0) ||
        (stream != BARCHAN_STREAM_OUT && stream != BARCHAN_STREAM_ERR)) {
        return bc_error_set(err, BARCHAN_EINVAL, "process, stream, buffer and chunk are needed");
    }
    if (process->out_of_memory) return bc_error_nomem(err);
    const struct backlog *b = stream == BARCHAN_STREAM_OUT ? &process->out : &process->err_out;
    uint64_t end = b->start + b->len, from = cursor < b->start ? b->start : cursor;
    if (cursor > end) {
        return bc_error_set(err, BARCHAN_EINVAL, "the cursor is beyond what was written");
    }
    size_t len = (size_t)(end - from);
    if (len > capacity) len = capacity;
    if (len > 0) copy_out(b, (size_t)(from - b->start), buffer, len);
    *chunk = (barchan_process_chunk){
        .len = len,
        .dropped = from - cursor,
        .next = from + len,
        .ended = process->ended && from + len == end,
    };
    return 0;
}

static void on_limit(void *ud)
{
    *(int *)ud = 1;
}

int barchan_process_wait(barchan_process *process, int timeout_ms, barchan_error *err)
{
    BC_OPERATION("process.wait");
    if (process == NULL) return bc_error_set(err, BARCHAN_EINVAL, "process is NULL");
    int rc = bc_runtime_may_wait(process->rt, err);
    if (rc < 0) return rc;
    int late = 0;
    bc_timer *timer = NULL;
    if (timeout_ms >= 0) {
        rc = bc_timer_open(&timer, process->rt, on_limit, &late, err);
        if (rc < 0) return rc;
        bc_timer_set(timer, timeout_ms);
    }
    while (rc >= 0 && !process->ended && !late) {
        rc = barchan_runtime_pump(process->rt, -1, err);
    }
    bc_timer_close(timer);
    return rc < 0 ? rc : process->ended;
}
