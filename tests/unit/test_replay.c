/* The replay provider, through the public calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <barchan/model.h>
#include "base/json_view.h"
#include "suite.h"

static barchan_runtime *rt;

static void set_up(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}

static void tear_down(void)
{
    barchan_runtime_destroy(rt);
}

static barchan_model *replay_of(const char *path)
{
    barchan_model *model = NULL;
    barchan_error err;
    int rc =
        barchan_model_create(&model, rt,
                             &(barchan_model_options){.struct_size = sizeof(barchan_model_options),
                                                      .provider = "replay",
                                                      .replay_path = path},
                             &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    return model;
}

static const char first[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"1000th prime?\"}]}";

static char *second_request(const char *reply)
{
    static const char form[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"1000th prime?\"},%s,"
        "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"7919\"}]}";
    size_t size = strlen(reply) + sizeof form;
    char *text = malloc(size);
    snprintf(text, size, form, reply);
    return text;
}

typedef struct shown {
    char text[200], reasoning[100], call[40];
    int pieces;
} shown;

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    shown *s = ud;
    char *to = kind == BARCHAN_DELTA_TEXT        ? s->text
               : kind == BARCHAN_DELTA_REASONING ? s->reasoning
                                                 : s->call;
    strncat(to, data, len);
    s->pieces++;
}

START_TEST(plays_a_tool_loop_and_then_says_that_it_is_over)
{
    barchan_model *model = replay_of(TEST_DATA "/two_steps.jsonl");
    barchan_error err;
    shown s = {.pieces = 0};
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta, .ud = &s};
    char *reply = NULL, *reply2 = NULL, *reply3 = NULL;
    ck_assert_int_eq(barchan_model_complete(model, first, strlen(first), &o, &reply, &err), 0);
    ck_assert_str_eq(s.text, "I compute it – €.");
    ck_assert_str_eq(s.reasoning, "A sieve will do.");
    ck_assert_str_eq(s.call, "run_python");
    json_t *view = NULL;
    ck_assert_int_eq(bc_json_view(&view, reply, strlen(reply), BC_JSON_UNIQUE_KEYS, &err), 0);
    ck_assert_str_eq(bc_json_get_string(view, "role", NULL), "assistant");
    ck_assert_str_eq(bc_json_get_string(view, "stop_reason", NULL), "tool_use");
    ck_assert(json_is_null(json_object_get(view, "raw_stop_reason")));
    json_decref(view);
    char *request = second_request(reply);
    ck_assert_int_eq(barchan_model_complete(model, request, strlen(request), NULL, &reply2, &err),
                     0);
    ck_assert_ptr_nonnull(strstr(reply2, "7919"));
    ck_assert_int_eq(barchan_model_complete(model, first, strlen(first), NULL, &reply3, &err),
                     BARCHAN_ENOTFOUND);
    ck_assert_ptr_nonnull(
        strstr(err.message, "the transcript has 2 replies and this is request 3"));
    ck_assert_str_eq(err.where, "model.complete");
    free(request);
    free(reply);
    free(reply2);
    barchan_model_destroy(model);
}
END_TEST

START_TEST(checks_pairing_as_a_real_provider_would)
{
    barchan_model *model = replay_of(TEST_DATA "/two_steps.jsonl");
    barchan_error err;
    char *reply = NULL;
    static const char bad[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},"
                              "{\"role\":\"tool\",\"tool_call_id\":\"call_9\",\"content\":\"y\"}]}";
    ck_assert_int_eq(barchan_model_complete(model, bad, strlen(bad), NULL, &reply, &err),
                     BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "call_9"));
    /* It took no reply. */
    ck_assert_int_eq(barchan_model_complete(model, first, strlen(first), NULL, &reply, &err), 0);
    free(reply);
    barchan_model_destroy(model);
}
END_TEST

typedef struct end {
    int count, code;
    barchan_model *destroy;
    barchan_completion **cancel;
} end;

static void on_end(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    end *e = ud;
    e->count++;
    e->code = err != NULL ? err->code : 0;
}

static void on_delta_end(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    end *e = ud;
    barchan_model *model = e->destroy;
    e->destroy = NULL;
    if (model != NULL) barchan_model_destroy(model);
    if (e->cancel != NULL) barchan_completion_cancel(*e->cancel);
}

START_TEST(can_be_cancelled_or_destroyed_in_a_delta)
{
    for (int how = 0; how < 2; how++) {
        barchan_model *model = replay_of(TEST_DATA "/two_steps.jsonl");
        barchan_completion *c = NULL;
        end e = {.destroy = how == 0 ? model : NULL, .cancel = how == 1 ? &c : NULL};
        barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta_end, .ud = &e};
        ck_assert_int_eq(
            barchan_model_complete_start(&c, model, first, strlen(first), &o, on_end, &e, NULL), 0);
        ck_assert_int_eq(e.count, 0);
        for (int i = 0; i < 10; i++)
            barchan_runtime_pump(rt, 0, NULL);
        ck_assert_int_eq(e.count, 1);
        ck_assert_int_eq(e.code, BARCHAN_ECANCELLED);
        if (how == 1) barchan_model_destroy(model);
    }
}
END_TEST

