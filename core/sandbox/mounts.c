/* What of the host a profile shows: checked as far as words go; the launcher looks at the sources.
 */
#include <string.h>
#include "internal.h"

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
    if (!is_plain(m->target) || !is_target(m->target)) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "mount %.64s: target '%.64s' must be /workspace or /home/user, or lie "
                            "below one of them, /mnt, /tmp, /var/tmp or /run (as /mnt/data), "
                            "without '.', '..' and '//'",
                            m->source, m->target == NULL ? "" : m->target);
    }
    if (m->mode != BARCHAN_MOUNT_READ_ONLY && m->mode != BARCHAN_MOUNT_READ_WRITE) {
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
    int rc = bc_put_wire_u32(&sbx->mounts, (uint32_t)count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const barchan_mount *m = &profile->mounts[i];
        rc = check(profile->mounts, i, err);
        if (rc < 0) return rc;
        rc = bc_put_wire_u32(&sbx->mounts, m->mode == BARCHAN_MOUNT_READ_WRITE);
        if (rc == 0) rc = bc_put_wire_string(&sbx->mounts, m->source, strlen(m->source));
        if (rc == 0) rc = bc_put_wire_string(&sbx->mounts, m->target, strlen(m->target));
    }
    return rc < 0 ? bc_error_nomem(err) : 0;
}
