#include "detached_support.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char held_directory[256] = "/run/barchan/sandboxes";
static char scratch[64];
struct holder holder;

void use_scratch_directory(void)
{
    if (is_root()) return;
    snprintf(scratch, sizeof scratch, "/tmp/barchan-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    setenv("XDG_RUNTIME_DIR", scratch, 1);
    snprintf(held_directory, sizeof held_directory, "%s/barchan/sandboxes", scratch);
}

void remove_scratch_directory(void)
{
    char path[300];
    if (is_root()) return;
    rmdir(held_directory); /* fails when something was left in it, and so does the next */
    snprintf(path, sizeof path, "%s/barchan", scratch);
    rmdir(path);
    ck_assert_msg(rmdir(scratch) == 0, "something is left in %s", held_directory);
}

int name_exists(const char *id, const char *ending)
{
    char path[320];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s.%s", held_directory, id, ending);
    return lstat(path, &st) == 0;
}

/* ---- holders ---- */

static void note_over(const barchan_error *err, void *ud)
{
    (void)err;
    *(int *)ud = 1;
}

static _Noreturn void be_holder(const barchan_profile *profile, int tell)
{
    barchan_error err = {0};
    int over = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (barchan_runtime_create(&rt, NULL, &err) < 0 ||
        barchan_sandbox_create(&sbx, rt, profile, &err) < 0 ||
        barchan_sandbox_hold(sbx, note_over, &over, &err) < 0) {
        fprintf(stderr, "holder: %s\n", err.message);
        _exit(1);
    }
    const char *id = status_of(sbx).id;
    if (write(tell, id, strlen(id)) < 0) _exit(1);
    close(tell);
    while (!over) {
        barchan_runtime_pump(rt, -1, NULL);
    }
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    _exit(0);
}

struct holder start_holder(const barchan_profile *profile)
{
    struct holder made = {0};
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    made.pid = fork();
    ck_assert_int_ge(made.pid, 0);
    if (made.pid == 0) {
        close(fds[0]);
        be_holder(profile, fds[1]);
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], made.id, sizeof made.id - 1), 20);
    close(fds[0]);
    return made;
}

int holder_gone(struct holder *h)
{
    int status = 0;
    int64_t deadline = monotonic_ms() + 20000;
    while (waitpid(h->pid, &status, WNOHANG) == 0) {
        ck_assert_msg(monotonic_ms() < deadline, "the holder is left");
        if (rt != NULL) barchan_runtime_pump(rt, 1, NULL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    h->pid = 0;
    return status;
}

int is_listed(const char *id)
{
    barchan_detached_list list;
    barchan_error err = {0};
    int found = 0;
    ck_assert_msg(barchan_detached_ids(rt, &list, &err) == 0, "%s", err.message);
    for (size_t i = 0; i < list.count; i++) {
        found |= strcmp(list.ids[i], id) == 0;
    }
    barchan_detached_list_clear(&list);
    return found;
}

barchan_sandbox *connect_to(const char *id)
{
    barchan_sandbox *connected;
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_connect(&connected, rt, id, &err) == 0, "%s", err.message);
    return connected;
}

void setup_connected(void)
{
    use_scratch_directory();
    setup_runtime();
    holder = start_holder(NULL);
    sbx = connect_to(holder.id);
}

void teardown_connected(void)
{
    if (holder.pid != 0) {
        barchan_sandbox *last = connect_to(holder.id);
        barchan_sandbox_terminate(last);
        barchan_sandbox_destroy(last);
        ck_assert_int_eq(holder_gone(&holder), 0);
    }
    ck_assert(!name_exists(holder.id, "sock"));
    ck_assert(!name_exists(holder.id, "lock"));
    teardown();
    remove_scratch_directory();
}
