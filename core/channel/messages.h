/*
 * The payloads of frames: flags, numbers and records with more than a few fields. Part of frame.h,
 * by which it is included.
 */
#ifndef BC_CHANNEL_MESSAGES_H
#define BC_CHANNEL_MESSAGES_H

#include "channel/frame.h"

enum bc_exec_flags {
    BC_EXEC_DETACH = 1,
    BC_EXEC_INPUT = 2,       /* input will be sent; otherwise it is empty */
    BC_EXEC_STREAMING = 4,   /* no caps */
    BC_EXEC_PTY = 8,         /* a terminal for all three; what it shows is BC_FRAME_OUT */
    BC_EXEC_NETWORK_OFF = 16 /* no internet sockets */
};

enum bc_file_flags {
    BC_FILE_RECURSIVE = 1, /* remove: a whole tree */
    BC_FILE_WHOLE = 2      /* read: more than `limit` bytes are a failure (BC_WIRE_ELIMIT) */
};

/* As barchan_file_op. */
enum bc_file_wire_op {
    BC_FILE_OP_READ = 1,
    BC_FILE_OP_WRITE = 2,
    BC_FILE_OP_APPEND = 3,
    BC_FILE_OP_LIST = 4,
    BC_FILE_OP_STAT = 5,
    BC_FILE_OP_MKDIR = 6,
    BC_FILE_OP_REMOVE = 7,
    BC_FILE_OP_RENAME = 8,
    BC_FILE_OP_CHANGES = 9,
    BC_FILE_OP_PACK = 10 /* no barchan_file_op: see pack.h; the path is "/" */
};
/* As barchan_file_change. */
enum bc_file_change { BC_FILE_ADDED = 1, BC_FILE_MODIFIED = 2, BC_FILE_DELETED = 3 };
/* What list and stat write as BC_FRAME_OUT, one after the other, cut anywhere:
 * u32 type (barchan_file_type), u32 mode, u64 size, u64 mtime ms, string path, string target.
 * Those of changes begin with a u32 bc_file_change. */
#define BC_FILE_MAX_ENTRY_PATH (64u * 256u)
#define BC_FILE_MAX_ENTRIES 100000u
/* All records of one list: as many entries with long names; a list that is longer is truncated. */
#define BC_FILE_MAX_RECORD_BYTES (64u << 20)

enum bc_ending {
    BC_ENDING_UNKNOWN = 0,
    BC_ENDING_LEASE = 1,
    BC_ENDING_KILLED = 2,
    BC_ENDING_IDLE = 3,
    BC_ENDING_OOM = 4, /* the kernel had too little memory and chose process 1 */
    BC_ENDING_HOST = 5 /* not sent: the process that held it is gone */
};

/* As barchan_mount_mode, and one of the library's own: a tree of a template, copy-on-write. */
enum bc_mount_mode {
    BC_MOUNT_READ_ONLY = 0,
    BC_MOUNT_READ_WRITE = 1,
    BC_MOUNT_COPY_ON_WRITE = 2,
    BC_MOUNT_TEMPLATE = 3
};

enum bc_start_flags {
    BC_START_BEST_EFFORT = 1,
    BC_START_PAUSE_AT_LEASE_END = 2,
    BC_START_CARRY = 4,       /* process 1 keeps the network's sockets: see carried.h */
    BC_START_DISK_DEFAULT = 8 /* nobody asked for the limit of the storage */
};

/* What leads out of a sandbox: nothing without ports. Names get addresses of BC_NETWORK_NAMES. */
typedef struct bc_network_plan {
    uint32_t connections; /* that may be carried at a time; see carried.h */
    uint32_t port_count, range_count;
    uint16_t ports[BC_FRAME_MAX_PORTS];
    struct bc_network_range {
        uint32_t address, prefix; /* IPv4, host byte order */
    } ranges[BC_FRAME_MAX_RANGES];
} bc_network_plan;
#define BC_NETWORK_PLAN_BYTES (12u + 4u * BC_FRAME_MAX_PORTS + 8u * BC_FRAME_MAX_RANGES)
/* 198.18.0.0/15 is set aside for tests of networks (RFC 2544), so no host has such an address. The
 * first is the sandbox's own and its name service. */
#define BC_NETWORK_NAMES 0xC6120000u
#define BC_NETWORK_NAMES_PREFIX 15u
#define BC_NETWORK_SERVICE (BC_NETWORK_NAMES + 1u)
#define BC_NETWORK_SERVICE_TEXT "198.18.0.1"

static inline void bc_wire_put_network(bc_wire_writer *out, const bc_network_plan *plan)
{
    bc_wire_put_u32(out, plan->connections);
    bc_wire_put_u32(out, plan->port_count);
    for (uint32_t i = 0; i < plan->port_count; i++) {
        bc_wire_put_u32(out, plan->ports[i]);
    }
    bc_wire_put_u32(out, plan->range_count);
    for (uint32_t i = 0; i < plan->range_count; i++) {
        bc_wire_put_u32(out, plan->ranges[i].address);
        bc_wire_put_u32(out, plan->ranges[i].prefix);
    }
}

