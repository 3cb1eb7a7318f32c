/*
 * Sandboxes: isolated computers with files, processes and a network profile.
 *
 * A sandbox is made from a profile and lives until it is terminated, its lease ends, its runtime
 * is destroyed or the host process dies, whichever comes first; then every process in it is
 * killed and its storage is gone. Commands and file operations happen inside it, asked for over
 * a channel to its process 1: no path that the guest can influence is ever resolved on the host.
 *
 * Isolation is all or nothing: a layer that this kernel lacks refuses the sandbox with a message
 * that names the layer and the remedy, unless the profile says `best_effort`.
 *
 * What a sandbox may use is in its profile's `limits`. Each is held by the best means that this
 * machine has; `barchan_sandbox_status` says which. A limit that nothing here can hold refuses the
 * sandbox, too.
 * Shared: locks (flock, fcntl) and inotify on files of the template, which are the host's own
 * files, reach other sandboxes and the host's programs; so do load and timing.
 *
 * Threads: everything here belongs to the runtime's thread. Callbacks run inside a pump.
 * Paths in a sandbox are bytes, relative ones to the working directory /workspace.
 */
#ifndef BARCHAN_SANDBOX_H
#define BARCHAN_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_sandbox barchan_sandbox;
typedef struct barchan_exec barchan_exec;
typedef struct barchan_file_call barchan_file_call;

/* Bytes that belong to whoever holds the struct. `data` is NUL-terminated as a courtesy (the NUL
 * is not counted in `len`) and is never NULL in a result that succeeded. */
typedef struct barchan_bytes {
    char *data;
    size_t len;
    uint64_t dropped; /* bytes that a cap left out, between the kept head and tail */
    size_t head_len;  /* with dropped > 0: how many of `data` stand before the gap */
} barchan_bytes;

/* ---- profile -------------------------------------------------------------------------- */

typedef enum barchan_network {
    BARCHAN_NETWORK_OFF = 0 /* only an up loopback interface of the sandbox's own */
} barchan_network;

/* 0 is the default, which is in brackets. A command that is over one of the last four is killed;
 * one that is refused memory, processes or disk and then fails has that as the reason of its
 * result. Commands that come later work. */
typedef struct barchan_limits {
    uint64_t memory_bytes; /* of all commands together, their files included [no limit] */
    uint64_t disk_bytes;   /* everything writable [1 GiB; half of memory_bytes if that is less] */
    uint64_t files;        /* that exist at a time [disk_bytes / 4096 + 1024] */
    uint32_t cpus_milli;   /* thousandths of a processor, all commands together [no limit] */
    uint32_t pids;         /* processes and threads of all commands together; at most 1024 [1024] */
    uint32_t open_files;   /* of each process; 16 to 65536 [65536, of which 1024 at first] */
    int64_t cpu_ms;        /* processor time of each command, with all it starts [no limit] */
    uint64_t output_bytes; /* written by each command, out and err together [no limit] */
    int64_t wall_ms;       /* of each command; a longer timeout is cut to it [no limit] */
} barchan_limits;

typedef enum barchan_lease_end {
    BARCHAN_LEASE_TERMINATE = 0,
    BARCHAN_LEASE_PAUSE = 1 /* barchan_sandbox_extend, then _resume, to go on */
} barchan_lease_end;

typedef struct barchan_profile {
    size_t struct_size;
    const char *template_name; /* "host" (default): this machine's /usr, read-only; or the absolute
                                  path of a directory that holds a root file system */
    barchan_network network;
    int64_t lease_ms;       /* how long the sandbox may live; 0: 30 minutes; at most 7 days */
    int best_effort;        /* 1: accept missing layers; `barchan_sandbox_status` lists them */
    const char *const *env; /* "NAME=value" pairs for every exec, NULL-terminated; may be NULL */
    barchan_cancel *cancel; /* interrupts the creation only */
    int timeout_ms;         /* of the creation; 0: 30 s */
    barchan_limits limits;
    barchan_lease_end on_lease_end;
    int64_t idle_timeout_ms; /* ends it after so long without a command, file operation or question;
                                what detached commands do does not count; 0: never */
} barchan_profile;

