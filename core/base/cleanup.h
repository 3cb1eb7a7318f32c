/*
 * The tree's one clean-up idiom: declare with cleanup_*, return early, hand over with steal_*.
 * The attributes do not run on longjmp, so no Lua call may happen while one is armed.
 */
#ifndef BC_BASE_CLEANUP_H
#define BC_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void bc_cleanup_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void bc_cleanup_close(int *fd)
{
    if (*fd >= 0) close(*fd);
}

static inline void *bc_steal_pointer(void *pointer_to_pointer)
{
    void **pp = (void **)pointer_to_pointer;
    void *p = *pp;
    *pp = NULL;
    return p;
}

static inline int steal_fd(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}

#define cleanup_free __attribute__((cleanup(bc_cleanup_free)))
#define cleanup_close __attribute__((cleanup(bc_cleanup_close)))
#define steal_pointer(pp) ((__typeof__(*(pp)))bc_steal_pointer(pp))

#endif
