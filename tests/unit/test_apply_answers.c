/* A hostile guest whose changes are applied: whatever it answers, nothing outside of the folder is
 * touched, and nothing in it that the answer does not name. */
#include "fake_changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "suite.h"

START_TEST(files)
{
    struct stat st;
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0xFFFFFFFF, "a", "");
    change(BC_FILE_ADDED, FOLDER, 07000, "d", "");
    change(BC_FILE_ADDED, FILE_, 04755, "d/b", "");
    say_list();
    say_file("alpha");
    say_file("");
    ck_assert_int_eq(done, 1);
    ck_assert_msg(code == 0, "%s", seen.message);
    ck_assert_uint_eq(result.applied, 3);
    has("dest/a", "alpha");
    has("dest/d/b", "");
    ck_assert_int_eq(stat(at("dest/a"), &st), 0);
    ck_assert_int_eq(st.st_mode & 07000, 0);
    ck_assert_int_eq(stat(at("dest/d/b"), &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0755);
    ck_assert_int_eq(stat(at("dest/d"), &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0700);
    folder_holds("a d precious ");
}
END_TEST

/* What the guest says was there before is not believed: the host's file decides. */
START_TEST(inventions)
{
    start((barchan_apply_options){0});
    change(_i == 0   ? BC_FILE_DELETED
           : _i == 1 ? BC_FILE_MODIFIED
                     : BC_FILE_ADDED,
           FILE_, 0644, "precious", "");
    say_list();
    ck_assert_int_eq(code, BARCHAN_ECONFLICT);
    ck_assert_ptr_nonnull(strstr(seen.message, "'precious'"));
    has("dest/precious", "precious");
}
END_TEST

START_TEST(control_characters)
{
    ck_assert_int_eq(mkdir(at("dest/\x1b]0;x"), 0755), 0);
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, "\x1b]0;x", "");
    say_list();
    ck_assert_int_eq(code, BARCHAN_ECONFLICT);
    ck_assert_ptr_nonnull(strstr(seen.message, "'?]0;x'"));
    ck_assert_ptr_null(strchr(seen.message, '\x1b'));
}
END_TEST

START_TEST(links_in_the_way)
{
    static const uint32_t kinds[] = {BC_FILE_ADDED, BC_FILE_MODIFIED, BC_FILE_DELETED};
    ck_assert_int_eq(symlink("../outside", at("dest/link")), 0);
    start((barchan_apply_options){.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE, .links = 1});
    change(kinds[_i], FILE_, 0644, "link/canary", "");
    change(kinds[_i], FOLDER, 0755, "link/x", "");
    change(kinds[_i], LINK, 0777, "link/y", "z");
    say_list();
    ck_assert_msg(code == 0, "%s", seen.message);
    ck_assert_uint_eq(result.conflicts, 3);
    ck_assert_str_eq(result.entries[0].why, "a symbolic link is in its way");
}
END_TEST

/* The link itself is replaced or removed, when the caller says that changes are overwritten. */
START_TEST(links_at_the_end)
{
    ck_assert_int_eq(symlink("../outside/canary", at("dest/link")), 0);
    ck_assert_int_eq(symlink("../outside", at("dest/tree")), 0);
    start((barchan_apply_options){.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE});
    change(BC_FILE_MODIFIED, FILE_, 0644, "link", "");
    change(BC_FILE_MODIFIED, FOLDER, 0755, "tree", "");
    change(BC_FILE_ADDED, FILE_, 0644, "tree/x", "");
    say_list();
    say_file("mine");
    say_file("x");
    ck_assert_int_eq(done, 1);
    has("dest/link", "mine");
    has("dest/tree/x", "x");
}
END_TEST

START_TEST(odd_kinds)
{
    start((barchan_apply_options){.links = 1});
    change(BC_FILE_ADDED, BARCHAN_FILE_FIFO, 0644, "f", "");
    change(BC_FILE_ADDED, BARCHAN_FILE_SOCKET, 0644, "s", "");
    change(BC_FILE_ADDED, BARCHAN_FILE_DEVICE, 0644, "d", "");
    change(BC_FILE_ADDED, LINK, 0777, "l1", "/etc/passwd");
    change(BC_FILE_ADDED, LINK, 0777, "l2", "../outside");
    change(BC_FILE_ADDED, LINK, 0777, "l3", "a/../../outside");
    change(BC_FILE_ADDED, LINK, 0777, "l4", "");
    change(BC_FILE_ADDED, LINK, 0777, "l5", "precious");
    change(BC_FILE_ADDED, FOLDER, 0755, "m", "");
    change(BC_FILE_ADDED, LINK, 0777, "m/l6", "../precious");
    change(BC_FILE_ADDED, LINK, 0777, "m/l7", "../../outside");
    change(BC_FILE_ADDED, LINK, 0777, "m/l8", ".");
    change(BC_FILE_ADDED, LINK, 0777, "m/l9", "l8/../../../outside");
    say_list();
    ck_assert_msg(code == 0, "%s", seen.message);
    ck_assert_uint_eq(result.applied, 4);
    ck_assert_uint_eq(result.skipped, 9);
    folder_holds("l5 m precious ");
    has("dest/l5", "precious");
    has("dest/m/l6", "precious");
}
END_TEST