typedef void (*barchan_sandbox_created_fn)(barchan_sandbox *sbx, const barchan_error *err,
                                           void *ud);

/* Creates a sandbox and waits until it is ready. `*out` belongs to the caller. */
BARCHAN_API int barchan_sandbox_create(barchan_sandbox **out, barchan_runtime *rt,
                                       const barchan_profile *profile, barchan_error *err);
/* The same without waiting: `*out` is valid at once, and `done` is called exactly once, with err
 * NULL when the sandbox is ready. Destroying it earlier calls `done` with BARCHAN_ECANCELLED. */
BARCHAN_API int barchan_sandbox_create_start(barchan_sandbox **out, barchan_runtime *rt,
                                             const barchan_profile *profile,
                                             barchan_sandbox_created_fn done, void *ud,
                                             barchan_error *err);

/* Starts to kill everything in the sandbox; never waits; idempotent. Unfinished execs end with
 * reason `lost`, later calls fail with BARCHAN_ECLOSED. The handle stays valid. */
BARCHAN_API void barchan_sandbox_terminate(barchan_sandbox *sbx);
/* Terminates and frees the handle. NULL is ignored. */
BARCHAN_API void barchan_sandbox_destroy(barchan_sandbox *sbx);

typedef enum barchan_sandbox_state {
    BARCHAN_SANDBOX_STARTING = 0,
    BARCHAN_SANDBOX_READY = 1,
    BARCHAN_SANDBOX_ENDED = 2,
    BARCHAN_SANDBOX_PAUSED = 3 /* alive, but every process in it stands still */
} barchan_sandbox_state;

typedef enum barchan_end_reason {
    BARCHAN_END_NONE = 0,
    BARCHAN_END_TERMINATED = 1,     /* "terminated" */
    BARCHAN_END_LEASE_EXPIRED = 2,  /* "lease_expired" */
    BARCHAN_END_HOST_GONE = 3,      /* "host_gone" */
    BARCHAN_END_PROTOCOL_ERROR = 4, /* "protocol_error": the guest broke the channel's rules */
    BARCHAN_END_CRASHED = 5,        /* "crashed": process 1 died unasked */
    BARCHAN_END_CREATE_FAILED = 6,  /* "create_failed" */
    BARCHAN_END_IDLE = 7,           /* "idle": for its idle_timeout_ms */
    BARCHAN_END_OOM = 8 /* "oom": the machine had too little memory, and the kernel chose
                           process 1; a command over its limit is no end of a sandbox */
} barchan_end_reason;

typedef struct barchan_sandbox_info {
    size_t struct_size; /* set by the caller */
    const char *id;     /* "sbx-" and 16 hexadecimal digits; borrowed from the sandbox */
    barchan_sandbox_state state;
    barchan_end_reason end_reason;
    const char *template_name; /* borrowed */
    int64_t age_ms;
    int64_t lease_left_ms; /* 0 once ended */
    int running;           /* execs that have not ended */
    const char *layers;    /* JSON object, layer -> how it holds, "missing: why" for those that
                              best_effort accepted; borrowed until the sandbox is destroyed */
} barchan_sandbox_info;

BARCHAN_API int barchan_sandbox_status(const barchan_sandbox *sbx, barchan_sandbox_info *info,
                                       barchan_error *err);
/* "ready", "lease_expired", ... Static strings. */
BARCHAN_API const char *barchan_sandbox_state_name(barchan_sandbox_state state);
BARCHAN_API const char *barchan_end_reason_name(barchan_end_reason reason);

/* Adds to the lease: to what is left of it, or from now on if it is over (see on_lease_end). At
 * most 7 days may be left then. Does not wait. */
BARCHAN_API int barchan_sandbox_extend(barchan_sandbox *sbx, int64_t more_ms, barchan_error *err);

/* Has every process of the sandbox stand still, and go on. The lease runs on, the time of commands
 * does not; new commands are BARCHAN_EBUSY, file operations and questions work. By the freezer of
 * a control group where there is one, which nobody inside can see. Otherwise by SIGSTOP and
 * SIGCONT to all: a parent may see its child stop, a process that had stopped by itself goes on
 * with the others. Pausing what is paused, or resuming what runs, is fine. */
