/* What the files of this room share. */
#ifndef BC_SANDBOX_INTERNAL_H
#define BC_SANDBOX_INTERNAL_H

#include <sys/types.h>
#include <time.h>
#include <barchan/exec.h>
#include <barchan/files.h>
#include "backend.h"
#include "base/buf.h"
#include "base/options.h"
#include "channel/channel.h"
#include "egress/egress.h"
#include "runtime/loop.h"

typedef struct bc_room bc_room;
typedef struct bc_launcher bc_launcher;

/* See apply_memory.c. */
struct bc_written_file {
    dev_t dev;
    ino_t ino; /* 0: a free place */
    struct timespec ctime;
};
typedef struct bc_written {
    struct bc_written_file *files;
    size_t capacity, count; /* the capacity is a power of two */
} bc_written;

/* An exec or a file operation: one stream of the sandbox's channel. */
typedef struct bc_stream bc_stream;
typedef struct bc_stream_ops {
    /* Negative: the frame breaks the protocol. May free the stream. */
    int (*on_frame)(bc_stream *stream, const bc_frame *frame);
    /* The sandbox has ended; the stream is unlinked already. Must not call back at once. */
    void (*on_lost)(bc_stream *stream);
    /* Everything in the sandbox stands still, or goes on; NULL: it is all the same to it. */
    void (*on_paused)(bc_stream *stream, int paused);
} bc_stream_ops;

struct bc_stream {
    bc_stream *next, *prev;
    barchan_sandbox *sbx; /* NULL once unlinked */
    uint32_t id;
    const bc_stream_ops *ops;
};

struct barchan_sandbox {
    barchan_sandbox *next, *prev; /* of the room, newest first */
    barchan_runtime *rt;
    bc_room *room; /* NULL: the runtime has ended */
    bc_resident resident;
    const bc_backend *backend;
    int refs;           /* the handle's and the backend's */
    int handle_dropped; /* destroyed by its owner */
    int backend_held;   /* the backend has not reported it gone */
    int launcher_lost;  /* its launcher died; that is about to be reported */
    int kept_for_runtime;
    char id[24];
    barchan_sandbox_state state;
    barchan_end_reason end_reason;
    int64_t born_ms, ended_ms;
    /* profile */
    char *template_name;
    int64_t lease_ms, lease_end_ms, idle_ms;
    int pause_at_lease_end;
    bc_limits limits;
    int disk_default; /* nobody asked for limits.disk_bytes */
    int64_t wall_ms;  /* 0: no limit */
    int best_effort;
    char **env;
    bc_egress *egress;                    /* NULL: the network is off, or another process has it */
    bc_buf mounts;                        /* as they go to the launcher */
    struct bc_template_use *template_use; /* templates.h; NULL: none */
    struct timespec mounts_seen; /* what has a later ctime, it may not have seen as it was */
    bc_written written;
    /* creation */
    barchan_sandbox_created_fn created;
    void *created_ud;
    bc_defer created_defer;
    barchan_error created_error; /* code 0: it succeeded */
    bc_timer *create_timer;
    bc_cancel_watch *create_cancel;
    bc_buf layers;
    int installing; /* secrets.c: ready, but that is not told yet */
    /* channel */
    bc_channel *channel;
    bc_stream *streams;
    unsigned stream_count;
    int running; /* execs among them */
    int running_elsewhere;
    uint32_t last_stream;
    int is_gone;   /* nothing of it runs any more: what is left of its words is read */
    int abandoned; /* streams were given up that the guest may still use */
    /* usage.c */
    bc_usage used;
    uint64_t exec_us[2]; /* sum of the results: user, system */
    uint64_t bytes_in, bytes_out, execs;
    struct usage_call *last_calls;    /* waiting for the last count */
    int pauses_asked;                 /* lease.c: not answered yet */
    int snapshots;                    /* snapshot.c: being taken */
    struct bc_connection *connection; /* connect.c; NULL: this process has it */
    const void *backend_options;      /* while it is started */
    struct bc_command_run *command;   /* backend_command.c; NULL: its program does not run */
    /* backend_namespace.c */
    uint32_t tag; /* 0: it is none of the launcher's */
    int guest_fd; /* until the launcher has it */
    int want_kill, want_extend;
};

/* The room of a runtime: its sandboxes and its launcher. NULL: out of memory. */
struct bc_room {
    barchan_runtime *rt;
    barchan_sandbox *sandboxes;
    bc_launcher *launcher;
    uint32_t last_tag;
};
bc_room *bc_sandbox_room(barchan_runtime *rt);

/* create.c */
int bc_sandbox_create_with(barchan_sandbox **out, barchan_runtime *rt,
                           const barchan_profile *profile, const bc_backend *backend,
                           barchan_sandbox_created_fn done, void *ud, barchan_error *err);
/* A barchan_sandbox_created_fn whose `ud` is a bc_outcome, and what waits for that: after a failure
 * *out is NULL. */
void bc_created_note(barchan_sandbox *sbx, const barchan_error *err, void *ud);
int bc_created_wait(barchan_sandbox **out, const bc_outcome *outcome, barchan_error *err);
/* The same for one that has its id already (NULL: a new one), and with what its backend finds as
 * sbx->backend_options when it starts it. */
int bc_sandbox_open_with(barchan_sandbox **out, barchan_runtime *rt, const barchan_profile *profile,
                         const bc_backend *backend, const char *id, const void *backend_options,
                         barchan_sandbox_created_fn done, void *ud, barchan_error *err);
