/* A hostile guest whose changes are applied: whatever it answers, nothing outside of the folder is
 * touched, and nothing in it that the answer does not name. */
#include "fake_guest.h"

#include <barchan/apply.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "suite.h"

static char dir[64];
static int done, code;
static barchan_apply_result result;
static bc_wire_writer list;
static uint32_t stream; /* the last that the library has opened */

static const char *at(const char *name)
{
    static char path[16][160];
    static int next;
    char *found = path[next++ % 16];
    snprintf(found, sizeof path[0], "%s/%s", dir, name);
    return found;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "we");
    ck_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void has(const char *name, const char *text)
{
    char bytes[64] = "";
    FILE *file = fopen(at(name), "re");
    if (text == NULL) {
        ck_assert_msg(file == NULL, "%s is there", name);
        return;
    }
    ck_assert_msg(file != NULL, "%s is missing", name);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(bytes, text);
}

/* Exactly these names, sorted. */
static void folder_holds(const char *names)
{
    char command[200], text[200];
    snprintf(command, sizeof command, "cd %s/dest && ls -A | tr '\\n' ' '", dir);
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    pclose(out);
    ck_assert_str_eq(text, names);
}

static void begin(void)
{
    set_up_ready();
    done = code = 0;
    stream = 0;
    list = (bc_wire_writer){.data = malloc(70000), .cap = 70000};
    strcpy(dir, "/tmp/barchan-apply-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(mkdir(at("dest"), 0755), 0);
    ck_assert_int_eq(mkdir(at("outside"), 0755), 0);
    put("outside/canary", "canary");
    put("dest/precious", "precious");
}

static void end(void)
{
    char command[100];
    has("outside/canary", "canary");
    ck_assert_int_eq(access(at("outside/x"), F_OK), -1);
    tear_down();
    barchan_apply_result_clear(&result);
    free(list.data);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void on_applied(barchan_apply_result *given, const barchan_error *err, void *ud)
{
    (void)ud;
    done++;
    code = err == NULL ? 0 : err->code;
    if (err != NULL) memcpy(seen.message, err->message, sizeof err->message);
    if (err == NULL) result = *given, memset(given, 0, sizeof *given);
}

static void start(barchan_apply_options options)
{
    barchan_error err = {0};
    options.struct_size = sizeof options;
    ck_assert_msg(barchan_sandbox_apply_changes_start(NULL, sbx, at("dest"), &options, on_applied,
                                                      NULL, &err) == 0,
                  "%s", err.message);
    stream = 1;
}

static void change(uint32_t kind, uint32_t type, uint32_t mode, const char *path,
                   const char *target)
{
    bc_wire_put_u32(&list, kind);
    bc_wire_put_u32(&list, type);
    bc_wire_put_u32(&list, mode);
    bc_wire_put_u64(&list, UINT64_MAX);
    bc_wire_put_u64(&list, UINT64_MAX);
    bc_wire_put_string(&list, path, strlen(path));
    bc_wire_put_string(&list, target, strlen(target));
}

static void say_done(uint64_t bytes, uint32_t truncated)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u64(&out, bytes);
    bc_wire_put_u64(&out, bytes);
    bc_wire_put_u32(&out, truncated);
    bc_wire_put_string(&out, "", 0);
    say(BC_FRAME_FILE_DONE, stream++, out.data, out.len);
}

static void say_list(void)
{
    say(BC_FRAME_OUT, stream, list.data, list.len);
    say_done(0, 0);
}

static void say_file(const char *text)
{
    say(BC_FRAME_OUT, stream, text, strlen(text));
    say_done(strlen(text), 0);
}

enum { FILE_ = BARCHAN_FILE_REGULAR, FOLDER = BARCHAN_FILE_DIRECTORY, LINK = BARCHAN_FILE_SYMLINK };

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
    tcase_add_loop_test(tc, changed_meanwhile, 0, 5);
    tcase_add_loop_test(tc, what_cannot_be_put_back, 0, 3);
    tcase_add_loop_test(tc, made_meanwhile, 0, 3);
    tcase_add_loop_test(tc, a_folder_that_is_to_go, 0, 3);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
