/*
 * Process 1 of a sandbox: reads requests from the channel, runs commands and file operations as
 * jobs, sends their output and results, reaps orphans, keeps the lease.
 *
 * Single-threaded, one poll loop, no blocking call. See sys.h for why errno is not used here.
 */
#ifndef GUEST_INIT_H
#define GUEST_INIT_H

#include <stdbool.h>
#include "channel/frame.h"
#include "isolate.h"
#include "reaper.h"
#include "sys.h"

/* Above it, process 1 stops reading what commands write. */
#define OUT_QUEUE_HIGH (512u << 10)

/* How often the limits are looked at that the kernel does not hold. */
#define WATCH_US 20000
/* How often memory is looked at otherwise, while commands run. */
#define SAMPLE_US 1000000
/* A time that was asked for, cut so that adding it to a clock fits. */
#define LONGEST_MS (1ll << 43)
static inline int64_t us_of_ms(int64_t ms)
{
    return 1000 * (ms < 0 ? 0 : ms > LONGEST_MS ? LONGEST_MS : ms);
}

struct queue {
    unsigned char *data;
    size_t start, len, cap;
};

/* One output stream of a job. */
struct output {
    int fd;        /* -1: finished */
    uint32_t type; /* BC_FRAME_OUT or BC_FRAME_ERR */
    bool capped;
    bool discard;       /* read and thrown away: a detached command's */
    bool complete;      /* what comes from now on is not part of the result */
    uint32_t credit;    /* bytes that may still be sent */
    uint64_t head_left; /* capped: bytes that are still sent as they come */
    uint64_t tail_max;  /* capped: then the last ones are kept here … */
    unsigned char *tail;
    size_t tail_at, tail_len, tail_cap;
    uint64_t dropped;   /* … and the ones in between counted */
    uint64_t read_dead; /* bytes read since the command ended */
};

struct cpu_time {
    uint64_t user_us, system_us;
};

/* See usage.c. */
struct usage {
    struct cpu_time ended; /* of commands that have ended */
    uint64_t memory_now, memory_peak, memory_kib_ms;
    int64_t sampled_us;
};

enum job_kind { JOB_EXEC, JOB_FILE };
enum job_stage {
    JOB_RUNNING,
    JOB_TERMINATING, /* asked to end, until the grace is over */
    JOB_KILLING,
    JOB_DRAINING, /* dead; what is left in the pipes is sent */
    JOB_DETACHED  /* its result was sent; what it left behind runs on */
};

struct job {
    enum job_kind kind;
    enum job_stage stage;
    uint32_t stream;
    int pid;        /* its supervisor or worker */
    uint32_t cause; /* bc_exit_reason when process 1 ended it, else BC_EXIT_EXITED */
    bool detach;
    bool orphaned; /* its supervisor was killed: it is over when no stray is left */
    int64_t started_us, deadline_us; /* 0: none */
    int64_t grace_ms;
    struct output out, err;
    int in_fd;     /* -1: closed */
    bool terminal; /* in_fd and out.fd are the master's side of one */
    bool in_ended;
    struct queue in;
    uint32_t in_done; /* consumed, not yet granted */
    uint64_t written; /* to both outputs */
    /* What the meters said when it began. */
    uint64_t oom_before, pids_before;
    bool full_before; /* of the storage */
    struct cpu_time cpu_before;
    bool cpu_known;        /* `cpu_before` holds */
    bool accompanied;      /* another command has run since, also a detached one */
    struct reaper *reaper; /* JOB_EXEC */
    void *request;         /* the strings of its request */
    const char **lists[2]; /* of pointers to them: arguments, environment */
    bool packs;            /* JOB_FILE: for a snapshot */
    int result_fd;         /* JOB_FILE: the worker's answer */
    unsigned char result[1024];
    size_t result_len;
};

/* Jobs whose results were sent and that live on. Each holds two descriptors and two processes, of
 * which a sandbox has 1024. */
#define MAX_DETACHED 256u
#define MAX_JOBS (BC_FRAME_MAX_STREAMS + MAX_DETACHED)

/* Channel, launcher, signals, timer, what waits for the channel; then up to four per job, and those
 * of a carried network: only what is waited for. */
#define FIXED_FDS 5u
#define JOB_FDS 4u
#define MAX_FDS (FIXED_FDS + JOB_FDS * MAX_JOBS + NETWORK_MAX_FDS + BC_FRAME_MAX_CONNECTIONS)
struct watch_list {
    unsigned count;
    struct pollfd fds[MAX_FDS];
    struct watched {
        union {
            struct job *job;
            struct connection *connection;
        };
        enum {
            WATCH_IN,
            WATCH_OUT,
            WATCH_ERR,
            WATCH_RESULT,
            WATCH_NAMES,
            WATCH_LISTENER,
            WATCH_CONNECTION
        } what;
    } of[MAX_FDS];
};

#define NEVER_US (INT64_MAX / 2)

struct init {
    int channel_fd, out_fd; /* to read from and to write to; mostly the same */
    int alive_fd, signal_fd, timer_fd;
    bool privileged; /* commands are another user than process 1 */
    int64_t lease_end_us, armed_us;
    bool pause_at_lease_end;
    int64_t idle_us, busy_us; /* how long it may have nothing to do; when it last had */
    /* See pause.c. */
    bool paused, pausing; /* `pausing`: not all processes stand still yet */
    uint32_t pause_stream;
    int64_t paused_us;
    const struct mount_list *mounts;
    bc_limits limits;
    enum held_by memory_by, pids_by;
    int group_files[GROUP_FILES]; /* enum group_file; -1: none */
    bool apart;                   /* commands stand in a group, process 1 does not */
    int64_t look_cost_us;         /* how long the last look took */
    int64_t look_us;              /* when to look at them again; 0: no need */
    struct usage usage;
    uint64_t pids_full; /* how often all processes were in use */
    struct queue in, out;
    struct carry *carry; /* carry.c; NULL: no network, or the library has its sockets */
    struct job *jobs[MAX_JOBS];
    unsigned job_count;
    struct reaper *spare; /* one, kept warm */
    bool strays;          /* children that are no jobs may be alive: they are being killed */
    uint32_t strays_killed;
    struct watch_list watched;
    struct tree tree; /* of the strays */
    _Alignas(16) char probe_stack[8192];
};

