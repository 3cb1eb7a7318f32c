/* A growable byte buffer with a maximum. Its text is NUL-terminated as a courtesy. Bytes are
 * consumed from the front without moving the rest each time. */
#ifndef BC_BASE_BUF_H
#define BC_BASE_BUF_H

#include <stddef.h>
#include "error.h"

typedef struct bc_buf {
    char *mem;    /* the allocation */
    size_t start; /* where the live bytes begin in it */
    size_t len;   /* how many live bytes */
    size_t cap;
    size_t max; /* most live bytes that it may hold; 0: no bytes at all */
} bc_buf;

void bc_buf_init(bc_buf *buf, size_t max);
void bc_buf_clear(bc_buf *buf); /* frees; the maximum stays, so the buffer can be used again */
void bc_buf_reset(bc_buf *buf); /* empties, keeps the memory */

/* 0, BARCHAN_ENOMEM or BARCHAN_ELIMIT; on failure nothing was added. */
static inline int bc_buf_append(bc_buf *buf, const void *data, size_t len);
int bc_buf_append_string(bc_buf *buf, const char *text);
int bc_buf_appendf(bc_buf *buf, const char *format, ...) BC_PRINTF(2, 3);
/* Room for `len` more bytes, to be written at the returned place and then counted by
 * bc_buf_commit; NULL when that is not possible. */
static inline char *bc_buf_reserve(bc_buf *buf, size_t len);
static inline void bc_buf_commit(bc_buf *buf, size_t len);

/* The rest of bc_buf_append and bc_buf_reserve: where there is no room yet. */
int bc_buf_append_growing(bc_buf *buf, const void *data, size_t len);
char *bc_buf_reserve_growing(bc_buf *buf, size_t len);

static inline char *bc_buf_reserve(bc_buf *buf, size_t len)
{
    size_t end = buf->start + buf->len;
    if (len == 0 || len > buf->max - buf->len || buf->cap - end <= len) {
        return bc_buf_reserve_growing(buf, len);
    }
    return buf->mem + end;
}

static inline void bc_buf_commit(bc_buf *buf, size_t len)
{
    buf->len += len;
    buf->mem[buf->start + buf->len] = '\0';
}

static inline int bc_buf_append(bc_buf *buf, const void *data, size_t len)
{
    size_t end = buf->start + buf->len;
    if (len == 0 || len > buf->max - buf->len || buf->cap - end <= len) {
        return bc_buf_append_growing(buf, data, len);
    }
    __builtin_memcpy(buf->mem + end, data, len);
    buf->mem[end + len] = '\0';
    buf->len += len;
    return 0;
}

static inline int bc_buf_append_char(bc_buf *buf, char c)
{
    size_t end = buf->start + buf->len;
    if (buf->len >= buf->max || end + 1 >= buf->cap) return bc_buf_append(buf, &c, 1);
    buf->mem[end] = c;
    buf->mem[end + 1] = '\0';
    buf->len++;
    return 0;
}

static inline char *bc_buf_data(const bc_buf *buf)
{
    return buf->mem == NULL ? (char *)"" : buf->mem + buf->start;
}

void bc_buf_consume(bc_buf *buf, size_t len);
/* Steals the bytes as a malloc'd, NUL-terminated string; NULL only when out of memory. */
char *bc_buf_take(bc_buf *buf, size_t *len);

#define cleanup_buf __attribute__((cleanup(bc_buf_clear)))

#endif
