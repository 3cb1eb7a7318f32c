/* What a model remembers of a conversation changes no byte of what it sends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "provider/history.h"
#include "suite.h"

enum { MAX_LEN = 60, CONVERSATIONS = 6, STEPS = 400, ROUNDS = 8, MESSAGE_BYTES = 6000 };

static const struct target {
    const bc_provider *provider;
    const char *name, *base_url, *body; /* an answer of its own, with a call */
} targets[] = {
    {&bc_provider_anthropic, "m", "https://h",
     "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},{\"type\":"
     "\"tool_use\",\"id\":\"own\",\"name\":\"f\",\"input\":{\"a\": 1.0}}],"
     "\"stop_reason\":\"tool_use\"}"},
    {&bc_provider_openai, "m", "https://api.mistral.ai/v1",
     "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"own\",\"function\":{\"name\":\"f\","
     "\"arguments\":\"{\\\"a\\\": 1.0}\"}}]},\"finish_reason\":\"tool_calls\"}]}"},
    {&bc_provider_openai_responses, "m", "https://h/v1",
     "{\"status\":\"completed\",\"output\":[{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[]},"
     "{\"type\":\"function_call\",\"call_id\":\"own\",\"name\":\"f\",\"arguments\":\"{}\"}]}"},
    {&bc_provider_gemini, "gemini-3-pro", "https://h",
     "{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"id\":"
     "\"own\",\"name\":\"f\",\"args\":{}},\"thoughtSignature\":\"t\"}]},\"finishReason\":\"STOP\""
     "}]}"},
    {&bc_provider_gemini, "gemini-2.5-pro", "https://h",
     "{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":"
     "\"f\",\"args\":{}}}]},\"finishReason\":\"STOP\"}]}"},
};
enum { TARGETS = sizeof targets / sizeof *targets };

static char *own_turns[TARGETS];
static unsigned long seed = 1;

static unsigned below(unsigned n)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(seed >> 33) % n;
}

typedef struct conversation {
    char messages[MAX_LEN][MESSAGE_BYTES];
    int len;
    int marked, spaced, with_system, with_tools; /* of the request around them */
} conversation;

static conversation talks[CONVERSATIONS];

static void make_own_turns(void)
{
    barchan_error err;
    for (int i = 0; i < TARGETS; i++) {
        bc_reply reply;
        bc_buf out;
        bc_reply_init(&reply, NULL, NULL);
        bc_buf_init(&out, 1 << 20);
        void *reader = targets[i].provider->reader_create(&reply);
        bc_json_span body = {targets[i].body, strlen(targets[i].body)};
        ck_assert_int_eq(targets[i].provider->body(reader, body, &err), 0);
        bc_origin origin = {targets[i].provider->name, targets[i].name, targets[i].base_url};
        ck_assert_int_eq(bc_reply_render(&reply, &origin, &out, &err), 0);
        targets[i].provider->reader_destroy(reader);
        bc_reply_clear(&reply);
        own_turns[i] = bc_buf_take(&out, NULL);
        ck_assert_uint_lt(strlen(own_turns[i]), MESSAGE_BYTES);
    }
}

/* ---- conversations that grow, and are changed as people and agents change them ---- */

static void __attribute__((format(printf, 2, 3))) say(conversation *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (c->len < MAX_LEN) vsnprintf(c->messages[c->len++], MESSAGE_BYTES, format, args);
    va_end(args);
}

static void answer_calls(conversation *c, const char *id)
{
    static const char *const contents[] = {
        "\"r\"", "\"\"", "[{\"type\":\"image\",\"media_type\":\"image/png\",\"data\":\"AA==\"}]",
        "\" \\n\",\"is_error\":true", "\"a longer result, with \\u00e9 and \\\" in it\""};
    if (c->len < MAX_LEN) {
        snprintf(c->messages[c->len++], MESSAGE_BYTES,
                 "{\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":%s}", id,
                 contents[below(5)]);
    }
}

