/* The end of a runtime: what may still happen then, and in whose process. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <barchan/model.h>
#include <barchan/sandbox.h>
#include "base/limits.h"
#include "runtime/loop.h"
#include "suite.h"

static const char request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";

typedef struct seen {
    barchan_model *model;
    int posts, ends, created, code, again, waited, last_post;
} seen;

static barchan_runtime *make(void)
{
    barchan_runtime *rt = NULL;
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    return rt;
}

/* Nothing listens there: the completion cannot end by itself before the runtime does. */
static barchan_model *model_on(barchan_runtime *rt)
{
    barchan_model *model = NULL;
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "anthropic",
                               .name = "m",
                               .base_url = "http://127.0.0.1:9"};
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, NULL), 0);
    return model;
}

/* Tries to go on, as a careless host does. */
static void on_end(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    seen *s = ud;
    char *other = NULL;
    s->ends++;
    s->code = err->code;
    s->again = barchan_model_complete_start(NULL, s->model, request, sizeof request - 1, NULL,
                                            on_end, s, NULL);
    s->waited = barchan_model_complete(s->model, request, sizeof request - 1, NULL, &other, NULL);
}

static void start_completion(barchan_runtime *rt, void *ud)
{
    seen *s = ud;
    s->posts++;
    ck_assert_int_eq(barchan_model_complete_start(NULL, s->model, request, sizeof request - 1, NULL,
                                                  on_end, s, NULL),
                     0);
}

START_TEST(a_queued_post_may_start_work_that_ends_at_once)
{
    barchan_runtime *rt = make();
    seen s = {.model = model_on(rt)};
    ck_assert_int_eq(barchan_runtime_post(rt, start_completion, &s, NULL), 0);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(s.posts, 1);
    ck_assert_int_eq(s.ends, 1);
    ck_assert_int_eq(s.code, BARCHAN_ECANCELLED);
    ck_assert_int_eq(s.again, BARCHAN_ECLOSED);
    ck_assert_int_eq(s.waited, BARCHAN_ECLOSED);
}
END_TEST

static void on_created(barchan_sandbox *sbx, const barchan_error *err, void *ud)
{
    seen *s = ud;
    barchan_runtime *rt = (void *)s->model;
    s->created++;
    s->code = err != NULL ? err->code : 0;
    barchan_sandbox *other = NULL;
    if (s->created == 1) {
        s->again = barchan_sandbox_create_start(&other, rt, NULL, on_created, s, NULL);
        s->waited = barchan_sandbox_create(&other, rt, NULL, NULL);
    }
}

static void start_sandbox(barchan_runtime *rt, void *ud)
{
    seen *s = ud;
    barchan_sandbox *sbx = NULL;
    s->posts++;
    s->model = (void *)rt;
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, NULL, on_created, s, NULL), 0);
}

START_TEST(so_may_a_sandbox)
{
    barchan_runtime *rt = make();
    seen s = {.posts = 0};
    ck_assert_int_eq(barchan_runtime_post(rt, start_sandbox, &s, NULL), 0);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(s.posts, 1);
    ck_assert_int_eq(s.created, 1);
    ck_assert_int_eq(s.code, BARCHAN_ECANCELLED);
    ck_assert_int_eq(s.again, BARCHAN_ECLOSED);
    ck_assert_int_eq(s.waited, BARCHAN_ECLOSED);
}
END_TEST

static void post_again(barchan_runtime *rt, void *ud)
{
    seen *s = ud;
    s->posts++;
    s->last_post = barchan_runtime_post(rt, post_again, s, NULL);
}

START_TEST(posts_that_post_come_to_an_end)
{
    barchan_runtime *rt = make();
    seen s = {.posts = 0};
    ck_assert_int_eq(barchan_runtime_post(rt, post_again, &s, NULL), 0);
    barchan_runtime_destroy(rt);
    ck_assert_int_ge(s.posts, 1);
    ck_assert_int_eq(s.last_post, BARCHAN_ECLOSED);
}
END_TEST

static void count(barchan_runtime *rt, void *ud)
{
    ++*(int *)ud;
}

