/* Completes once, twice or more at one address and prints what came: "ok TEXT" or "error CODE
 * MESSAGE", a line each. All at once, so that a connection that can carry several is seen to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <barchan/model.h>
#include "base/json_view.h"

static int left;

static void on_done(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    json_t *view = NULL;
    (void)ud;
    left--;
    if (reply == NULL) {
        printf("error %s %s\n", barchan_status_name(err->code), err->message);
    } else if (bc_json_view(&view, reply, len, 0, NULL) == 0) {
        printf("ok %s\n", bc_json_get_string(view, "text", NULL));
    }
    json_decref(view);
}

int main(int argc, char **argv)
{
    static const char request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    if (argc != 3) return fprintf(stderr, "usage: %s URL COUNT\n", argv[0]), 2;
    barchan_runtime *rt = NULL;
    barchan_model *model = NULL;
    barchan_error err;
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "anthropic",
                               .name = "m",
                               .base_url = argv[1],
                               .allow_plain_http = 1,
                               .timeout_ms = 20000};
    if (barchan_runtime_create(&rt, NULL, &err) < 0 ||
        barchan_model_create(&model, rt, &o, &err) < 0) {
        return fprintf(stderr, "%s\n", err.message), 1;
    }
    /* One first, so that the connection is there for the others. */
    for (int round = 0, count = (int)strtol(argv[2], NULL, 10); round < 2; round++) {
        for (left = 0; left < (round == 0 ? 1 : count - 1); left++) {
            if (barchan_model_complete_start(NULL, model, request, sizeof request - 1, NULL,
                                             on_done, NULL, &err) < 0) {
                return fprintf(stderr, "%s\n", err.message), 1;
            }
        }
        while (left > 0)
            barchan_runtime_pump(rt, 100, NULL);
    }
    barchan_runtime_destroy(rt);
    return 0;
}
