#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000u

static const char *const NOT_AVAILABLE =
    "needs control groups: run as root, or start the program in a delegated group of version 2, "
    "outside of which it stands itself (systemd-run --user --scope -p Delegate=yes)";

const char *held_by_name(enum held_by means)
{
    switch (means) {
    case BY_V2: return "cgroup version 2";
    case BY_V1: return "cgroup version 1";
    case BY_RLIMIT: return "a resource limit";
    case BY_WATCH: return "process 1, which looks every 20 ms";
    case BY_NOTHING: break;
    }
    return "nothing";
}

/* ---- small files in a group ---- */

int group_write(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = write(fd, text, strlen(text));
    int os_error = errno;
    close(fd);
    errno = os_error;
    return n < 0 ? -1 : 0;
}

static int group_write_number(int dir, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return group_write(dir, name, text);
}

bool group_read(int dir, const char *name, char *text, size_t cap)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, cap - 1);
    close(fd);
    if (n < 0) return false;
    text[n] = '\0';
    return true;
}

/* The launcher's group in one hierarchy; made when first needed. */
bool group_make_own(struct groups *g, enum hierarchy_kind kind)
{
    struct hierarchy *h = &g->of[kind];
    if (h->dir_fd >= 0) return true;
    if (h->parent_fd < 0 || g->lock_fd < 0) return false;
    if (mkdirat(h->parent_fd, g->name, 0755) < 0 && errno != EEXIST) return false;
    h->dir_fd = openat(h->parent_fd, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return h->dir_fd >= 0;
}

/* ---- one sandbox ---- */

static void name_of(uint32_t tag, char name[16])
{
    snprintf(name, 16, "%u", tag);
}

/* The sandbox's group in one hierarchy: its directory, or -1. */
static int make_group(struct groups *g, enum hierarchy_kind kind, uint32_t tag,
                      struct sandbox_groups *made)
{
    char name[16];
    name_of(tag, name);
    if (!group_make_own(g, kind)) return -1;
    int dir = g->of[kind].dir_fd;
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST) return -1;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && made->files[GROUP_ENTER + kind] < 0) {
        made->files[GROUP_ENTER + kind] = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    }
    return fd;
}

static void open_file(struct sandbox_groups *made, enum group_file which, int dir, const char *name,
                      int flags)
{
    made->files[which] = openat(dir, name, flags | O_CLOEXEC);
}

static bool limit_memory(int fd, bool v2, uint64_t bytes, struct sandbox_groups *made)
{
    if (group_write_number(fd, v2 ? "memory.max" : "memory.limit_in_bytes", bytes) < 0)
        return false;
    /* Where there is swap, it is no way around the limit. */
    if (v2) {
        group_write(fd, "memory.swap.max", "0");
    } else {
        group_write_number(fd, "memory.memsw.limit_in_bytes", bytes);
    }
    open_file(made, GROUP_MEMORY_EVENTS, fd, v2 ? "memory.events" : "memory.oom_control", O_RDONLY);
    return true;
}

static bool limit_pids(int fd, bool v2, uint64_t count, struct sandbox_groups *made)
{
    (void)v2;
    if (group_write_number(fd, "pids.max", count) < 0) return false;
    open_file(made, GROUP_PIDS_EVENTS, fd, "pids.events", O_RDONLY);
    return true;
}

static bool limit_cpus(int fd, bool v2, uint64_t milli, struct sandbox_groups *made)
{
    char text[48];
    uint64_t quota = milli * CPU_PERIOD_US / 1000;
    (void)made;
    if (v2) {
        snprintf(text, sizeof text, "%llu %u", (unsigned long long)quota, CPU_PERIOD_US);
        return group_write(fd, "cpu.max", text) == 0;
    }
    return group_write_number(fd, "cpu.cfs_period_us", CPU_PERIOD_US) == 0 &&
           group_write_number(fd, "cpu.cfs_quota_us", quota) == 0;
}

/* Sets one limit in the first hierarchy that can hold it. */
static enum held_by hold(struct groups *g, uint32_t tag, struct sandbox_groups *made, bool in_v2,
                         enum hierarchy_kind v1, uint64_t value,
                         bool (*set)(int, bool, uint64_t, struct sandbox_groups *))
{
    enum hierarchy_kind kind = in_v2 ? IN_V2 : v1;
    int fd = value == 0 ? -1 : make_group(g, kind, tag, made);
    if (fd < 0) return BY_NOTHING;
    bool held = set(fd, in_v2, value, made);
    if (held && v1 == IN_MEMORY) {
        open_file(made, GROUP_MEMORY_NOW, fd, in_v2 ? "memory.current" : "memory.usage_in_bytes",
                  O_RDONLY);
        open_file(made, GROUP_MEMORY_PEAK, fd, in_v2 ? "memory.peak" : "memory.max_usage_in_bytes",
                  O_RDONLY);
    }
    close(fd);
    return !held ? BY_NOTHING : in_v2 ? BY_V2 : BY_V1;
}

