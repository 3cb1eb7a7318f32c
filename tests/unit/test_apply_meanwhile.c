/* Changes are applied while somebody else works in the folder: what is theirs stays, under its name
 * or under one that is told. */
#include "fake_changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "suite.h"

static void add_and_apply(const char *name, const char *text)
{
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, name, "");
    say_list();
    say_file(text);
    ck_assert_msg(done == 1 && code == 0, "%s", seen.message);
    barchan_apply_result_clear(&result);
    done = 0;
    list.len = 0;
}

/* While the bytes are on their way somebody writes to the file, exchanges it, removes it, or puts
 * a folder there: what is theirs is put back. Left alone it is replaced. */
START_TEST(changed_meanwhile)
{
    static const char *const now[] = {"theirs", "theirs", NULL, NULL, "mine"};
    add_and_apply("a", "first");
    uint32_t second = stream;
    start((barchan_apply_options){.on_conflict = _i % 2 == 0 ? BARCHAN_ON_CONFLICT_REFUSE
                                                             : BARCHAN_ON_CONFLICT_OVERWRITE});
    stream = second;
    change(BC_FILE_MODIFIED, FILE_, 0644, "a", "");
    say_list();
    if (_i == 0) put("dest/a", "theirs");
    if (_i == 1) put("dest/new", "theirs"), rename(at("dest/new"), at("dest/a"));
    if (_i == 2) unlink(at("dest/a"));
    if (_i == 3) unlink(at("dest/a")), mkdir(at("dest/a"), 0755);
    say_file("mine");
    ck_assert_int_eq(done, 1);
    if (_i == 4) ck_assert_int_eq(code, 0);
    if (_i == 0 || _i == 2) ck_assert_int_eq(code, BARCHAN_ECONFLICT);
    if (_i == 1 || _i == 3) ck_assert_uint_eq(result.conflicts, 1);
    if (_i != 3) has("dest/a", now[_i]);
    folder_holds(_i == 2 ? "precious " : "a precious ");
}
END_TEST

/* The library's, with a file system that fails, or somebody who is quicker, at the second exchange:
 * what was displaced is to be put back. */
static int exchanges, second_exchange_fails, second_save, free_place_fails;

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    if (flags == RENAME_EXCHANGE && ++exchanges == 2 && second_exchange_fails) {
        unlinkat(to, new, 0);
    }
    if (flags == RENAME_EXCHANGE && exchanges == 2 && second_save) {
        put("dest/again", "theirs");
        rename(at("dest/again"), at("dest/a"));
    }
    if (flags == RENAME_NOREPLACE && free_place_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    if (free_place_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_linkat, from, old, to, new, flags);
}

/* What somebody has made meanwhile is never removed with the temporary name that it stands under.
 */
START_TEST(what_cannot_be_put_back)
{
    char command[200], text[64];
    add_and_apply("a", "first");
    uint32_t second = stream;
    start((barchan_apply_options){.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE});
    stream = second;
    change(BC_FILE_MODIFIED, FILE_, 0644, "a", "");
    say_list();
    put("dest/new", "theirs");
    ck_assert_int_eq(rename(at("dest/new"), at("dest/a")), 0);
    exchanges = 0;
    second_exchange_fails = _i < 2;
    second_save = _i == 2;
    free_place_fails = _i == 1;
    say_file("mine");
    second_exchange_fails = free_place_fails = second_save = 0;
    ck_assert_int_eq(exchanges, 2);
    ck_assert_int_eq(done, 1);
    if (_i == 0) {
        ck_assert_uint_eq(result.conflicts, 1);
        has("dest/a", "theirs");
        folder_holds("a precious ");
        return;
    }
    ck_assert_int_eq(code, _i == 1 ? BARCHAN_EIO : BARCHAN_EEXISTS);
    ck_assert_ptr_nonnull(strstr(seen.message, "stands as '.barchan-"));
    snprintf(command, sizeof command, "cat %s/dest/.barchan-*", dir);
    FILE *out = popen(command, "r");
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    pclose(out);
    ck_assert_str_eq(text, "theirs");
}
END_TEST

START_TEST(made_meanwhile)
{
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, "a", "");
    change(BC_FILE_ADDED, FOLDER, 0755, "b", "");
    say_list();
    if (_i == 0) put("dest/a", "theirs");
    if (_i == 1) ck_assert_int_eq(symlink("../outside/x", at("dest/a")), 0);
    if (_i == 2) put("dest/b", "theirs");
    say_file("mine");
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(code, BARCHAN_ECONFLICT);
    ck_assert_ptr_nonnull(strstr(seen.message, "meanwhile"));
    if (_i == 0) has("dest/a", "theirs");
    if (_i == 2) has("dest/b", "theirs");
    if (_i == 2) ck_assert_ptr_nonnull(strstr(seen.message, "(1 of 2 are applied)"));
    folder_holds(_i == 2 ? "a b precious " : "a precious ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("apply_meanwhile");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, changed_meanwhile, 0, 5);
    tcase_add_loop_test(tc, what_cannot_be_put_back, 0, 3);
    tcase_add_loop_test(tc, made_meanwhile, 0, 3);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
