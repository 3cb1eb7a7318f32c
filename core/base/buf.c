#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bc_buf_init(bc_buf *buf, size_t max)
{
    *buf = (bc_buf){.max = max};
}

void bc_buf_clear(bc_buf *buf)
{
    free(buf->mem);
    *buf = (bc_buf){.max = buf->max};
}

void bc_buf_reset(bc_buf *buf)
{
    buf->start = buf->len = 0;
    if (buf->mem != NULL) buf->mem[0] = '\0';
}

static int grow(bc_buf *buf, size_t need)
{
    size_t cap = buf->cap < 64 ? 64 : buf->cap;
    /* Full but for a little dead space in front: without growing, each append would copy it all. */
    if (need <= buf->cap && cap <= ((size_t)-1) / 2) cap *= 2;
    while (cap < need) {
        if (cap > ((size_t)-1) / 2) return BARCHAN_ENOMEM;
        cap *= 2;
    }
    char *mem = malloc(cap);
    if (mem == NULL) return BARCHAN_ENOMEM;
    if (buf->len > 0) memcpy(mem, buf->mem + buf->start, buf->len);
    free(buf->mem);
    buf->mem = mem;
    buf->start = 0;
    buf->cap = cap;
    return 0;
}

static int make_room(bc_buf *buf, size_t len)
{
    if (len > buf->max || buf->len > buf->max - len) return BARCHAN_ELIMIT;
    size_t need = buf->len + len + 1;
    if (buf->start + need <= buf->cap) return 0;
    /* Move down only when at least half the allocation is dead space: amortised O(1). */
    if (need <= buf->cap && buf->start >= buf->cap / 2) {
        memmove(buf->mem, buf->mem + buf->start, buf->len);
        buf->start = 0;
        return 0;
    }
    return grow(buf, need);
}

char *bc_buf_reserve_growing(bc_buf *buf, size_t len)
{
    if (make_room(buf, len) < 0) return NULL;
    return buf->mem + buf->start + buf->len;
}

int bc_buf_append_growing(bc_buf *buf, const void *data, size_t len)
{
    int rc = make_room(buf, len);
    if (rc < 0) return rc;
    if (len > 0) memcpy(buf->mem + buf->start + buf->len, data, len);
    bc_buf_commit(buf, len);
    return 0;
}

int bc_buf_append_string(bc_buf *buf, const char *text)
{
    return bc_buf_append(buf, text, strlen(text));
}

int bc_buf_appendf(bc_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    int rc = need < 0 ? BARCHAN_EINVAL : make_room(buf, (size_t)need);
    if (rc == 0) {
        vsnprintf(buf->mem + buf->start + buf->len, (size_t)need + 1, format, again);
        bc_buf_commit(buf, (size_t)need);
    }
    va_end(again);
    return rc;
}

void bc_buf_consume(bc_buf *buf, size_t len)
{
    if (len >= buf->len) {
        bc_buf_reset(buf);
        return;
    }
    buf->start += len;
    buf->len -= len;
}

char *bc_buf_take(bc_buf *buf, size_t *len)
{
    if (buf->mem == NULL && grow(buf, 1) < 0) return NULL;
    if (buf->start > 0) memmove(buf->mem, buf->mem + buf->start, buf->len);
    buf->mem[buf->len] = '\0';
    if (len != NULL) *len = buf->len;
    char *text = buf->mem;
    *buf = (bc_buf){.max = buf->max};
    return text;
}
