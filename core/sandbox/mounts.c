/* What of the host a profile shows: checked as far as words go; the launcher looks at the sources.
 */
#include <string.h>
#include "held_dir.h"
#include "internal.h"
#include "templates.h"

/* Absolute, without empty parts, "." and "..": one spelling for one place. */
static int is_plain(const char *path)
{
    if (path == NULL || path[0] != '/' || strlen(path) >= BC_FRAME_MAX_PATH) return 0;
    for (const char *at = path; *at == '/';) {
        size_t len = strcspn(++at, "/");
        if (len == 0 || (len <= 2 && strncmp(at, "..", len) == 0)) return 0;
        at += len;
    }
    return 1;
}

static int is_below(const char *path, const char *tree)
{
    size_t len = strlen(tree);
    return strncmp(path, tree, len) == 0 && path[len] == '/';
}

/* Where the storage is; elsewhere the template is read-only and has no place for it. Not over
 * /dev/shm: by that place the guest measures the storage. */
static int is_target(const char *path)
{
    static const char *const whole[] = {"/workspace", "/home/user"};
    static const char *const trees[] = {"/workspace", "/home/user", "/mnt",
                                        "/tmp",       "/var/tmp",   "/run"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (strcmp(path, whole[i]) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        if (is_below(path, trees[i])) return 1;
    }
    return 0;
}

static int check(const barchan_mount *mounts, size_t i, barchan_error *err)
{
    const barchan_mount *m = &mounts[i];
    if (m->source == NULL || m->source[0] != '/' || strlen(m->source) >= BC_FRAME_MAX_PATH) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "mount %zu: source '%.64s' must be an absolute path", i + 1,
                            m->source == NULL ? "" : m->source);
    }
    if (bc_held_is_in(m->source)) {
        return bc_error_set(
            err, BARCHAN_EINVAL,
            "mount %.64s: Barchan's own state, the sockets of detached sandboxes, is "
            "or may come to be in it: mount a folder below it",
            m->source);
    }
    if (m->mode == BARCHAN_MOUNT_READ_WRITE && bc_templates_is_in(m->source)) {
        return bc_error_set(
            err, BARCHAN_EINVAL,
            "mount %.64s: templates are in it, and commands could change those: mount it read-only "
            "or copy-on-write, or a folder below it",
            m->source);
    }
    if (!is_plain(m->target) || !is_target(m->target)) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "mount %.64s: target '%.64s' must be /workspace or /home/user, or lie "
                            "below one of them, /mnt, /tmp, /var/tmp or /run (as /mnt/data), "
                            "without '.', '..' and '//'",
                            m->source, m->target == NULL ? "" : m->target);
    }
    if (m->mode < BARCHAN_MOUNT_READ_ONLY || m->mode > BARCHAN_MOUNT_COPY_ON_WRITE) {
        return bc_error_set(err, BARCHAN_EINVAL, "mount %.64s: unknown mode %d", m->source,
                            (int)m->mode);
    }
    for (size_t k = 0; k < i; k++) {
        const char *other = mounts[k].target;
        if (strcmp(other, m->target) == 0 || is_below(other, m->target) ||
            is_below(m->target, other)) {
            return bc_error_set(err, BARCHAN_EINVAL,
                                "mounts: targets '%.64s' and '%.64s' are one within the other",
                                other, m->target);
        }
    }
    return 0;
}

int bc_mounts_read(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err)
{
    size_t count = profile->mount_count;
    if (count > BC_FRAME_MAX_MOUNTS || (count > 0 && profile->mounts == NULL)) {
        return bc_error_set(err, BARCHAN_EINVAL, "at most %u mounts", BC_FRAME_MAX_MOUNTS);
    }
    clock_gettime(CLOCK_REALTIME, &sbx->mounts_seen);
    int rc = bc_put_wire_u32(&sbx->mounts, (uint32_t)count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const barchan_mount *m = &profile->mounts[i];
        rc = check(profile->mounts, i, err);
        if (rc < 0) return rc;
        rc = bc_put_wire_u32(&sbx->mounts, (uint32_t)m->mode);
        if (rc == 0) rc = bc_put_wire_string(&sbx->mounts, m->source, strlen(m->source));
        if (rc == 0) rc = bc_put_wire_string(&sbx->mounts, m->target, strlen(m->target));
    }
    return rc < 0 ? bc_error_nomem(err) : 0;
}

