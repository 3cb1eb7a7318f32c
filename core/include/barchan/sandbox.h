/*
 * Sandboxes: isolated computers with files, processes and a network profile.
 *
 * A sandbox is made from a profile and lives until it is terminated, its lease ends, its runtime
 * is destroyed or the host process dies, whichever comes first; then every process in it is
 * killed and its storage is gone. Commands and file operations happen inside it, asked for over
 * a channel to its process 1: no path that the guest can influence is ever resolved on the host,
 * but for the changes that the host's program has applied to a folder, which no path leaves
 * (barchan/apply.h).
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
 * Commands are in barchan/exec.h, files in barchan/files.h.
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

/* Bytes that belong to whoever holds the struct. `data` is NUL-terminated as a courtesy (the NUL
 * is not counted in `len`) and is never NULL in a result that succeeded. */
typedef struct barchan_bytes {
    char *data;
    size_t len;
    uint64_t dropped; /* bytes that a cap left out, between the kept head and tail */
    size_t head_len;  /* with dropped > 0: how many of `data` stand before the gap */
} barchan_bytes;
BARCHAN_API void barchan_bytes_clear(barchan_bytes *bytes);

/* ---- profile -------------------------------------------------------------------------- */

typedef enum barchan_network {
    BARCHAN_NETWORK_OFF = 0,        /* only an up loopback interface of the sandbox's own */
    BARCHAN_NETWORK_ALLOW = 1,      /* what network_rules.allow names */
    BARCHAN_NETWORK_RESTRICTED = 2, /* this machine's package registries, and that */
    BARCHAN_NETWORK_OPEN = 3        /* any public host */
} barchan_network;
struct barchan_network_rules; /* barchan/network.h */
struct barchan_secret;        /* barchan/secret.h */

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
    uint64_t output_bytes; /* written by each command, out and err together; what is more is not
                              delivered [no limit] */
    int64_t wall_ms;       /* of each command; a longer timeout is cut to it [no limit] */
} barchan_limits;

typedef enum barchan_mount_mode {
    BARCHAN_MOUNT_READ_ONLY = 0,
    BARCHAN_MOUNT_READ_WRITE = 1,   /* what commands write is on the host */
    BARCHAN_MOUNT_COPY_ON_WRITE = 2 /* what commands write is in the sandbox's storage, within its
                                       limits; the host's folder never changes */
} barchan_mount_mode;

/* A folder or file of the host in the sandbox. The sandbox's user owns what the owner of the source
 * owns; as root a source of root's is never writable, and one whose file system cannot map owners
 * neither. As an ordinary user files of others keep their rights. What commands write there is to
 * be treated as theirs: links to anywhere, programs that are marked to run as their owner.
 *
 * Copy-on-write shows a folder, as root one of root's, too. Files and folders of other owners are
 * seen in it, but changing one, or making something in one, fails (EOVERFLOW, or EACCES where the
 * rights say so first); status() says how many there were. Renaming a folder of the source gives
 * EXDEV, upon which mv copies; hard links in it come apart when one is changed. While it is shown,
 * what the host changes in the folder may or may not be seen. It needs Linux 6.6 or newer (user
 * attributes on tmpfs), overlayfs, as root a file system that can map owners, and no other file
 * system mounted in the folder; without these creating fails, by best effort, too.
 *
 * Refused: what is, holds or lies in the whole tree, /proc, /sys, /dev or Barchan's own state, and
 * what holds a socket when the sandbox is made: commands could talk to the program behind it. */
typedef struct barchan_mount {
    const char *source; /* absolute */
    const char *target; /* /workspace, /home/user, or a path below them, /mnt, /tmp, /var/tmp or
                           /run; none below another's */
    barchan_mount_mode mode;
} barchan_mount;

typedef enum barchan_lease_end {
    BARCHAN_LEASE_TERMINATE = 0,
    BARCHAN_LEASE_PAUSE = 1 /* barchan_sandbox_extend, then _resume, to go on */
} barchan_lease_end;

