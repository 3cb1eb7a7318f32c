/*
 * Commands in a sandbox: waited for (barchan_sandbox_exec), called back about, with their output
 * whole or as it comes (barchan_sandbox_exec_start), or held (barchan_sandbox_spawn).
 */
#ifndef BARCHAN_EXEC_H
#define BARCHAN_EXEC_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_exec barchan_exec;

/* Why it ended. What the kernel refuses is counted for the sandbox as a whole: of a command beside
 * which another ran, also a detached one, it is only said that memory killed it (it was killed),
 * or that it held all processes itself; otherwise such a command is told as exited. */
typedef enum barchan_exec_reason {
    BARCHAN_EXEC_EXITED = 0,   /* "exited": exit_code holds */
    BARCHAN_EXEC_SIGNALED = 1, /* "signaled": term_signal holds */
    BARCHAN_EXEC_TIMEOUT = 2,  /* "timeout": its whole tree was killed */
    BARCHAN_EXEC_OOM = 3, /* "oom": the memory limit killed it, or a part of it, and it failed */
    BARCHAN_EXEC_CANCELLED = 4,    /* "cancelled": by its token or barchan_exec_cancel */
    BARCHAN_EXEC_LOST = 5,         /* "lost": the sandbox ended under it */
    BARCHAN_EXEC_SPAWN_FAILED = 6, /* "spawn_failed": not started; spawn_errno says why */
    BARCHAN_EXEC_PIDS = 7,         /* "pids": it failed after it was refused a process */
    BARCHAN_EXEC_DISK_FULL = 8,    /* "disk_full": it failed and filled the storage */
    BARCHAN_EXEC_CPU_TIME = 9,     /* "cpu_time": over limits.cpu_ms, its whole tree was killed */
    BARCHAN_EXEC_OUTPUT = 10       /* "output": over limits.output_bytes, likewise */
} barchan_exec_reason;

typedef struct barchan_exec_usage {
    int64_t wall_us;
    int64_t user_us; /* processor time of the command and all it started, but for children that
                        nobody waited for; exact where the sandbox has limits that a control group
                        holds and no other command ran meanwhile */
    int64_t system_us;
    int64_t max_rss_bytes;
} barchan_exec_usage;

/* A connection that was refused, or failed, while a command ran; which command tried is not known,
 * so all that ran then are told. */
typedef struct barchan_denied {
    char host[256];
    char rule[384];  /* why */
    int64_t time_ms; /* of the wall clock, since 1970; of the last try */
    int port;
    unsigned tries;
} barchan_denied;

typedef struct barchan_exec_result {
    barchan_exec_reason reason;
    int exit_code; /* 0..255 when it exited by itself: reason exited, oom, pids or disk_full; or -1
                    */
    int term_signal; /* the signal's number when a signal ended it, otherwise 0 */
    int spawn_errno; /* with spawn_failed: ENOENT, EACCES, ENOTDIR (cwd), E2BIG, ... */
    int spawn_cwd;   /* with spawn_failed: 1 when the working directory was the reason */
    barchan_bytes out;
    barchan_bytes err_out;
    barchan_exec_usage usage;
    int left_running;          /* processes that were killed because the command left them behind */
    barchan_denied *denied;    /* what the network profile refused; NULL: nothing */
    size_t denied_count;       /* at most 64 */
    uint64_t denied_more;      /* refusals beyond these */
    barchan_denied *unreached; /* what it allowed and could not be reached, such as "connect:
                                  Connection refused"; of TLS the program sees an alert only */
    size_t unreached_count;    /* at most 64 */
    uint64_t unreached_more;
} barchan_exec_result;

BARCHAN_API void barchan_exec_result_clear(barchan_exec_result *result);
BARCHAN_API const char *barchan_exec_reason_name(barchan_exec_reason reason);

typedef enum barchan_stream { BARCHAN_STREAM_OUT = 1, BARCHAN_STREAM_ERR = 2 } barchan_stream;

