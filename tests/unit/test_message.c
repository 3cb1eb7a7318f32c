/* Requests: what is accepted, what is refused and where, pairing, and when a turn goes back. */
#include "provider/message.h"
#include "provider/json_out.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define CALLS                                                                             \
    "{\"role\":\"assistant\",\"text\":\"\",\"tool_calls\":[{\"id\":\"a\",\"name\":\"f\"," \
    "\"arguments\":{}},"                                                                  \
    "{\"id\":\"b\",\"name\":\"f\",\"arguments\":{\"x\":1}}]}"
#define RESULT(id) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"r\"}"

static bc_call *add_call(bc_reply *reply)
{
    bc_call *call = NULL;
    ck_assert_int_eq(bc_reply_add_call(reply, &call, NULL), 0);
    return call;
}

static barchan_error err;

static int parse(const char *messages)
{
    char text[4096];
    bc_request request;
    snprintf(text, sizeof text, "{\"messages\":[%s]}", messages);
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    if (rc == 0) bc_request_clear(&request);
    return rc;
}

static void refused(const char *messages, const char *where)
{
    ck_assert_msg(parse(messages) == BARCHAN_EINVAL, "%s", messages);
    ck_assert_msg(strstr(err.message, where) != NULL, "%s", err.message);
}

START_TEST(pairing)
{
    ck_assert_int_eq(parse(USER), 0);
    ck_assert_int_eq(parse(USER "," CALLS "," RESULT("a") "," RESULT("b")), 0);
    ck_assert_int_eq(parse(USER "," CALLS "," RESULT("b") "," RESULT("a") "," USER), 0);
    refused(USER "," CALLS, "'a' has no tool message");
    refused(USER "," CALLS "," RESULT("a"), "'b' has no tool message");
    refused(USER "," CALLS "," RESULT("a") "," USER "," RESULT("b"), "'b' has no tool message");
    refused(USER "," CALLS "," RESULT("a") "," RESULT("b") "," RESULT("a"), "more than one");
    refused(USER "," CALLS "," RESULT("a") "," RESULT("b") "," RESULT("c"), "messages[4]");
    refused(USER "," RESULT("a"), "messages[1]");
    refused(RESULT("a"), "messages[0]");
    refused(USER ",{\"role\":\"assistant\",\"text\":\"x\"}," RESULT("a"), "messages[2]");
    /* Calls that could not be run are answered as well. */
    static const char invalid[] =
        USER ",{\"role\":\"assistant\",\"tool_calls\":[],\"invalid_tool_calls\":"
             "[{\"id\":\"i\",\"name\":\"f\",\"arguments_text\":\"{\",\"error\":\"x\"}]}";
    refused(invalid, "'i' has no tool message");
    char text[1024];
    snprintf(text, sizeof text, "%s,%s", invalid, RESULT("i"));
    ck_assert_int_eq(parse(text), 0);
    refused(
        USER
        ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"name\":\"f\",\"arguments\":{}},"
        "{\"id\":\"a\",\"name\":\"g\",\"arguments\":{}}]}," RESULT("a"),
        "two calls have the id");
}
END_TEST

START_TEST(shapes)
{
    refused("", "empty");
    refused("1", "messages[0]");
    refused("{\"role\":\"system\",\"content\":\"x\"}", "messages[0]: 'role'");
    refused("{\"role\":\"user\"}", "'content'");
    refused("{\"role\":\"user\",\"content\":\"\"}", "'content' is empty");
    refused("{\"role\":\"user\",\"content\":[]}", "'content' is empty");
    refused("{\"role\":\"user\",\"content\":5}", "'content'");
    refused(USER ",{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}",
            "messages[1].content[0]");
    refused("{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"x\"}]}", "media_type");
    refused("{\"role\":\"user\",\"content\":[{\"type\":\"video\"}]}", "\"text\" or \"image\"");
    refused(USER ",{\"role\":\"tool\",\"content\":\"x\"}", "tool_call_id");
    refused(USER ",{\"role\":\"assistant\",\"text\":5}", "'text'");
    refused(USER ",{\"role\":\"assistant\",\"tool_calls\":{}}", "'tool_calls'");
    refused(USER ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"name\":\"f\","
                 "\"arguments\":\"{}\"}]}",
            "'arguments'");
    refused(
        USER
        ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"\",\"name\":\"f\",\"arguments\":{}}]}",
        "'id'");
}
END_TEST

