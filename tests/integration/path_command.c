/* A guest in a computer of its own, which a program leads to (computer.sh). */
#include "sandbox_path.h"

#include "sandbox/command.h"

const int path_kib = 144;

static void on_created(barchan_sandbox *sandbox, const barchan_error *err, void *ud)
{
    (void)sandbox;
    bc_outcome_set(ud, err);
}

int create_sandbox(barchan_sandbox **out, barchan_runtime *runtime, const barchan_profile *profile,
                   barchan_error *err)
{
    static const char *const argv[] = {"sh", COMPUTER, GUEST_PATH, NULL};
    static const char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", NULL};
    const bc_command command = {.program = "/bin/sh", .argv = argv, .envp = envp};
    bc_outcome outcome = {0};
    int rc = bc_command_create(out, runtime, profile, &command, on_created, &outcome, err);
    if (rc == 0) rc = bc_outcome_wait(&outcome, runtime, err);
    return rc;
}