static void grow(conversation *c)
{
    char id[32];
    if (c->len + 4 > MAX_LEN) c->len = 1;
    if (c->len == 0) say(c, "{\"role\":\"user\",\"content\":\"question %4500u\"}", below(1000));
    switch (below(6)) {
    case 0: say(c, "{\"role\":\"assistant\",\"text\":\"answer %u\"}", below(1000)); break;
    case 1: say(c, "%s", "{\"role\":\"assistant\",\"text\":\"\"}"); break;
    case 2:
        say(c,
            "{ \"role\" : \"assistant\" , \"text\":\"I look\",\"tool_calls\":[{\"id\":\"c%u\","
            "\"name\":\"f\",\"arguments\":{\"n\": 1e2}}]}",
            (unsigned)c->len);
        snprintf(id, sizeof id, "c%u", (unsigned)c->len - 1);
        answer_calls(c, id);
        break;
    case 3:
        snprintf(c->messages[c->len++], MESSAGE_BYTES, "%s", own_turns[below(TARGETS)]);
        answer_calls(c, strstr(c->messages[c->len - 1], "\"id\":\"own\"") != NULL ? "own" : "?");
        break;
    default: break;
    }
    if (below(3) == 0) say(c, "{\"role\":\"user\",\"content\":\"more %u\"}", below(1000));
}

static void change(conversation *c)
{
    unsigned what = below(24);
    if (what == 0 && c->len > 1) c->len = 1 + (int)below((unsigned)c->len - 1);
    if (what == 1 && c->len > 0) {
        snprintf(c->messages[below((unsigned)c->len)], MESSAGE_BYTES,
                 "{\"role\":\"user\",\"content\":\"edited %u\"}", below(1000));
    }
    if (what == 2) *c = talks[below(CONVERSATIONS)]; /* a branch */
    if (what == 3) c->marked = !c->marked;
    if (what == 4) c->spaced = !c->spaced;
    if (what == 5) c->with_system = (int)below(3);
    if (what == 6) c->with_tools = !c->with_tools;
}

static void write_request(const conversation *c, bc_buf *text)
{
    static const char *const systems[] = {"", ",\"system\":\"s\"", ",\"system\":\"other\""};
    /* A later member of the same name takes its place. */
    static const char *const again[] = {",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]",
                                        ",\"messages\":[{\"role\":\"assistant\",\"text\":\"x\"},{"
                                        "\"role\":\"user\",\"content\":\"y\"}]"};
    const char *blank = c->spaced ? " \n" : "";
    bc_buf_reset(text);
    bc_buf_appendf(text, "{%s%s\"stream\":true,\"messages\":[%s", blank,
                   c->marked ? "\"cache\":true," : "", blank);
    for (int i = 0; i < c->len; i++) {
        bc_buf_appendf(text, "%s%s%s%s", i > 0 ? "," : "", i % 3 == 1 ? blank : "", c->messages[i],
                       i % 2 == 1 ? blank : "");
    }
    bc_buf_appendf(text, "]%s%s%s%s}", blank, systems[c->with_system],
                   c->with_tools ? ",\"tools\":[{\"name\":\"f\"}]" : "",
                   below(40) == 0 ? again[below(2)] : "");
}

/* ---- the two ways ---- */

static size_t settled; /* messages that were not read again */

static int by_history(bc_history *history, const struct target *to, const bc_buf *text,
                      bc_buf *body, barchan_error *err)
{
    bc_request request;
    bc_model_info model = {.name = to->name, .base_url = to->base_url};
    int rc = bc_history_read(history, &request, bc_buf_data(text), text->len, err);
    if (rc < 0) return rc;
    settled += request.settled_count;
    rc = bc_history_render(history, to->provider, &model, &request, body, err);
    bc_request_clear(&request);
    return rc;
}

static int anew(const struct target *to, const bc_buf *text, bc_buf *body, barchan_error *err)
{
    bc_request request;
    bc_model_info model = {.name = to->name, .base_url = to->base_url};
    int rc = bc_request_parse(&request, bc_buf_data(text), text->len, err);
    if (rc < 0) return rc;
    rc = to->provider->render(&model, &request, body, err);
    bc_request_clear(&request);
    return rc;
}