START_TEST(without_end)
{
    start((barchan_apply_options){.max_bytes = 10});
    change(BC_FILE_ADDED, FILE_, 0644, "a", "");
    say_list();
    say(BC_FRAME_OUT, stream, "0123456789", 10);
    ck_assert_int_eq(done, 0);
    say(BC_FRAME_OUT, stream, "0", 1);
    say_done(11, 0);
    ck_assert_int_eq(code, BARCHAN_ELIMIT);
    ck_assert_ptr_nonnull(strstr(seen.message, "max_bytes"));
    folder_holds("precious ");
}
END_TEST

START_TEST(a_death)
{
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, "a", "");
    change(BC_FILE_ADDED, FILE_, 0644, "b", "");
    if (_i > 0) say_list();
    if (_i > 1) say_file("one");
    if (_i > 0) say(BC_FRAME_OUT, stream, "x", 1);
    if (_i == 3) barchan_sandbox_terminate(sbx);
    if (_i != 3) say_raw("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    pump();
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(code, BARCHAN_ELOST);
    if (_i > 1) ck_assert_ptr_nonnull(strstr(seen.message, "(1 of 2 are applied)"));
    folder_holds(_i > 1 ? "a precious " : "precious ");
}
END_TEST

START_TEST(a_destroyed_sandbox)
{
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, "a", "");
    if (_i == 1) {
        say_list();
        say(BC_FRAME_OUT, stream, "x", 1);
    }
    bc_sandbox_ref(sbx);
    barchan_sandbox_destroy(sbx);
    pump();
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(code, BARCHAN_ELOST);
    folder_holds("precious ");
    bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    bc_sandbox_unref(sbx);
    sbx = NULL;
}
END_TEST

START_TEST(a_cut_list)
{
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, "a", "");
    say(BC_FRAME_OUT, stream, list.data, list.len);
    say_done(0, 1);
    ck_assert_int_eq(code, BARCHAN_ELIMIT);
    ck_assert_ptr_nonnull(strstr(seen.message, "not complete"));
}
END_TEST

START_TEST(no_file_any_more)
{
    start((barchan_apply_options){0});
    change(BC_FILE_ADDED, FILE_, 0644, "a", "");
    say_list();
    say_file_done(stream, BC_WIRE_ENOTREG, "it is a \x1b FIFO");
    ck_assert_int_eq(code, BARCHAN_ENOTREG);
    folder_holds("precious ");
}
END_TEST

/* A folder that the guest says is gone goes only if all in it does. */
START_TEST(a_folder_that_is_to_go)
{
    ck_assert_int_eq(mkdir(at("dest/d"), 0755), 0);
    put("dest/d/one", "1");
    put("dest/d/two", "2");
    start((barchan_apply_options){.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE});
    change(BC_FILE_DELETED, FOLDER, 0755, "d", "");
    change(BC_FILE_DELETED, FILE_, 0644, "d/one", "");
    if (_i == 1) change(BC_FILE_DELETED, FILE_, 0644, "d/two", "");
    if (_i == 2) change(BC_FILE_MODIFIED, FILE_, 0644, "d/two", "");
    say_list();
    if (_i == 2) say_file("x");
    ck_assert_msg(code == 0, "%s", seen.message);
    ck_assert_uint_eq(result.conflicts, _i == 1 ? 0 : 1);
    if (_i == 1) folder_holds("precious ");
    if (_i != 1) has("dest/d/two", _i == 2 ? "x" : "2");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("apply_answers");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, files);
    tcase_add_loop_test(tc, inventions, 0, 3);
    tcase_add_test(tc, control_characters);
    tcase_add_loop_test(tc, links_in_the_way, 0, 3);
    tcase_add_test(tc, links_at_the_end);
    tcase_add_test(tc, odd_kinds);
    tcase_add_test(tc, without_end);
    tcase_add_loop_test(tc, a_death, 0, 4);
    tcase_add_loop_test(tc, a_destroyed_sandbox, 0, 2);
    tcase_add_test(tc, a_cut_list);
    tcase_add_test(tc, no_file_any_more);
    tcase_add_loop_test(tc, a_folder_that_is_to_go, 0, 3);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
