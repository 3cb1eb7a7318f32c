/* Turning a freshly cloned process into process 1 of a sandbox, one file per concern. */
#ifndef GUEST_ISOLATE_H
#define GUEST_ISOLATE_H

#include "failure.h"
#include "launcher.h"

/* How each layer holds, for status(); "missing: …" for what best_effort let pass. */
struct layers {
    struct {
        const char *name;
        char how[160];
    } row[BC_FRAME_MAX_LAYERS];
    uint32_t count;
};

void layer_holds(struct layers *layers, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A layer that could not be made: 0 when best effort accepts that (and notes it), else -1. */
int layer_missing(struct layers *layers, const struct plan *plan, const char *name,
                  const struct failure *why);

/* isolate_root.c: the file system; the process stands in the new root afterwards. Opens what the
 * plan's mounts keep open. */
int isolate_root(struct plan *plan, struct layers *layers, struct failure *why);
/* Hides in the proc file system below the working directory what tells about the machine, or
 * reaches into it; `empty` is an empty folder, NULL: there is none. */
int proc_mask(const char *empty, struct failure *why);
/* isolate_rights.c: limits, capabilities, the seccomp filter. Nothing of the set-up can be done
 * after it. */
int isolate_rights(const struct plan *plan, struct layers *layers, struct failure *why);

#endif
