/*
 * A sandbox behind a program whose standard input and output reach a guest (`barchan-guest stdio`):
 * docker, ssh, whatever starts or enters a computer. What isolates it is that computer's; the
 * guest sets up what it can and refuses the rest.
 *
 * An end kills the program, and closes the channel, at which a guest ends itself and all that runs
 * there. A hostile process 1 does not: a program that leaves its computer behind (`unshare --fork`
 * without --kill-child, a docker client) leaves it running, and whoever writes the command has to
 * stop it.
 */
#ifndef BC_SANDBOX_COMMAND_H
#define BC_SANDBOX_COMMAND_H

#include "internal.h"

typedef struct bc_command {
    const char *program;     /* a path, or a name that is looked for in `path` */
    const char *path;        /* as $PATH; NULL: "/usr/local/bin:/usr/bin:/bin" */
    const char *const *argv; /* ended by NULL; argv[0] is the name it is told */
    const char *const *envp; /* ended by NULL; all that it gets */
} bc_command;

/* As barchan_sandbox_create_start. The command is borrowed for the call. */
int bc_command_create(barchan_sandbox **out, barchan_runtime *rt, const barchan_profile *profile,
                      const bc_command *command, barchan_sandbox_created_fn done, void *ud,
                      barchan_error *err);

/* NULL is ignored. */
void bc_command_run_free(struct bc_command_run *run);

#endif
