/*
 * Child processes by pidfd: no SIGCHLD needed, works when the host ignores it or reaps everything
 * itself (the exit status is then unknown, the death is not).
 */
#ifndef BC_RUNTIME_CHILD_H
#define BC_RUNTIME_CHILD_H

#include "loop.h"

typedef struct bc_child bc_child;

typedef struct bc_child_options {
    int program_fd;          /* executed by execveat on this descriptor */
    const char *const *argv; /* NULL-terminated */
    const char *const *envp; /* NULL-terminated; never the host's own */
    const int *fds;          /* become descriptors 0, 1, 2, … of the child, -1: /dev/null */
    int fd_count;            /* at least 3; nothing else is inherited */
} bc_child_options;

/* `status` is a wait status, -1 when somebody else reaped the child. The handle stays valid
 * until bc_child_close. */
typedef void (*bc_child_exit_fn)(bc_child *child, int status, void *ud);

/* Starts the program with default signal dispositions, no blocked signal and no descriptor but
 * the given ones. The cost does not grow with the host's memory. A failed exec is an error here. */
int bc_child_spawn(bc_child **out, barchan_runtime *rt, const bc_child_options *options,
                   bc_child_exit_fn on_exit, void *ud, barchan_error *err);
int bc_child_pidfd(const bc_child *child);
void bc_child_kill(bc_child *child, int signal_number);
/* Kills it if it still runs, reaps it, and frees the handle without calling on_exit. */
void bc_child_close(bc_child *child);

#endif