/* Output as it arrives, with `streaming`. `data` is borrowed for the call. */
typedef void (*barchan_output_fn)(barchan_exec *exec, barchan_stream stream, const char *data,
                                  size_t len, void *ud);
/* Called once, after the last output. `result` belongs to the exec: the callback may take the
 * bytes out of it by setting `data` to NULL, and likewise `denied` and `unreached`. The exec's
 * handle is invalid when it returns. */
typedef void (*barchan_exec_done_fn)(barchan_exec *exec, barchan_exec_result *result, void *ud);
/* Called whenever the exec can take more input. */
typedef void (*barchan_drain_fn)(barchan_exec *exec, void *ud);

typedef struct barchan_exec_options {
    size_t struct_size;
    const char *command;     /* run by /bin/sh -c; or: */
    const char *const *argv; /* NULL-terminated, argv[0] looked up in the sandbox's PATH */
    const char *cwd;         /* NULL: /workspace */
    const char *const *env;  /* "NAME=value" added to the profile's, NULL-terminated */
    const void *input;       /* standard input; NULL: empty */
    size_t input_len;
    int input_streaming; /* 1: input comes by barchan_exec_write; not with a waiting call */
    int network_off;     /* 1: it can open no internet socket (EACCES), whatever the profile says;
                            what another process of the sandbox does for it is not its own */
    int64_t timeout_ms;  /* 0: 60 s; -1: none but the lease */
    int64_t grace_ms;    /* from SIGTERM to SIGKILL at a timeout; 0: 2 s; -1: none */
    int64_t out_limit_bytes; /* kept per stream, head and tail; 0: 1 MiB; -1: keep nothing */
    int64_t err_limit_bytes;
    int detach;    /* 1: what it leaves running lives on with the sandbox; 256 such commands at a
                      time, one more is spawn_failed with EAGAIN */
    int streaming; /* 1: output goes to on_output, uncapped; none is kept */
    barchan_output_fn on_output;
    barchan_drain_fn on_drain; /* with input_streaming; may be NULL */
    void *ud;                  /* of on_output and on_drain */
    barchan_cancel *cancel;
    int pty_cols; /* > 0, with pty_rows: a terminal of this size for all three streams; what it
                     shows is out, nothing is err */
    int pty_rows;
    size_t backlog_bytes; /* spawn: kept of each stream; 0: 1 MiB */
} barchan_exec_options;

/* Runs a command and waits for its end. Its tree is gone when this returns, unless `detach`.
 * Clear `result` with barchan_exec_result_clear when this returned 0. A command that cannot be
 * started is a result (spawn_failed); an error means that the request itself was not possible. */
BARCHAN_API int barchan_sandbox_exec(barchan_sandbox *sbx, const barchan_exec_options *options,
                                     barchan_exec_result *result, barchan_error *err);
/* `done` is called exactly once when this returned 0, later, never inside this call. */
BARCHAN_API int barchan_sandbox_exec_start(barchan_exec **out, barchan_sandbox *sbx,
                                           const barchan_exec_options *options,
                                           barchan_exec_done_fn done, void *done_ud,
                                           barchan_error *err);
/* Kills the command's tree; `done` follows with reason `cancelled`. */
BARCHAN_API void barchan_exec_cancel(barchan_exec *exec);
/* Sends a signal to the command itself. */
BARCHAN_API int barchan_exec_signal(barchan_exec *exec, int signal_number, barchan_error *err);
/* A new size for its terminal. */
BARCHAN_API int barchan_exec_resize(barchan_exec *exec, int columns, int rows, barchan_error *err);
/* Its number in this sandbox, as in barchan_process_info. */
BARCHAN_API uint32_t barchan_exec_id(const barchan_exec *exec);
/* Stops, and allows again, the calls of on_output. While paused at most the channel's window
 * (256 KiB a stream) is buffered; then the command blocks on its writes. */
