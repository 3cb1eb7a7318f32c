#include "base/json_view.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

static json_t *view_of(const char *text)
{
    json_t *view = NULL;
    barchan_error err;
    int rc = bc_json_view(&view, text, strlen(text), 0, &err);
    ck_assert_msg(rc == 0, "%s: %s", text, rc < 0 ? err.message : "");
    return view;
}

START_TEST(a_view_has_what_the_text_has)
{
    static const char text[] =
        "{\"s\":\"a\\u0000b\",\"i\":-7,\"r\":0.5,\"t\":true,\"f\":false,\"n\":null,"
        "\"a\":[1,[],{}],\"o\":{\"x\":{\"y\":[[2]]}},\"\\u0000k\":1,\"big\":18446744073709551616}";
    json_t *view = NULL;
    ck_assert_int_eq(bc_json_view(&view, text, sizeof text - 1, BC_JSON_UNIQUE_KEYS, NULL), 0);
    size_t len;
    ck_assert_mem_eq(bc_json_get_string(view, "s", &len), "a\0b", 3);
    ck_assert_uint_eq(len, 3);
    ck_assert_int_eq(bc_json_get_integer(view, "i", 0), -7);
    ck_assert(json_real_value(json_object_get(view, "r")) == 0.5);
    ck_assert(json_is_true(json_object_get(view, "t")) &&
              json_is_false(json_object_get(view, "f")));
    ck_assert(json_is_null(json_object_get(view, "n")));
    ck_assert_uint_eq(json_array_size(bc_json_get_array(view, "a")), 3);
    ck_assert(json_is_real(json_object_get(view, "big")));
    ck_assert_uint_eq(json_object_size(view), 10);
    const json_t *y = json_object_get(bc_json_get_object(bc_json_get_object(view, "o"), "x"), "y");
    ck_assert_int_eq((int)json_integer_value(json_array_get(json_array_get(y, 0), 0)), 2);
    ck_assert_ptr_nonnull(json_object_getn(view, "\0k", 2));
    json_decref(view);
}
END_TEST

START_TEST(invalid_text_is_repaired)
{
    json_t *view = view_of("{\"a\":\"\\ud83d\",\"b\xFF\":\"\xE2\x82\"}");
    ck_assert_str_eq(bc_json_get_string(view, "a", NULL), "\xEF\xBF\xBD");
    ck_assert_str_eq(bc_json_get_string(view, "b\xEF\xBF\xBD", NULL), "\xEF\xBF\xBD\xEF\xBF\xBD");
    json_decref(view);
}
END_TEST

START_TEST(repeated_keys)
{
    json_t *view = view_of("{\"a\":1,\"a\":{\"b\":2}}");
    ck_assert_int_eq(bc_json_get_integer(bc_json_get_object(view, "a"), "b", 0), 2);
    json_decref(view);
    view = NULL;
    barchan_error err;
    static const char *const repeated[] = {"{\"a\":1,\"a\":2}", "[{\"x\":{\"a\":1,\"\\u0061\":1}}]",
                                           "{\"\xFF\":1,\"\xFE\":1}"};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            bc_json_view(&view, repeated[i], strlen(repeated[i]), BC_JSON_UNIQUE_KEYS, &err),
            BARCHAN_EPROTOCOL);
        ck_assert_ptr_null(view);
    }
    ck_assert_int_eq(
        bc_json_view(&view, "{\"a\":{\"a\":1},\"b\":{\"a\":1}}", 25, BC_JSON_UNIQUE_KEYS, &err), 0);
    json_decref(view);
}
END_TEST

START_TEST(sizes_are_bounded)
{
    json_t *view = NULL;
    barchan_error err;
    size_t len = 2 * (size_t)BC_JSON_MAX_NODES + 3;
    char *text = malloc(len);
    for (size_t i = 0; i < len; i++)
        text[i] = i % 2 ? '0' : ',';
    text[0] = '[';
    text[len - 1] = ']';
    ck_assert_int_eq(bc_json_view(&view, text, len, 0, &err), BARCHAN_ELIMIT);
    text[len - 1 - 4] = ']';
    ck_assert_int_eq(bc_json_view(&view, text, len - 4, 0, &err), 0);
    json_decref(view);
    free(text);
    view = NULL;
    ck_assert_int_eq(bc_json_view(&view, "", (size_t)BC_JSON_MAX_BYTES + 1, 0, &err),
                     BARCHAN_ELIMIT);
    ck_assert_ptr_null(view);
}
END_TEST

