/*
 * Control groups: where the kernel holds a sandbox's limits, counts its processor time and freezes
 * it. The launcher makes them and takes them away; process 1 is given open files of them, nothing
 * of cgroupfs is mounted in a sandbox.
 *
 * In each hierarchy the launcher has one group, below its own or the nearest above that can hold
 * limits, and in that one a group per sandbox, named by its tag, for the commands. Limits and
 * freezing bite there only: process 1 stands outside, so that it keeps the lease and the next
 * command works. Where nothing is limited process 1 stands in it too, which saves moving each
 * command; it steps aside, to the group "guest", before it freezes the rest.
 */
#ifndef GUEST_GROUPS_H
#define GUEST_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "failure.h"

/* Version 2; and of version 1 the hierarchies that hold a limit. */
enum hierarchy_kind { IN_V2, IN_MEMORY, IN_PIDS, IN_CPU, HIERARCHIES };

struct hierarchy {
    int root_fd;   /* of the file system; -1: not there */
    int parent_fd; /* where the launcher's group is made */
    int dir_fd;    /* the launcher's group; -1: not made */
    char parent[512];
};

/* Which means holds a limit. */
enum held_by { BY_NOTHING, BY_V2, BY_V1, BY_RLIMIT, BY_WATCH };

/* Files of a sandbox's groups that process 1 holds open. */
enum group_file {
    GROUP_ENTER, /* cgroup.procs, one for each hierarchy: HIERARCHIES places */
    GROUP_PARK = GROUP_ENTER + HIERARCHIES,
    GROUP_FREEZE,
    GROUP_EVENTS,
    GROUP_CPU_STAT,
    GROUP_MEMORY_EVENTS,
    GROUP_MEMORY_NOW,
    GROUP_MEMORY_PEAK,
    GROUP_PIDS_EVENTS,
    GROUP_FILES
};

/* What a sandbox gets of them. */
struct sandbox_groups {
    int into_fd; /* clone process 1 into this group; -1: leave it where the launcher is */
    int files[GROUP_FILES];
    bool apart; /* process 1 stands outside: commands must enter */
    enum held_by memory, pids, cpus;
};

#define LATE_GROUPS 64
struct groups {
    struct hierarchy of[HIERARCHIES];
    bool v2_memory, v2_pids, v2_cpu; /* version 2 can hold it */
    int guest_fd;                    /* "guest" in version 2 */
    int registry_fd, lock_fd;
    int oom_fd;     /* counts the processes that were killed for memory where process 1 stands */
    bool leftovers; /* of dead launchers, still busy */
    unsigned late_count;
    uint32_t late[LATE_GROUPS]; /* ended sandboxes whose groups are still busy */
    char name[32];
};

/* groups_find.c */
void groups_init(struct groups *groups); /* none yet */
/* Never fails: without groups limits are held by other means, or refused. */
void groups_open(struct groups *groups);

/* groups.c. First: small files of a group; 0, or -1 with errno. */
int group_write(int dir, const char *name, const char *text);
bool group_read(int dir, const char *name, char *text, size_t cap);
/* The launcher's group in one hierarchy, made when first needed. */
bool group_make_own(struct groups *groups, enum hierarchy_kind kind);
/* Makes the groups of one sandbox and sets its limits. */
int groups_make(struct groups *groups, uint32_t tag, const bc_limits *limits, bool best_effort,
                struct sandbox_groups *made, struct failure *why);
/* Closes what the launcher does not need once the sandbox was cloned. */
void groups_let_go(struct sandbox_groups *made);
/* The processor time that a sandbox has used; false: not known. */
bool groups_read_cpu(const struct groups *groups, uint32_t tag, uint64_t *user_us,
                     uint64_t *system_us);
/* How often the kernel has killed for memory where process 1 stands (or, where that is not
 * counted, anywhere). */
uint64_t groups_oom_kills(const struct groups *groups);
void groups_remove(struct groups *groups, uint32_t tag);
/* Goes on with what was busy; true when there is nothing left to do. */
bool groups_settle(struct groups *groups);
/* Ends and removes all of them; false: something is still busy, and the next launcher will do it if
 * this one does not try again. */
bool groups_close(struct groups *groups);
const char *held_by_name(enum held_by means);

/* groups_registry.c: /run/barchan/groups (an ordinary user's: /run/user/ID/barchan/groups), one
 * file per launcher, locked while it lives, with the places of its groups. Removes the groups of
 * launchers that died. False: no registry, so no groups either. */
bool registry_open(struct groups *groups);
void registry_clean(struct groups *groups);
void registry_close(struct groups *groups);
/* Ends everything in the group `name` of `parent_fd` and removes it, and what is in it. */
bool group_destroy(int parent_fd, const char *name);

#endif