/* ---- for those who are connected to it ---- */

int bc_mounts_put(const barchan_sandbox *sbx, bc_buf *out)
{
    int rc = bc_put_wire_u64(out, (uint64_t)sbx->mounts_seen.tv_sec);
    if (rc == 0) rc = bc_put_wire_u32(out, (uint32_t)sbx->mounts_seen.tv_nsec);
    return rc < 0 ? rc : bc_buf_append(out, bc_buf_data(&sbx->mounts), sbx->mounts.len);
}

int bc_mounts_take(barchan_sandbox *sbx, bc_wire_reader *in)
{
    bc_mount mount;
    sbx->mounts_seen.tv_sec = (time_t)bc_wire_u64(in);
    sbx->mounts_seen.tv_nsec = (long)bc_wire_u32(in);
    const unsigned char *at = in->at;
    uint32_t count = bc_wire_u32(in);
    if (in->bad || count > BC_FRAME_MAX_MOUNTS || sbx->mounts_seen.tv_nsec > 999999999) return -1;
    for (uint32_t i = 0; i < count; i++) {
        if (!bc_mount_next(in, &mount) || mount.source[0] != '/' || !is_plain(mount.target)) {
            return -1;
        }
    }
    bc_buf_reset(&sbx->mounts);
    return bc_buf_append(&sbx->mounts, at, (size_t)(in->at - at));
}

/* ---- changes ---- */

int bc_mount_next(bc_wire_reader *in, bc_mount *mount)
{
    if (in->at == in->end) return 0;
    mount->mode = bc_wire_u32(in);
    mount->source = bc_wire_string(in, BC_FRAME_MAX_PATH);
    mount->target = bc_wire_string(in, BC_FRAME_MAX_PATH);
    return !in->bad;
}

bc_wire_reader bc_mounts_of(const barchan_sandbox *sbx)
{
    bc_wire_reader in = {.at = (const unsigned char *)bc_buf_data(&sbx->mounts)};
    in.end = in.at + sbx->mounts.len;
    bc_wire_u32(&in); /* their count */
    return in;
}

#define STORAGE "/workspace"

static int is_target_of(const bc_mount *mount, const char *target, size_t len)
{
    return target == NULL ||
           (strlen(mount->target) == len && memcmp(mount->target, target, len) == 0);
}

int bc_mounts_find_copy(const barchan_sandbox *sbx, const char *target, size_t len, bc_mount *found,
                        barchan_error *err)
{
    const bc_mount storage = {.target = STORAGE};
    bc_wire_reader in = bc_mounts_of(sbx);
    bc_mount mount, copy = {0};
    int copies = 0, over_storage = 0;
    if (target != NULL && len == 0) len = strlen(target);
    while (bc_mount_next(&in, &mount)) {
        if (strcmp(mount.target, STORAGE) == 0) over_storage = 1;
        if (mount.mode != BARCHAN_MOUNT_COPY_ON_WRITE || !is_target_of(&mount, target, len)) {
            continue;
        }
        if (copies++ == 0) copy = mount;
    }
    if (copies > 1) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "there are %d copy-on-write mounts; name the target of one, such as "
                            "'%.64s'",
                            copies, copy.target);
    }
    if (copies == 0 && !over_storage && is_target_of(&storage, target, len)) {
        copy = storage;
    } else if (copies == 0 && target == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "the sandbox has no copy-on-write mount");
    } else if (copies == 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "no copy-on-write mount has '%.*s' as its target",
                            (int)(len < 64 ? len : 64), target);
    }
    *found = copy;
    return 0;
}
