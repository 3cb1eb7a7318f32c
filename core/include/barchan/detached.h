/*
 * Detached sandboxes: they outlive the program that made them.
 *
 * A detached sandbox is held by a process of its own, its holder: usually `barchan sandbox hold`,
 * which barchan_detached_create_start starts; any program may be one with barchan_sandbox_hold. The
 * holder owns the sandbox and its lease and answers at a socket that only the same user can reach:
 * below /run/barchan as root, otherwise below $XDG_RUNTIME_DIR/barchan (without that variable
 * /run/user/UID/barchan or /tmp/barchan-UID). When the holder dies, however it dies, the sandbox
 * dies with it; what it leaves in that directory the next barchan_detached_ids removes.
 *
 * Whoever connects gets a barchan_sandbox on which everything works as on one's own, with these
 * differences: destroying the handle, or the end of the program, lets go of the sandbox, which
 * lives on; barchan_sandbox_terminate ends it for everyone. Connecting, and letting go, never
 * changes the lease. Commands that run for a connection that ends are cancelled, unless they were
 * started with `detach`: then they run on, until they end by themselves or their time is over. What
 * process lists say of other connections' commands has exec_id 0; `running` counts them as of the
 * last answer. 64 may be connected at a time, and 8 more that may ask and end it, but start
 * nothing; one that stops reading is cut off when 64 MiB wait for it.
 *
 * The holder and those who connect must be of the same version of Barchan.
 *
 * Threads: as in barchan/sandbox.h.
 */
#ifndef BARCHAN_DETACHED_H
#define BARCHAN_DETACHED_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/exec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- connecting ----------------------------------------------------------------------- */

/* Connects to the detached sandbox of this id and waits until it answers, 30 s at most.
 * BARCHAN_ENOTFOUND: there is none. `*out` belongs to the caller. */
BARCHAN_API int barchan_sandbox_connect(barchan_sandbox **out, barchan_runtime *rt, const char *id,
                                        barchan_error *err);
/* The same without waiting: as barchan_sandbox_create_start. timeout_ms 0: 30 s. */
BARCHAN_API int barchan_sandbox_connect_start(barchan_sandbox **out, barchan_runtime *rt,
                                              const char *id, int timeout_ms,
                                              barchan_sandbox_created_fn done, void *ud,
                                              barchan_error *err);

typedef struct barchan_detached_list {
    char **ids; /* of the sandboxes whose holders live */
    size_t count;
    size_t removed; /* stale entries, of holders that were killed, that are gone now */
} barchan_detached_list;

/* This user's detached sandboxes. Does not wait: what they do is asked of each by connecting.
 * Where something stale was found, the launcher of `rt` is started, which tidies up, too. */
BARCHAN_API int barchan_detached_ids(barchan_runtime *rt, barchan_detached_list *list,
                                     barchan_error *err);
BARCHAN_API void barchan_detached_list_clear(barchan_detached_list *list);

/* ---- logs ----------------------------------------------------------------------------- */

/* The holder keeps the last 1 MiB of what commands wrote, in the order in which it came out of the
 * sandbox. Of a command whose output is kept by a limit (not streaming) that is the same head and
 * tail that its result has, the tail at its end. What no connection asked for, the output of
 * processes that a detached command left behind, is not in it. */
typedef struct barchan_log_entry {
    uint32_t command; /* the how-manyeth command of this sandbox, from 1 */
    barchan_stream stream;
    const char *data; /* borrowed for the call */
    size_t len;
} barchan_log_entry;

typedef struct barchan_logs {
    const barchan_log_entry *entries; /* borrowed for the call */
    size_t count;
    uint64_t dropped; /* bytes from the cursor on that are no longer kept, before these */
    uint64_t next;    /* the cursor behind these: ask again with it until count is 0 */
} barchan_logs;

typedef void (*barchan_logs_fn)(const barchan_logs *logs, const barchan_error *err, void *ud);
/* Asks a connected sandbox for its log from a cursor on, 0 at first; one answer has up to 64 KiB.
 * `done` is called exactly once when this returned 0. BARCHAN_EUNSUPPORTED: not connected. */
BARCHAN_API int barchan_sandbox_logs_start(barchan_sandbox *sbx, uint64_t cursor,
                                           barchan_logs_fn done, void *ud, barchan_error *err);
/* The same, but where nothing lies behind the cursor the answer waits until something does. Asked
 * again with `next` each time, it tells all that is printed before the sandbox ends; then comes
 * BARCHAN_ELOST. A question that is first asked while the sandbox ends fails so at once. The holder
 * stays up to 4 s for those who follow. One question of a connection waits: a second one answers
 * the first, with nothing. */
BARCHAN_API int barchan_sandbox_logs_follow_start(barchan_sandbox *sbx, uint64_t cursor,
                                                  barchan_logs_fn done, void *ud,
                                                  barchan_error *err);

/* ---- creating ------------------------------------------------------------------------- */

typedef struct barchan_detached_options {
    size_t struct_size;
    const char *profile_json; /* what barchan.sandbox takes in Lua, as a JSON object; NULL: {} */
    const char *program; /* the program `barchan`; NULL: $BARCHAN_PROGRAM, or this program if it
                            is called barchan, or the first in PATH */
    int64_t timeout_ms;  /* 0: 30 s */
} barchan_detached_options;

/* `id` is borrowed for the call, NULL with err. */
typedef void (*barchan_detached_fn)(const char *id, const barchan_error *err, void *ud);
/* Has a new holder process make a sandbox. It has left this process's session and is nobody's
 * child; of the environment it gets XDG_RUNTIME_DIR and what configures Barchan, no key. `done` is
 * called exactly once when this returned 0; the sandbox is ready then. When the runtime is
 * destroyed first, the holder ends with its attempt. */
BARCHAN_API int barchan_detached_create_start(barchan_runtime *rt,
                                              const barchan_detached_options *options,
                                              barchan_detached_fn done, void *ud,
                                              barchan_error *err);

/* ---- holding -------------------------------------------------------------------------- */

/* Makes this process the holder of a sandbox that is ready: from now on others can connect to its
 * id. `done` is called once, when it has ended, nothing of it runs any more and those who were
 * connected have been told. The handle stays the caller's; destroying it ends the sandbox. */
BARCHAN_API int barchan_sandbox_hold(barchan_sandbox *sbx, barchan_sandbox_done_fn done, void *ud,
                                     barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