static int parse_whole(const char *text)
{
    bc_request request;
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    if (rc == 0) bc_request_clear(&request);
    return rc;
}

START_TEST(settings)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"messages\":{}}",
        "{\"messages\":[" USER "],\"tols\":[]}",
        "{\"messages\":[" USER "],\"system\":5}",
        "{\"messages\":[" USER "],\"max_tokens\":-1}",
        "{\"messages\":[" USER "],\"tool_choice\":\"always\"}",
        "{\"messages\":[" USER "],\"stop\":\"x\"}",
        "{\"messages\":[" USER "],\"temperature\":\"hot\"}",
        "{\"messages\":[" USER "],\"stream\":1}",
        "{\"messages\":[" USER "],\"extra\":[]}",
        "{\"messages\":[" USER "],\"parallel_tool_calls\":\"no\"}",
        "{\"messages\":[" USER "],\"max_tokens\":\"5\"}",
        "{\"messages\":[" USER "],\"stop\":[1]}",
        "{\"messages\":[" USER "],\"tools\":{}}",
        "{\"messages\":[" USER "],\"tools\":[{\"name\":\"\"}]}",
        "{\"messages\":[" USER "],\"tools\":[{\"name\":\"f\",\"parameters\":\"x\"}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(parse_whole(bad[i]) == BARCHAN_EINVAL, "%s", bad[i]);
        ck_assert_int_eq(err.code, BARCHAN_EINVAL);
    }
    bc_request r;
    static const char good[] =
        "{\"system\":\"s\",\"messages\":[" USER
        "],\"tools\":[{\"name\":\"f\",\"description\":\"d\","
        "\"parameters\":{\"type\": \"object\"}},{\"name\":\"g\"}],\"tool_choice\":{\"name\":\"g\"},"
        "\"parallel_tool_calls\":false,\"max_tokens\":5,\"temperature\":0.10,\"stop\":[\"x\"],"
        "\"stream\":true,\"extra\":{\"top_k\":4}}";
    ck_assert_int_eq(bc_request_parse(&r, good, sizeof good - 1, &err), 0);
    ck_assert_str_eq(r.system, "s");
    ck_assert_uint_eq(r.tool_count, 2);
    ck_assert_mem_eq(r.tools[0].parameters.data, "{\"type\": \"object\"}", 18);
    ck_assert_mem_eq(r.tools[1].parameters.data, "{\"type\":\"object\"", 16);
    ck_assert_ptr_null(r.tools[1].description);
    ck_assert_int_eq(r.choice, BC_CHOICE_NAMED);
    ck_assert_str_eq(r.choice_name, "g");
    ck_assert_int_eq(r.parallel, 0);
    ck_assert_int_eq((int)r.max_tokens, 5);
    ck_assert_mem_eq(r.temperature.data, "0.10", 4);
    ck_assert_int_eq(r.stream, 1);
    ck_assert_uint_eq(r.extra.len, 11);
    bc_request_clear(&r);
    /* Nulls are as good as absent. */
    ck_assert_int_eq(parse_whole("{\"messages\":[" USER
                                 "],\"system\":null,\"tools\":null,\"stop\":null,"
                                 "\"tool_choice\":null,\"max_tokens\":null,\"extra\":null}"),
                     0);
}
END_TEST

/* ---- echo ---- */

static const bc_origin origin = {"anthropic", "m", "https://h"};

