#include "provider_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char plain_request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
const char stream_request[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";

barchan_model *model_with(const char *scenario, const barchan_model_options *more)
{
    barchan_model_options o = more != NULL ? *more : (barchan_model_options){0};
    barchan_error err;
    barchan_model *model = NULL;
    char url[512];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server.port, scenario);
    o.struct_size = sizeof o;
    if (o.provider == NULL) o.provider = "anthropic";
    if (o.name == NULL) o.name = "claude-test";
    if (o.base_url == NULL) o.base_url = url;
    if (o.max_retries == 0) o.max_retries = -1; /* one answer a test, unless it asks for more */
    int rc = barchan_model_create(&model, rt, &o, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    return model;
}

json_t *complete(barchan_model *model, const char *request)
{
    barchan_error err;
    char *reply = NULL;
    json_t *view = NULL;
    int rc = barchan_model_complete(model, request, strlen(request), NULL, &reply, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    ck_assert_int_eq(bc_json_view(&view, reply, strlen(reply), 0, NULL), 0);
    free(reply);
    return view;
}

barchan_error fail_with(const char *scenario, const char *request,
                        const barchan_model_options *more)
{
    barchan_error err = {0};
    char *reply = NULL;
    barchan_model *model = model_with(scenario, more);
    int rc = barchan_model_complete(model, request, strlen(request), NULL, &reply, &err);
    ck_assert_msg(rc < 0, "%s was taken for an answer: %s", scenario, reply);
    ck_assert_int_eq(rc, err.code);
    ck_assert_ptr_null(reply);
    ck_assert_int_gt((int)strlen(err.message), 10);
    barchan_model_destroy(model);
    return err;
}

const char *text_of(const json_t *reply)
{
    return bc_json_get_string(reply, "text", NULL);
}
