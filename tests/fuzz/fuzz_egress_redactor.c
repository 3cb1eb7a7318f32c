/* The first line is a value, the rest a server's answer. However it is cut, the same comes out, its
 * framing can be read again, and the value is not in it. */
#include "fuzz.h"

#include <string.h>
#include "egress/response_stream.h"

enum { MOST = 1 << 20 };

static int run(bc_patterns *patterns, const char *data, size_t len, size_t piece, bc_buf *out)
{
    bc_response_stream stream;
    int rc = 0;
    bc_buf_init(out, MOST);
    CLAIM(bc_response_init(&stream, patterns) == 0);
    bc_response_expect(&stream, false, false);
    for (size_t at = 0; rc == 0 && at < len; at += piece)
        rc = bc_response_feed(&stream, data + at, len - at < piece ? len - at : piece, out);
    if (rc == 0) rc = bc_response_end(&stream, false, out);
    if (rc < 0) CLAIM(stream.why != NULL);
    bc_response_clear(&stream);
    return rc;
}

static void check_stream(bc_patterns *patterns, const char *value, size_t value_len,
                         const char *data, size_t len)
{
    bc_redactor redactor;
    bc_buf whole, cut;
    bc_buf_init(&whole, MOST);
    bc_buf_init(&cut, MOST);
    CLAIM(bc_redactor_init(&redactor, patterns) == 0);
    CLAIM(bc_redactor_feed(&redactor, data, len, &whole) == 0);
    CLAIM(bc_redactor_end(&redactor, &whole) == 0);
    for (size_t i = 0; i < len; i++)
        CLAIM(bc_redactor_feed(&redactor, data + i, 1, &cut) == 0);
    CLAIM(bc_redactor_end(&redactor, &cut) == 0);
    CLAIM(whole.len == len && cut.len == len);
    CLAIM(memcmp(bc_buf_data(&whole), bc_buf_data(&cut), len) == 0);
    if (memchr(value, '*', value_len) == NULL)
        CLAIM(memmem(bc_buf_data(&whole), len, value, value_len) == NULL);
    bc_redactor_clear(&redactor);
    bc_buf_clear(&whole);
    bc_buf_clear(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *data = (const char *)bytes;
    const char *line = memchr(data, '\n', size);
    if (line == NULL || line == data || line - data > 64) return 0;
    size_t value_len = (size_t)(line - data), len = size - value_len - 1;
    for (size_t i = 0; i < value_len; i++) {
        if (data[i] < ' ' || data[i] > '~') return 0;
    }
    const bc_pattern_source source = {data, value_len, 0, 1};
    bc_patterns *patterns = bc_patterns_create(&source, 1, true);
    if (patterns == NULL) abort();
    bc_buf whole, cut;
    int rc = run(patterns, line + 1, len, len + 1, &whole);
    CLAIM(run(patterns, line + 1, len, 1, &cut) == rc);
    if (rc == 0) {
        bc_buf again;
        /* What has been written is an answer itself, of which nothing has to be masked. */
        CLAIM(value_len < 16 || run(patterns, bc_buf_data(&whole), whole.len, 7, &again) == 0);
        if (value_len >= 16) bc_buf_clear(&again);
    }
    check_stream(patterns, data, value_len, line + 1, len);
    bc_buf_clear(&whole);
    bc_buf_clear(&cut);
    bc_patterns_unref(patterns);
    return 0;
}
