/*
 * The supervisor of one command: a process that shares memory with process 1 (CLONE_VM), is the
 * subreaper of everything the command starts, and so can end and count the command's whole tree,
 * whatever it forks or setsid()s, without touching its neighbours.
 */
#ifndef GUEST_REAPER_H
#define GUEST_REAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define REAPER_STACK_BYTES (16u << 10)
/* As many processes as a sandbox may have (RLIMIT_NPROC). */
#define TREE_MAX 1024

struct command {
    const char **argv; /* two free places before it, for /bin/sh and the script's path */
    const char **envp;
    const char *cwd;
    int fds[3];
    bool change_user;
    bool detach;
    bool network_off;               /* it can open no internet socket */
    bool terminal;                  /* the three are one, which becomes its controlling terminal */
    const int *enter;               /* NULL, or HIERARCHIES files of groups to enter, -1 for none */
    uint32_t open_files, processes; /* limits; 0: as they are */
    uint64_t cpu_seconds;           /* of any one process; 0: none */
};

/* The processes of a tree, parents first; and those of the round before. */
struct tree {
    int count, before_count;
    int pids[TREE_MAX], before[TREE_MAX];
};

/* One mapping: a guard page, the supervisor's stack, the command's stack until its exec, this. */
struct reaper {
    struct command command;

    /* Requests of process 1, after which it sends SIGUSR1. Atomic. */
    int stop;        /* SIGTERM or SIGKILL, to the whole tree */
    int signal_main; /* to the command itself */

    /* Results; complete when `main_done` is set (atomic) or the supervisor is gone. */
    int main_done;
    int main_pid;
    int status;
    int spawn_errno; /* the command could not be started */
    int spawn_cwd;   /* … because of its working directory */
    int64_t ended_us;
    struct rusage usage; /* of all that it has seen die */
    int left_running;
    int most_left; /* how many there were when it was to be ended */

    /* Private to the supervisor. */
    int stop_sent;
    struct tree tree;
};

struct reaper *reaper_new(void);
void reaper_free(struct reaper *reaper);
/* Starts the supervisor: its process id, or -errno. It keeps using `reaper` until it is reaped. */
long reaper_start(struct reaper *reaper);
/* Stops and then kills everything below the calling process, but the children that `spare` names
 * and what is below them. Returns how many it found; those that could still fork, or that only
 * then become children, need another call. The stack, of at least 4 KiB, is used where /proc is
 * missing. */
int reaper_kill_tree(struct tree *tree, char *stack_top, bool (*spare)(void *ud, int pid),
                     void *ud);

/* spawn.c: runs in the command's process, in process 1's memory, until the exec. */
int spawn_main(void *reaper);

#endif
