/* Recordings of a wire: what a server said, played again without it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "provider_server.h"

static char path[64];

static const char *fresh_path(void)
{
    static int count;
    snprintf(path, sizeof path, "/tmp/barchan-record-%d-%d.jsonl", (int)getpid(), count++);
    return path;
}

/* ---- what a completion did, as one text ---- */

typedef struct story {
    char text[1 << 16];
    size_t len;
} story;

static void add(story *s, const char *label, const char *data, size_t len)
{
    int n = snprintf(s->text + s->len, sizeof s->text - s->len, "%s %.*s\n", label, (int)len, data);
    s->len += (size_t)n < sizeof s->text - s->len ? (size_t)n : 0;
}

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    char label[16];
    snprintf(label, sizeof label, "%d", (int)kind);
    if (kind == BARCHAN_DELTA_RETRY) len = 12; /* the wait has chance in it */
    add(ud, label, data, len);
}

static void tell(barchan_model *model, const char *request, story *s)
{
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta, .ud = s};
    barchan_error err = {0};
    char *reply = NULL, numbers[64];
    int rc = barchan_model_complete(model, request, strlen(request), &o, &reply, &err);
    if (rc == 0) {
        add(s, "reply", reply, strlen(reply));
    } else {
        snprintf(numbers, sizeof numbers, "%d %d %d", err.code, err.http_status, err.retryable);
        add(s, numbers, err.message, strlen(err.message));
        add(s, err.provider_code, err.request_id, strlen(err.request_id));
    }
    free(reply);
}

static barchan_model *player(const char *scenario, const barchan_model_options *more)
{
    barchan_model_options o = *more;
    o.record_path = NULL;
    o.replay_path = path;
    o.api_key = NULL;
    return model_with(scenario, &o);
}

static char *contents(void)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Recorded, and played twice: the same story each time, and the server is not asked again. */
static void same_again(const char *scenario, const char *request, const barchan_model_options *more)
{
    static story live, played;
    live = (story){.len = 0};
    barchan_model_options o = *more;
    o.record_path = fresh_path();
    barchan_model *model = model_with(scenario, &o);
    tell(model, request, &live);
    barchan_model_destroy(model);
    ck_assert_msg(strstr(contents(), "secret-key") == NULL, "%s: %s", scenario, contents());
    long asked = peer_stat(&server, "connections");
    for (int i = 0; i < 2; i++) {
        played = (story){.len = 0};
        model = player(scenario, more);
        tell(model, request, &played);
        barchan_model_destroy(model);
        ck_assert_msg(strcmp(live.text, played.text) == 0, "%s:\n%s\nplayed:\n%s", scenario,
                      live.text, played.text);
    }
    ck_assert_int_eq(peer_stat(&server, "connections") - asked, 1); /* that of the statistics */
    unlink(path);
}

START_TEST(whatever_a_server_says_is_said_again)
{
    static const char *const scenarios[] = {
        "ok",          "bytewise",  "cutstream",      "cutevent",      "late/junk",
        "late/cut",    "late/long", "quote/message",  "quote/stream",  "quote/location/15",
        "quote/id",    "blanks",    "garbage/http09", "html",          "empty/200",
        "brokenerror", "restart",   "errorinstream",  "jsonforstream", "redirect/302/host",
        "reset",       "closenow",  "earlyclose",     "badchunk/size", "status/529/overloaded",
        "neverclose",  "tricky",    "gzip",           "interim",
    };
    const barchan_model_options o = {.api_key = "secret-key-9-0123456789", .idle_timeout_ms = 700};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        same_again(scenarios[i], stream_request, &o);
        same_again(scenarios[i], plain_request, &o);
    }
}
END_TEST

START_TEST(each_protocol)
{
    static const char *const providers[] = {"anthropic", "openai", "openai-responses", "gemini"};
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        const barchan_model_options o = {.provider = providers[i],
                                         .api_key = "secret-key-9-0123456789"};
        same_again("ok", stream_request, &o);
        same_again("chat", plain_request, &(barchan_model_options){.provider = providers[i]});
        same_again("quote/message", plain_request, &o);
    }
}
END_TEST

static const char *request_of(const char *words, char text[200])
{
    snprintf(text, 200, "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", words);
    return text;
}