typedef struct barchan_profile {
    size_t struct_size;
    const char *template_name; /* "host" (default): this machine's /usr, read-only; the absolute
                                  path of a directory that holds a root file system; or the name
                                  of a template (barchan/template.h) */
    barchan_network network;
    int64_t lease_ms;       /* how long the sandbox may live; 0: 30 minutes; at most 7 days */
    int best_effort;        /* 1: accept missing layers; `barchan_sandbox_status` lists them */
    const char *const *env; /* "NAME=value" pairs for every exec, NULL-terminated; may be NULL */
    barchan_cancel *cancel; /* interrupts the creation only */
    int timeout_ms;         /* of the creation; 0: 30 s */
    barchan_limits limits;
    const barchan_mount *mounts; /* at most 16; copied */
    size_t mount_count;
    barchan_lease_end on_lease_end;
    int64_t idle_timeout_ms; /* ends it after so long without a command, file operation or question;
                                what detached commands do does not count; 0: never */
    const struct barchan_network_rules *network_rules; /* copied; NULL when `network` is off */
    const struct barchan_secret *secrets; /* copied; at most 16; need a network that is not off */
    size_t secret_count;
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
 * reason `lost`, later calls fail with BARCHAN_ECLOSED. The handle stays valid.
 *
 * It is gone when nothing of it runs any more, usually some milliseconds later, and the runtime has
 * learned that in a pump; until then it holds its template (removing that is BARCHAN_EBUSY,
 * retryable) and its mounts. Of a terminated sandbox barchan_sandbox_usage waits for that, and
 * barchan_sandbox_usage_start calls back then; of a destroyed one nothing tells, but for
 * barchan_runtime_destroy, which waits for all. */
BARCHAN_API void barchan_sandbox_terminate(barchan_sandbox *sbx);
/* Terminates, without waiting, and frees the handle; of a detached sandbox (barchan/detached.h) it
 * only lets go. NULL is ignored. */
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
    BARCHAN_END_OOM = 8,     /* "oom": the machine had too little memory, and the kernel chose
                                process 1; a command over its limit is no end of a sandbox */
    BARCHAN_END_DETACHED = 9 /* "detached": for this handle; the sandbox lives on in its holder */
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
 * does not; new commands are BARCHAN_EBUSY from the moment that a pause is asked for (one that
 * crosses with a pause at the lease's end is spawn_failed, EAGAIN), file operations and questions
 * work. By the freezer of a control group where there is one, which nobody inside can see.
 * Otherwise by SIGSTOP and SIGCONT to all: a parent may see its child stop, a process that had
 * stopped by itself goes on with the others. Pausing what is paused, or resuming what runs, is
 * fine. Pausing is BARCHAN_ETIMEDOUT when a process does not stand still within 3 s, and
 * BARCHAN_EBUSY while it is being paused; resuming is BARCHAN_ELIMIT while the lease is over
 * (extend it first). */
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

/* What the sandbox has used so far; of one that has ended, in all, once it is gone. */
BARCHAN_API int barchan_sandbox_usage(barchan_sandbox *sbx, barchan_usage *usage,
                                      barchan_error *err);
typedef void (*barchan_usage_fn)(const barchan_usage *usage, const barchan_error *err, void *ud);
/* `done` is called exactly once when this returned 0, later, never inside this call. Destroying the
 * sandbox meanwhile does not change that. */
BARCHAN_API int barchan_sandbox_usage_start(barchan_sandbox *sbx, barchan_usage_fn done, void *ud,
                                            barchan_error *err);

/* ---- what this machine can do ---------------------------------------------------------- */

/* Probes the host and writes a JSON array of {"name", "state": "ok" | "missing" | "info",
 * "detail", "remedy"} into `*json`, which the caller frees with barchan_free: "missing" is what
 * sandboxes cannot do without, "info" what they are better with, or only told. Needs no sandbox;
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
