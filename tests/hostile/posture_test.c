/*
 * Every thread of every process of a sandbox, seen from the host, against the exact state that it
 * must be in: identity, capabilities, filter, namespaces, descriptors, environment.
 */
#include "sandbox_support.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SEEN 64

enum kind { PROCESS_1, SUPERVISOR, COMMAND };

struct seen {
    int pid;
    enum kind kind;
};

static struct seen all[MAX_SEEN];
static int count;
static int threads_seen;

static void read_text(int pid, const char *name, char *text, size_t cap)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    size_t n = file == NULL ? 0 : fread(text, 1, cap - 1, file);
    text[n] = '\0';
    if (file != NULL) fclose(file);
}

static int next_child(FILE *file)
{
    int pid;
    return fscanf(file, "%d", &pid) == 1 ? pid : 0;
}

static FILE *children_of(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    return fopen(path, "re");
}

static void collect(int pid, enum kind kind)
{
    ck_assert_int_lt(count, MAX_SEEN);
    all[count++] = (struct seen){.pid = pid, .kind = kind};
    FILE *file = children_of(pid);
    ck_assert_ptr_nonnull(file);
    for (int child; (child = next_child(file)) != 0;) {
        collect(child, kind == PROCESS_1 ? SUPERVISOR : COMMAND);
    }
    fclose(file);
}

/* The line "Name:\tvalue" of a status, with single spaces; checked as a whole. */
static void line_is(const char *status, const char *name, const char *expected, int pid)
{
    char line[256] = "";
    size_t len = strlen(name), at = 0;
    for (const char *from = status; from != NULL; from = strchr(from, '\n')) {
        if (*from == '\n') from++;
        if (strncmp(from, name, len) != 0 || from[len] != ':') continue;
        for (from += len + 1; *from != '\n' && *from != '\0' && at + 1 < sizeof line; from++) {
            char c = *from == '\t' ? ' ' : *from;
            if (c != ' ' || (at > 0 && line[at - 1] != ' ')) line[at++] = c;
        }
        while (at > 0 && line[at - 1] == ' ') {
            at--;
        }
        line[at] = '\0';
        break;
    }
    ck_assert_msg(strcmp(line, expected) == 0, "process %d: %s is '%s', not '%s'", pid, name, line,
                  expected);
}

/* As root each sandbox has a range of ids; process 1 is its root, an ordinary user of the machine.
 */
static unsigned base_id(int process_1)
{
    char text[128];
    unsigned inside, outside, ids;
    read_text(process_1, "uid_map", text, sizeof text);
    ck_assert_int_eq(sscanf(text, "%u %u %u", &inside, &outside, &ids), 3);
    ck_assert_uint_eq(inside, is_root() ? 0 : 1000);
    ck_assert_uint_eq(ids, is_root() ? 65536 : 1);
    if (is_root()) ck_assert_uint_ge(outside, 0x70000000u);
    return is_root() ? outside : geteuid();
}

/* The sandbox's own, and those that this process was started with. */
static const char *filters(void)
{
    static char text[16], status[8192];
    unsigned ours;
    read_text(getpid(), "status", status, sizeof status);
    const char *line = strstr(status, "\nSeccomp_filters:");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line, "\nSeccomp_filters: %u", &ours), 1);
    snprintf(text, sizeof text, "%u", ours + 1);
    return text;
}

static void check_thread(const struct seen *seen, int tid, unsigned base)
{
    static char status[8192];
    char id[64], path[64];
    const char *held = is_root() && seen->kind != COMMAND ? "00000000000000e0" : "0000000000000000";
    unsigned user = is_root() && seen->kind == COMMAND ? base + 1000 : base;
    snprintf(id, sizeof id, "%u %u %u %u", user, user, user, user);
    snprintf(path, sizeof path, "task/%d/status", tid);
    read_text(seen->pid, path, status, sizeof status);
    line_is(status, "Uid", id, tid);
    if (is_root()) {
        line_is(status, "Gid", id, tid);
        line_is(status, "Groups", "", tid);
    }
    line_is(status, "CapInh", "0000000000000000", tid);
    line_is(status, "CapPrm", held, tid);
    line_is(status, "CapEff", held, tid);
    line_is(status, "CapAmb", "0000000000000000", tid);
    line_is(status, "NoNewPrivs", "1", tid);
    line_is(status, "Seccomp", "2", tid);
    line_is(status, "Seccomp_filters", filters(), tid);
    threads_seen++;
}

static void check_threads(const struct seen *seen, unsigned base)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", seen->pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') check_thread(seen, atoi(entry->d_name), base);
    }
    closedir(dir);
}

/* ---- what only root sees: the processes are nobody else's to look into ---- */

static void check_namespaces(const struct seen *seen, int process_1)
{
    static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64], theirs[64] = "", ours[64] = "", first[64] = "";
        snprintf(path, sizeof path, "/proc/%d/ns/%s", seen->pid, names[i]);
        ck_assert_int_gt(readlink(path, theirs, sizeof theirs - 1), 0);
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        ck_assert_int_gt(readlink(path, ours, sizeof ours - 1), 0);
        snprintf(path, sizeof path, "/proc/%d/ns/%s", process_1, names[i]);
        ck_assert_int_gt(readlink(path, first, sizeof first - 1), 0);
        ck_assert_str_ne(theirs, ours);
        ck_assert_str_eq(theirs, first);
    }
}

struct descriptors {
    int nulls, pipes, sockets, locks, groups, others;
};

static int is_number(const char *text)
{
    return strspn(text, "0123456789") == strlen(text);
}

