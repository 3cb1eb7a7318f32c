/* A guest in a computer of its own, which a program leads to (computer.sh). */
#include "sandbox_path.h"

#include "sandbox/command.h"

const int path_kib = 144;

int create_sandbox(barchan_sandbox **out, barchan_runtime *runtime, const barchan_profile *profile,
                   barchan_error *err)
{
    static const char *const argv[] = {"sh", COMPUTER, GUEST_PATH, NULL};
    static const char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", NULL};
    const bc_command command = {.program = "/bin/sh", .argv = argv, .envp = envp};
    bc_outcome outcome = {0};
    int rc = bc_command_create(out, runtime, profile, &command, bc_created_note, &outcome, err);
    return rc < 0 ? rc : bc_created_wait(out, &outcome, err);
}