/* A reply with one call, as it leaves the library. */
static json_t *rendered_reply(void)
{
    bc_reply reply;
    bc_buf out;
    bc_reply_init(&reply, NULL, NULL);
    bc_buf_init(&out, 1 << 20);
    bc_reply_text(&reply, (bc_json_span){"hello \xE2\x82\xAC", 9});
    bc_call *call = add_call(&reply);
    bc_buf_append_string(&call->id, "id1");
    bc_buf_append_string(&call->name, "f");
    bc_buf_append_string(&call->arguments,
                         "{\"b\":1.50,\"a\":[1e2,-0,18446744073709551616,\"\\ud83d\"]}");
    reply.stop = BC_STOP_TOOL_USE;
    ck_assert_int_eq(bc_reply_finish(&reply, NULL), 0);
    bc_buf_append_string(&reply.turn, "{\"role\":\"assistant\",\"content\":[\"\\ud83d\",0.10]}");
    ck_assert_int_eq(bc_reply_render(&reply, &origin, &out, NULL), 0);
    json_t *view = NULL;
    ck_assert_int_eq(bc_json_view(&view, bc_buf_data(&out), out.len, BC_JSON_UNIQUE_KEYS, &err), 0);
    bc_reply_clear(&reply);
    bc_buf_clear(&out);
    return view;
}

/* Sends the message through another JSON library and asks whether its turn may go back. */
static int goes_back(json_t *message, const bc_origin *to, bc_buf *turn)
{
    char *text = json_dumps(message, JSON_SORT_KEYS | JSON_ENSURE_ASCII | JSON_INDENT(2));
    bc_message m = {.role = BC_ROLE_ASSISTANT, .text = {text, strlen(text)}};
    json_t *view = NULL;
    ck_assert_int_eq(bc_json_view(&view, text, strlen(text), 0, NULL), 0);
    m.view = view;
    int rc = bc_message_raw(&m, to, turn, &err);
    json_decref(view);
    free(text);
    return rc;
}

START_TEST(an_unedited_turn_goes_back_verbatim)
{
    json_t *message = rendered_reply();
    bc_buf turn;
    bc_buf_init(&turn, 1 << 20);
    ck_assert_int_eq(goes_back(message, &origin, &turn), 1);
    ck_assert_str_eq(bc_buf_data(&turn), "{\"role\":\"assistant\",\"content\":[\"\\ud83d\",0.10]}");
    static const bc_origin others[] = {{"openai", "m", "https://h"},
                                       {"anthropic", "n", "https://h"},
                                       {"anthropic", "m", "https://i"}};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(goes_back(message, &others[i], &turn), 0);
    json_decref(message);
    bc_buf_clear(&turn);
}
END_TEST

START_TEST(an_edited_view_drops_the_turn)
{
    bc_buf turn;
    bc_buf_init(&turn, 1 << 20);
    for (int edit = 0; edit < 7; edit++) {
        json_t *message = rendered_reply();
        json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
        json_t *raw = json_object_get(message, "raw");
        if (edit == 0) json_object_set_new(message, "text", json_string("hello"));
        if (edit == 1) json_array_clear(json_object_get(message, "tool_calls"));
        if (edit == 2)
            json_object_set_new(json_object_get(call, "arguments"), "b", json_real(1.25));
        if (edit == 3) json_object_set_new(call, "id", json_string("id2"));
        if (edit == 4) json_object_set_new(call, "name", json_string("g"));
        if (edit == 5) json_object_set_new(raw, "turn", json_string("{\"role\":"));
        if (edit == 6) json_object_del(message, "raw");
        ck_assert_int_eq(goes_back(message, &origin, &turn), 0);
        ck_assert_uint_eq(turn.len, 0);
        json_decref(message);
    }
    /* What is no part of the view may change. */
    json_t *message = rendered_reply();
    json_object_set_new(message, "usage", json_object());
    json_object_set_new(message, "note", json_string("mine"));
    ck_assert_int_eq(goes_back(message, &origin, &turn), 1);
    json_decref(message);
    bc_buf_clear(&turn);
}
END_TEST

/* ---- the rules for calls ---- */

static const bc_call *finished(bc_reply *reply, const char *name, const char *arguments,
                               bc_stop stop)
{
    bc_reply_clear(reply);
    bc_reply_init(reply, NULL, NULL);
    bc_call *call = add_call(reply);
    bc_buf_append_string(&call->id, "id1");
    bc_buf_append_string(&call->name, name);
    bc_buf_append_string(&call->arguments, arguments);
    reply->stop = stop;
    ck_assert_int_eq(bc_reply_finish(reply, &err), 0);
    return &reply->calls[0];
}

