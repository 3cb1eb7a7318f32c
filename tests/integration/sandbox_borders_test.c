/* Sizes and times at the borders of what numbers hold. */
#include "sandbox_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

static barchan_file_result read_part(uint64_t offset, uint64_t limit)
{
    return file_done(
        REQUEST(.op = BARCHAN_FILE_READ, .path = "f", .offset = offset, .limit = limit));
}

static void part_is(uint64_t offset, uint64_t limit, const char *bytes, size_t len, uint64_t size)
{
    barchan_file_result r = read_part(offset, limit);
    ck_assert_uint_eq(r.bytes, len);
    ck_assert_uint_eq(r.data.len, len);
    ck_assert_mem_eq(r.data.data, bytes, len);
    ck_assert_uint_eq(r.size, size);
    barchan_file_result_clear(&r);
}

/* A file of holes, with a word at its end; it takes no room. */
START_TEST(parts_of_very_large_files)
{
    static const uint64_t sizes[] = {(1ull << 31) - 1, 1ull << 31,      (1ull << 31) + 1,
                                     (1ull << 32) - 1, 1ull << 32,      (1ull << 32) + 1,
                                     1ull << 40,       (1ull << 62) + 1};
    char command[128];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t size = sizes[i];
        snprintf(command, sizeof command,
                 "rm -f f; printf end | dd of=f bs=1 seek=%llu conv=notrunc 2>/dev/null",
                 (unsigned long long)size - 3);
        sh_says(command, "");
        barchan_file_result r = file_done(REQUEST(.op = BARCHAN_FILE_STAT, .path = "f"));
        ck_assert_uint_eq(r.entries[0].size, size);
        barchan_file_result_clear(&r);
        part_is(size - 3, 0, "end", 3, size);
        part_is(size - 3, 3, "end", 3, size);
        part_is(size - 3, 2, "en", 2, size);
        part_is(size - 1, 2, "d", 1, size);
        part_is(size, 1, "", 0, size);
        part_is(size + 1, 1, "", 0, size);
        part_is(size - 5, 3, "\0\0e", 3, size);
        file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "f"), BARCHAN_ELIMIT);
    }
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "f", .offset = UINT64_MAX, .limit = 1),
               BARCHAN_EINVAL);
}
END_TEST

static int count(const void *data, size_t len, void *ud)
{
    (void)data;
    *(uint64_t *)ud += len;
    return 0;
}

/* Every byte of more than 2 GiB, or 4, which takes seconds. */
START_TEST(all_of_a_very_large_file)
{
    uint64_t size = getenv("BARCHAN_LONG") != NULL ? (1ull << 32) + 1 : (1ull << 31) + 1, total = 0;
    char command[64];
    snprintf(command, sizeof command, "truncate -s %llu f", (unsigned long long)size);
    sh_says(command, "");
    barchan_file_result r =
        file_done(REQUEST(.op = BARCHAN_FILE_READ, .path = "f", .sink = count, .ud = &total));
    ck_assert_uint_eq(total, size);
    ck_assert_uint_eq(r.bytes, size);
    barchan_file_result_clear(&r);
}
END_TEST

/* Without a sink: exactly what fits, and one more. */
START_TEST(what_fits_into_an_answer)
{
    static const struct {
        const char *size;
        uint64_t bytes;
        int code;
    } rows[] = {{"0", 0, 0}, {"1", 1, 0}, {"64M", 64u << 20, 0}, {"67108865", 0, BARCHAN_ELIMIT}};
    char command[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(command, sizeof command, "rm -f f; truncate -s %s f", rows[i].size);
        sh_says(command, "");
        if (rows[i].code != 0) {
            file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "f"), rows[i].code);
            continue;
        }
        barchan_file_result r = read_part(0, 0);
        ck_assert_uint_eq(r.data.len, rows[i].bytes);
        barchan_file_result_clear(&r);
    }
}
END_TEST

/* ---- times ---- */

/* As the storage keeps them, or the nearest that milliseconds hold. */
START_TEST(odd_times)
{
    barchan_error err = {0};
    sh_says("touch 0 && python3 -c \""
            "import os\n"
            "for i, t in enumerate((0, -1, -10**9, 2**31, 2**33, -2**63, 2**63 - 1)):\n"
            "  open(str(i), 'w')\n"
            "  for k in (t, t // 10**9):\n"
            "    try: os.utime(str(i), ns=(k * 10**9, k * 10**9)); break\n"
            "    except OverflowError: pass\n"
            "\"",
            "");
    barchan_file_result r = file_done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "."));
    ck_assert_uint_eq(r.entry_count, 7);
    static const int64_t seconds[] = {0, -1, -1000000000, 1ll << 31, 1ll << 33};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        ck_assert_int_eq(r.entries[i].mtime_ms, seconds[i] * 1000);
    }
    ck_assert_int_lt(r.entries[5].mtime_ms, -(1ll << 40));
    ck_assert_int_gt(r.entries[6].mtime_ms, 1ll << 40);
    barchan_file_result_clear(&r);
    ck_assert_int_eq(barchan_file_changes(sbx, NULL, &r, &err), 0);
    ck_assert_uint_eq(r.entry_count, 7);
    barchan_file_result_clear(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_borders");
    const TTest *const tests[] = {parts_of_very_large_files, all_of_a_very_large_file,
                                  what_fits_into_an_answer, odd_times, NULL};
    add_tests(suite, "borders", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
