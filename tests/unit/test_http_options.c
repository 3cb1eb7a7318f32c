/* A request whose options do not all take hold is not sent. */
#include <curl/curl.h>
#include <stdarg.h>
#include "base/error.h"
#include "runtime/http.h"
#include "suite.h"

#undef curl_easy_setopt

CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);

static int calls, refuse_at; /* counted from 1 */
static CURLcode refuse_with;
static CURLoption refused;

CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list list;
    va_start(list, option);
    void *value = va_arg(list, void *); /* longs, offsets and pointers pass alike on LP64 */
    va_end(list);
    if (++calls == refuse_at) {
        refused = option;
        return refuse_with;
    }
    return __real_curl_easy_setopt(easy, option, value);
}

static void on_body(bc_http *http, const char *data, size_t len, void *ud)
{
    (void)http;
    (void)data;
    (void)len;
    (void)ud;
}

static void on_done(bc_http *http, const barchan_error *err, void *ud)
{
    (void)http;
    (void)err;
    (void)ud;
}

static int start(barchan_runtime *rt, barchan_error *err)
{
    bc_http *http = NULL;
    bc_http_options options = {.method = "POST",
                               .url = "https://127.0.0.1:1/",
                               .body = "x",
                               .body_len = 1,
                               .connect_timeout_ms = 1000,
                               .idle_timeout_ms = 1000,
                               .timeout_ms = 1000,
                               .max_body_bytes = 1000};
    bc_http_handlers handlers = {NULL, on_body, on_done, NULL};
    calls = 0;
    int rc = bc_http_start(&http, rt, &options, &handlers, err);
    ck_assert((rc == 0) == (http != NULL));
    bc_http_close(http);
    return rc;
}

/* What only turns something off may be missing in a build; nothing else may, and nothing may fail
 * in another way. */
static int may_be_missing(CURLoption option)
{
    return option == CURLOPT_PROXY || option == CURLOPT_NETRC || option == CURLOPT_HSTS_CTRL ||
           option == CURLOPT_TCP_KEEPALIVE || option == CURLOPT_QUICK_EXIT ||
           option == CURLOPT_HTTP_VERSION;
}

START_TEST(each_option_must_take_hold)
{
    barchan_runtime *rt;
    barchan_error err;
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
    refuse_at = 0;
    ck_assert_int_eq(start(rt, &err), 0);
    int count = calls;
    ck_assert_int_gt(count, 20);
    for (int i = 1; i <= count; i++) {
        refuse_at = i;
        refuse_with = CURLE_UNKNOWN_OPTION;
        int rc = start(rt, &err);
        ck_assert_msg(rc == (may_be_missing(refused) ? 0 : BARCHAN_EUNSUPPORTED), "%d", refused);
        refuse_with = CURLE_BAD_FUNCTION_ARGUMENT;
        ck_assert_int_eq(start(rt, &err), BARCHAN_EUNSUPPORTED);
        refuse_with = CURLE_OUT_OF_MEMORY;
        ck_assert_int_eq(start(rt, &err), BARCHAN_ENOMEM);
    }
    barchan_runtime_destroy(rt);
}
END_TEST

UNIT_MAIN("http_options", each_option_must_take_hold)