/* Accounting and freezing need nothing but a group of version 2. */
static void make_accounting(struct groups *g, uint32_t tag, struct sandbox_groups *made)
{
    int fd = g->guest_fd < 0 ? -1 : make_group(g, IN_V2, tag, made);
    if (fd < 0) return;
    open_file(made, GROUP_PARK, g->guest_fd, "cgroup.procs", O_WRONLY);
    open_file(made, GROUP_FREEZE, fd, "cgroup.freeze", O_WRONLY);
    open_file(made, GROUP_EVENTS, fd, "cgroup.events", O_RDONLY);
    open_file(made, GROUP_CPU_STAT, fd, "cpu.stat", O_RDONLY);
    made->into_fd = fd;
}

static int need(const char *limit, bool best_effort, struct failure *why)
{
    fail_status(why, BC_WIRE_EUNSUPPORTED, "the limit '%s' %s", limit, NOT_AVAILABLE);
    return best_effort ? 0 : -1;
}

int groups_make(struct groups *g, uint32_t tag, const bc_limits *limits, bool best_effort,
                struct sandbox_groups *made, struct failure *why)
{
    *made = (struct sandbox_groups){.into_fd = -1};
    for (int i = 0; i < GROUP_FILES; i++) {
        made->files[i] = -1;
    }
    make_accounting(g, tag, made);
    made->memory = hold(g, tag, made, g->v2_memory, IN_MEMORY, limits->memory_bytes, limit_memory);
    made->pids = hold(g, tag, made, g->v2_pids, IN_PIDS, limits->pids, limit_pids);
    made->cpus = hold(g, tag, made, g->v2_cpu, IN_CPU, limits->cpus_milli, limit_cpus);
    made->apart = made->memory != BY_NOTHING || made->pids != BY_NOTHING ||
                  made->cpus != BY_NOTHING || (limits->cpu_us > 0 && made->into_fd >= 0);
    if (made->apart && made->into_fd >= 0) { /* process 1 begins outside */
        close(made->into_fd);
        made->into_fd = fcntl(g->guest_fd, F_DUPFD_CLOEXEC, 3);
    }
    if (limits->memory_bytes > 0 && made->memory == BY_NOTHING) made->memory = BY_WATCH;
    if (limits->pids > 0 && made->pids == BY_NOTHING) made->pids = BY_RLIMIT;
    if (limits->cpus_milli > 0 && made->cpus == BY_NOTHING && need("cpus", best_effort, why) < 0) {
        groups_let_go(made);
        groups_remove(g, tag);
        return -1;
    }
    return 0;
}

void groups_let_go(struct sandbox_groups *made)
{
    if (made->into_fd >= 0) close(made->into_fd);
    made->into_fd = -1;
    for (int i = 0; i < GROUP_FILES; i++) {
        if (made->files[i] >= 0) close(made->files[i]);
        made->files[i] = -1;
    }
}

bool groups_read_cpu(const struct groups *g, uint32_t tag, uint64_t *user_us, uint64_t *system_us)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "%u/cpu.stat", tag);
    if (g->of[IN_V2].dir_fd < 0 || !group_read(g->of[IN_V2].dir_fd, path, text, sizeof text)) {
        return false;
    }
    const char *user = strstr(text, "user_usec "), *system = strstr(text, "system_usec ");
    if (user == NULL || system == NULL) return false;
    *user_us = strtoull(user + 10, NULL, 10);
    *system_us = strtoull(system + 12, NULL, 10);
    return true;
}

uint64_t groups_oom_kills(const struct groups *g)
{
    char text[16384];
    ssize_t n = g->oom_fd < 0 ? -1 : pread(g->oom_fd, text, sizeof text - 1, 0);
    if (n <= 0) return 0;
    text[n] = '\0';
    const char *at = strstr(text, "oom_kill ");
    return at == NULL ? 0 : strtoull(at + 9, NULL, 10);
}

/* ---- the end ---- */

static bool remove_groups(struct groups *g, uint32_t tag)
{
    char name[16];
    bool gone = true;
    name_of(tag, name);
    for (int i = 0; i < HIERARCHIES; i++) {
        if (g->of[i].dir_fd < 0) continue;
        if (unlinkat(g->of[i].dir_fd, name, AT_REMOVEDIR) < 0 && errno == EBUSY) gone = false;
    }
    return gone;
}

void groups_remove(struct groups *g, uint32_t tag)
{
    if (remove_groups(g, tag)) return;
    /* With more than there is room for, the launcher's end removes them. */
    if (g->late_count < LATE_GROUPS) g->late[g->late_count++] = tag;
}

bool groups_settle(struct groups *g)
{
    for (unsigned i = g->late_count; i-- > 0;) {
        if (remove_groups(g, g->late[i])) g->late[i] = g->late[--g->late_count];
    }
    if (g->leftovers) registry_clean(g);
    return g->late_count == 0 && !g->leftovers;
}

bool groups_close(struct groups *g)
{
    bool gone = true;
    for (int i = 0; i < HIERARCHIES; i++) {
        if (g->of[i].dir_fd >= 0 && !group_destroy(g->of[i].parent_fd, g->name)) gone = false;
    }
    if (gone) registry_close(g);
    return gone;
}
