#include "fixture_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const fixture_api fixture_apis[FIXTURE_APIS] = {
    {"anthropic", &bc_provider_anthropic, "/messages", "/messages"},
    {"chat", &bc_provider_openai, "/chat/completions", "/chat/completions"},
    {"responses", &bc_provider_openai_responses, "/responses", "/responses"},
    {"gemini", &bc_provider_gemini, "/models/m:generateContent", "/models/m:streamGenerateContent"},
};

int fixture_file(const char *path, bc_buf *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    char chunk[1 << 16];
    size_t n;
    int rc = 0;
    while (rc == 0 && (n = fread(chunk, 1, sizeof chunk, file)) > 0)
        rc = bc_buf_append(out, chunk, n);
    fclose(file);
    return rc;
}

/* A recording that keeps one event a line gets its framing back. */
static int add_framing(fixture *f)
{
    bc_buf framed;
    bc_buf_init(&framed, BC_JSON_MAX_BYTES);
    const char *at = bc_buf_data(&f->bytes), *end = at + f->bytes.len;
    int rc = 0;
    while (rc == 0 && at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((lf != NULL ? lf : end) - at);
        if (len > 0) rc = bc_buf_append_string(&framed, "data: ");
        if (len > 0 && rc == 0) rc = bc_buf_append(&framed, at, len);
        if (len > 0 && rc == 0) rc = bc_buf_append_string(&framed, "\n\n");
        at += len + 1;
    }
    if (rc == 0 && f->provider == &bc_provider_openai) {
        rc = bc_buf_append_string(&framed, "data: [DONE]\n\n");
    }
    bc_buf_clear(&f->bytes);
    f->bytes = framed;
    return rc;
}

const char *fixture_folder(const char *beside, char *path, size_t size)
{
    const char *set = getenv("BARCHAN_FIXTURES");
    const char *candidates[] = {set, beside};
    for (int i = 0; i < 2; i++) {
        if (candidates[i] == NULL) continue;
        snprintf(path, size, "%s/index.json", candidates[i]);
        if (access(path, R_OK) == 0) return candidates[i];
    }
    return NULL;
}

int fixture_load(fixture *f, const char *folder, const json_t *entry)
{
    char path[4096];
    const char *api = bc_json_get_string(entry, "api", NULL);
    int which = 0;
    while (which < FIXTURE_APIS && strcmp(api, fixture_apis[which].name) != 0)
        which++;
    if (which == FIXTURE_APIS) return -1;
    *f = (fixture){.entry = entry,
                   .expect = json_object_get(entry, "expect"),
                   .file = bc_json_get_string(entry, "file", NULL),
                   .api = &fixture_apis[which],
                   .provider = fixture_apis[which].provider,
                   .stream = json_is_true(json_object_get(entry, "stream")),
                   .status = (int)bc_json_get_integer(entry, "status", 200)};
    bc_buf_init(&f->bytes, BC_JSON_MAX_BYTES);
    snprintf(path, sizeof path, "%s/%s", folder, f->file);
    size_t len = strlen(f->file);
    f->lines = len > 6 && strcmp(f->file + len - 6, ".jsonl") == 0;
    if (fixture_file(path, &f->bytes) < 0 || (f->lines && add_framing(f) < 0)) {
        snprintf(f->why, sizeof f->why, "cannot be read");
    }
    return which;
}