/* Wherever a key stands, also in the address and as JSON escapes it; played, it is not needed. */
START_TEST(keys_elsewhere)
{
    static story s;
    char text[200];
    const barchan_model_options o = {.record_path = fresh_path(),
                                     .api_key = "secret/key+0123456789"};
    barchan_model *model = model_with("ok/secret/key+0123456789", &o);
    tell(model, request_of("is secret/key+0123456789 good?", text), &s);
    tell(model, request_of("or secret\\/key+0123456789, or secret%2Fkey%2B0123456789?", text), &s);
    barchan_model_destroy(model);
    ck_assert_msg(strstr(contents(), "key+0123") == NULL, "%s", contents());
    ck_assert_msg(strstr(contents(), "key%2B0123") == NULL, "%s", contents());
    model = model_with("ok/secret/key+0123456789",
                       &(barchan_model_options){.replay_path = path, .api_key = o.api_key});
    s.len = 0;
    tell(model, request_of("is secret/key+0123456789 good?", text), &s);
    ck_assert_ptr_nonnull(strstr(s.text, "reply {"));
    s.len = 0;
    tell(model, request_of("something else", text), &s);
    ck_assert_ptr_null(strstr(s.text, "key+0123"));
    barchan_model_destroy(model);
    unlink(path);
}
END_TEST

START_TEST(retries_and_deadlines)
{
    const barchan_model_options o = {.max_retries = 2};
    same_again("flaky/record/2/status/529/overloaded", stream_request, &o);
    same_again("flaky/record2/1/cutstream", stream_request, &o);
    const barchan_model_options idle = {.idle_timeout_ms = 300};
    same_again("stall", stream_request, &idle);
    same_again("silent", stream_request, &idle);
    same_again("comments", stream_request, &(barchan_model_options){.timeout_ms = 700});
}
END_TEST

/* ---- conversations ---- */

START_TEST(what_was_not_recorded_is_an_error)
{
    static story s;
    char text[200];
    const barchan_model_options o = {.record_path = fresh_path()};
    barchan_model *model = model_with("ok", &o);
    tell(model, request_of("the first question", text), &s);
    tell(model, request_of("the second question", text), &s);
    barchan_model_destroy(model);
    model = player("ok", &o);
    s.len = 0;
    tell(model, request_of("the third question", text), &s);
    ck_assert_ptr_nonnull(
        strstr(s.text, "(request 1 of /tmp/barchan-record-")); /* and nothing of it is used up */
    ck_assert_msg(strstr(s.text,
                         "at /messages/0/content/0/text recorded was \"the first question\", now "
                         "it is \"the third question\"") != NULL,
                  "%s", s.text);
    s.len = 0;
    tell(model, request_of("the second question", text), &s); /* in any order */
    tell(model, request_of("the first question", text), &s);
    ck_assert_ptr_null(strstr(s.text, "recorded"));
    s.len = 0;
    tell(model, request_of("the first question", text), &s);
    ck_assert_ptr_nonnull(strstr(s.text, "has 2 requests, and all were played"));
    barchan_model_destroy(model);
    s.len = 0;
    model = player("elsewhere", &o);
    tell(model, request_of("the first question", text), &s);
    ck_assert_ptr_nonnull(strstr(s.text, "the address is http://127.0.0.1:"));
    barchan_model_destroy(model);
    unlink(path);
}
END_TEST

static void on_end(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    (void)reply, (void)len;
    *(int *)ud = err == NULL ? 1 : err->code;
}

static void note_begun(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    (void)kind, (void)data, (void)len;
    *(int *)ud = 1;
}

START_TEST(given_up)
{
    static story s;
    int ended = 0, begun = 0;
    const barchan_complete_options watched = {
        .struct_size = sizeof watched, .on_delta = note_begun, .ud = &begun};
    barchan_completion *c;
    const barchan_model_options o = {.record_path = fresh_path()};
    barchan_model *model = model_with("stall", &o);
    ck_assert_int_eq(barchan_model_complete_start(&c, model, stream_request, strlen(stream_request),
                                                  &watched, on_end, &ended, NULL),
                     0);
    while (!begun && ended == 0)
        barchan_runtime_pump(rt, 10, NULL);
    barchan_completion_cancel(c);
    while (ended == 0)
        barchan_runtime_pump(rt, 10, NULL);
    ck_assert_int_eq(ended, BARCHAN_ECANCELLED);
    ck_assert_ptr_nonnull(strstr(contents(), "\"end\":\"closed\""));
    barchan_model_destroy(model);
    model = player("stall", &o);
    tell(model, stream_request, &s);
    ck_assert_ptr_nonnull(strstr(s.text, "the recording ends here"));
    barchan_model_destroy(model);
    /* Ended while it plays. */
    model = player("stall", &o);
    ended = 0;
    ck_assert_int_eq(barchan_model_complete_start(&c, model, stream_request, strlen(stream_request),
                                                  NULL, on_end, &ended, NULL),
                     0);
    barchan_model_destroy(model);
    ck_assert_int_eq(ended, BARCHAN_ECANCELLED);
    unlink(path);
}
END_TEST

/* ---- files ---- */

static barchan_error refused(const barchan_model_options *given)
{
    barchan_error err = {0};
    barchan_model *model = NULL;
    barchan_model_options o = *given;
    o.struct_size = sizeof o;
    if (o.provider == NULL) o.provider = "anthropic";
    if (o.name == NULL) o.name = "m";
    ck_assert_int_lt(barchan_model_create(&model, rt, &o, &err), 0);
    ck_assert_ptr_null(model);
    return err;
}

