/* The Chat Completions adapter: the tool calls that its many servers send, and the turns that go
 * back. The numbers are those of the quirks in core/provider/README.md. */
#include <stdio.h>
#include <stdlib.h>
#include "openai_answers.h"

/* The calls as "id:name:arguments" joined by spaces; "!" before those that may not be run. */
static const char *calls_of(const char *text)
{
    static char out[2048];
    json_t *r = reply_of(1, text);
    out[0] = '\0';
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(r, lists[list]), i, call)
        {
            char *arguments = json_dumps(json_object_get(call, "arguments"), JSON_COMPACT);
            const char *shown = list == 0 ? arguments : get(call, "arguments_text");
            size_t at = strlen(out);
            snprintf(out + at, sizeof out - at, "%s%s%s:%s:%s", at > 0 ? " " : "",
                     list == 0 ? "" : "!", get(call, "id"), get(call, "name"), shown);
            free(arguments);
        }
    }
    json_decref(r);
    return out;
}

START_TEST(calls_in_pieces)
{
    /* As it should be. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":"
                  "\"f\",\"arguments\":\"\"}}")
                CALLS(
                    "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}")
                    CALLS("{\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":\"}}") CALLS(
                        "{\"index\":0,\"function\":{\"arguments\":\"1}\"}}") END("\"tool_calls\"")),
        "a:f:{\"x\":1} b:g:{}");
    /* Q1: arguments as an object. Q2: blank or null. Q7: no type. Q23: several at once. */
    ck_assert_str_eq(
        calls_of(CALLS(
            "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":[1]}}},"
            "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}},"
            "{\"index\":2,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":null}},"
            "{\"index\":3,\"id\":\"d\",\"function\":{\"name\":\"f\"}},"
            "{\"index\":4,\"id\":\"e\",\"function\":{\"name\":\"f\",\"arguments\":\"null\"}}")
                     END("\"tool_calls\"")),
        "a:f:{\"x\":[1]} b:f:{} c:f:{} d:f:{} e:f:{}");
    /* Q3: no index. By id; then the last one; by position when several come together. */
    ck_assert_str_eq(
        calls_of(CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}")
                     CALLS("{\"function\":{\"arguments\":\":1}\"}}")
                         CALLS("{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                             END("\"tool_calls\"")),
        "a:f:{\"x\":1} b:f:{}");
    ck_assert_str_eq(
        calls_of(CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},"
                       "{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}")
                     CALLS("{\"function\":{\"arguments\":\"}\"}},{\"function\":{\"arguments\":"
                           "\"\\\"y\\\":2}\"}}") END("null")),
        "a:f:{} b:g:{\"y\":2}");
    /* Q4: every call has index 0. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                CALLS("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
                      "\\\"x\\\":\"}}") CALLS("{\"index\":0,\"function\":{\"arguments\":\"2}\"}}")
                    END("\"tool_calls\"")),
        "a:f:{} b:f:{\"x\":2}");
    /* Q5: indexes with gaps. Q24: the name late, again, and growing. */
    ck_assert_str_eq(
        calls_of(CALLS("{\"index\":7,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}")
                     CALLS("{\"index\":7,\"function\":{\"name\":\"f\"}}") CALLS(
                         "{\"index\":3,\"id\":\"b\",\"function\":{\"name\":\"ge\"}}")
                         CALLS("{\"index\":3,\"function\":{\"name\":\"get\"}}") CALLS(
                             "{\"index\":3,\"function\":{\"name\":\"get\",\"arguments\":\"{}\"}}")
                             END("\"stop\"")),
        "a:f:{} b:get:{}");
    ck_assert_str_eq(calls_of(CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"get_\"}}")
                                  CALLS("{\"index\":0,\"function\":{\"name\":\"time\"}}")
                                      CALLS("{\"index\":0,\"function\":{\"arguments\":\"{}\"}}")
                                          END("\"stop\"")),
                     "a:get_time:{}");
    /* A name repeated to the end makes no call of its own; with other arguments it does. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                CALLS("{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
                    END("\"stop\"")),
        "a:f:{}");
    const char *two = calls_of(
        CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
            CALLS("{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"y\\\":1}\"}}")
                END("\"stop\""));
    ck_assert_ptr_nonnull(strstr(two, "a:f:{} "));
    ck_assert_ptr_nonnull(strstr(two, ":f:{\"y\":1}"));
    /* Q6: empty ids and names overwrite nothing; the id may come late. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}")
                CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"\",\"arguments\":\"\"}}")
                    CALLS("{\"index\":0,\"id\":null,\"function\":{\"name\":null,\"arguments\":\"}"
                          "\"}}") END("\"stop\"")),
        "a:f:{}");
    /* Q22: what does not parse is not run, and neither is a call without a name. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}{}\"}},"
                  "{\"index\":1,\"id\":\"b\",\"function\":{\"arguments\":\"{}\"}}")
                END("\"tool_calls\"")),
        "!a:f:{}{} !b::{}");
    /* length wins over the calls. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                END("\"length\"")),
        "!a:f:{}");
    /* The old form, which has no id. */
    const char *old =
        calls_of(CHUNK("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}")
                     CHUNK("{\"function_call\":{\"arguments\":\":1}\"}}") END("\"function_call\""));
    ck_assert_uint_eq(strcspn(old, ":"), 9);
    ck_assert_str_eq(old + 9, ":f:{\"x\":1}");
}
END_TEST