BARCHAN_API int barchan_sandbox_pause(barchan_sandbox *sbx, barchan_error *err);
BARCHAN_API int barchan_sandbox_resume(barchan_sandbox *sbx, barchan_error *err);
/* The same without waiting; `done` is called exactly once when these returned 0. */
typedef void (*barchan_sandbox_done_fn)(const barchan_error *err, void *ud);
BARCHAN_API int barchan_sandbox_pause_start(barchan_sandbox *sbx, barchan_sandbox_done_fn done,
                                            void *ud, barchan_error *err);
BARCHAN_API int barchan_sandbox_resume_start(barchan_sandbox *sbx, barchan_sandbox_done_fn done,
                                             void *ud, barchan_error *err);

/* The runtime's sandboxes that have not been destroyed. Writes at most `capacity` handles,
 * borrowed; returns how many there are. */
BARCHAN_API size_t barchan_sandbox_list(barchan_runtime *rt, barchan_sandbox **list,
                                        size_t capacity);

/* ---- exec ----------------------------------------------------------------------------- */

typedef enum barchan_exec_reason {
    BARCHAN_EXEC_EXITED = 0,   /* "exited": exit_code holds */
    BARCHAN_EXEC_SIGNALED = 1, /* "signaled": term_signal holds */
    BARCHAN_EXEC_TIMEOUT = 2,  /* "timeout": its whole tree was killed */
    BARCHAN_EXEC_OOM = 3, /* "oom": the memory limit killed it, or a part of it, and it failed */
    BARCHAN_EXEC_CANCELLED = 4,    /* "cancelled": by its token or barchan_exec_cancel */
    BARCHAN_EXEC_LOST = 5,         /* "lost": the sandbox ended under it */
    BARCHAN_EXEC_SPAWN_FAILED = 6, /* "spawn_failed": not started; spawn_errno says why */
    BARCHAN_EXEC_PIDS = 7,         /* "pids": it failed after it was refused a process */
    BARCHAN_EXEC_DISK_FULL = 8,    /* "disk_full": it failed and left the storage full */
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
    int left_running; /* processes that were killed because the command left them behind */
} barchan_exec_result;

BARCHAN_API void barchan_exec_result_clear(barchan_exec_result *result);
BARCHAN_API const char *barchan_exec_reason_name(barchan_exec_reason reason);

typedef enum barchan_stream { BARCHAN_STREAM_OUT = 1, BARCHAN_STREAM_ERR = 2 } barchan_stream;

/* Output as it arrives, with `streaming`. `data` is borrowed for the call. */
typedef void (*barchan_output_fn)(barchan_exec *exec, barchan_stream stream, const char *data,
                                  size_t len, void *ud);
/* Called once, after the last output. `result` belongs to the exec: the callback may take the
 * bytes out of it by setting `data` to NULL. The exec's handle is invalid when it returns. */
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
    int input_streaming;     /* 1: input comes by barchan_exec_write; not with a waiting call */
    int64_t timeout_ms;      /* 0: 60 s; -1: none but the lease */
    int64_t grace_ms;        /* from SIGTERM to SIGKILL at a timeout; 0: 2 s; -1: none */
    int64_t out_limit_bytes; /* kept per stream, head and tail; 0: 1 MiB; -1: keep nothing */
    int64_t err_limit_bytes;
    int detach;    /* 1: what it leaves running lives on with the sandbox; 256 such commands at a
                      time, one more is spawn_failed with EAGAIN */
    int streaming; /* 1: output goes to on_output, uncapped; none is kept */
    barchan_output_fn on_output;
    barchan_drain_fn on_drain; /* with input_streaming; may be NULL */
    void *ud;                  /* of on_output and on_drain */
    barchan_cancel *cancel;
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
/* Stops, and allows again, the calls of on_output. While paused at most the channel's window
 * (256 KiB a stream) is buffered; then the command blocks on its writes. */
BARCHAN_API void barchan_exec_pause(barchan_exec *exec);
BARCHAN_API void barchan_exec_resume(barchan_exec *exec);
/* Queues input; returns how many bytes were taken (0 when full: wait for on_drain). Input for a
 * command that closed its standard input is taken and dropped. */
BARCHAN_API int barchan_exec_write(barchan_exec *exec, const void *data, size_t len,
                                   barchan_error *err);
