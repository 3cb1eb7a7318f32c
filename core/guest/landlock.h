/* Landlock: a second lock on writing, should a mount ever be more open than it was meant to be. */
#ifndef GUEST_LANDLOCK_H
#define GUEST_LANDLOCK_H

#include <stddef.h>

/* The calling process, and all it starts, may write below these paths only. */
struct landlock_place {
    const char *path;
    enum { LANDLOCK_FILES, LANDLOCK_TREE } what; /* write to files; make and remove them, too */
};

/* The version of the kernel's interface, or -1: it has none. */
int landlock_version(void);
/* Needs no_new_privs. 0, or -1 with errno. A place that does not exist is left out. */
int landlock_confine(int version, const struct landlock_place *places, size_t count);

#endif
