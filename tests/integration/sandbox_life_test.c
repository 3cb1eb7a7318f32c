/* Lives and deaths: of sandboxes, of the launcher, of the host; and what is left afterwards. */
#include "sandbox_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static barchan_sandbox_info status_of(barchan_sandbox *sandbox)
{
    barchan_sandbox_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(barchan_sandbox_status(sandbox, &info, NULL), 0);
    return info;
}

static int has_ended(void *ud)
{
    return status_of(ud).state == BARCHAN_SANDBOX_ENDED;
}

START_TEST(status_and_list)
{
    barchan_sandbox *list[4], *other;
    barchan_error err = {0};
    barchan_sandbox_info info = status_of(sbx);
    ck_assert_int_eq(info.state, BARCHAN_SANDBOX_READY);
    ck_assert_int_eq(strncmp(info.id, "sbx-", 4), 0);
    ck_assert_uint_eq(strlen(info.id), 20);
    ck_assert_str_eq(info.template_name, "host");
    ck_assert_int_gt(info.lease_left_ms, 29 * 60 * 1000);
    ck_assert_ptr_nonnull(strstr(info.layers, "\"seccomp\":\"allow-list"));
    ck_assert_ptr_null(strstr(info.layers, "missing"));
    ck_assert_uint_eq(barchan_sandbox_list(rt, list, 4), 1);
    ck_assert_ptr_eq(list[0], sbx);
    ck_assert_int_eq(barchan_sandbox_create(&other, rt, NULL, &err), 0);
    ck_assert_uint_eq(barchan_sandbox_list(rt, list, 1), 2);
    ck_assert_str_ne(status_of(other).id, info.id);
    barchan_sandbox_destroy(other);
    ck_assert_uint_eq(barchan_sandbox_list(rt, NULL, 0), 1);
}
END_TEST

START_TEST(terminating)
{
    barchan_error err = {0};
    barchan_exec_result r;
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_info info = status_of(sbx);
    ck_assert_int_eq(info.state, BARCHAN_SANDBOX_ENDED);
    ck_assert_int_eq(info.end_reason, BARCHAN_END_TERMINATED);
    ck_assert_int_eq(info.lease_left_ms, 0);
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err),
                     BARCHAN_ECLOSED);
    ck_assert_ptr_nonnull(strstr(err.message, "terminated"));
    ck_assert_int_eq(barchan_file_exists(sbx, "x", &err), BARCHAN_ECLOSED);
}
END_TEST

static void on_exec_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec;
    *(int *)ud = (int)result->reason + 1;
}

static int is_set(void *ud)
{
    return *(int *)ud;
}

START_TEST(terminating_under_a_command)
{
    int done = 0;
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "sleep 100"),
                                                on_exec_done, &done, NULL),
                     0);
    barchan_runtime_pump(rt, 100, NULL);
    barchan_sandbox_terminate(sbx);
    ck_assert_int_eq(done, 0); /* told by the next pump */
    ck_assert(wait_until(is_set, &done, 2000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_LOST);
}
END_TEST

struct created {
    int calls, code;
};

static void on_created(barchan_sandbox *sandbox, const barchan_error *err, void *ud)
{
    struct created *created = ud;
    ck_assert_ptr_nonnull(sandbox);
    created->calls++;
    created->code = err == NULL ? 0 : err->code;
}

static int is_created(void *ud)
{
    return ((struct created *)ud)->calls > 0;
}

START_TEST(creating_without_waiting)
{
    struct created created = {0};
    int done = 0;
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, NULL, on_created, &created, NULL), 0);
    ck_assert_int_eq(created.calls, 0);
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_STARTING);
    /* A command may be asked for before the sandbox is ready. */
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "exit 0"),
                                                on_exec_done, &done, NULL),
                     0);
    ck_assert(wait_until(is_set, &done, 5000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_EXITED);
    ck_assert_int_eq(created.calls, 1);
    ck_assert_int_eq(created.code, 0);
}
END_TEST

START_TEST(destroyed_before_it_is_ready)
{
    struct created created = {0};
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, NULL, on_created, &created, NULL), 0);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(created.calls, 1);
    ck_assert_int_eq(created.code, BARCHAN_ECANCELLED);
    barchan_cancel *token;
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    barchan_cancel_trigger(token);
    created = (struct created){0};
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, PROFILE(.cancel = token), on_created,
                                                  &created, NULL),
                     0);
    ck_assert(wait_until(is_created, &created, 2000));
    ck_assert_int_eq(created.code, BARCHAN_ECANCELLED);
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_CREATE_FAILED);
    barchan_cancel_release(token);
}
END_TEST