START_TEST(posts_are_bounded)
{
    barchan_runtime *rt = make();
    int posted = 0, ran = 0, rc;
    barchan_error err;
    while ((rc = barchan_runtime_post(rt, count, &ran, &err)) == 0)
        posted++;
    ck_assert_int_eq(rc, BARCHAN_ELIMIT);
    ck_assert_int_eq(posted, BC_POST_MAX);
    ck_assert_int_ge(barchan_runtime_pump(rt, 0, NULL), posted);
    ck_assert_int_eq(ran, posted);
    ck_assert_int_eq(barchan_runtime_post(rt, count, &ran, NULL), 0);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(ran, posted + 1);
}
END_TEST

/* Every call on a parent's runtime fails in a child, and none of them touches the parent's. */
static int all_refuse(barchan_runtime *rt, barchan_model *model)
{
    barchan_sandbox *sbx = NULL;
    barchan_model *other = NULL;
    char *reply = NULL;
    barchan_model_options o = {.struct_size = sizeof o, .provider = "anthropic", .name = "m"};
    int codes[] = {barchan_runtime_pump(rt, 0, NULL),
                   barchan_runtime_fd(rt, NULL),
                   barchan_runtime_post(rt, count, NULL, NULL),
                   barchan_sandbox_create(&sbx, rt, NULL, NULL),
                   barchan_sandbox_create_start(&sbx, rt, NULL, on_created, NULL, NULL),
                   barchan_model_create(&other, rt, &o, NULL),
                   barchan_model_complete(model, request, sizeof request - 1, NULL, &reply, NULL),
                   barchan_model_complete_start(NULL, model, request, sizeof request - 1, NULL,
                                                on_end, NULL, NULL)};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] != BARCHAN_EINVAL) return (int)i + 1;
    }
    if (barchan_sandbox_list(rt, NULL, 0) != 0) return 100;
    barchan_model_destroy(model);
    barchan_runtime_destroy(rt);
    return 0;
}

START_TEST(a_forked_child_can_do_nothing)
{
    barchan_runtime *rt = make();
    barchan_model *model = model_on(rt);
    int status, ran = 0, pid = fork();
    if (pid == 0) _exit(all_refuse(rt, model));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(barchan_runtime_post(rt, count, &ran, NULL), 0);
    ck_assert_int_ge(barchan_runtime_pump(rt, 0, NULL), 1);
    ck_assert_int_eq(ran, 1);
    barchan_runtime_destroy(rt);
}
END_TEST

/* The status does not depend on whether anybody wants to read the words. */
START_TEST(the_error_struct_is_optional)
{
    barchan_runtime *rt = make(), *other = NULL;
    barchan_model *model = model_on(rt), *none = NULL;
    char *json = NULL;
    barchan_error err;
    barchan_runtime_options no_size = {.struct_size = 0};
    barchan_model_options no_size_either = {.struct_size = 0, .provider = "anthropic"};
    for (int i = 0; i < 2; i++) {
        barchan_error *where = i == 0 ? &err : NULL;
        ck_assert_int_eq(barchan_runtime_create(&other, &no_size, where), BARCHAN_EINVAL);
        ck_assert_int_eq(barchan_model_create(&none, rt, &no_size_either, where), BARCHAN_EINVAL);
        ck_assert_int_eq(barchan_model_complete(model, "{", 1, NULL, &json, where), BARCHAN_EINVAL);
        ck_assert_int_eq(barchan_tools_render("neutral", "[{\"name\":\"a b\"}]", 16, &json, where),
                         BARCHAN_EINVAL);
        ck_assert_int_eq(barchan_tools_render("neutral", "{", 1, &json, where), BARCHAN_EINVAL);
    }
    barchan_runtime_destroy(rt);
}
END_TEST

UNIT_MAIN("runtime_end", a_queued_post_may_start_work_that_ends_at_once, so_may_a_sandbox,
          posts_that_post_come_to_an_end, posts_are_bounded, a_forked_child_can_do_nothing,
          the_error_struct_is_optional)
