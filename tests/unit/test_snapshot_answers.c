/* What a hostile guest answers when a snapshot is taken: it ends that sandbox, leaves no folder,
 * and whoever asked is told once. */
#include "fake_guest.h"

#include <barchan/template.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "sandbox/templates.h"
#include "suite.h"

static char dir[64];
static int calls, code;
static char message[512];

static void begin(void)
{
    strcpy(dir, "/tmp/barchan-answers-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(setenv("XDG_DATA_HOME", dir, 1), 0);
    calls = code = 0;
    set_up_ready();
}

static void end(void)
{
    tear_down();
    ck_assert_int_eq(bc_tree_remove(AT_FDCWD, dir), 0);
}

static int count_folders(void)
{
    char path[128];
    int count = 0;
    snprintf(path, sizeof path, "%s/barchan/templates", dir);
    DIR *list = opendir(path);
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] != '.' || strncmp(entry->d_name, ".t-", 3) == 0) count++;
    }
    if (list != NULL) closedir(list);
    return count;
}

static void note(const barchan_template *info, const barchan_error *err, void *ud)
{
    (void)ud;
    calls++;
    code = err == NULL ? 0 : err->code;
    ck_assert(info != NULL || err != NULL);
    snprintf(message, sizeof message, "%s", err == NULL ? "" : err->message);
}

static void start(void)
{
    ck_assert_int_eq(barchan_sandbox_snapshot_start(NULL, sbx, "name", NULL, note, NULL, NULL), 0);
    pump();
    ck_assert_int_eq(count_folders(), 1);
}

static void say_folder(bc_wire_writer *out, const char *name)
{
    bc_wire_put_u32(out, BC_PACK_FOLDER);
    bc_wire_put_u32(out, 0755);
    bc_wire_put_string(out, name, strlen(name));
}

static void say_leave(bc_wire_writer *out)
{
    bc_wire_put_u32(out, BC_PACK_LEAVE);
    bc_wire_put_u64(out, 0);
    bc_wire_put_u32(out, 0);
}

static void say_end(bc_wire_writer *out, uint64_t entries)
{
    bc_wire_put_u32(out, BC_PACK_DONE);
    bc_wire_put_u64(out, entries);
    bc_wire_put_u64(out, 0);
    bc_wire_put_u32(out, 0);
}

/* A whole one, for comparison. */
START_TEST(as_it_should)
{
    start();
    bc_wire_writer out = payload();
    say_folder(&out, "home");
    say_leave(&out);
    say_end(&out, 1);
    say(BC_FRAME_OUT, 1, out.data, out.len);
    say_file_done(1, 0, "");
    ck_assert_int_eq(calls, 1);
    ck_assert_msg(code == 0, "%s", message);
    ck_assert_int_eq(count_folders(), 2); /* and its name */
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

START_TEST(breaches)
{
    start();
    bc_wire_writer out = payload();
    switch (_i) {
    case 0: say_folder(&out, "../../x"); break;
    case 1: say_folder(&out, "etc"); break;
    case 2: say_leave(&out); break;
    case 3: bc_wire_put_u32(&out, 99); break;
    case 4: say_end(&out, 7); break;
    case 5: say_folder(&out, "home"), say_folder(&out, ".."); break;
    case 6: say_end(&out, 0), say_leave(&out); break;
    default: break; /* it says that all is done, and nothing came */
    }
    if (out.len > 0) say(BC_FRAME_OUT, 1, out.data, out.len);
    /* A name that is none is waited for to its end, as if the rest were still to come. */
    if (status().state == BARCHAN_SANDBOX_READY) say_file_done(1, 0, "");
    broke_the_protocol();
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(code, BARCHAN_EPROTOCOL);
    ck_assert_int_eq(strncmp(message, "snapshot: the sandbox sent a malformed snapshot", 47), 0);
    ck_assert_int_eq(count_folders(), 0);
}
END_TEST

START_TEST(refusals)
{
    start();
    say_file_done(1, BC_WIRE_EBUSY, "2 processes run: 4 a\x1b[2Jb, 5 c");
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(code, BARCHAN_EBUSY);
    ck_assert_ptr_null(strchr(message, 0x1b)); /* a terminal is not steered */
    ck_assert_int_eq(count_folders(), 0);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    ck_assert_int_eq(barchan_sandbox_snapshot_start(NULL, sbx, "name", NULL, note, NULL, NULL), 0);
}
END_TEST

START_TEST(it_dies)
{
    start();
    bc_wire_writer out = payload();
    say_folder(&out, "home");
    say(BC_FRAME_OUT, 1, out.data, out.len);
    ck_assert_int_eq(calls, 0);
    barchan_sandbox_terminate(sbx);
    pump();
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(code, BARCHAN_ELOST);
    ck_assert_int_eq(count_folders(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot_answers");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, as_it_should);
    tcase_add_loop_test(tc, breaches, 0, 8);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, it_dies);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
