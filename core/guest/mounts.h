/* Folders and files of the host that a profile shows in a sandbox. */
#ifndef GUEST_MOUNTS_H
#define GUEST_MOUNTS_H

#include <stdbool.h>
#include "failure.h"

struct world;

struct mount_request {
    const char *source, *target; /* absolute; the library has checked the target */
    bool writable;
    bool is_file; /* found out when it is opened */
};

struct mount_list {
    unsigned count;
    struct mount_request of[BC_FRAME_MAX_MOUNTS];
};

/* Attaches them in the launcher's root, for the sandbox that is about to be cloned. `sandbox_id`
 * is its user's id on the machine; 0: the same as the launcher's. */
int mounts_open(const struct world *world, struct mount_list *mounts, unsigned sandbox_id,
                struct failure *why);
void mounts_close(const struct mount_list *mounts);
/* Binds them at their targets. `give`: makes the places on the way the sandbox's user's. */
int mounts_show(const struct mount_list *mounts, bool give, struct failure *why);

#endif