BARCHAN_API void barchan_exec_pause(barchan_exec *exec);
BARCHAN_API void barchan_exec_resume(barchan_exec *exec);
/* Queues input; returns how many bytes were taken (0 when full: wait for on_drain). Input for a
 * command that closed its standard input is taken and dropped. */
BARCHAN_API int barchan_exec_write(barchan_exec *exec, const void *data, size_t len,
                                   barchan_error *err);
BARCHAN_API int barchan_exec_close_input(barchan_exec *exec, barchan_error *err);

/* ---- processes ------------------------------------------------------------------------ */

/* A command that is held: its output is kept, bounded, until somebody reads it. */
typedef struct barchan_process barchan_process;
/* There is output, room for input after a full write, or the end. */
typedef void (*barchan_process_news_fn)(barchan_process *process, void *ud);

/* Starts a command and returns at once. Of the options, timeout_ms 0 means none but the lease;
 * input is open for barchan_exec_write unless it is given; on_output and on_drain are not possible,
 * detach is in a detached sandbox only: there the command outlives the connection. The command is
 * never held up by output that nobody reads: of each stream the last backlog_bytes are kept. `news`
 * may be NULL. A command that cannot be started is a result. */
BARCHAN_API int barchan_sandbox_spawn(barchan_process **out, barchan_sandbox *sbx,
                                      const barchan_exec_options *options,
                                      barchan_process_news_fn news, void *ud, barchan_error *err);
/* Kills it if it runs, and frees the handle. NULL is ignored. */
BARCHAN_API void barchan_process_destroy(barchan_process *process);
/* For write, close_input, signal, resize, cancel and id; NULL once it has ended. */
BARCHAN_API barchan_exec *barchan_process_exec(barchan_process *process);
/* How it ended, without output; NULL while it runs. Borrowed from the handle. */
BARCHAN_API const barchan_exec_result *barchan_process_result(const barchan_process *process);

typedef struct barchan_process_chunk {
    size_t len;
    uint64_t dropped; /* bytes from the cursor on that are no longer kept, before these */
    uint64_t next;    /* the cursor behind these: how many bytes of the stream came before it */
    int ended;        /* 1: nothing comes after these */
} barchan_process_chunk;

/* Copies what a stream has from a cursor on, 0 at first; len 0: nothing yet. Reading takes nothing
 * away: several readers have a cursor each. */
BARCHAN_API int barchan_process_read(barchan_process *process, barchan_stream stream,
                                     uint64_t cursor, void *buffer, size_t capacity,
                                     barchan_process_chunk *chunk, barchan_error *err);
/* Waits for its end: 1, or 0 after timeout_ms (-1: no limit). */
BARCHAN_API int barchan_process_wait(barchan_process *process, int timeout_ms, barchan_error *err);

typedef struct barchan_process_info {
    int pid; /* in the sandbox */
    int parent;
    int threads;
    char state;            /* as in ps: R, S, D, T, Z, ... */
    uint32_t exec_id;      /* of the command it belongs to; 0: unknown */
    int64_t cpu_us;        /* with the children it waited for */
    uint64_t memory_bytes; /* resident */
    char *command; /* the beginning of its words, any bytes but NUL; the guest's own claim */
} barchan_process_info;

typedef struct barchan_process_list {
    barchan_process_info *processes;
    size_t count;
    size_t total; /* how many there are; the first 264 are listed */
} barchan_process_list;

BARCHAN_API void barchan_process_list_clear(barchan_process_list *list);
/* All processes of the commands. Clear `list` when this returned 0. */
BARCHAN_API int barchan_sandbox_processes(barchan_sandbox *sbx, barchan_process_list *list,
                                          barchan_error *err);
/* `done` is called exactly once when this returned 0, and may take the list by zeroing it. */
typedef void (*barchan_processes_fn)(barchan_process_list *list, const barchan_error *err,
                                     void *ud);
BARCHAN_API int barchan_sandbox_processes_start(barchan_sandbox *sbx, barchan_processes_fn done,
                                                void *ud, barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
