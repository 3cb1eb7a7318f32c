/*
 * Copy-on-write: an overlay of a folder of the host, which is mounted read-only and only read, and
 * a part of the sandbox's storage, which takes what commands change and counts it. It is made with
 * the rights of the sandbox's own root, so its layers give nobody more than that has.
 *
 * The attributes that steer an overlay (user.overlay.*) are out of the commands' reach: through the
 * overlay the kernel hides or renames them, and its upper layer is mounted nowhere. What such
 * attributes in the folder say is not followed: no redirects, no metadata without data. With xino a
 * file and its folder are of one device, and a new folder hides one that the host gets later.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* An overlay must be able to mark a folder that hides the one below it. */
static int check_attributes(const struct mount_request *m, const char *upper, struct failure *why)
{
    if (setxattr(upper, "user.barchan", "", 0, 0) == 0 && removexattr(upper, "user.barchan") == 0) {
        return 0;
    }
    return fail_status(why, BC_WIRE_EUNSUPPORTED,
                       "mount %s: copy-on-write needs user attributes on tmpfs: Linux 6.6 or newer "
                       "with CONFIG_TMPFS_XATTR",
                       m->source);
}

/* The upper layer's own folder is the mount's: it gets the source's rights. */
static int make_layers(const struct mount_request *m, const char *store, bool give,
                       struct failure *why)
{
    char path[64];
    static const char *const names[] = {"", "/work", "/upper"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s%s", store, names[i]);
        if (mkdir(path, 0700) < 0)
            return fail_os(why, errno, "mount %s: make its layers", m->source);
    }
    if (check_attributes(m, path, why) < 0) return -1;
    if ((give && chown(path, SANDBOX_UID, SANDBOX_UID) < 0) || chmod(path, m->rights) < 0) {
        return fail_os(why, errno, "mount %s: make its layers", m->source);
    }
    return 0;
}

static int open_layer(const char *path, const struct mount_request *m, struct failure *why)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? fail_os(why, errno, "mount %s: open its layers", m->source) : fd;
}

int mount_copy_on_write(struct mount_request *m, const char *place, unsigned number, bool give,
                        struct failure *why)
{
    char store[32], options[256], upper[64];
    snprintf(store, sizeof store, WORLD_STORE "/copy%u", number);
    if (make_layers(m, store, give, why) < 0) return -1;
    snprintf(upper, sizeof upper, "%s/upper", store);
    m->lower_fd = open_layer(place, m, why);
    if (m->lower_fd < 0) return -1;
    m->upper_fd = open_layer(upper, m, why);
    if (m->upper_fd < 0) return -1;
    snprintf(options, sizeof options,
             "lowerdir=%s,upperdir=%s,workdir=%s/work,userxattr,redirect_dir=nofollow,metacopy=off,"
             "index=off,xino=on",
             place, upper, store);
    if (mount("overlay", m->target + 1, "overlay", MS_NOSUID | MS_NODEV, options) == 0) {
        m->merged_fd = open_layer(m->target + 1, m, why);
        return m->merged_fd < 0 ? -1 : 0;
    }
    int os_error = errno;
    fail_os(why, os_error, "mount %s at %s: overlay", m->source, m->target);
    if (os_error == ENODEV) fail_hint(why, "copy-on-write needs overlayfs: modprobe overlay");
    return -1;
}
