/* Which hierarchies there are, and where in them the launcher's groups can stand. */
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "files.h"

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len) {
        bool starts = at == words || strchr(" ,\n", at[-1]) != NULL;
        if (starts && strchr(" ,\n", at[len]) != NULL) return true;
    }
    return false;
}

static int open_root(const char *path, long magic)
{
    struct statfs fs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == magic) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static int open_below(int root, const char *path)
{
    while (*path == '/') {
        path++;
    }
    return openat(root, *path == '\0' ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* This process's group; in a container whose mount begins at it, the mount's root. */
static void stand_in_own(struct hierarchy *h, const char *own)
{
    snprintf(h->parent, sizeof h->parent, "%s", own);
    h->parent_fd = open_below(h->root_fd, h->parent);
    if (h->parent_fd < 0) {
        h->parent[0] = '\0';
        h->parent_fd = open_below(h->root_fd, "");
    }
}

static bool can_hold(int group, const char *controller)
{
    char text[256], command[32];
    if (!group_read(group, "cgroup.controllers", text, sizeof text) ||
        !has_word(text, controller)) {
        return false;
    }
    snprintf(command, sizeof command, "+%s", controller);
    group_write(group, "cgroup.subtree_control", command);
    return group_read(group, "cgroup.subtree_control", text, sizeof text) &&
           has_word(text, controller);
}

/* A group with processes in it cannot give limits to groups below it: hence the walk upwards, as
 * far as this user may. */
static void choose_v2_parent(struct groups *g)
{
    struct hierarchy *h = &g->of[IN_V2];
    char path[sizeof h->parent];
    snprintf(path, sizeof path, "%s", h->parent);
    for (;;) {
        int fd = open_below(h->root_fd, path);
        if (fd < 0 || faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0) break;
        if (can_hold(fd, "memory")) {
            close(h->parent_fd);
            h->parent_fd = fd;
            memcpy(h->parent, path, sizeof path);
            g->v2_memory = true;
            g->v2_pids = can_hold(fd, "pids");
            g->v2_cpu = can_hold(fd, "cpu");
            return;
        }
        close(fd);
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[1] == '\0' || path[0] == '\0') return;
        slash[slash == path ? 1 : 0] = '\0';
    }
}

static void find_v1(struct groups *g, const char *controllers, const char *own)
{
    static const struct {
        enum hierarchy_kind kind;
        const char *name;
    } wanted[] = {{IN_MEMORY, "memory"}, {IN_PIDS, "pids"}, {IN_CPU, "cpu"}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct hierarchy *h = &g->of[wanted[i].kind];
        char path[128];
        if (!has_word(controllers, wanted[i].name)) continue;
        snprintf(path, sizeof path, "/sys/fs/cgroup/%.*s", (int)strcspn(controllers, "\n"),
                 controllers);
        h->root_fd = open_root(path, CGROUP_SUPER_MAGIC);
        if (h->root_fd >= 0) stand_in_own(h, own);
    }
}

/* By the lines of /proc/self/cgroup: number:controllers:path. */
static void find_hierarchies(struct groups *g)
{
    char text[4096], *rest = text, *line;
    if (read_file("/proc/self/cgroup", text, sizeof text) < 0) return;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *controllers = strchr(line, ':'), *path = strstr(line, ":/");
        if (controllers == NULL || path == NULL) continue;
        *path++ = '\n'; /* ends the list of controllers, as has_word wants it */
        if (controllers[1] != '\n') {
            find_v1(g, controllers + 1, path);
            continue;
        }
        struct hierarchy *h = &g->of[IN_V2];
        h->root_fd = open_root("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC);
        if (h->root_fd < 0) h->root_fd = open_root("/sys/fs/cgroup/unified", CGROUP2_SUPER_MAGIC);
        if (h->root_fd >= 0) stand_in_own(h, path);
    }
}

void groups_init(struct groups *g)
{
    *g = (struct groups){.guest_fd = -1, .registry_fd = -1, .lock_fd = -1, .oom_fd = -1};
    for (int i = 0; i < HIERARCHIES; i++) {
        g->of[i] = (struct hierarchy){.root_fd = -1, .parent_fd = -1, .dir_fd = -1};
    }
}

/* Of this process's own group, before another is chosen for those of the sandboxes. */
static void open_oom_count(struct groups *g)
{
    const struct hierarchy *v1 = &g->of[IN_MEMORY], *v2 = &g->of[IN_V2];
    if (v1->parent_fd >= 0) {
        g->oom_fd = openat(v1->parent_fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    } else if (v2->parent_fd >= 0) {
        g->oom_fd = openat(v2->parent_fd, "memory.events.local", O_RDONLY | O_CLOEXEC);
    }
    if (g->oom_fd < 0) g->oom_fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
}

void groups_open(struct groups *g)
{
    find_hierarchies(g);
    open_oom_count(g);
    if (g->of[IN_V2].parent_fd >= 0) choose_v2_parent(g);
    bool any = false;
    for (int i = 0; i < HIERARCHIES; i++) {
        struct hierarchy *h = &g->of[i];
        if (h->parent_fd < 0) continue;
        if (faccessat(h->parent_fd, ".", W_OK, AT_EACCESS) == 0) {
            any = true;
        } else {
            close(h->parent_fd);
            h->parent_fd = -1;
        }
    }
    if (!any) return; /* nothing to register, and no place to make for that */
    if (!registry_open(g) || !group_make_own(g, IN_V2)) return;
    struct hierarchy *v2 = &g->of[IN_V2];
    if (g->v2_memory) can_hold(v2->dir_fd, "memory");
    if (g->v2_pids) can_hold(v2->dir_fd, "pids");
    if (g->v2_cpu) can_hold(v2->dir_fd, "cpu");
    if (mkdirat(v2->dir_fd, "guest", 0755) == 0 || errno == EEXIST) {
        g->guest_fd = openat(v2->dir_fd, "guest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
}
