/* The HTTP layer by itself: slow consumers, limits, and requests that are closed in their own
 * handlers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/limits.h"
#include "server_suite.h"
#include "runtime/http_internal.h"

enum { BLOCKS = 1000, BLOCK_BYTES = 65536 };

typedef struct seen {
    int heads, pieces, ends, status, code;
    size_t bytes, largest_inbox;
    int pause_each, close_at_head, close_at_piece, close_at_end;
    char type[64];
} seen;

static void on_head(bc_http *http, void *ud)
{
    seen *s = ud;
    const char *type = bc_http_header(http, "Content-Type");
    s->heads++;
    s->status = bc_http_status(http);
    snprintf(s->type, sizeof s->type, "%s", type != NULL ? type : "");
    if (s->close_at_head) bc_http_close(http);
}

static void on_body(bc_http *http, const char *data, size_t len, void *ud)
{
    seen *s = ud;
    s->pieces++;
    s->bytes += len;
    for (size_t i = 0; i < len; i += 4096) {
        if (data[i] != 'x') s->code = 1;
    }
    if (http->inbox.len > s->largest_inbox) s->largest_inbox = http->inbox.len;
    if (s->pause_each) bc_http_pause(http);
    if (s->close_at_piece) bc_http_close(http);
}

static void on_done(bc_http *http, const barchan_error *err, void *ud)
{
    seen *s = ud;
    s->ends++;
    if (err != NULL) s->code = err->code;
    if (s->close_at_end) bc_http_close(http);
}

static bc_http *get(const char *path, size_t max_body, seen *s)
{
    char url[128];
    bc_http *http = NULL;
    barchan_error err;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server.port, path);
    bc_http_options o = {.url = url,
                         .connect_timeout_ms = 5000,
                         .idle_timeout_ms = 2000,
                         .timeout_ms = 60000,
                         .max_body_bytes = max_body};
    bc_http_handlers h = {on_head, on_body, on_done, s};
    int rc = bc_http_start(&http, rt, &o, &h, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    return http;
}

static void pump_until(const int *flag)
{
    int64_t start = bc_clock_ms();
    while (!*flag && bc_clock_ms() - start < 30000)
        barchan_runtime_pump(rt, 100, NULL);
    ck_assert(*flag);
}

START_TEST(a_plain_get)
{
    seen s = {.code = 0};
    bc_http *http = get("big/10", 1 << 20, &s);
    pump_until(&s.ends);
    ck_assert_int_eq(s.heads, 1);
    ck_assert_int_eq(s.status, 200);
    ck_assert_str_eq(s.type, "text/plain");
    ck_assert_uint_eq(s.bytes, 10 * BLOCK_BYTES);
    ck_assert_int_eq(s.code, 0);
    ck_assert_ptr_null(bc_http_header(http, "content"));
    ck_assert_ptr_null(bc_http_header(http, "x-absent"));
    bc_http_close(http);
}
END_TEST

START_TEST(a_slow_consumer_slows_the_peer)
{
    seen s = {.pause_each = 1};
    bc_http *http = get("big/1000", (size_t)BLOCKS * BLOCK_BYTES, &s);
    while (s.ends == 0) {
        int pieces = s.pieces;
        while (s.pieces == pieces && s.ends == 0)
            barchan_runtime_pump(rt, 100, NULL);
        /* Nothing more is given while it is paused, however long the peer has. */
        if (s.pieces < 20) {
            for (int i = 0; i < 10; i++)
                barchan_runtime_pump(rt, 5, NULL);
            ck_assert_int_le(s.pieces, pieces + 1);
        }
        ck_assert_uint_lt(http->inbox.len, 2 * BC_HTTP_MAX_WAITING_BYTES);
        bc_http_resume(http);
    }
    ck_assert_uint_eq(s.bytes, (size_t)BLOCKS * BLOCK_BYTES);
    ck_assert_int_eq(s.code, 0);
    bc_http_close(http);
}
END_TEST

START_TEST(a_pause_longer_than_the_idle_time_is_no_silence)
{
    seen s = {.pause_each = 1};
    bc_http *http = get("big/100", (size_t)BLOCKS * BLOCK_BYTES, &s);
    pump_until(&s.pieces);
    int64_t start = bc_clock_ms();
    while (bc_clock_ms() - start < 2500)
        barchan_runtime_pump(rt, 100, NULL);
    ck_assert_int_eq(s.ends, 0);
    s.pause_each = 0;
    bc_http_resume(http);
    pump_until(&s.ends);
    ck_assert_int_eq(s.code, 0);
    ck_assert_uint_eq(s.bytes, 100 * BLOCK_BYTES);
    bc_http_close(http);
}
END_TEST

START_TEST(the_body_is_bounded)
{
    seen s = {.code = 0};
    bc_http *http = get("big/1000", 100000, &s);
    pump_until(&s.ends);
    ck_assert_int_eq(s.code, BARCHAN_ELIMIT);
    ck_assert_uint_le(s.bytes, 100000);
    bc_http_close(http);
    s = (seen){.code = 0};
    http = get("big/1", BLOCK_BYTES, &s); /* exactly as much is allowed */
    pump_until(&s.ends);
    ck_assert_int_eq(s.code, 0);
    bc_http_close(http);
}
END_TEST

START_TEST(closing_in_a_handler_is_the_end)
{
    seen at_head = {.close_at_head = 1}, at_piece = {.close_at_piece = 1},
         at_end = {.close_at_end = 1};
    get("big/100", 1 << 30, &at_head);
    pump_until(&at_head.heads);
    get("big/100", 1 << 30, &at_piece);
    pump_until(&at_piece.pieces);
    get("big/1", 1 << 30, &at_end);
    pump_until(&at_end.ends);
    for (int i = 0; i < 20; i++)
        barchan_runtime_pump(rt, 5, NULL);
    ck_assert_int_eq(at_head.pieces + at_head.ends, 0);
    ck_assert_int_eq(at_piece.pieces, 1);
    ck_assert_int_eq(at_piece.ends, 0);
    ck_assert_int_eq(at_end.ends, 1);
}
END_TEST

START_TEST(closing_while_paused)
{
    seen s = {.pause_each = 1};
    bc_http *http = get("big/1000", 1 << 30, &s);
    pump_until(&s.pieces);
    for (int i = 0; i < 20; i++)
        barchan_runtime_pump(rt, 5, NULL);
    bc_http_close(http);
    for (int i = 0; i < 5; i++)
        barchan_runtime_pump(rt, 5, NULL);
    ck_assert_int_eq(s.ends, 0);
    /* The runtime is still good. */
    seen again = {.code = 0};
    http = get("big/1", 1 << 30, &again);
    pump_until(&again.ends);
    ck_assert_int_eq(again.code, 0);
    bc_http_close(http);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_plain_get,
                                  a_slow_consumer_slows_the_peer,
                                  a_pause_longer_than_the_idle_time_is_no_silence,
                                  the_body_is_bounded,
                                  closing_in_a_handler_is_the_end,
                                  closing_while_paused,
                                  NULL};
    return server_suite_run("http_client", byte_server, tests, 1);
}
