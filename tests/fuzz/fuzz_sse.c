/* Events do not depend on how the bytes were cut. */
#include "fuzz.h"

#include <string.h>
#include "provider/sse.h"

static int on_event(const char *event, bc_json_span data, void *ud, barchan_error *err)
{
    bc_buf *out = ud;
    (void)err;
    bc_buf_append_string(out, event);
    bc_buf_append_char(out, '|');
    bc_buf_append(out, data.data, data.len);
    return bc_buf_append_char(out, '\n');
}

static void read_in(const uint8_t *data, size_t size, size_t step, bc_buf *out)
{
    bc_sse sse;
    bc_buf_init(out, 1 << 24);
    bc_sse_init(&sse, on_event, out);
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        CLAIM(bc_sse_feed(&sse, (const char *)data + at, n, NULL) == 0);
    }
    CLAIM(bc_sse_end(&sse, NULL) == 0);
    bc_sse_clear(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bc_buf whole, pieces;
    if (size == 0) return 0;
    read_in(data, size, size, &whole);
    for (size_t step = 1; step <= 4; step++) {
        read_in(data, size, step, &pieces);
        CLAIM(whole.len == pieces.len);
        CLAIM(memcmp(bc_buf_data(&whole), bc_buf_data(&pieces), whole.len) == 0);
        bc_buf_clear(&pieces);
    }
    bc_buf_clear(&whole);
    return 0;
}