START_TEST(files_that_will_not_do)
{
    struct stat st;
    const barchan_model_options o = {.record_path = fresh_path()};
    barchan_model *model = model_with("ok", &o);
    barchan_model_destroy(model);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(refused(&o).code, BARCHAN_EEXISTS);
    ck_assert_int_eq(refused(&(barchan_model_options){.record_path = "/no/such"}).code,
                     BARCHAN_ENOTFOUND);
    barchan_error err =
        refused(&(barchan_model_options){.record_path = "/tmp/x", .replay_path = path});
    ck_assert_ptr_nonnull(strstr(err.message, "exclude each other"));
    err = refused(&(barchan_model_options){.provider = "replay", .record_path = "/tmp/x"});
    ck_assert_ptr_nonnull(strstr(err.message, "has no wire"));
    err = refused(&(barchan_model_options){.provider = "gemini", .replay_path = path});
    ck_assert_ptr_nonnull(strstr(err.message, "recorded with provider 'anthropic'"));
    err = refused(&(barchan_model_options){.provider = "replay", .replay_path = path});
    ck_assert_ptr_nonnull(strstr(err.message, "play it with its own provider"));
    unlink(path);
}
END_TEST

#define HEAD "{\"type\":\"recording\",\"version\":1,\"provider\":\"anthropic\"}\n"
#define EXCHANGE "{\"type\":\"exchange\",\"url\":\"u\",\"request\":\"{}\","

START_TEST(hostile_recordings)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "is empty"},
        {"\n\n", "is empty"},
        {"{\"type\":\"transcript\",\"version\":1}\n", "line 1: it is no recording"},
        {"junk\n", "line 1"},
        {"{\"type\":\"recording\",\"version\":2,\"provider\":\"anthropic\"}", "version 2"},
        {HEAD "{\"type\":\"exchange\"}", "line 2: 'url' must be a string"},
        {HEAD EXCHANGE "\"end\":\"complete\"}", "has a 'status'"},
        {HEAD EXCHANGE "\"end\":\"?\"}", "'end' must be"},
        {HEAD EXCHANGE "\"end\":\"failed\"}", "'error' must have"},
        {HEAD EXCHANGE "\"end\":\"failed\",\"error\":{\"code\":\"ok\",\"message\":\"\"}}",
         "'error' must have"},
        {HEAD EXCHANGE "\"status\":99}", "'status' must be"},
        {HEAD EXCHANGE "\"status\":200}", "'body' must be a string"},
        {HEAD EXCHANGE "\"status\":200,\"body\":\"abc\",\"pieces\":[4]}", "'pieces' must be"},
        {HEAD EXCHANGE "\"status\":200,\"body\":\"abc\",\"pieces\":[0]}", "'pieces' must be"},
        {HEAD EXCHANGE "\"status\":200,\"body\":\"abc\",\"pieces\":[-1]}", "'pieces' must be"},
        {HEAD EXCHANGE "\"status\":200,\"body\":\"\xE2\x82\xAC\",\"encoding\":\"latin1\"}",
         "no byte"},
        {HEAD EXCHANGE "\"status\":200,\"body\":\"\",\"encoding\":\"rot13\"}", "'encoding' must"},
        {HEAD EXCHANGE "\"status\":200,\"headers\":{\"a\":1},\"body\":\"\"}", "'headers' must"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *file = fopen(fresh_path(), "we");
        ck_assert(file != NULL && fputs(cases[i].text, file) >= 0 && fclose(file) == 0);
        barchan_error err = refused(&(barchan_model_options){.replay_path = path});
        ck_assert_msg(strstr(err.message, cases[i].words) != NULL, "%s\n%s", cases[i].text,
                      err.message);
        unlink(path);
    }
}
END_TEST

/* A disk that is full: the answer is not lost, and what follows says why nothing more is asked. */
START_TEST(what_cannot_be_written)
{
    static story s;
    barchan_model_options o = {.record_path = fresh_path()};
    barchan_model *model = model_with("ok", &o);
    struct rlimit before, none = {.rlim_cur = 0};
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    none.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    tell(model, plain_request, &s);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_nonnull(strstr(s.text, "reply {"));
    s.len = 0;
    tell(model, plain_request, &s);
    ck_assert_msg(strstr(s.text, "the recording is not whole: record to /tmp/") != NULL, "%s",
                  s.text);
    barchan_model_destroy(model);
    unlink(path);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {whatever_a_server_says_is_said_again,
                                  each_protocol,
                                  keys_elsewhere,
                                  retries_and_deadlines,
                                  what_was_not_recorded_is_an_error,
                                  given_up,
                                  files_that_will_not_do,
                                  hostile_recordings,
                                  what_cannot_be_written,
                                  NULL};
    return server_suite_run("provider_record", byte_server, tests, 1);
}