static inline void bc_wire_get_network(bc_wire_reader *in, bc_network_plan *plan)
{
    plan->connections = bc_wire_u32(in);
    if (plan->connections > BC_FRAME_MAX_CONNECTIONS) in->bad = 1;
    plan->port_count = bc_wire_u32(in);
    if (plan->port_count > BC_FRAME_MAX_PORTS) in->bad = 1;
    for (uint32_t i = 0; !in->bad && i < plan->port_count; i++) {
        uint32_t port = bc_wire_u32(in);
        if (port == 0 || port > 65535) in->bad = 1;
        plan->ports[i] = (uint16_t)port;
    }
    plan->range_count = bc_wire_u32(in);
    if (plan->range_count > BC_FRAME_MAX_RANGES) in->bad = 1;
    for (uint32_t i = 0; !in->bad && i < plan->range_count; i++) {
        plan->ranges[i].address = bc_wire_u32(in);
        plan->ranges[i].prefix = bc_wire_u32(in);
        if (plan->ranges[i].prefix > 32) in->bad = 1;
    }
}

/* The guest's side of barchan_status, without the sign; 0: the system error decides. */
enum bc_wire_status {
    BC_WIRE_OS_ERROR = 0,
    BC_WIRE_EINVAL = 1,
    BC_WIRE_EBUSY = 3,
    BC_WIRE_ETIMEDOUT = 5,
    BC_WIRE_ECANCELLED = 6,
    BC_WIRE_ENOTFOUND = 7,
    BC_WIRE_EPERMISSION = 9,
    BC_WIRE_EUNSUPPORTED = 10,
    BC_WIRE_ELIMIT = 13,
    BC_WIRE_ELOST = 14,
    BC_WIRE_ENOTDIR = 25,
    BC_WIRE_EISDIR = 26,
    BC_WIRE_ENOTREG = 27,
    BC_WIRE_ELINK = 28
};
#define BC_WIRE_MAX_STATUS 30u

/* How an exec ended, as the numbers of barchan_exec_reason. */
enum bc_exit_reason {
    BC_EXIT_EXITED = 0,
    BC_EXIT_SIGNALED = 1,
    BC_EXIT_TIMEOUT = 2,
    BC_EXIT_OOM = 3,
    BC_EXIT_CANCELLED = 4,
    BC_EXIT_SPAWN_FAILED = 6,
    BC_EXIT_PIDS = 7,
    BC_EXIT_DISK_FULL = 8,
    BC_EXIT_CPU_TIME = 9,
    BC_EXIT_OUTPUT = 10
};

typedef struct bc_exit {
    uint32_t reason;
    uint32_t exit_code;
    uint32_t term_signal;
    uint32_t spawn_errno;
    uint32_t spawn_cwd;
    uint32_t left_running;
    uint64_t out_dropped, err_dropped;
    uint64_t wall_us, user_us, system_us, max_rss_bytes;
} bc_exit;
#define BC_EXIT_BYTES (6u * 4u + 6u * 8u)

static inline void bc_wire_put_exit(bc_wire_writer *out, const bc_exit *e)
{
    const uint32_t small[] = {e->reason,      e->exit_code, e->term_signal,
                              e->spawn_errno, e->spawn_cwd, e->left_running};
    const uint64_t large[] = {e->out_dropped, e->err_dropped, e->wall_us,
                              e->user_us,     e->system_us,   e->max_rss_bytes};
    for (size_t i = 0; i < 6; i++) {
        bc_wire_put_u32(out, small[i]);
    }
    for (size_t i = 0; i < 6; i++) {
        bc_wire_put_u64(out, large[i]);
    }
}

static inline void bc_wire_get_exit(bc_wire_reader *in, bc_exit *e)
{
    uint32_t *small[] = {&e->reason,      &e->exit_code, &e->term_signal,
                         &e->spawn_errno, &e->spawn_cwd, &e->left_running};
    uint64_t *large[] = {&e->out_dropped, &e->err_dropped, &e->wall_us,
                         &e->user_us,     &e->system_us,   &e->max_rss_bytes};
    for (size_t i = 0; i < 6; i++) {
        *small[i] = bc_wire_u32(in);
    }
    for (size_t i = 0; i < 6; i++) {
        *large[i] = bc_wire_u64(in);
    }
}

/* BC_CONTROL_START with its header. */
#define BC_CONTROL_MAX_START                                                               \
    (BC_FRAME_HEADER + BC_FRAME_MAX_PATH + BC_LIMITS_BYTES + 64u + BC_NETWORK_PLAN_BYTES + \
     (BC_FRAME_MAX_MOUNTS + BC_PACK_PLACES) * (2u * BC_FRAME_MAX_PATH + 16u))

