#include "groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Groups below a launcher's: one per sandbox. */
#define MAX_DEPTH 3
#define NAME_TRIES 8

static int open_private_dir(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST) return -1;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0) {
        return fd;
    }
    if (fd >= 0) close(fd);
    return -1;
}

static int open_registry(void)
{
    char path[64] = "/run";
    if (geteuid() != 0) snprintf(path, sizeof path, "/run/user/%u", (unsigned)geteuid());
    int run = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run < 0) { /* nobody logged in: a directory that others cannot take part in */
        run = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        snprintf(path, sizeof path, "barchan-%u", (unsigned)geteuid());
    } else {
        snprintf(path, sizeof path, "barchan");
    }
    if (geteuid() == 0) mkdirat(run, path, 0755); /* as the registry of ids has it */
    int barchan = run < 0 ? -1 : open_private_dir(run, path);
    int fd = barchan < 0 ? -1 : open_private_dir(barchan, "groups");
    if (run >= 0) close(run);
    if (barchan >= 0) close(barchan);
    return fd;
}

/* A locked file that is still the one of this name; -1: somebody lives who has it. */
static int lock_entry(int registry, const char *name, int flags)
{
    int fd = openat(registry, name, flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) return fd;
    close(fd);
    return -1;
}

static void put(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!write(fd, text, strlen(text));
    close(fd);
}

/* Version 1 has no way to kill a group but one by one. A frozen process of version 2 does die. */
static void kill_members(int dir)
{
    char line[32];
    put(dir, "cgroup.kill", "1");
    int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        long pid = strtol(line, NULL, 10);
        if (pid > 1 && pid != getpid()) kill((pid_t)pid, SIGKILL);
    }
    fclose(file);
}

static bool destroy_below(int parent_fd, const char *name, int depth)
{
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 || depth == 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        if (fd >= 0) close(fd);
        return false;
    }
    kill_members(fd);
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            destroy_below(fd, entry->d_name, depth - 1);
        }
    }
    closedir(dir);
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool group_destroy(int parent_fd, const char *name)
{
    return destroy_below(parent_fd, name, MAX_DEPTH);
}

/* Each line: number of the hierarchy, path of the parent group. */
static bool clean_entry(const struct groups *g, const char *name, int fd)
{
    char text[2600], *rest = text, *line;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n < 0) return false;
    text[n] = '\0';
    bool gone = true;
    while ((line = strsep(&rest, "\n")) != NULL) {
        unsigned kind = (unsigned)(line[0] - '0');
        if (kind >= HIERARCHIES || line[1] != ' ' || g->of[kind].root_fd < 0) continue;
        const char *path = line + 2 + strspn(line + 2, "/");
        int parent = openat(g->of[kind].root_fd, *path == '\0' ? "." : path,
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0) continue; /* it is gone with all that was in it */
        if (!group_destroy(parent, name)) gone = false;
        close(parent);
    }
    return gone;
}

void registry_clean(struct groups *g)
{
    int copy = openat(g->registry_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    g->leftovers = false;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "barchan-", 8) != 0 || strcmp(entry->d_name, g->name) == 0) {
            continue;
        }
        int fd = lock_entry(g->registry_fd, entry->d_name, 0);
        if (fd < 0) continue;
        if (clean_entry(g, entry->d_name, fd)) {
            unlinkat(g->registry_fd, entry->d_name, 0);
        } else {
            g->leftovers = true; /* its last processes are still dying */
        }
        close(fd);
    }
    if (dir != NULL) closedir(dir);
}

static bool register_self(struct groups *g)
{
    char text[2600];
    size_t len = 0;
    for (int i = 0; i < HIERARCHIES; i++) {
        if (g->of[i].parent_fd < 0) continue;
        len += (size_t)snprintf(text + len, sizeof text - len, "%d %s\n", i, g->of[i].parent);
    }
    if (len == 0) return false; /* nowhere to make a group */
    /* Another launcher may take a new file for a dead one's before it is locked. */
    for (int i = 0; i < NAME_TRIES && g->lock_fd < 0; i++) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return false;
        snprintf(g->name, sizeof g->name, "barchan-%d-%08x", (int)getpid(), random);
        g->lock_fd = lock_entry(g->registry_fd, g->name, O_CREAT | O_EXCL);
    }
    return g->lock_fd >= 0 && write(g->lock_fd, text, len) == (ssize_t)len;
}

bool registry_open(struct groups *g)
{
    g->registry_fd = open_registry();
    if (g->registry_fd < 0) return false;
    registry_clean(g);
    if (register_self(g)) return true;
    registry_close(g);
    return false;
}

void registry_close(struct groups *g)
{
    if (g->lock_fd >= 0) {
        unlinkat(g->registry_fd, g->name, 0);
        close(g->lock_fd);
    }
    if (g->registry_fd >= 0) close(g->registry_fd);
    g->lock_fd = g->registry_fd = -1;
}