static const char *turn_of(int stream, const char *text)
{
    static char out[2048];
    json_t *r = reply_of(stream, text);
    snprintf(out, sizeof out, "%s", get(bc_json_get_object(r, "raw"), "turn"));
    json_decref(r);
    return out;
}

START_TEST(turns_go_back)
{
    ck_assert_str_eq(turn_of(0, "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":"
                                "\"a\\u00e9\\/\",\"annotations\":[],"
                                "\"refusal\":null},\"finish_reason\":\"stop\"}]}"),
                     "{\"role\":\"assistant\",\"content\":\"a\\u00e9\\/\"}");
    /* Arguments as they came; an object as a string (Q1); junk as {} (Q22); signatures stay;
     * reasoning goes back with calls, under its own name (Q20). */
    ck_assert_str_eq(
        turn_of(0, "{\"choices\":[{\"message\":{\"content\":\"\",\"reasoning_content\":\"hm\","
                   "\"tool_calls\":["
                   "{\"id\":\"a\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"f\","
                   "\"arguments\":\"{\\\"x\\\": 1.0}\"},"
                   "\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}},"
                   "{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":0.10}}},"
                   "{\"id\":\"c\",\"function\":{\"name\":\"f "
                   "g\",\"arguments\":\"{\"}}]},\"finish_reason\":\"tool_calls\"}]}"),
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":["
        "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
        "\\\"x\\\": 1.0}\"},"
        "\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}},"
        "{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
        "\\\"x\\\":0.10}\"}},"
        "{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f_g\",\"arguments\":\"{}\"}}]"
        "}");
    ck_assert_str_eq(turn_of(0, "{\"choices\":[{\"message\":{\"content\":\"x\",\"reasoning_"
                                "content\":\"hm\"},\"finish_reason\":\"stop\"}]}"),
                     "{\"role\":\"assistant\",\"content\":\"x\"}");
    ck_assert_str_eq(
        turn_of(1,
                CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
                    END("\"stop\"")),
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":"
        "\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}");
}
END_TEST

START_TEST(reasoning_details_are_joined)
{
    static const char stream[] = CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\","
                                       "\"text\":\"a\\u00e9\",\"index\":0,\"format\":\"f\"}]}")
        CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"b\",\"index\":0}]}")
            CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"signature\":\"s\","
                  "\"index\":0}]}") CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\","
                                          "\"text\":\"c\",\"index\":1,\"signature\":null},"
                                          "{\"type\":\"reasoning.encrypted\",\"data\":\"d\"},{"
                                          "\"type\":\"reasoning.encrypted\",\"data\":\"e\"}]}")
                CALLS(
                    "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                    END("\"tool_calls\"");
    ck_assert_ptr_nonnull(
        strstr(turn_of(1, stream),
               "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"a\\u00e9b\","
               "\"index\":0,\"format\":\"f\",\"signature\":\"s\"},"
               "{\"type\":\"reasoning.text\",\"text\":\"c\",\"index\":1,\"signature\":null},"
               "{\"type\":\"reasoning.encrypted\",\"data\":\"d\"},{\"type\":\"reasoning."
               "encrypted\",\"data\":\"e\"}]"));
    /* A whole answer's elements stay apart. */
    ck_assert_ptr_nonnull(
        strstr(turn_of(0, "{\"choices\":[{\"message\":{\"reasoning_details\":[{\"type\":"
                          "\"reasoning.text\",\"text\":\"a\"},"
                          "{\"type\":\"reasoning.text\",\"text\":\"b\"}],\"tool_calls\":[{\"id\":"
                          "\"a\",\"function\":{\"name\":\"f\"}}]},"
                          "\"finish_reason\":\"tool_calls\"}]}"),
               "[{\"type\":\"reasoning.text\",\"text\":\"a\"},{\"type\":\"reasoning.text\","
               "\"text\":\"b\"}]"));
}
END_TEST

UNIT_MAIN("openai_calls", calls_in_pieces, turns_go_back, reasoning_details_are_joined)