static void same(const bc_buf *got, const bc_buf *want, const struct target *to)
{
    enum { AROUND = 150 };
    const char *a = bc_buf_data(got), *b = bc_buf_data(want);
    size_t at = 0;
    while (at < got->len && at < want->len && a[at] == b[at])
        at++;
    if (at == got->len && at == want->len) return;
    size_t from = at > AROUND ? at - AROUND : 0;
    ck_abort_msg("%s: %.300s\nis not %.300s", to->provider->name, a + from, b + from);
}

/* Each change is followed by growth that begins with what is left. Returns what was accepted. */
static int run(const struct target *to)
{
    bc_history history;
    int accepted = 0;
    bc_history_init(&history);
    memset(talks, 0, sizeof talks);
    for (int step = 0; step < STEPS; step++) {
        conversation *c = &talks[below(below(4) == 0 ? CONVERSATIONS : 2)];
        barchan_error err = {0}, wanted = {0};
        cleanup_buf bc_buf text, got, want;
        bc_buf_init(&text, 1 << 24);
        bc_buf_init(&got, 1 << 24);
        bc_buf_init(&want, 1 << 24);
        change(c);
        grow(c);
        write_request(c, &text);
        int rc = by_history(&history, to, &text, &got, &err);
        REQUIRE(anew(to, &text, &want, &wanted) == rc);
        if (rc < 0) {
            ck_assert_str_eq(err.message, wanted.message);
            c->len = 0;
            continue;
        }
        accepted++;
        same(&got, &want, to);
    }
    bc_history_clear(&history);
    return accepted;
}

START_TEST(no_byte_changes)
{
    make_own_turns();
    for (int i = 0; i < TARGETS; i++) {
        settled = 0;
        for (int round = 0; round < ROUNDS; round++) {
            seed = (unsigned long)(round + 1);
            int accepted = run(&targets[i]);
            ck_assert_int_gt(accepted, STEPS / 3);
        }
        ck_assert_uint_gt(settled, ROUNDS * STEPS); /* or nothing was shown */
    }
    for (int i = 0; i < TARGETS; i++)
        free(own_turns[i]);
}
END_TEST

static size_t kept_bytes(const bc_history *history)
{
    size_t total = 0;
    for (int i = 0; i < BC_MODEL_KEPT_CONVERSATIONS; i++) {
        total += history->conversations[i].text.len + history->conversations[i].rendered.len;
    }
    return total;
}

/* What is large goes out as ever, and is not kept. */
START_TEST(what_is_kept_is_bounded)
{
    static const char *const fillers[] = {"a", "b", "c", "d", "e", "f"};
    static const size_t sizes[] = {100, BC_MODEL_MAX_KEPT_BYTES / 5, BC_MODEL_MAX_KEPT_BYTES};
    bc_history history;
    barchan_error err;
    bc_history_init(&history);
    for (int size = 0; size < 3; size++) {
        for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
            cleanup_buf bc_buf text, got;
            bc_buf_init(&text, BC_JSON_MAX_BYTES);
            bc_buf_init(&got, BC_JSON_MAX_BYTES);
            bc_buf_append_string(&text, "{\"messages\":[{\"role\":\"user\",\"content\":\"");
            char *filler = bc_buf_reserve(&text, sizes[size]);
            memset(filler, *fillers[i], sizes[size]);
            bc_buf_commit(&text, sizes[size]);
            bc_buf_append_string(&text, "\"}]}");
            ck_assert_int_eq(by_history(&history, &targets[0], &text, &got, &err), 0);
            ck_assert_uint_gt(got.len, sizes[size]);
            ck_assert_uint_le(kept_bytes(&history), BC_MODEL_MAX_KEPT_BYTES);
            if (size < 2) ck_assert_int_eq(kept_bytes(&history) > 0, size > 0);
        }
    }
    bc_history_clear(&history);
    ck_assert_uint_eq(kept_bytes(&history), 0);
}
END_TEST

UNIT_MAIN("history", no_byte_changes, what_is_kept_is_bounded)
