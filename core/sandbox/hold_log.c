#include "hold_log.h"

#include "base/limits.h"

#define RECORD_HEAD 12u
/* Several of them fit into one answer. */
#define RECORD_MAX 16384u

void bc_hold_log_init(bc_hold_log *log)
{
    *log = (bc_hold_log){0};
    bc_buf_init(&log->records, BC_HOLD_LOG_BYTES);
}

void bc_hold_log_clear(bc_hold_log *log)
{
    bc_buf_clear(&log->records);
}

static const unsigned char *bytes_of(const bc_hold_log *log)
{
    return (const unsigned char *)bc_buf_data(&log->records);
}

static void drop_first(bc_hold_log *log)
{
    uint32_t len = bc_get_u32(bytes_of(log) + 8);
    bc_buf_consume(&log->records, RECORD_HEAD + len);
    log->start += len;
}

static void add_record(bc_hold_log *log, uint32_t command, uint32_t type, const void *data,
                       uint32_t len)
{
    unsigned char head[RECORD_HEAD];
    bc_put_u32(head, command);
    bc_put_u32(head + 4, type);
    bc_put_u32(head + 8, len);
    log->end += len;
    while (log->records.len + RECORD_HEAD + len > BC_HOLD_LOG_BYTES) {
        drop_first(log);
    }
    char *room = bc_buf_reserve(&log->records, RECORD_HEAD + len);
    if (room == NULL) { /* out of memory: all that was kept is behind a gap */
        bc_buf_reset(&log->records);
        log->start = log->end;
        return;
    }
    memcpy(room, head, RECORD_HEAD);
    memcpy(room + RECORD_HEAD, data, len);
    bc_buf_commit(&log->records, RECORD_HEAD + len);
}

void bc_hold_log_add(bc_hold_log *log, uint32_t command, uint32_t type, const void *data,
                     size_t len)
{
    const char *at = data;
    while (len > 0) {
        uint32_t part = len < RECORD_MAX ? (uint32_t)len : RECORD_MAX;
        add_record(log, command, type, at, part);
        at += part;
        len -= part;
    }
}

void bc_hold_log_answer(const bc_hold_log *log, uint64_t cursor, bc_wire_writer *out)
{
    const unsigned char *at = bytes_of(log), *end = at + log->records.len;
    uint64_t offset = log->start; /* of the record at `at` */
    if (cursor > log->end) cursor = log->end;
    uint64_t from = cursor < log->start ? log->start : cursor, next = from;
    unsigned char *head = out->data + out->len;
    uint32_t count = 0;
    bc_wire_put_u64(out, from - cursor);
    bc_wire_put_u64(out, 0);
    bc_wire_put_u32(out, 0);
    for (; at < end; at += RECORD_HEAD + bc_get_u32(at + 8)) {
        uint32_t len = bc_get_u32(at + 8);
        uint64_t skip = from > offset ? from - offset : 0;
        offset += len;
        if (skip >= len) continue;
        uint32_t rest = len - (uint32_t)skip;
        if (out->cap - out->len < RECORD_HEAD + rest) break;
        bc_wire_put(out, at, 8);
        bc_wire_put_u32(out, rest);
        bc_wire_put(out, at + RECORD_HEAD + skip, rest);
        next = offset;
        count++;
    }
    if (out->full) return;
    bc_put_u64(head + 8, next);
    bc_put_u32(head + 16, count);
}
