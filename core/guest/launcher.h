/* The launcher: one per runtime, outside the sandboxes; clones them and dies with the host. */
#ifndef GUEST_LAUNCHER_H
#define GUEST_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "failure.h"
#include "groups.h"
#include "mounts.h"

/* Sandboxes of one launcher: each holds a descriptor or two here and a process on the machine. */
#define LAUNCHER_MAX_SANDBOXES 4096
#define LAUNCHER_MAX_TEMPLATES 64

/* Where things stand in the launcher's own small root; every sandbox begins with a copy of it. */
#define WORLD_TEMPLATES "/templates"
#define WORLD_HOST_TEMPLATE "/templates/host"
#define WORLD_NEW_ROOT "/new"  /* a sandbox binds its template here */
#define WORLD_STORE "/store"   /* a sandbox mounts its storage here */
#define WORLD_MOUNTS "/mounts" /* what a profile shows of the host stands here for a moment */
#define WORLD_EMPTY "/empty"   /* hides directories of /proc */

/* Ids inside a sandbox. */
#define SANDBOX_UID 1000

/* Ranges of ids that one machine has for sandboxes. */
#define SLOT_IDS 65536u
#define SLOT_COUNT 4095u

#define SPARE_SLOTS 8
struct slot;

struct world {
    bool privileged;    /* sandboxes get a range of ids; otherwise one id */
    int host_mounts_fd; /* the mount namespace with the host's files, for templates */
    int own_mounts_fd;
    int slots_fd; /* directory of the id registry; -1 unless privileged */
    unsigned char slots_held[SLOT_COUNT / 8 + 1];
    struct slot *spare_slots; /* locked and unused; SPARE_SLOTS places */
    unsigned spare_slot_count;
    bool network_fresh;    /* this process stands in a network namespace for the next sandbox */
    bool network_given_up; /* it could not be made; not tried again while idle */
    const char *mode;      /* for status and doctor */
    struct groups groups;
};

/* world.c: whether it is in the effective set. */
bool has_capability(int capability);
/* Why user namespaces do not work here, and what to do. */
void explain_user_namespaces(struct failure *why);
/* Leaves the host's session, enters the launcher's namespaces, builds its root. */
int world_enter(struct world *world, struct failure *why);

/* template_host.c: builds the template "host" below `target`, from the host's files, before the
 * root changes. */
int template_host_build(const char *target, struct failure *why);

/* template_dir.c: makes the template directory `path` of the host available; `mounted` is where
 * it stands in the launcher's root. */
int template_dir_open(const struct world *world, const char *path, char *mounted, size_t cap,
                      struct failure *why);

/* slots.c: ranges of ids that no other process of the machine uses while the lock is held. */
struct slot {
    int lock_fd; /* -1: none */
    unsigned number;
    uint32_t base; /* the first id of the range */
};
int slots_open(struct world *world, struct failure *why);
int slot_take(struct world *world, struct slot *slot, struct failure *why);
/* Keeps a few for the next sandboxes. */
void slot_give_back(struct world *world, struct slot *slot);
void slots_close(struct world *world);

/* network.c: has the launcher stand in a fresh network namespace with an up loopback. */
int network_prepare(struct world *world, struct failure *why);
/* Where it is not up already. */
int network_raise_loopback(struct failure *why);

/* network_out.c: in the namespace that the next sandbox gets, opens what leads out of it. Nothing
 * is left open after a failure. */
#define NETWORK_MAX_FDS (1u + BC_FRAME_MAX_PORTS)
struct network_sockets {
    unsigned count;
    int fds[NETWORK_MAX_FDS]; /* in the order of BC_CONTROL_LISTENERS */
};
int network_open(struct world *world, const bc_network_plan *plan, struct network_sockets *sockets,
                 struct failure *why);
/* The same in the namespace that this process stands in, whose loopback is up. */
int network_open_here(const bc_network_plan *plan, struct network_sockets *sockets,
                      struct failure *why);
void network_close(struct network_sockets *sockets);

/* What a cloned sandbox needs to set itself up. */
struct plan {
    uint32_t tag;
    bool privileged;
    bool best_effort;
    bool pause_at_lease_end;
    int64_t lease_ms, idle_ms;
    bc_limits limits;
    struct sandbox_groups groups;
    struct mount_list mounts;
    bc_network_plan network;
    bool carry;                     /* process 1 keeps the network's sockets … */
    struct network_sockets sockets; /* … these */
    bool disk_default;              /* nobody asked for limits.disk_bytes */
    bool found;                     /* it is a computer that somebody else has made: found.c */
    const char *template_name;
    const char *template_at; /* below WORLD_TEMPLATES */
    int channel_fd;
    int out_fd;   /* what goes to the library; -1: the same */
    int alive_fd; /* hangs up when the launcher is gone; -1: there is none */
    int sync_fd;  /* a byte arrives when the ids are mapped; -1: it maps its own */
    int lock_fd;  /* of its ids; -1: none */
};

/* plan.c: reads BC_CONTROL_START or BC_FRAME_BEGIN; its strings stay in the frame. False: it is
 * malformed. */
bool plan_read(struct plan *plan, const bc_frame *frame);

/* A sandbox as the launcher knows it. */
struct child {
    uint32_t tag;
    pid_t pid;
    int pidfd;
    int64_t lease_end_ms; /* 0: process 1 pauses it then */
    uint64_t oom_kills;   /* how many there had been when it began */
    uint32_t ending;      /* bc_ending: why the launcher killed it */
    struct slot slot;
};

/* clone.c: makes the process that becomes the sandbox's process 1. Negative: there is none. */
int clone_sandbox(struct world *world, struct child *child, struct plan *plan, struct failure *why);

/* isolate.c: becomes process 1 of the sandbox; never returns. */
_Noreturn void isolate_and_run(const struct plan *plan);

/* stdio.c: process 1 of a computer that somebody else has made, reached by its standard input and
 * output. */
_Noreturn void stdio_main(void);

/* launcher.c */
_Noreturn void launcher_main(int control_fd, int host_pidfd);

#endif