static void create_fails(const barchan_profile *profile, int code, const char *words)
{
    barchan_sandbox *none;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&none, rt, profile, &err), code);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
    ck_assert_int_eq(strncmp(err.message, "create sandbox: ", 16), 0);
    ck_assert_str_eq(err.where, "sandbox.create");
}

START_TEST(profiles_are_checked)
{
    const char *const bad_env[] = {"NOVALUE", NULL};
    create_fails(PROFILE(.template_name = "hots"), BARCHAN_EINVAL, "unknown template 'hots'");
    create_fails(PROFILE(.template_name = "/no/such/dir"), BARCHAN_ENOTFOUND, "/no/such/dir");
    create_fails(PROFILE(.template_name = "/etc/passwd"), BARCHAN_ENOTDIR, "/etc/passwd");
    create_fails(PROFILE(.lease_ms = -1), BARCHAN_EINVAL, "lease");
    create_fails(PROFILE(.lease_ms = 8ll * 24 * 3600 * 1000), BARCHAN_EINVAL, "7 days");
    create_fails(PROFILE(.storage_bytes = 100), BARCHAN_EINVAL, "storage_bytes");
    create_fails(PROFILE(.network = (barchan_network)7), BARCHAN_EINVAL, "network");
    create_fails(PROFILE(.env = bad_env), BARCHAN_EINVAL, "NOVALUE");
}
END_TEST

START_TEST(profile_environment)
{
    const char *const env[] = {"COLOR=red", "LANG=x", NULL};
    const char *const more[] = {"COLOR=blue", NULL};
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.env = env), NULL), 0);
    sh_says("echo $COLOR $LANG", "red x\n");
    barchan_exec_result r = run(OPTIONS(.command = "echo $COLOR $LANG", .env = more));
    ck_assert_str_eq(r.out.data, "blue x\n");
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(a_lease_ends)
{
    int done = 0;
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.lease_ms = 400), NULL), 0);
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx,
                                                OPTIONS(.command = "trap '' TERM; sleep 100"),
                                                on_exec_done, &done, NULL),
                     0);
    ck_assert(wait_until(has_ended, sbx, 3000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_LEASE_EXPIRED);
    ck_assert(wait_until(is_set, &done, 1000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_LOST);
}
END_TEST

/* ---- the launcher ---- */

static int first_child(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (fscanf(file, "%d", &pid) != 1) pid = 0;
    fclose(file);
    return pid;
}

START_TEST(a_dead_launcher)
{
    ck_assert_int_eq(kill(first_child(), SIGKILL), 0);
    ck_assert(wait_until(has_ended, sbx, 2000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_CRASHED);
    barchan_sandbox_destroy(sbx);
    /* The orphaned guest is ours to reap here; elsewhere init does it. */
    while (waitpid(-1, NULL, 0) > 0) {}
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0); /* a new one is started */
    sh_says("echo again", "again\n");
}
END_TEST

/* ---- the host ---- */

/* A host process of its own: creates a sandbox, starts something that would stay, says so. */
static void be_a_host(int say_fd, int keep_a_child, int64_t lease_ms)
{
    int done = 0;
    setup_runtime();
    if (barchan_sandbox_create(&sbx, rt, PROFILE(.lease_ms = lease_ms), NULL) < 0) _exit(1);
    sh_says("setsid sleep 1000 > /dev/null 2>&1 & echo ok", "ok\n");
    barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "sleep 1000", .timeout_ms = -1),
                               on_exec_done, &done, NULL);
    barchan_runtime_pump(rt, 100, NULL);
    if (keep_a_child && fork() == 0) {
        for (;;) {
            pause(); /* holds copies of every descriptor */
        }
    }
    (void)!write(say_fd, "r", 1);
    for (;;) {
        pause();
    }
}

static int start_host(int keep_a_child, int64_t lease_ms)
{
    int pipe_fds[2];
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    int pid = fork();
    if (pid == 0) be_a_host(pipe_fds[1], keep_a_child, lease_ms);
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
    close(pipe_fds[0]);
    return pid;
}

/* Waits until this process has `count` children, reaping what dies. */
static int children_become(int count, int limit_ms)
{
    int64_t deadline = monotonic_ms() + limit_ms;
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        if (count_children() == count) return 1;
        if (monotonic_ms() > deadline) return 0;
        usleep(5000);
    }
}