START_TEST(ends_with_its_runtime)
{
    barchan_runtime *other;
    ck_assert_int_eq(barchan_runtime_create(&other, NULL, NULL), 0);
    barchan_runtime *mine = rt;
    rt = other;
    barchan_model *model = replay_of(TEST_DATA "/two_steps.jsonl");
    rt = mine;
    end e = {.count = 0};
    ck_assert_int_eq(
        barchan_model_complete_start(NULL, model, first, strlen(first), NULL, on_end, &e, NULL), 0);
    barchan_runtime_destroy(other);
    ck_assert_int_eq(e.count, 1);
    ck_assert_int_eq(e.code, BARCHAN_ECANCELLED);
}
END_TEST

typedef struct again {
    barchan_model *model;
    int calls, destroy, restart, restart_rc;
} again;

static void on_end_again(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    again *a = ud;
    (void)reply;
    (void)len;
    ck_assert_int_eq(err->code, BARCHAN_ECANCELLED);
    a->calls++;
    if (a->restart) {
        a->restart_rc = barchan_model_complete_start(NULL, a->model, first, strlen(first), NULL,
                                                     on_end_again, a, NULL);
    }
    if (a->destroy) barchan_model_destroy(a->model);
}

/* In `done` the model is dying already, whoever ends it: destroying it again does nothing, and
 * nothing new begins on it. */
START_TEST(a_dying_model_takes_no_more_orders)
{
    for (int how = 0; how < 8; how++) {
        barchan_runtime *other, *mine = rt;
        again a = {.destroy = how & 1, .restart = how & 2};
        ck_assert_int_eq(barchan_runtime_create(&other, NULL, NULL), 0);
        rt = other;
        a.model = replay_of(TEST_DATA "/two_steps.jsonl");
        rt = mine;
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(barchan_model_complete_start(NULL, a.model, first, strlen(first), NULL,
                                                          on_end_again, &a, NULL),
                             0);
        }
        if (how & 4) barchan_model_destroy(a.model);
        barchan_runtime_destroy(other);
        ck_assert_int_eq(a.calls, 3);
        ck_assert_int_eq(a.restart_rc, a.restart ? BARCHAN_ECLOSED : 0);
    }
}
END_TEST

START_TEST(a_token_cancels_also_before_the_start)
{
    barchan_model *model = replay_of(TEST_DATA "/two_steps.jsonl");
    barchan_cancel *token;
    barchan_error err;
    char *reply = NULL;
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    barchan_cancel_trigger(token);
    shown s = {.pieces = 0};
    barchan_complete_options o = {
        .struct_size = sizeof o, .cancel = token, .on_delta = on_delta, .ud = &s};
    int rc = barchan_model_complete(model, first, strlen(first), &o, &reply, &err);
    ck_assert_int_eq(rc, BARCHAN_ECANCELLED);
    barchan_cancel_release(token);
    barchan_model_destroy(model);
}
END_TEST

static barchan_error refused(const char *content)
{
    char path[] = "/tmp/barchan-replay-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, content, strlen(content)), (int)strlen(content));
    close(fd);
    barchan_model *model = NULL;
    barchan_error err;
    barchan_model_options o = {.struct_size = sizeof o, .provider = "replay", .replay_path = path};
    ck_assert_int_lt(barchan_model_create(&model, rt, &o, &err), 0);
    ck_assert_ptr_null(model);
    unlink(path);
    return err;
}

START_TEST(bad_transcripts_are_refused_with_the_line)
{
    barchan_error err = refused("{\"type\":\"transcript\",\"version\":1}\n{\"type\":\n");
    ck_assert_ptr_nonnull(strstr(err.message, "line 2"));
    err = refused("{\"type\":\"transcript\",\"version\":2}\n");
    ck_assert_int_eq(err.code, BARCHAN_EUNSUPPORTED);
    err = refused(
        "{\"type\":\"model_reply\",\"reply\":{\"tool_calls\":[{\"id\":\"\",\"name\":\"f\"}]}}");
    ck_assert_ptr_nonnull(strstr(err.message, "line 1"));
    err =
        refused("{\"type\":\"model_reply\",\"reply\":{\"tool_calls\":[{\"id\":\"a\",\"name\":\"f\","
                "\"arguments\":{}}],\"invalid_tool_calls\":[{\"id\":\"a\",\"name\":\"f\"}]}}");
    ck_assert_ptr_nonnull(strstr(err.message, "id of another call"));
    barchan_model *model = NULL;
    barchan_model_options o = {
        .struct_size = sizeof o, .provider = "replay", .replay_path = "/nowhere"};
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, &err), BARCHAN_ENOTFOUND);
    o.replay_path = "/tmp";
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, &err), BARCHAN_EISDIR);
    char fifo[] = "/tmp/barchan-fifo-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(fifo));
    char path[64];
    snprintf(path, sizeof path, "%s/fifo", fifo);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    o.replay_path = path;
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, &err), BARCHAN_ENOTREG);
    unlink(path);
    rmdir(fifo);
}
END_TEST

SUITE_MAIN("replay", set_up, tear_down, plays_a_tool_loop_and_then_says_that_it_is_over,
           checks_pairing_as_a_real_provider_would, can_be_cancelled_or_destroyed_in_a_delta,
           ends_with_its_runtime, a_dying_model_takes_no_more_orders,
           a_token_cancels_also_before_the_start, bad_transcripts_are_refused_with_the_line)