BARCHAN_API int barchan_exec_close_input(barchan_exec *exec, barchan_error *err);

/* ---- usage ---------------------------------------------------------------------------- */

typedef struct barchan_usage {
    size_t struct_size; /* set by the caller */
    int64_t wall_us;    /* since its creation */
    int64_t user_us;    /* processor time of everything in it */
    int64_t system_us;
    int cpu_counted; /* 1: by the kernel, for the sandbox as a whole. 0: what process 1 has seen,
                        which misses children that nobody waited for, and, once it has ended, what
                        ran at its end */
    uint64_t memory_bytes; /* of processes and files, now; 0 once ended */
    uint64_t memory_peak_bytes;
    double
        memory_byte_seconds; /* memory over time, from samples: one a second while commands run */
    int memory_counted;      /* 1: by the kernel; 0: samples of what processes and files take */
    uint64_t disk_bytes;     /* of the storage, now; 0 once ended */
    uint64_t bytes_in,
        bytes_out; /* over the channel: input and written files, output and read ones */
    uint64_t execs;
} barchan_usage;

/* What the sandbox has used so far, or had when it ended. */
BARCHAN_API int barchan_sandbox_usage(barchan_sandbox *sbx, barchan_usage *usage,
                                      barchan_error *err);
typedef void (*barchan_usage_fn)(const barchan_usage *usage, const barchan_error *err, void *ud);
/* `done` is called exactly once when this returned 0, later, never inside this call. Destroying the
 * sandbox meanwhile does not change that. */
BARCHAN_API int barchan_sandbox_usage_start(barchan_sandbox *sbx, barchan_usage_fn done, void *ud,
                                            barchan_error *err);

/* ---- files ---------------------------------------------------------------------------- */

typedef enum barchan_file_type {
    BARCHAN_FILE_REGULAR = 1,
    BARCHAN_FILE_DIRECTORY = 2,
    BARCHAN_FILE_SYMLINK = 3,
    BARCHAN_FILE_FIFO = 4,
    BARCHAN_FILE_SOCKET = 5,
    BARCHAN_FILE_DEVICE = 6
} barchan_file_type;

typedef struct barchan_file_info {
    char *path; /* in a list: relative to the listed directory; any bytes but NUL */
    size_t path_len;
    barchan_file_type type;
    uint64_t size;
    uint32_t mode; /* permission bits */
    int64_t mtime_ms;
    char *link_target; /* of a symlink, otherwise NULL */
} barchan_file_info;

typedef enum barchan_file_op {
    BARCHAN_FILE_READ = 1,   /* bytes from offset, at most limit; symlinks are followed */
    BARCHAN_FILE_WRITE = 2,  /* atomic (new file, then rename), parents are created */
    BARCHAN_FILE_APPEND = 3, /* adds to the end, in place; parents are created */
    BARCHAN_FILE_LIST = 4,   /* entries below a directory, `depth` levels, sorted by path */
    BARCHAN_FILE_STAT = 5,   /* of the name itself: a symlink is not followed */
    BARCHAN_FILE_MKDIR = 6,  /* with parents; an existing directory is fine */
    BARCHAN_FILE_REMOVE = 7, /* a file, a link or an empty directory; with `recursive` a tree */
    BARCHAN_FILE_RENAME = 8  /* path to new_path, replacing a file there */
} barchan_file_op;

/* What a source returns when it has nothing yet, and a sink when it has taken the chunk but wants
 * no more for now. Either is called again after barchan_file_resume. */
enum { BARCHAN_FILE_LATER = 0x7fff0001 };
/* Fills `buffer`; returns how many bytes, 0 at the end, BARCHAN_FILE_LATER, or negative to give up.
 * Must not block for long: it runs inside the pump. */
typedef long (*barchan_source_fn)(void *buffer, size_t capacity, void *ud);
/* Takes a chunk; returns 0, BARCHAN_FILE_LATER (256 KiB at most still come, those under way), or
 * negative to give up. */
typedef int (*barchan_sink_fn)(const void *data, size_t len, void *ud);