/* init.c */
_Noreturn void init_main(const struct plan *plan, const struct layers *layers);
/* Ends the sandbox: every process in it dies with process 1. */
_Noreturn void init_die(struct init *init, const char *why);
/* The same, and the library is told the bc_ending. */
_Noreturn void init_end(struct init *init, uint32_t why);

/* queue.c: a byte queue; growing is the only thing that can fail. */
bool queue_put(struct queue *queue, const void *data, size_t len);
unsigned char *queue_room(struct queue *queue, size_t len); /* then queue->len += n */
void queue_drop(struct queue *queue, size_t len);
void queue_free(struct queue *queue);

/* send.c: frames to the library. */
void send_frame(struct init *init, uint32_t type, uint32_t stream, const void *payload, size_t len);
void send_flush(struct init *init);

/* job.c */
struct job *job_find(struct init *init, uint32_t stream);
/* NULL: as many run as may. */
struct job *job_new(struct init *init, enum job_kind kind, uint32_t stream);
unsigned job_count_detached(const struct init *init);
void job_input(struct init *init, struct job *job, const unsigned char *data, uint32_t len);
void job_input_end(struct init *init, struct job *job);
void job_write_input(struct init *init, struct job *job);
/* Of a worker's answer, what is there. */
void job_read_result(struct job *job);
void job_cancel(struct job *job);
/* Ends a command that is over a limit. */
void job_over_limit(struct job *job, uint32_t cause);
/* How many of them are within the limit; beyond it the command ends. */
uint64_t job_count_output(const struct init *init, struct job *job, uint64_t bytes);
void job_deadline(struct init *init, struct job *job, int64_t now_us);
/* Its process is gone. */
void job_died(struct init *init, struct job *job, int status);
/* Moves on what can be moved; frees the job when it is over. */
void job_step(struct init *init, struct job *job);

/* exec.c */
void exec_start(struct init *init, const bc_frame *frame);
void exec_stop(struct job *job, int sig);
/* 0 or -errno. */
long exec_resize(const struct job *job, uint32_t columns, uint32_t rows);

/* exec_end.c */
void exec_note_start(struct init *init, struct job *job);
/* Whether the group's count since it began is its own. */
bool exec_is_counted(const struct job *job);
void exec_report(struct init *init, struct job *job);

/* ask.c */
void ask_start(struct init *init, const bc_frame *frame);
void ask_answer(struct init *init, uint32_t stream, uint32_t status, const char *message);

/* pause.c. The stream is told when all stand still. 0: the lease is over, which the library is told
 * by BC_FRAME_STATE, and what cannot be paused ends. */
void pause_start(struct init *init, uint32_t stream);
void pause_step(struct init *init);
void pause_end(struct init *init, uint32_t stream);

/* usage.c */
struct person;
void usage_add_ended(struct init *init, const struct job *job);
/* Memory that is really its own: shared pages count in part. Where the kernel does not tell (the
 * process has made itself unreadable), all its resident memory. */
uint64_t usage_memory_of(const struct person *person);
/* Notes the memory in use; only if a control group counts it, which is cheap. */
bool usage_sample_counted(struct init *init);
void usage_sample(struct init *init);
bc_usage usage_now(struct init *init);
/* The words of its command line; a process without one has its name in brackets, as ps has it. */
size_t usage_command_line(int pid, char *text, size_t cap);
/* Writes the answer to BC_ASK_PROCESSES. */
void usage_list(struct init *init, bc_wire_writer *out);
static inline uint64_t us_of(struct timeval tv)
{
    return (uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec;
}

/* watch.c: how soon to look again, in us; 0: no need. */
int64_t watch_interval(const struct init *init);
void watch_look(struct init *init);

/* meters.c: 0 or false where nothing counts. */
uint64_t meter_oom_kills(const struct init *init);
uint64_t meter_pid_refusals(const struct init *init);
bool meter_cpu(const struct init *init, uint64_t *user_us, uint64_t *system_us);
bool meter_memory(const struct init *init, uint64_t *now, uint64_t *peak);
bool meter_is_frozen(const struct init *init);
bool meter_storage(uint64_t *used_bytes, bool *full);

/* file.c: file operations as jobs; file_worker.c does them. */
void file_start(struct init *init, const bc_frame *frame);
void file_report(struct init *init, struct job *job);

/* quiet.c: for snapshots. */
bool quiet_is_packing(const struct init *init);
/* What reads only. */
bool quiet_may_run(uint32_t op);
struct file_result;
/* Whether nothing but process 1 lives; otherwise the result says what does, in `words`. */
bool quiet_check(const struct init *init, struct file_result *result, char *words, size_t cap);

/* output.c */
void output_open(struct output *output, int fd, uint32_t type, uint64_t limit, bool capped);
bool output_wants_read(const struct init *init, const struct output *output);
/* Reads once; at the end of the stream closes. `dead`: nothing will write any more. */
void output_read(struct init *init, struct job *job, struct output *output, bool dead);
/* Sends the kept tail as far as credit goes; true when nothing is left. */
bool output_flush(struct init *init, struct job *job, struct output *output);
void output_free(struct output *output);

#endif