START_TEST(getters_are_tolerant)
{
    json_t *v =
        view_of("{\"i\":5,\"r\":5.9,\"s\":\"17\",\"bad\":\"17x\",\"n\":null,\"huge\":1e300,"
                "\"low\":-1e300,\"t\":true,\"one\":1,\"two\":2,\"word\":\"false\",\"list\":[],"
                "\"empty\":\"\",\"over\":\"99999999999999999999\",\"long\":12345678901234567}");
    char scratch[BC_JSON_LABEL_BYTES];
    ck_assert_int_eq(bc_json_get_integer(v, "i", -1), 5);
    ck_assert_int_eq(bc_json_get_integer(v, "r", -1), 5);
    ck_assert_int_eq(bc_json_get_integer(v, "s", -1), 17);
    ck_assert_int_eq(bc_json_get_integer(v, "bad", -1), -1);
    ck_assert_int_eq(bc_json_get_integer(v, "empty", -1), -1);
    ck_assert_int_eq(bc_json_get_integer(v, "over", -1), -1);
    ck_assert_int_eq(bc_json_get_integer(v, "n", -1), -1);
    ck_assert_int_eq(bc_json_get_integer(v, "absent", -1), -1);
    ck_assert_int_eq(bc_json_get_integer(NULL, "i", -1), -1);
    ck_assert(bc_json_get_integer(v, "huge", 0) == INT64_MAX);
    ck_assert(bc_json_get_integer(v, "low", 0) == INT64_MIN);
    ck_assert_int_eq(bc_json_get_boolean(v, "t", 0), 1);
    ck_assert_int_eq(bc_json_get_boolean(v, "one", 0), 1);
    ck_assert_int_eq(bc_json_get_boolean(v, "two", -1), -1);
    ck_assert_int_eq(bc_json_get_boolean(v, "word", 1), 0);
    ck_assert_int_eq(bc_json_get_boolean(v, "list", -1), -1);
    ck_assert_ptr_null(bc_json_get_object(v, "list"));
    ck_assert_ptr_null(bc_json_get_array(v, "t"));
    ck_assert_ptr_null(bc_json_get_string(v, "i", NULL));
    ck_assert_str_eq(bc_json_get_label(v, "long", scratch), "12345678901234567");
    ck_assert_str_eq(bc_json_get_label(v, "s", scratch), "17");
    ck_assert_str_eq(bc_json_get_label(v, "huge", scratch), "");
    ck_assert_str_eq(bc_json_get_label(v, "n", scratch), "");
    json_decref(v);
}
END_TEST

START_TEST(walks_give_keys_and_values)
{
    static const char text[] = "{\"\\u0061\": 1.50 , \"b\":[ ], \"c\":\"x\\n\"}";
    bc_json_iter iter;
    bc_buf out;
    bc_buf_init(&out, 10);
    ck_assert_int_eq(bc_json_iter_init(&iter, (bc_json_span){text, sizeof text - 1}, NULL), 1);
    ck_assert_int_eq(bc_json_iter_next(&iter, NULL), 1);
    ck_assert(bc_json_iter_is(&iter, "a") && !bc_json_iter_is(&iter, "b"));
    ck_assert_mem_eq(iter.value.data, "1.50", 4);
    ck_assert_uint_eq(iter.value.len, 4);
    ck_assert_int_eq(bc_json_iter_next(&iter, NULL), 1);
    ck_assert_int_eq(iter.type, BC_JSON_ARRAY_BEGIN);
    ck_assert_uint_eq(iter.value.len, 3);
    ck_assert_int_eq(bc_json_iter_next(&iter, NULL), 1);
    ck_assert_int_eq(bc_json_span_text(iter.value, &out, NULL), 0);
    ck_assert_str_eq(bc_buf_data(&out), "x\n");
    ck_assert_int_eq(bc_json_iter_next(&iter, NULL), 0);
    ck_assert_int_eq(bc_json_iter_init(&iter, (bc_json_span){"7", 1}, NULL), 0);
    ck_assert_int_eq(bc_json_iter_init(&iter, (bc_json_span){"[1,2", 4}, NULL), 1);
    ck_assert_int_eq(bc_json_iter_next(&iter, NULL), 1);
    ck_assert_int_eq(bc_json_iter_next(&iter, NULL), 1);
    ck_assert_int_lt(bc_json_iter_next(&iter, NULL), 0);
    ck_assert_int_eq(bc_json_iter_init(&iter, (bc_json_span){"[] x", 4}, NULL), 1);
    ck_assert_int_lt(bc_json_iter_next(&iter, NULL), 0);
    bc_buf_clear(&out);
}
END_TEST

/* Members with keys that share a hash bucket cost no more than linear time would allow. */
START_TEST(many_keys_are_quick)
{
    bc_buf text;
    bc_buf_init(&text, BC_JSON_MAX_BYTES);
    bc_buf_append_char(&text, '{');
    for (int i = 0; i < 300000; i++)
        bc_buf_appendf(&text, "%s\"key%d\":%d", i ? "," : "", i, i);
    bc_buf_append_char(&text, '}');
    json_t *view = NULL;
    ck_assert_int_eq(bc_json_view(&view, bc_buf_data(&text), text.len, BC_JSON_UNIQUE_KEYS, NULL),
                     0);
    ck_assert_uint_eq(json_object_size(view), 300000);
    json_decref(view);
    bc_buf_clear(&text);
}
END_TEST

UNIT_MAIN("json_view", a_view_has_what_the_text_has, invalid_text_is_repaired, repeated_keys,
          sizes_are_bounded, getters_are_tolerant, walks_give_keys_and_values, many_keys_are_quick)