/* What a sandbox may use; 0: as much as there is, or the default of whoever enforces it. */
typedef struct bc_limits {
    uint64_t memory_bytes, disk_bytes, files, output_bytes, cpu_us;
    uint32_t cpus_milli, pids, open_files;
} bc_limits;

static inline void bc_wire_put_limits(bc_wire_writer *out, const bc_limits *l)
{
    const uint64_t large[] = {l->memory_bytes, l->disk_bytes, l->files, l->output_bytes, l->cpu_us};
    const uint32_t small[] = {l->cpus_milli, l->pids, l->open_files};
    for (size_t i = 0; i < 5; i++) {
        bc_wire_put_u64(out, large[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        bc_wire_put_u32(out, small[i]);
    }
}
#define BC_LIMITS_BYTES (5u * 8u + 3u * 4u)

static inline void bc_wire_get_limits(bc_wire_reader *in, bc_limits *l)
{
    uint64_t *large[] = {&l->memory_bytes, &l->disk_bytes, &l->files, &l->output_bytes, &l->cpu_us};
    uint32_t *small[] = {&l->cpus_milli, &l->pids, &l->open_files};
    for (size_t i = 0; i < 5; i++) {
        *large[i] = bc_wire_u64(in);
    }
    for (size_t i = 0; i < 3; i++) {
        *small[i] = bc_wire_u32(in);
    }
}

/* Asked of process 1; each is a stream of its own with one answer. */
enum bc_ask {
    BC_ASK_USAGE = 1,  /* the answer is a bc_usage */
    BC_ASK_EXTEND = 2, /* ms from now to the end of the lease */
    BC_ASK_PAUSE = 3,  /* answered when every process stands still */
    BC_ASK_RESUME = 4,
    BC_ASK_PROCESSES = 5 /* the answer: u32 how many there are, u32 how many follow, each a
                            bc_process and a string, its command line with spaces between words */
};

typedef struct bc_usage {
    uint64_t user_us, system_us;
    uint64_t memory_bytes, memory_peak_bytes, memory_kib_ms;
    uint64_t disk_bytes;
    uint32_t cpu_counted, memory_counted; /* by the kernel, for the sandbox as a whole */
} bc_usage;
#define BC_USAGE_BYTES (6u * 8u + 2u * 4u)

typedef struct bc_process {
    uint32_t pid, parent, threads, state, exec;
    uint64_t cpu_us, memory_bytes;
} bc_process;
#define BC_PROCESS_MAX_COMMAND 200u
/* As many as fit into one answer. */
#define BC_PROCESS_MAX_LISTED (BC_FRAME_MAX_FROM_GUEST / (BC_PROCESS_MAX_COMMAND + 48u))

static inline void bc_wire_put_process(bc_wire_writer *out, const bc_process *p)
{
    bc_wire_put_u32(out, p->pid);
    bc_wire_put_u32(out, p->parent);
    bc_wire_put_u32(out, p->threads);
    bc_wire_put_u32(out, p->state);
    bc_wire_put_u32(out, p->exec);
    bc_wire_put_u64(out, p->cpu_us);
    bc_wire_put_u64(out, p->memory_bytes);
}

static inline void bc_wire_get_process(bc_wire_reader *in, bc_process *p)
{
    p->pid = bc_wire_u32(in);
    p->parent = bc_wire_u32(in);
    p->threads = bc_wire_u32(in);
    p->state = bc_wire_u32(in);
    p->exec = bc_wire_u32(in);
    p->cpu_us = bc_wire_u64(in);
    p->memory_bytes = bc_wire_u64(in);
}

static inline void bc_wire_put_usage(bc_wire_writer *out, const bc_usage *u)
{
    const uint64_t large[] = {u->user_us,           u->system_us,     u->memory_bytes,
                              u->memory_peak_bytes, u->memory_kib_ms, u->disk_bytes};
    for (size_t i = 0; i < 6; i++) {
        bc_wire_put_u64(out, large[i]);
    }
    bc_wire_put_u32(out, u->cpu_counted);
    bc_wire_put_u32(out, u->memory_counted);
}

static inline void bc_wire_get_usage(bc_wire_reader *in, bc_usage *u)
{
    uint64_t *large[] = {&u->user_us,           &u->system_us,     &u->memory_bytes,
                         &u->memory_peak_bytes, &u->memory_kib_ms, &u->disk_bytes};
    for (size_t i = 0; i < 6; i++) {
        *large[i] = bc_wire_u64(in);
    }
    u->cpu_counted = bc_wire_u32(in);
    u->memory_counted = bc_wire_u32(in);
}

#endif