/* It is ready; told at once, before what its first commands have done. In a dispatch. */
void bc_created_succeed(barchan_sandbox *sbx);
/* It failed for this reason; told by the next dispatch. */
void bc_created_fail(barchan_sandbox *sbx, const barchan_error *why);
/* It is about to be destroyed; told at once. */
void bc_created_abandon(barchan_sandbox *sbx);

/* sandbox.c */
extern const bc_channel_handler bc_sandbox_channel, bc_sandbox_held_channel;
void bc_sandbox_end(barchan_sandbox *sbx, barchan_end_reason reason, const barchan_error *why);
/* Its memory stays until the last reference is dropped. */
void bc_sandbox_ref(barchan_sandbox *sbx);
void bc_sandbox_unref(barchan_sandbox *sbx);
/* A call on the sandbox is allowed: it exists and has not ended. */
int bc_sandbox_check(const barchan_sandbox *sbx, barchan_error *err);
int bc_stream_open(bc_stream *stream, barchan_sandbox *sbx, const bc_stream_ops *ops,
                   barchan_error *err);
void bc_stream_close(bc_stream *stream);
/* 0, or lost: the stream's on_lost has been or will be called. */
int bc_stream_send(bc_stream *stream, uint32_t type, const void *head, size_t head_len,
                   const void *body, size_t body_len, barchan_error *err);
int bc_stream_credit(bc_stream *stream, uint32_t type, uint32_t bytes);

/* limits.c: checks them and fills in the defaults. */
int bc_limits_read(barchan_sandbox *sbx, const barchan_limits *limits, barchan_error *err);

/* lease.c */
int64_t bc_lease_left_ms(const barchan_sandbox *sbx);
void bc_sandbox_set_paused(barchan_sandbox *sbx, int paused);

/* usage.c */
/* What a guest says it has used, kept to what can be added up. */
uint64_t bc_usage_bound(uint64_t told);
void bc_usage_add(barchan_sandbox *sbx, const barchan_exec_usage *usage);
/* The last count, by whoever could make it. */
void bc_usage_told(barchan_sandbox *sbx, const bc_usage *told);
/* The backend has counted the sandbox's processor time to its end. */
void bc_usage_ended(barchan_sandbox *sbx, uint64_t user_us, uint64_t system_us);
/* Nothing more will be known. */
void bc_usage_settle(barchan_sandbox *sbx);

/* mounts.c: checks them and encodes them into sbx->mounts. */
int bc_mounts_read(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err);
typedef struct bc_mount {
    uint32_t mode;
    const char *source, *target; /* as long as the sandbox's; source NULL: the storage itself */
} bc_mount;
/* for (bc_wire_reader in = bc_mounts_of(sbx); bc_mount_next(&in, &mount);) */
bc_wire_reader bc_mounts_of(const barchan_sandbox *sbx);
int bc_mount_next(bc_wire_reader *in, bc_mount *mount);
/* The mount whose changes can be asked for. `target` may be NULL; `len` 0: strlen(target). */
int bc_mounts_find_copy(const barchan_sandbox *sbx, const char *target, size_t len, bc_mount *found,
                        barchan_error *err);

/* For those who are connected to a detached one: they are told, and take in, its mounts. */
int bc_mounts_put(const barchan_sandbox *sbx, bc_buf *out);
int bc_mounts_take(barchan_sandbox *sbx, bc_wire_reader *in);

/* template_use.c: for the launcher: those of its template first. */
int bc_mounts_put_all(const barchan_sandbox *sbx, bc_buf *out);

/* secrets.c: of a sandbox that has any. */
/* Adds what its commands need to sbx->env. */
int bc_secrets_env(barchan_sandbox *sbx, barchan_error *err);
/* It is ready but for the certificates that its programs are to trust: writes them, and tells the
 * outcome of the creation. */
void bc_secrets_install(barchan_sandbox *sbx);

/* apply_memory.c */
void bc_apply_forget(barchan_sandbox *sbx);

/* profile.c */
int bc_profile_read(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err);
void bc_profile_clear(barchan_sandbox *sbx);
/* template_use.c: limits, lease and template, for those who are connected to it. */
int bc_profile_put(const barchan_sandbox *sbx, bc_buf *out);
int bc_profile_take(barchan_sandbox *sbx, bc_wire_reader *in);
/* Checks "NAME=value". */
int bc_env_check(const char *const *env, const char *what, barchan_error *err);

/* start.c: the payload of BC_CONTROL_START and BC_FRAME_BEGIN. */
int bc_start_put(const barchan_sandbox *sbx, bc_buf *out);

/* wire.c: payloads of requests, growing. */
int bc_put_wire_u32(bc_buf *out, uint32_t value);
int bc_put_wire_u64(bc_buf *out, uint64_t value);
int bc_put_wire_string(bc_buf *out, const char *text, size_t len);
/* The guest's words are shown to people: a copy, cut to fit, without control characters. */
const char *bc_printable(char *to, size_t cap, const char *from);
/* A failure in the guest's words: never empty, and without what would steer a terminal. The numbers
 * are within the maxima of messages.h, and not both 0. */
void bc_error_of_guest(barchan_error *err, uint32_t status, uint32_t os_error, const char *message);
/* Fills `err` from what the guest sent, code 0 for success; negative: malformed. */
int bc_read_status(bc_wire_reader *in, barchan_error *err);
/* The same for what can only be a failure, and is all there is. */
int bc_read_failure(bc_wire_reader *in, barchan_error *err);

#endif
