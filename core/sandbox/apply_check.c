/* What may be done about a change: nothing of the host's is lost, nothing odd is made. */
#include "apply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"

/* ---- the list ---- */

static int compare_path(const void *key, const void *item)
{
    return strcmp(key, ((const struct change *)item)->info.path);
}

static struct change *find(const barchan_apply_call *call, const char *path)
{
    return bsearch(path, call->changes, call->change_count, sizeof *call->changes, compare_path);
}

/* The change of the folder that a name is in; NULL: it is not in the list. */
static struct change *find_parent(const barchan_apply_call *call, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len == 0 || len >= sizeof folder) return NULL;
    memcpy(folder, path, len);
    folder[len] = '\0';
    return find(call, folder);
}

/* ---- the host's files ---- */

static void note(struct seen *seen, const struct stat *st)
{
    *seen = (struct seen){.present = 1,
                          .dev = st->st_dev,
                          .ino = st->st_ino,
                          .mode = st->st_mode,
                          .size = st->st_size,
                          .ctime = st->st_ctim,
                          .mtime = st->st_mtim,
                          .uid = st->st_uid,
                          .gid = st->st_gid};
}

static int look(bc_host_tree *tree, const char *path, struct seen *seen, int *parent_missing)
{
    struct stat st;
    *seen = (struct seen){0};
    int rc = bc_host_tree_stat(tree, path, &st, parent_missing);
    if (rc == 0) note(seen, &st);
    return rc;
}

int bc_apply_look_in(int parent, const char *name, struct seen *seen)
{
    struct stat st;
    *seen = (struct seen){0};
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : -errno;
    note(seen, &st);
    return 0;
}

static int is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int bc_apply_is_as_seen(const struct seen *seen, const struct seen *now)
{
    if (!seen->present || !now->present) return seen->present == now->present;
    return seen->dev == now->dev && seen->ino == now->ino &&
           (S_ISDIR(seen->mode) || is_same_time(&seen->ctime, &now->ctime));
}

/* Later than the moment before which the sandbox had not seen it. */
static int is_newer(const barchan_apply_call *call, const struct seen *seen)
{
    const struct timespec *made = &call->sbx->mounts_seen;
    return seen->ctime.tv_sec > made->tv_sec ||
           (seen->ctime.tv_sec == made->tv_sec && seen->ctime.tv_nsec > made->tv_nsec);
}

static int same_link(barchan_apply_call *call, const char *path)
{
    char target[2][PATH_MAX];
    ssize_t len[2];
    bc_host_tree *trees[] = {&call->dest, &call->source};
    for (int i = 0; i < 2; i++) {
        const char *name;
        cleanup_close int parent = bc_host_tree_parent(trees[i], path, &name);
        len[i] = parent < 0 ? -1 : readlinkat(parent, name, target[i], sizeof target[i]);
    }
    return len[0] >= 0 && len[0] == len[1] && memcmp(target[0], target[1], (size_t)len[0]) == 0;
}

/* In another folder a file is unchanged when it is as the source's, and that is. -1: ask again. */
static int is_as_source(barchan_apply_call *call, const char *path, const struct seen *there)
{
    struct seen source;
    int missing;
    if (call->source.fd < 0 || look(&call->source, path, &source, &missing) < 0) return 0;
    if (is_newer(call, &source) && !bc_apply_is_ours(call->sbx, &source)) return 0;
    if ((source.mode & S_IFMT) != (there->mode & S_IFMT)) return 0;
    if (S_ISLNK(there->mode)) return same_link(call, path);
    if (!S_ISREG(there->mode) || source.size != there->size) return 0;
    return bc_apply_compare(call, path);
}

static int is_unchanged(barchan_apply_call *call, const char *path, const struct seen *there)
{
    if (bc_apply_is_ours(call->sbx, there)) return 1;
    return call->same_tree ? !is_newer(call, there) : is_as_source(call, path, there);
}

/* ---- the rules ---- */

static void decide(struct change *change, barchan_apply_outcome outcome, const char *why)
{
    change->outcome = outcome;
    change->why = why;
}

/* It may be overwritten when the caller says so. */
static void changed(const barchan_apply_call *call, struct change *change, const char *why)
{
    if (call->on_conflict != BARCHAN_ON_CONFLICT_OVERWRITE) {
        decide(change, BARCHAN_APPLY_CONFLICT, why);
    }
}

/* Only names that lie below: some parts "..", no more than it is deep, then none. Behind a link a
 * ".." would not lead where it seems to. */
static int link_stays(const char *path, const char *target)
{
    size_t depth = 0;
    for (const char *at = path; *at != '\0'; at++) {
        depth += *at == '/';
    }
    if (target == NULL || *target == '\0' || *target == '/') return 0;
    int below = 0;
    for (const char *at = target; *at != '\0';) {
        size_t len = strcspn(at, "/");
        int up = len == 2 && strncmp(at, "..", 2) == 0;
        if (up && (below || depth-- == 0)) return 0;
        if (!up) below = 1;
        at += len + (at[len] == '/');
    }
    return 1;
}

static const char *why_never(const barchan_apply_call *call, const barchan_file_info *info)
{
    if (info->path_len + strlen(call->mount.target) + 2 > BC_FRAME_MAX_PATH) {
        return "its path is too long";
    }
    if (info->change == BARCHAN_FILE_DELETED) return NULL;
    switch (info->type) {
    case BARCHAN_FILE_REGULAR:
    case BARCHAN_FILE_DIRECTORY: return NULL;
    case BARCHAN_FILE_SYMLINK:
        if (!call->links) return "a symbolic link; they are made when asked for";
        return link_stays(info->path, info->link_target)
                   ? NULL
                   : "a symbolic link that could lead out of the folder";
    default: return "a FIFO, socket or device";
    }
}

