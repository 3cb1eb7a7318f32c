/*
 * Watches directories of scripts: tells, after things have been quiet for a moment, that something
 * in them may have changed. What changed is for the listener to find out by reading: content
 * decides, not events or times. Survives directories that are deleted, replaced or not there yet.
 */
#ifndef BC_RUNTIME_DIR_WATCH_H
#define BC_RUNTIME_DIR_WATCH_H

#include "loop.h"

typedef struct bc_dir_watch bc_dir_watch;

/* `dirs` is NULL-terminated and copied. `fn` runs in a dispatch. */
int bc_dir_watch_open(bc_dir_watch **out, barchan_runtime *rt, const char *const *dirs,
                      void (*fn)(void *ud), void *ud, barchan_error *err);
/* Whether something has happened that `fn` has not been told yet; what happened up to this call
 * counts. */
int bc_dir_watch_pending(bc_dir_watch *watch);
/* NULL is ignored. */
void bc_dir_watch_close(bc_dir_watch *watch);

#endif
