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
#include "fixture_check.h"

enum { SKIPPED = 77 };

/* Ids that we make must be the same, whole and bytewise (--wrap). */
int __wrap_bc_random_hex(char *out, size_t digits);
int __wrap_bc_random_hex(char *out, size_t digits)
{
    memset(out, '7', digits);
    out[digits] = '\0';
    return 0;
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

typedef struct tally {
    int matched, total, surprises;
} tally;

static void run_one(const char *folder, const json_t *entry, const bc_buf *known, tally *counts)
{
    fixture f;
    int which = fixture_load(&f, folder, entry);
    if (which < 0) return;
    int good = f.why[0] == '\0';
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
    const char *folder = fixture_folder(argv[1], path, sizeof path);
    if (folder == NULL) {
        printf("SKIP no recordings in $BARCHAN_FIXTURES or %s\n", argv[1]);
        return SKIPPED;
    }
    bc_buf known;
    bc_buf_init(&known, 1 << 20);
    if (fixture_file(argv[2], &known) < 0) return fprintf(stderr, "cannot read %s\n", argv[2]), 2;
    json_error_t error;
    json_t *index = json_load_file(path, 0, &error), *entry;
    if (index == NULL) return fprintf(stderr, "%s: %s\n", path, error.text), 2;
    tally counts[FIXTURE_APIS] = {{0}}, all = {0};
    size_t i;
    json_array_foreach(index, i, entry) run_one(folder, entry, &known, counts);
    for (int api = 0; api < FIXTURE_APIS; api++) {
        printf("%s: %d / %d\n", fixture_apis[api].name, counts[api].matched, counts[api].total);
        all.matched += counts[api].matched;
        all.total += counts[api].total;
        all.surprises += counts[api].surprises;
    }
    printf("fixtures: %d / %d\n", all.matched, all.total);
    printf("%d passed, %d failed\n", all.total - all.surprises, all.surprises);
    json_decref(index);
    bc_buf_clear(&known);
    return all.surprises == 0 && all.total > 0 ? 0 : 1;
}