/* A folder goes only if all that is in it goes. */
static const char *why_not_emptied(barchan_apply_call *call, const struct change *change)
{
    char path[PATH_MAX + NAME_MAX + 2];
    int fd = bc_host_tree_open_file(&call->dest, change->info.path);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        if (fd >= 0) close(fd);
        return "the folder cannot be looked into";
    }
    const char *why = NULL;
    const struct dirent *entry;
    size_t len = change->info.path_len;
    memcpy(path, change->info.path, len);
    path[len] = '/';
    while (why == NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        memcpy(path + len + 1, entry->d_name, strlen(entry->d_name) + 1);
        const struct change *inner = find(call, path);
        if (inner == NULL || inner->info.change != BARCHAN_FILE_DELETED) {
            why = "there is more in the folder on the host";
        }
    }
    closedir(dir);
    return why;
}

/* A file that commands have changed or removed: 1: ask again. */
static int check_changed(barchan_apply_call *call, struct change *change)
{
    int unchanged = is_unchanged(call, change->info.path, &change->seen);
    if (unchanged == 0) changed(call, change, "it was changed on the host");
    return unchanged < 0;
}

static int check_deleted(barchan_apply_call *call, struct change *change)
{
    const struct seen *there = &change->seen;
    int is_folder = change->info.type == BARCHAN_FILE_DIRECTORY;
    if (!there->present) return 0;
    if (is_folder != !!S_ISDIR(there->mode)) {
        decide(change, BARCHAN_APPLY_CONFLICT, "it is something else on the host");
    } else if (is_folder) {
        const char *why = why_not_emptied(call, change);
        if (why != NULL) decide(change, BARCHAN_APPLY_CONFLICT, why);
    } else {
        return check_changed(call, change);
    }
    return 0;
}

/* Added or modified, where something is on the host. */
static int check_present(barchan_apply_call *call, struct change *change)
{
    const struct seen *there = &change->seen;
    if (S_ISDIR(there->mode)) {
        if (change->info.type == BARCHAN_FILE_DIRECTORY) {
            if (change->info.change == BARCHAN_FILE_MODIFIED) {
                decide(change, BARCHAN_APPLY_SKIPPED, "the rights of folders are not taken over");
            }
            return 0;
        }
        change->late = 1;
        if (change->info.change == BARCHAN_FILE_ADDED || why_not_emptied(call, change) != NULL) {
            decide(change, BARCHAN_APPLY_CONFLICT, "a folder is there on the host");
        }
    } else if (!S_ISREG(there->mode) && !S_ISLNK(there->mode)) {
        decide(change, BARCHAN_APPLY_CONFLICT, "something that is no file is there on the host");
    } else if (bc_apply_is_ours(call->sbx, there)) {
        return 0;
    } else if (change->info.change == BARCHAN_FILE_ADDED) {
        changed(call, change, "there is one on the host already");
    } else {
        return check_changed(call, change);
    }
    return 0;
}

/* The folder it is in is not there, or is no folder: fine where the list has it made, or where the
 * name is to be gone and is. */
static void check_without_parent(const barchan_apply_call *call, struct change *change, int rc)
{
    const struct change *parent = find_parent(call, change->info.path);
    int made = parent != NULL && parent->info.change != BARCHAN_FILE_DELETED &&
               parent->info.type == BARCHAN_FILE_DIRECTORY &&
               parent->outcome == BARCHAN_APPLY_APPLIED;
    if (made || (change->info.change == BARCHAN_FILE_DELETED && rc == -ENOENT)) return;
    decide(change, BARCHAN_APPLY_CONFLICT,
           rc == -ELOOP    ? "a symbolic link is in its way"
           : rc == -ENOENT ? "the folder it belongs to is not on the host"
                           : "what it belongs to is no folder on the host");
}

int bc_apply_check(barchan_apply_call *call, struct change *change)
{
    int parent_missing;
    const char *never = why_never(call, &change->info);
    decide(change, BARCHAN_APPLY_APPLIED, NULL);
    if (never != NULL) {
        decide(change, BARCHAN_APPLY_SKIPPED, never);
        return 0;
    }
    int rc = look(&call->dest, change->info.path, &change->seen, &parent_missing);
    if (rc == -ENOTDIR || rc == -ELOOP || (rc == -ENOENT && parent_missing)) {
        check_without_parent(call, change, rc);
    } else if (rc < 0 && rc != -ENOENT) {
        decide(change, BARCHAN_APPLY_CONFLICT, "it cannot be looked at");
    } else if (change->info.change == BARCHAN_FILE_DELETED) {
        return check_deleted(call, change);
    } else if (change->seen.present) {
        return check_present(call, change);
    } else if (change->info.change == BARCHAN_FILE_MODIFIED) {
        changed(call, change, "it was removed on the host");
    }
    return 0;
}

/* Backwards, so that what is found of a folder counts for the one that it is in. */
void bc_apply_check_folders(barchan_apply_call *call)
{
    for (size_t i = call->change_count; i-- > 0;) {
        const struct change *change = &call->changes[i];
        int stays = change->outcome != BARCHAN_APPLY_APPLIED && change->seen.present;
        struct change *folder = stays ? find_parent(call, change->info.path) : NULL;
        if (folder == NULL || folder->outcome != BARCHAN_APPLY_APPLIED) continue;
        if (folder->info.change == BARCHAN_FILE_DELETED || folder->late) {
            decide(folder, BARCHAN_APPLY_CONFLICT, "something in it stays on the host");
        }
    }
}
