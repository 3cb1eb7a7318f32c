/* The scanner, the views and the writer agree about any text. */
#include "fuzz.h"

#include <string.h>
#include "base/json_view.h"
#include "base/json_write.h"

/* A decoded string, written again, decodes to itself. */
static void check_string(const bc_json_scan *scan)
{
    bc_buf text, written, back;
    bc_json_scan again;
    bc_buf_init(&text, 1 << 24);
    bc_buf_init(&written, 1 << 24);
    bc_buf_init(&back, 1 << 24);
    CLAIM(bc_json_scan_text(scan, &text) == 0);
    CLAIM(bc_json_write_string(&written, bc_buf_data(&text), text.len) == 0);
    bc_json_scan_init(&again, bc_buf_data(&written), written.len);
    CLAIM(bc_json_scan_next(&again, NULL) == BC_JSON_STRING);
    CLAIM(bc_json_scan_text(&again, &back) == 0);
    CLAIM(text.len == back.len && memcmp(bc_buf_data(&text), bc_buf_data(&back), text.len) == 0);
    bc_buf_clear(&text);
    bc_buf_clear(&written);
    bc_buf_clear(&back);
}

static void check_real(double value)
{
    bc_buf out;
    bc_json_scan scan;
    bc_buf_init(&out, 64);
    CLAIM(bc_json_write_real(&out, value) == 0);
    bc_json_scan_init(&scan, bc_buf_data(&out), out.len);
    CLAIM(bc_json_scan_next(&scan, NULL) == BC_JSON_REAL);
    CLAIM(scan.real == value);
    bc_buf_clear(&out);
}

static int scan_all(const char *text, size_t len)
{
    bc_json_scan scan;
    barchan_error err;
    int rc;
    bc_json_scan_init(&scan, text, len);
    while ((rc = bc_json_scan_next(&scan, &err)) > 0) {
        CLAIM(scan.start < scan.end && scan.end <= len);
        if (rc == BC_JSON_STRING || rc == BC_JSON_KEY) check_string(&scan);
        if (rc == BC_JSON_REAL) check_real(scan.real);
    }
    CLAIM((rc < 0) == (bc_json_validate(text, len, NULL) < 0));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    json_t *view = NULL, *strict = NULL;
    int rc = scan_all(text, size);
    CLAIM((bc_json_view(&view, text, size, 0, NULL) == 0) == (rc == 0));
    int unique = bc_json_view(&strict, text, size, BC_JSON_UNIQUE_KEYS, NULL);
    if (unique == 0) {
        /* By their text: json_equal stops at a NUL in a key. */
        char *a = json_dumps(view, JSON_ENCODE_ANY), *b = json_dumps(strict, JSON_ENCODE_ANY);
        CLAIM(rc == 0 && a != NULL && b != NULL && strcmp(a, b) == 0);
        free(a);
        free(b);
    }
    if (view != NULL) {
        char *dumped = json_dumps(view, JSON_ENCODE_ANY);
        CLAIM(dumped != NULL && bc_json_validate(dumped, strlen(dumped), NULL) == 0);
        free(dumped);
    }
    bc_json_iter iter;
    if (bc_json_iter_init(&iter, (bc_json_span){text, size}, NULL) == 1) {
        int step;
        while ((step = bc_json_iter_next(&iter, NULL)) == 1) {
            CLAIM(bc_json_validate(iter.value.data, iter.value.len, NULL) == 0);
        }
        CLAIM((step < 0) == (rc < 0));
    }
    json_decref(view);
    json_decref(strict);
    return 0;
}
