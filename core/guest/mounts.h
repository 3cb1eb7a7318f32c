/* Folders and files of the host that a profile shows in a sandbox. */
#ifndef GUEST_MOUNTS_H
#define GUEST_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>
#include "failure.h"

struct stat;
struct world;

struct mount_request {
    const char *source, *target; /* absolute; the library has checked the target */
    uint32_t mode;               /* bc_mount_mode */
    /* Found out when it is opened: */
    bool is_file;
    mode_t rights;
    uid_t owner; /* whose files are the sandbox's user's */
    gid_t group;
    unsigned others; /* copy-on-write: names of other owners, which cannot be changed */
    /* Copy-on-write, in the sandbox: the folder of the host, what was changed, and both together as
     * commands see them. Nothing but process 1's workers has them. */
    int lower_fd, upper_fd, merged_fd;
};

struct mount_list {
    unsigned count;
    struct mount_request of[BC_FRAME_MAX_MOUNTS + BC_PACK_PLACES]; /* a template's trees first */
};

/* Attaches them in the launcher's root, for the sandbox that is about to be cloned. `sandbox_id`
 * is its user's id on the machine; 0: the same as the launcher's. */
int mounts_open(const struct world *world, struct mount_list *mounts, unsigned sandbox_id,
                struct failure *why);
void mounts_close(const struct mount_list *mounts);
/* Shows them at their targets. `give`: makes the places on the way the sandbox's user's. */
int mounts_show(struct mount_list *mounts, bool give, struct failure *why);

/* mounts_check.c: refuses a source that may not be shown; looks at what is in it. */
int mount_check(struct mount_request *m, int fd, const struct stat *st, struct failure *why);

/* mounts_copy.c: `place` is where its source stands, `number` makes its part of the storage. */
int mount_copy_on_write(struct mount_request *m, const char *place, unsigned number, bool give,
                        struct failure *why);
/* Files that each takes of the storage for itself. */
#define COPY_OWN_FILES 5

#endif