/* Whether the link is one of what may be open; it is counted then. */
static int count_link(const char *link, struct descriptors *d)
{
    static const char *const group_files[] = {"/cgroup.", "/cpu.stat", "/memory.", "/pids."};
    if (strcmp(link, "/dev/null") == 0) return ++d->nulls;
    if (strncmp(link, "pipe:", 5) == 0) return ++d->pipes;
    if (strncmp(link, "socket:", 7) == 0) return ++d->sockets;
    if (strncmp(link, "anon_inode:[signalfd]", 21) == 0) return ++d->others;
    if (strncmp(link, "anon_inode:[timerfd]", 20) == 0) return ++d->others;
    if (strncmp(link, "/ids/", 5) == 0 || strstr(link, "barchan/ids/") != NULL) return ++d->locks;
    if (link[0] == '/' && is_number(link + 1)) return ++d->locks;
    for (size_t i = 0; i < sizeof group_files / sizeof *group_files; i++) {
        if (strstr(link, group_files[i]) != NULL) return ++d->groups;
    }
    return 0;
}

/* False: it has something else open, which `stranger` names. */
static int count_descriptors(int pid, struct descriptors *d, char stranger[256])
{
    char path[64];
    int known = 1;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    *d = (struct descriptors){0};
    for (struct dirent *entry; known && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, stranger, 255);
        if (n < 0) continue;
        stranger[n] = '\0';
        known = count_link(stranger, d);
    }
    closedir(dir);
    return known;
}

/* What each descriptor may be; how many of a kind. Nothing else of the host's is open. A program
 * that has just begun opens its own libraries, and closes them again. */
static void check_descriptors(const struct seen *seen)
{
    struct descriptors d;
    char link[256];
    int64_t until = monotonic_ms() + 20000;
    while (!count_descriptors(seen->pid, &d, link)) {
        ck_assert_msg(seen->kind == COMMAND && monotonic_ms() < until,
                      "process %d (kind %d) has %s open", seen->pid, (int)seen->kind, link);
        barchan_runtime_pump(rt, 5, NULL);
    }
    int held = d.sockets + d.locks + d.groups + d.others;
    if (seen->kind == SUPERVISOR) {
        ck_assert_int_eq(d.nulls + d.pipes + held, 0);
    } else if (seen->kind == COMMAND) {
        ck_assert_int_eq(held, 0);
    } else {
        ck_assert_int_eq(d.sockets, 1); /* the channel */
        ck_assert_int_eq(d.locks, 1);   /* of its ids */
        ck_assert_int_eq(d.others, 2);
        ck_assert_int_eq(d.nulls, 3);
    }
}

static void check_privately(const struct seen *seen, int process_1)
{
    char text[4096], path[64];
    check_namespaces(seen, process_1);
    check_descriptors(seen);
    read_text(seen->pid, "oom_score_adj", text, sizeof text);
    ck_assert_str_eq(text, "800\n");
    if (seen->kind == COMMAND) return;
    read_text(seen->pid, "environ", text, sizeof text);
    ck_assert_str_eq(text, "");
    /* Not dumpable: its files of /proc are root's, so nobody in the sandbox opens them. */
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/mem", seen->pid);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 0);
}

static int has_said(void *ud)
{
    char text[4096] = "";
    barchan_process_chunk chunk;
    return barchan_process_read(ud, BARCHAN_STREAM_OUT, 0, text, sizeof text - 1, &chunk, NULL) ==
               0 &&
           strstr(text, "ready") != NULL;
}

static void check_all(void)
{
    int process_1 = 0;
    FILE *file = children_of(first_child());
    ck_assert_ptr_nonnull(file);
    process_1 = next_child(file);
    fclose(file);
    ck_assert_int_gt(process_1, 0);
    count = threads_seen = 0;
    collect(process_1, PROCESS_1);
    unsigned base = base_id(process_1);
    for (int i = 0; i < count; i++) {
        check_threads(&all[i], base);
        if (is_root()) check_privately(&all[i], process_1);
    }
}

static barchan_process *start(const char *command)
{
    barchan_process *process;
    barchan_error err = {0};
    ck_assert_msg(
        barchan_sandbox_spawn(&process, sbx, OPTIONS(.command = command), NULL, NULL, &err) == 0,
        "%s", err.message);
    ck_assert(wait_until(has_said, process, 20000));
    return process;
}

#define THREADS                                                                                   \
    "exec python3 -c '\nimport threading,time,os\nif os.fork() == 0: time.sleep(1000)\n"          \
    "for i in range(5): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n" \
    "print(\"ready\", flush=True); time.sleep(1000)'"

START_TEST(every_thread)
{
    barchan_process *first = start(THREADS);
    check_all();
    ck_assert_int_eq(threads_seen, 1 + 1 + 6 + 1);
    /* Again when there are more: orphans, a session of its own, a second command. */
    barchan_process *second = start("setsid sleep 1000 & (sleep 1000 & exit); echo ready; wait");
    check_all();
    ck_assert_int_eq(threads_seen, 9 + 1 + 1 + 2);
    barchan_process_destroy(first);
    barchan_process_destroy(second);
}
END_TEST

START_TEST(with_limits_and_after_a_pause)
{
    barchan_sandbox_destroy(sbx);
    const barchan_limits limits = {.memory_bytes = 512 << 20, .pids = 100, .cpu_ms = 100000};
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.limits = limits), NULL), 0);
    barchan_process *process = start(THREADS);
    check_all();
    ck_assert_int_eq(barchan_sandbox_pause(sbx, NULL), 0);
    check_all();
    ck_assert_int_eq(barchan_sandbox_resume(sbx, NULL), 0);
    check_all();
    ck_assert_int_eq(threads_seen, 9);
    barchan_process_destroy(process);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("posture");
    const TTest *const tests[] = {every_thread, with_limits_and_after_a_pause, NULL};
    add_tests(suite, "posture", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
