/*
 * The recorded answers once more, through real connections: a server on loopback sends their bytes,
 * whole and one at a time, and barchan_model_complete reads them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <barchan/model.h>
#include "fixture_check.h"
#include "peer.h"

enum { SKIPPED = 77 };

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    bc_buf *shown = ud;
    if (kind == BARCHAN_DELTA_RESTART) bc_buf_reset(shown);
    if (kind == BARCHAN_DELTA_TEXT) bc_buf_append(shown, data, len);
}

static adapter_result complete(const fixture *f, barchan_runtime *rt, int port, size_t step)
{
    adapter_result result = {0};
    char url[2048], request[128];
    bc_buf shown;
    bc_buf_init(&shown, BC_JSON_MAX_BYTES);
    const char *form = !f->stream ? "json" : f->lines ? "lines" : "sse";
    /* The adapter takes this for the whole address, because it ends like one. */
    snprintf(url, sizeof url, "http://127.0.0.1:%d/recording/%zu/%s/%d/%s%s", port, step, form,
             f->status, f->file, f->stream ? f->api->stream_tail : f->api->tail);
    snprintf(request, sizeof request,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":%s}",
             f->stream ? "true" : "false");
    barchan_model *model = NULL;
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = f->provider->name,
                               .name = "m",
                               .base_url = url,
                               .max_retries = -1};
    barchan_complete_options c = {.struct_size = sizeof c, .on_delta = on_delta, .ud = &shown};
    int rc = barchan_model_create(&model, rt, &o, &result.err);
    if (rc == 0) {
        rc =
            barchan_model_complete(model, request, strlen(request), &c, &result.reply, &result.err);
    }
    barchan_model_destroy(model);
    result.failed = rc < 0;
    result.shown = bc_buf_take(&shown, &result.shown_len);
    return result;
}

static int run(fixture *f, barchan_runtime *rt, int port)
{
    int good = f->why[0] == '\0';
    for (int pass = 0; pass < 2 && good; pass++) {
        /* A step of 0 sends the whole body as one chunk. */
        adapter_result got = complete(f, rt, port, (size_t)pass);
        good = fixture_check(f, &got);
        adapter_result_clear(&got);
    }
    if (!good) printf("MISMATCH %s: %s\n", f->file, f->why);
    return good;
}

static int run_all(const json_t *index, const char *folder, int port)
{
    barchan_runtime *rt = NULL;
    int matched = 0, total = 0;
    if (barchan_runtime_create(&rt, NULL, NULL) < 0) return 1;
    size_t i;
    json_t *entry;
    json_array_foreach(index, i, entry)
    {
        fixture f;
        if (fixture_load(&f, folder, entry) < 0) continue;
        total++;
        matched += run(&f, rt, port);
        bc_buf_clear(&f.bytes);
    }
    barchan_runtime_destroy(rt);
    printf("fixtures over http: %d / %d\n", matched, total);
    printf("%d passed, %d failed\n", matched, total - matched);
    return matched == total && total > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 3) return fprintf(stderr, "usage: %s BESIDE BYTE_SERVER\n", argv[0]), 2;
    const char *folder = fixture_folder(argv[1], path, sizeof path);
    const char *serve[] = {"python3", argv[2], NULL};
    peer server;
    if (folder == NULL) {
        printf("SKIP no recordings in $BARCHAN_FIXTURES or %s\n", argv[1]);
        return SKIPPED;
    }
    setenv("BARCHAN_FIXTURES", folder, 1);
    if (peer_start(&server, serve) < 0) {
        printf("SKIP python3 is not there\n");
        return SKIPPED;
    }
    json_t *index = json_load_file(path, 0, NULL);
    int rc = index != NULL ? run_all(index, folder, server.port) : 2;
    json_decref(index);
    peer_stop(&server);
    return rc;
}
