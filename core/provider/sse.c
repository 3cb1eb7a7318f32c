#include "sse.h"

#include <stdio.h>
#include <string.h>
#include "base/plain.h"

void bc_sse_init(bc_sse *sse, bc_sse_fn fn, void *ud)
{
    *sse = (bc_sse){.fn = fn, .ud = ud};
    bc_buf_init(&sse->line, BC_MODEL_MAX_EVENT_BYTES);
    bc_buf_init(&sse->data, BC_MODEL_MAX_EVENT_BYTES);
}

void bc_sse_clear(bc_sse *sse)
{
    bc_buf_clear(&sse->line);
    bc_buf_clear(&sse->data);
}

static int too_long(int rc, barchan_error *err)
{
    if (rc != BARCHAN_ELIMIT) return bc_error_nomem(err);
    return bc_error_set(err, rc, "an event of the stream is larger than %u bytes",
                        BC_MODEL_MAX_EVENT_BYTES);
}

static int dispatch(bc_sse *sse, barchan_error *err)
{
    int rc = 0;
    if (sse->has_data) {
        bc_json_span data = {bc_buf_data(&sse->data), sse->data.len};
        rc = sse->fn(sse->event, data, sse->ud, err);
    }
    sse->has_data = 0;
    sse->event[0] = '\0';
    bc_buf_reset(&sse->data);
    return rc;
}

static int field(bc_sse *sse, const char *name, size_t name_len, const char *value, size_t len,
                 barchan_error *err)
{
    if (name_len == 4 && memcmp(name, "data", 4) == 0) {
        int rc = sse->has_data ? bc_buf_append_char(&sse->data, '\n') : 0;
        if (rc == 0) rc = bc_buf_append(&sse->data, value, len);
        sse->has_data = 1;
        return rc < 0 ? too_long(rc, err) : 0;
    }
    if (name_len == 5 && memcmp(name, "event", 5) == 0) {
        /* No event that we know has a longer name; a cut one is unknown as well. */
        snprintf(sse->event, sizeof sse->event, "%.*s", (int)(len < 63 ? len : 63), value);
    }
    return 0;
}

static int take_line(bc_sse *sse, const char *line, size_t len, barchan_error *err)
{
    if (!sse->begun) {
        sse->begun = 1;
        if (len >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
            line += 3;
            len -= 3;
        }
    }
    if (len == 0) return dispatch(sse, err);
    if (line[0] == ':') return 0;
    const char *colon = memchr(line, ':', len);
    if (colon == NULL) return field(sse, line, len, "", 0, err);
    size_t name_len = (size_t)(colon - line);
    const char *value = colon + 1;
    size_t value_len = len - name_len - 1;
    if (value_len > 0 && *value == ' ') {
        value++;
        value_len--;
    }
    return field(sse, line, name_len, value, value_len, err);
}

/* The line that ends here: what was kept of it, and its rest. */
static int finish_line(bc_sse *sse, const char *rest, size_t len, barchan_error *err)
{
    if (sse->line.len == 0) return take_line(sse, rest, len, err);
    int rc = bc_buf_append(&sse->line, rest, len);
    if (rc < 0) return too_long(rc, err);
    rc = take_line(sse, bc_buf_data(&sse->line), sse->line.len, err);
    bc_buf_reset(&sse->line);
    return rc;
}

/* One scan for both: looking for each alone would pass all that follows once per line. */
static size_t line_end(const char *data, size_t len)
{
    size_t at = bc_bytes_without(data, len, '\n', '\r');
    while (at < len && data[at] != '\n' && data[at] != '\r')
        at++;
    return at;
}

int bc_sse_feed(bc_sse *sse, const char *data, size_t len, barchan_error *err)
{
    while (len > 0) {
        if (sse->skip_lf && *data == '\n') {
            sse->skip_lf = 0;
            data++;
            len--;
            continue;
        }
        sse->skip_lf = 0;
        size_t end = line_end(data, len);
        if (end == len) {
            int rc = bc_buf_append(&sse->line, data, len);
            return rc < 0 ? too_long(rc, err) : 0;
        }
        sse->skip_lf = data[end] == '\r';
        int rc = finish_line(sse, data, end, err);
        if (rc < 0) return rc;
        data += end + 1;
        len -= end + 1;
    }
    return 0;
}

int bc_sse_end(bc_sse *sse, barchan_error *err)
{
    sse->ending = 1;
    int rc = sse->line.len > 0 ? finish_line(sse, "", 0, err) : 0;
    return rc < 0 ? rc : dispatch(sse, err);
}
