/*
 * The runtime: an event loop and everything that lives on it.
 *
 * A runtime belongs to the thread that uses it. N threads use N runtimes and share nothing;
 * the library has no global state. Only two things may cross threads: `barchan_runtime_post`
 * and cancel tokens.
 *
 * Two ways to drive it:
 *  - Blocking calls (`barchan_sandbox_exec`, `barchan_model_complete`, ...) pump it until they
 *    are done. Callbacks of other work on the same runtime run meanwhile.
 *  - Non-blocking calls (`..._start`) return at once and report through a callback, which runs
 *    inside `barchan_runtime_pump` or `barchan_runtime_destroy` on the runtime's thread. A host
 * with its own loop watches `barchan_runtime_fd` for readability and pumps with timeout 0 when it
 * fires.
 *
 * A blocking call made inside a callback fails with BARCHAN_EBUSY: callbacks start work, they
 * do not wait for it.
 *
 * The library installs no signal handlers, works whatever the host does with SIGCHLD, leaves
 * stdio, locale, umask and the working directory alone, never exits and never prints. After a
 * fork() in the host, calls on a runtime fail in the child (BARCHAN_EINVAL).
 */
#ifndef BARCHAN_RUNTIME_H
#define BARCHAN_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_runtime barchan_runtime;

typedef enum barchan_log_level {
    BARCHAN_LOG_DEBUG = 0,
    BARCHAN_LOG_INFO = 1,
    BARCHAN_LOG_WARN = 2,
    BARCHAN_LOG_ERROR = 3
} barchan_log_level;

/* `message` is one NUL-terminated line without a newline, borrowed for the call. */
typedef void (*barchan_log_fn)(barchan_log_level level, const char *message, void *ud);

typedef struct barchan_runtime_options {
    size_t struct_size;
    barchan_log_fn on_log; /* NULL: nothing is logged */
    void *log_ud;
    barchan_log_level log_level; /* messages below it are not made */
    const char *guest_path;      /* an installed copy of the guest program; NULL: the embedded one.
                                    The copy is used only when its bytes are the embedded ones. */
} barchan_runtime_options;

/* `options` may be NULL. On success `*out` belongs to the caller. */
BARCHAN_API int barchan_runtime_create(barchan_runtime **out,
                                       const barchan_runtime_options *options, barchan_error *err);

/* Ends every sandbox, request and timer on the runtime, waits (at most about two seconds) until
 * their processes are gone, and frees it. Callbacks of unfinished work run once, with
 * BARCHAN_ECANCELLED; what they try to start fails with BARCHAN_ECLOSED. Handles made on the
 * runtime are invalid afterwards. NULL is ignored. Must not be called inside a callback. */
BARCHAN_API void barchan_runtime_destroy(barchan_runtime *rt);

/* Runs what is ready, waiting up to `timeout_ms` for something to become so (0: do not wait,
 * -1: no limit). Returns how much was done, callbacks of the library's own included; 0 on timeout
 * or when a signal interrupted the wait. */
BARCHAN_API int barchan_runtime_pump(barchan_runtime *rt, int timeout_ms, barchan_error *err);

/* A descriptor that is readable whenever a pump has something to do, timers included. For
 * epoll, poll, select, libuv, GLib; it may be nested. Owned by the runtime; never read it. */
BARCHAN_API int barchan_runtime_fd(barchan_runtime *rt, barchan_error *err);

typedef void (*barchan_post_fn)(barchan_runtime *rt, void *ud);

/* Thread-safe: has `fn(rt, ud)` called once on the runtime's thread, inside its next pump. The
 * caller makes sure that the runtime outlives the call. Posts that are still queued when the
 * runtime is destroyed are run then. Fails with BARCHAN_ELIMIT when 100,000 posts wait, with
 * BARCHAN_ECLOSED late in a destroy, and then fn is not called. */
BARCHAN_API int barchan_runtime_post(barchan_runtime *rt, barchan_post_fn fn, void *ud,
                                     barchan_error *err);

/*
 * Cancel tokens. The options of every call that takes time accept one; the call borrows it and
 * keeps its own reference for as long as it needs. One token may be given to many calls on many
 * runtimes. All functions are thread-safe. In a forked child a token of its parent can be read, set
 * and released; what is done there is not seen by the parent, nor by calls that wait.
 */
typedef struct barchan_cancel barchan_cancel;

/* `*out` is the caller's reference. */
BARCHAN_API int barchan_cancel_create(barchan_cancel **out, barchan_error *err);
/* Sets the token; sticky. Also safe in a signal handler. */
BARCHAN_API void barchan_cancel_trigger(barchan_cancel *cancel);
/* Triggers it `ms` milliseconds from now, whatever the threads do meanwhile; a later call moves the
 * moment, and one that has come stays. 0 or less: now. */
BARCHAN_API void barchan_cancel_after(barchan_cancel *cancel, int64_t ms);
/* 1 once triggered. NULL: 0. Safe in a signal handler. */
BARCHAN_API int barchan_cancel_triggered(const barchan_cancel *cancel);
/* Another reference, to be released; returns its argument. */
BARCHAN_API barchan_cancel *barchan_cancel_retain(barchan_cancel *cancel);
/* Drops the caller's reference. NULL is ignored. */
BARCHAN_API void barchan_cancel_release(barchan_cancel *cancel);

#ifdef __cplusplus
}
#endif
#endif
