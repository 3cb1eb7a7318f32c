/*
 * Recorded answers of real servers, read whole, one byte at a time, and cut off at every event.
 *
 * The recordings are not part of this repository: they are looked for in $BARCHAN_FIXTURES and
 * beside the source tree, and the test is skipped, saying so, where there are none. What is known
 * not to match stands in tests/data/provider/known_unmatched.txt with its reason; the test fails
 * when anything else does not match, and when something listed there does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fixture_check.h"

enum { SKIPPED = 77 };

/* ---- files ---- */

static int read_all(const char *path, bc_buf *out)
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

/* ---- all of them ---- */

static int run_fixture(fixture *f)
{
    adapter_result whole =
        adapter_read(f->provider, f->status, f->stream, bc_buf_data(&f->bytes), f->bytes.len, 0);
    adapter_result bytes =
        adapter_read(f->provider, f->status, f->stream, bc_buf_data(&f->bytes), f->bytes.len, 1);
    int good = fixture_check(f, &whole) && fixture_check_echo(f, &whole);
    if (good && whole.failed != bytes.failed) good = MISMATCH(f, "bytewise, it differs");
    if (good && !whole.failed && strcmp(whole.reply, bytes.reply) != 0) {
        good = MISMATCH(f, "bytewise, the reply differs");
    }
    if (good && f->stream && f->status < 400) good = fixture_check_cuts(f);
    adapter_result_clear(&whole);
    adapter_result_clear(&bytes);
    return good;
}

static int is_listed(const bc_buf *known, const char *file)
{
    const char *found = strstr(bc_buf_data(known), file);
    return found != NULL && (found == bc_buf_data(known) || found[-1] == '\n');
}

static const char *find_folder(const char *beside, char *path, size_t size)
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

typedef struct tally {
    int matched, total, surprises;
} tally;

static void run_one(const char *folder, const json_t *entry, const bc_buf *known, tally *counts)
{
    char path[4096];
    const char *api = bc_json_get_string(entry, "api", NULL);
    int which = strcmp(api, "anthropic") == 0 ? 0 : strcmp(api, "chat") == 0 ? 1 : -1;
    if (which < 0) return;
    fixture f = {.entry = entry,
                 .expect = json_object_get(entry, "expect"),
                 .file = bc_json_get_string(entry, "file", NULL),
                 .provider = which == 0 ? &bc_provider_anthropic : &bc_provider_openai,
                 .stream = json_is_true(json_object_get(entry, "stream")),
                 .status = (int)bc_json_get_integer(entry, "status", 200)};
    bc_buf_init(&f.bytes, BC_JSON_MAX_BYTES);
    snprintf(path, sizeof path, "%s/%s", folder, f.file);
    int good = read_all(path, &f.bytes) == 0;
    if (!good) good = MISMATCH(&f, "cannot be read");
    size_t len = strlen(f.file);
    if (good && len > 6 && strcmp(f.file + len - 6, ".jsonl") == 0) good = add_framing(&f) == 0;
    if (good) good = run_fixture(&f);
    int listed = is_listed(known, f.file);
    counts[which].total++;
    counts[which].matched += good;
    counts[which].surprises += good == listed;
    if (!good) printf("%s %s: %s\n", listed ? "known" : "MISMATCH", f.file, f.why);
    if (good && listed) printf("matches now, take it off the list: %s\n", f.file);
    bc_buf_clear(&f.bytes);
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 3) return fprintf(stderr, "usage: %s BESIDE KNOWN_UNMATCHED\n", argv[0]), 2;
    const char *folder = find_folder(argv[1], path, sizeof path);
    if (folder == NULL) {
        printf("skipped: no recordings in $BARCHAN_FIXTURES or %s\n", argv[1]);
        return SKIPPED;
    }
    bc_buf known;
    bc_buf_init(&known, 1 << 20);
    if (read_all(argv[2], &known) < 0) return fprintf(stderr, "cannot read %s\n", argv[2]), 2;
    json_error_t error;
    json_t *index = json_load_file(path, 0, &error), *entry;
    if (index == NULL) return fprintf(stderr, "%s: %s\n", path, error.text), 2;
    tally counts[2] = {{0}};
    size_t i;
    json_array_foreach(index, i, entry) run_one(folder, entry, &known, counts);
    printf("anthropic: %d / %d\nopenai chat: %d / %d\nfixtures: %d / %d\n", counts[0].matched,
           counts[0].total, counts[1].matched, counts[1].total,
           counts[0].matched + counts[1].matched, counts[0].total + counts[1].total);
    json_decref(index);
    bc_buf_clear(&known);
    return counts[0].surprises + counts[1].surprises == 0 && counts[0].total > 0 ? 0 : 1;
}