START_TEST(only_sound_calls_may_be_run)
{
    bc_reply r;
    bc_reply_init(&r, NULL, NULL);
    static const char *const empty[] = {"", " \n", "null", "{}", " {} "};
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(finished(&r, "f", empty[i], BC_STOP_TOOL_USE)->error, "");
    }
    ck_assert_str_eq(bc_buf_data(&finished(&r, "f", "null", BC_STOP_TOOL_USE)->arguments), "{}");
    static const char *const bad[] = {"{",      "[]",
                                      "\"{}\"", "5",
                                      "{}{}",   "{\"a\":1,\"a\":2}",
                                      "{a:1}",  "{\"a\":\"\n\"}",
                                      "{}}",    "{\"a\":1e999}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const bc_call *call = finished(&r, "f", bad[i], BC_STOP_TOOL_USE);
        ck_assert_msg(call->error[0] != '\0', "%s", bad[i]);
        ck_assert_str_eq(bc_buf_data(&call->arguments), bad[i]);
        ck_assert_int_eq(r.stop, BC_STOP_TOOL_USE); /* it must be answered */
    }
    char long_name[200];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *const names[] = {"", "a b", "a\n", "../x", "caf\xC3\xA9", long_name};
    for (int i = 0; i < 6; i++) {
        ck_assert_str_ne(finished(&r, names[i], "{}", BC_STOP_TOOL_USE)->error, "");
    }
    static const bc_stop cut[] = {BC_STOP_MAX_TOKENS, BC_STOP_REFUSAL, BC_STOP_CONTENT_FILTER,
                                  BC_STOP_CONTEXT_WINDOW, BC_STOP_ERROR};
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_nonnull(strstr(finished(&r, "f", "{}", cut[i])->error, "not run"));
        ck_assert_int_eq(r.stop, cut[i]);
    }
    /* The calls decide, not the label. */
    finished(&r, "f", "{}", BC_STOP_END_TURN);
    ck_assert_int_eq(r.stop, BC_STOP_TOOL_USE);
    bc_reply_clear(&r);
    bc_reply_init(&r, NULL, NULL);
    r.stop = BC_STOP_TOOL_USE;
    ck_assert_int_eq(bc_reply_finish(&r, NULL), 0);
    ck_assert_int_eq(r.stop, BC_STOP_END_TURN);
    bc_reply_clear(&r);
}
END_TEST

START_TEST(ids_are_made_and_unique)
{
    bc_reply r;
    bc_reply_init(&r, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        bc_call *call = add_call(&r);
        bc_buf_append_string(&call->name, "f");
        if (i % 3 == 0) bc_buf_append_string(&call->id, "same");
    }
    ck_assert_int_eq(bc_reply_finish(&r, NULL), 0);
    for (size_t i = 0; i < r.call_count; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(bc_buf_data(&r.calls[i].id), bc_buf_data(&r.calls[j].id));
        }
        if (i > 0) ck_assert_uint_eq(r.calls[i].id.len, 9);
        ck_assert_int_eq(r.calls[i].made_id, i > 0);
    }
    bc_reply nul;
    bc_reply_init(&nul, NULL, NULL);
    bc_call *with_nul = add_call(&nul);
    bc_buf_append(&with_nul->id, "a\0b", 3);
    bc_buf_append_string(&with_nul->name, "f");
    ck_assert_int_eq(bc_reply_finish(&nul, NULL), 0);
    ck_assert_uint_eq(strlen(bc_buf_data(&nul.calls[0].id)), 9);
    bc_reply_clear(&nul);
    while (r.call_count < BC_MODEL_MAX_TOOL_CALLS)
        add_call(&r);
    bc_call *one_more;
    ck_assert_int_eq(bc_reply_add_call(&r, &one_more, &err), BARCHAN_ELIMIT);
    ck_assert_int_eq(err.code, BARCHAN_ELIMIT);
    bc_reply_clear(&r);
}
END_TEST

UNIT_MAIN("message", pairing, shapes, settings, an_unedited_turn_goes_back_verbatim,
          an_edited_view_drops_the_turn, only_sound_calls_may_be_run, ids_are_made_and_unique)