typedef struct barchan_file_request {
    size_t struct_size;
    barchan_file_op op;
    const char *path;
    size_t path_len; /* 0: strlen(path) */
    const char *new_path;
    size_t new_path_len;
    const void *data; /* write and append: the bytes, or a source: */
    size_t data_len;
    barchan_source_fn source;
    barchan_sink_fn sink; /* read: gets the bytes instead of the result */
    void *ud;             /* of source and sink */
    uint64_t offset;
    uint64_t limit;     /* read: 0: without a sink 64 MiB (more is BARCHAN_ELIMIT), else none */
    uint32_t mode;      /* write: permission bits of a new file, 0: 0644; mkdir: 0: 0755 */
    int recursive;      /* remove */
    int depth;          /* list: 0 or 1: the directory's own entries; at most 64 */
    int64_t timeout_ms; /* 0: 60 s without progress */
    barchan_cancel *cancel;
} barchan_file_request;

typedef struct barchan_file_result {
    barchan_bytes data;         /* read without a sink */
    uint64_t bytes;             /* read, write, append: how many were moved */
    uint64_t size;              /* read: the whole file's size when it was opened */
    barchan_file_info *entries; /* list: all; stat: one */
    size_t entry_count;
    int truncated; /* list: 1 when there were more than 100,000 entries, or some were left out
                      because their paths are longer than 16 KiB */
} barchan_file_result;

BARCHAN_API void barchan_file_result_clear(barchan_file_result *result);

typedef void (*barchan_file_done_fn)(barchan_file_result *result, const barchan_error *err,
                                     void *ud);

/* Does a file operation and waits. Errors are precise: not_found, exists, is_a_directory,
 * not_a_directory, not_a_regular_file, permission, no_space, not_empty, limit. Nothing hangs on a
 * FIFO or device. Clear `result` when this returned 0; it may be NULL where nothing comes back. */
BARCHAN_API int barchan_sandbox_file(barchan_sandbox *sbx, const barchan_file_request *request,
                                     barchan_file_result *result, barchan_error *err);
/* `data` and the paths are copied; `done` is called exactly once and may take parts out of the
 * result by setting them to NULL. `out` may be NULL; the call's handle ends with `done`. */
BARCHAN_API int barchan_sandbox_file_start(barchan_file_call **out, barchan_sandbox *sbx,
                                           const barchan_file_request *request,
                                           barchan_file_done_fn done, void *ud, barchan_error *err);
BARCHAN_API void barchan_file_cancel(barchan_file_call *call);
/* After BARCHAN_FILE_LATER: asks the source again, or lets the sink have more, in the next pump.
 * The time in between does not count as time without progress. */
BARCHAN_API void barchan_file_resume(barchan_file_call *call);

/* The common operations in one line each; all wait. */
BARCHAN_API int barchan_file_read(barchan_sandbox *sbx, const char *path, barchan_bytes *out,
                                  barchan_error *err); /* free with barchan_bytes_clear */
BARCHAN_API int barchan_file_write(barchan_sandbox *sbx, const char *path, const void *data,
                                   size_t len, barchan_error *err);
BARCHAN_API int barchan_file_mkdir(barchan_sandbox *sbx, const char *path, barchan_error *err);
BARCHAN_API int barchan_file_remove(barchan_sandbox *sbx, const char *path, int recursive,
                                    barchan_error *err);
/* 1 or 0; negative on failure. */
BARCHAN_API int barchan_file_exists(barchan_sandbox *sbx, const char *path, barchan_error *err);
BARCHAN_API void barchan_bytes_clear(barchan_bytes *bytes);

/* ---- what this machine can do ---------------------------------------------------------- */

/* Probes the host and writes a JSON array of {"name", "state": "ok" | "missing" | "info",
 * "detail", "remedy"} into `*json`, which the caller frees with barchan_free. Needs no sandbox;
 * starts the launcher to learn what it can set up. */
BARCHAN_API int barchan_doctor(barchan_runtime *rt, char **json, barchan_error *err);
/* The same without waiting: `done` is called exactly once, with the JSON text (borrowed) or err. */
typedef void (*barchan_doctor_fn)(const char *json, const barchan_error *err, void *ud);
BARCHAN_API int barchan_doctor_start(barchan_runtime *rt, barchan_doctor_fn done, void *ud,
                                     barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