START_TEST(a_killed_host)
{
    int pid = start_host(0, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(children_become(0, 1000));
}
END_TEST

START_TEST(a_killed_host_with_a_living_child)
{
    int pid = start_host(1, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(children_become(1, 1000)); /* only the host's own child is left */
    kill(first_child(), SIGKILL);
    ck_assert(children_become(0, 1000));
}
END_TEST

static int count_descendants(int pid)
{
    char path[64];
    int count = 0, child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    while (fscanf(file, "%d", &child) == 1) {
        count += 1 + count_descendants(child);
    }
    fclose(file);
    return count;
}

START_TEST(a_lease_with_a_stuck_host)
{
    int pid = start_host(0, 1500);
    kill(pid, SIGSTOP);
    ck_assert_int_ge(count_descendants(pid), 3); /* launcher, process 1, commands */
    int64_t deadline = monotonic_ms() + 3000;
    while (count_descendants(pid) > 1 && monotonic_ms() < deadline) {
        usleep(10000);
    }
    ck_assert_int_eq(count_descendants(pid), 1); /* the launcher waits for the host */
    kill(pid, SIGKILL);
    ck_assert(children_become(0, 1000));
}
END_TEST

/* ---- hosts with their own ideas ---- */

static void *reap_everything(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) {
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) {}
        usleep(500);
    }
    return NULL;
}

static void works(void)
{
    setup_sandbox();
    sh_says("echo fine", "fine\n");
    barchan_sandbox_destroy(sbx);
}

START_TEST(a_host_that_ignores_sigchld)
{
    signal(SIGCHLD, SIG_IGN);
    works();
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(count_children(), 0);
}
END_TEST

START_TEST(a_host_that_reaps_everything)
{
    int stop = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, reap_everything, &stop);
    works();
    barchan_runtime_destroy(rt);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    ck_assert_int_eq(count_children(), 0);
}
END_TEST

START_TEST(a_host_that_blocks_all_signals)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGTERM, SIG_IGN);
    setup_sandbox();
    /* Neither the mask nor ignored signals reach a command. */
    sh_says("grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\t'",
            "SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
    teardown();
}
END_TEST

START_TEST(a_host_that_leaks)
{
    /* Descriptors without CLOEXEC, an environment, a umask, a working directory. */
    for (int i = 0; i < 50; i++) {
        ck_assert_int_ge(open("/", O_RDONLY), 0);
    }
    setenv("SECRET", "do-not-pass", 1);
    umask(0);
    ck_assert_int_eq(chdir("/tmp"), 0);
    setup_sandbox();
    sh_says("ls /proc/self/fd | wc -l; env | grep -c SECRET; umask; pwd",
            "4\n0\n0022\n/workspace\n");
    teardown();
}
END_TEST

/* ---- census ---- */

static int count_slots(void)
{
    DIR *dir = opendir("/run/barchan/ids");
    int count = 0;
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static int count_dir(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static int count_cgroups(void)
{
    FILE *file = fopen("/proc/cgroups", "re");
    char line[256], name[64];
    int total = 0, hierarchy, groups;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%63s %d %d", name, &hierarchy, &groups) == 3) total += groups;
    }
    if (file != NULL) fclose(file);
    return total;
}

static int only_launcher(void *ud)
{
    (void)ud;
    return count_descendants((int)getpid()) == 1;
}

START_TEST(two_hundred_cycles)
{
    barchan_sandbox_destroy(sbx);
    ck_assert(wait_until(only_launcher, NULL, 2000));
    int fds = count_fds(), mounts = count_mounts(), slots = count_slots(), tmp = count_dir("/tmp");
    int cgroups = count_cgroups();
    int launcher = first_child(), launcher_fds;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", launcher);
    launcher_fds = count_dir(path);
    for (int i = 0; i < 200; i++) {
        barchan_error err = {0};
        ck_assert_msg(barchan_sandbox_create(&sbx, rt, NULL, &err) == 0, "%s", err.message);
        sh_says("echo x > f; cat f; sleep 100 &", "x\n");
        if (i % 2 == 0) barchan_sandbox_terminate(sbx);
        barchan_sandbox_destroy(sbx);
    }
    ck_assert(wait_until(only_launcher, NULL, 3000));
    ck_assert_int_eq(first_child(), launcher);
    ck_assert_int_eq(count_fds(), fds);
    ck_assert_int_eq(count_mounts(), mounts);
    /* It keeps the locks of up to eight id ranges; all else it closes right after a death. */
    int kept = is_root() ? 8 : 0;
    for (int i = 0; i < 100 && count_dir(path) > launcher_fds + kept; i++) {
        usleep(10000);
    }
    ck_assert_int_le(count_dir(path), launcher_fds + kept);
    /* Others on the machine may take and give back slots, groups and files meanwhile. */
    ck_assert_int_le(count_slots(), slots + 8);
    ck_assert_int_le(count_dir("/tmp"), tmp + 8);
    ck_assert_int_le(count_cgroups(), cgroups + 8);
}
END_TEST

START_TEST(many_at_once)
{
    barchan_sandbox *many[50];
    struct created created = {0};
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(
            barchan_sandbox_create_start(&many[i], rt, NULL, on_created, &created, NULL), 0);
    }
    int64_t deadline = monotonic_ms() + 30000;
    while (created.calls < 50 && monotonic_ms() < deadline) {
        barchan_runtime_pump(rt, 100, NULL);
    }
    ck_assert_int_eq(created.calls, 50);
    ck_assert_int_eq(created.code, 0);
    for (int i = 0; i < 50; i++) {
        sbx = many[i];
        sh_says("cat mine 2>/dev/null; echo x > mine; cat mine", "x\n");
    }
}
END_TEST

