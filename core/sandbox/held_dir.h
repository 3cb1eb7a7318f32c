/*
 * Where detached sandboxes can be found: a directory of this user's, with a socket and a lock file
 * for each. The lock, not a process number, tells whether the holder lives: it ends with it.
 */
#ifndef BC_SANDBOX_HELD_DIR_H
#define BC_SANDBOX_HELD_DIR_H

#include <sys/types.h>
#include <barchan/detached.h>
#include "base/error.h"

/* "sbx-" and 16 lower-case hexadecimal digits. */
int bc_held_id_is_valid(const char *id);
/* Makes the socket and its lock; the descriptors, and that of their directory, are the caller's. */
int bc_held_publish(const char *id, int *dir_fd, int *lock_fd, int *listen_fd, barchan_error *err);
/* Removes both names; the lock itself goes with its descriptor. */
void bc_held_retract(int dir_fd, const char *id);
/* A socket that is connected to the holder, which is of the same user. */
int bc_held_connect(const char *id, int *fd, barchan_error *err);
/* Of the peer of a connected Unix socket: 1 when it is of this process's user. */
int bc_held_peer_is_own(int fd);
/* Whether the sockets of this user's detached sandboxes are, or may come to be, in this folder of
 * the host, or it in theirs: shown in a sandbox, its commands could talk to the others' holders. */
int bc_held_is_in(const char *path);
/* Of two real paths. */
int bc_path_is_at_or_below(const char *path, const char *tree);

/* A directory below `dir`, whose path is `shown`, that this user owns and nobody else can change;
 * it is made where it is missing. `variable` is what sets another place. */
int bc_own_dir_open(int dir, const char *name, mode_t mode, const char *shown, const char *variable,
                    barchan_error *err);

#endif