/* ---- ids of the sandboxes of two processes ---- */

static unsigned host_uid_of_a_command(void)
{
    unsigned inside, outside = 0, count;
    barchan_exec_result r = sh("cat /proc/self/uid_map");
    ck_assert_int_eq(sscanf(r.out.data, "%u %u %u", &inside, &outside, &count), 3);
    barchan_exec_result_clear(&r);
    return outside;
}

START_TEST(no_two_sandboxes_share_ids)
{
    if (!is_root()) {
        printf("no_two_sandboxes_share_ids: skipped, an ordinary user has one id\n");
        return;
    }
    enum { HOSTS = 4, EACH = 5 };
    unsigned *ids = calloc(HOSTS * EACH, sizeof *ids);
    int go[2], back[2];
    ck_assert_int_eq(pipe(go) + pipe(back), 0);
    for (int h = 0; h < HOSTS; h++) {
        if (fork() != 0) continue;
        char byte;
        unsigned mine[EACH];
        setup_runtime();
        for (int i = 0; i < EACH; i++) {
            if (barchan_sandbox_create(&sbx, rt, NULL, NULL) < 0) _exit(1);
            mine[i] = host_uid_of_a_command();
        }
        (void)!write(back[1], mine, sizeof mine);
        (void)!read(go[0], &byte, 1); /* keeps them until all have theirs */
        barchan_runtime_destroy(rt);
        _exit(0);
    }
    for (int h = 0; h < HOSTS; h++) {
        ck_assert_int_eq(read(back[0], ids + h * EACH, EACH * sizeof *ids), EACH * sizeof *ids);
    }
    for (int i = 0; i < HOSTS * EACH; i++) {
        ck_assert_uint_ge(ids[i], 0x70000000u);
        for (int k = 0; k < i; k++) {
            ck_assert_uint_ne(ids[i], ids[k]);
        }
    }
    ck_assert_int_eq(write(go[1], "xxxx", HOSTS), HOSTS);
    while (wait(NULL) > 0) {}
    free(ids);
}
END_TEST

START_TEST(the_doctor_reports)
{
    char *json;
    barchan_error err = {0};
    ck_assert_msg(barchan_doctor(rt, &json, &err) == 0, "%s", err.message);
    const char *const entries[] = {"kernel",  "user_namespaces", "cgroups",         "landlock",
                                   "seccomp", "sandbox",         "sandbox.seccomp", "sandbox.proc"};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char needle[64];
        snprintf(needle, sizeof needle, "{\"name\":\"%s\",\"state\":\"", entries[i]);
        ck_assert_msg(strstr(json, needle) != NULL, "%s in %s", needle, json);
    }
    barchan_free(json);
    ck_assert_uint_eq(barchan_sandbox_list(rt, NULL, 0), 0);
}
END_TEST

static void add(Suite *suite, const char *name, void (*setup)(void), void (*end)(void),
                const TTest *const *tests)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 150);
    if (setup != NULL) tcase_add_checked_fixture(tc, setup, end);
    for (; *tests != NULL; tests++) {
        tcase_add_test(tc, *tests);
    }
    suite_add_tcase(suite, tc);
}

int main(void)
{
    Suite *suite = suite_create("sandbox_life");
    const TTest *const with_sandbox[] = {
        status_and_list, terminating,        terminating_under_a_command,
        a_dead_launcher, two_hundred_cycles, NULL};
    const TTest *const with_runtime[] = {creating_without_waiting,
                                         destroyed_before_it_is_ready,
                                         profiles_are_checked,
                                         profile_environment,
                                         a_lease_ends,
                                         many_at_once,
                                         the_doctor_reports,
                                         NULL};
    const TTest *const alone[] = {a_killed_host,
                                  a_killed_host_with_a_living_child,
                                  a_lease_with_a_stuck_host,
                                  a_host_that_ignores_sigchld,
                                  a_host_that_reaps_everything,
                                  a_host_that_blocks_all_signals,
                                  a_host_that_leaks,
                                  no_two_sandboxes_share_ids,
                                  NULL};
    add(suite, "sandbox", setup_sandbox, teardown, with_sandbox);
    add(suite, "runtime", setup_runtime, teardown, with_runtime);
    add(suite, "alone", NULL, NULL, alone);
    return run_suite(suite);
}
