/* Sandboxes made of Linux namespaces, by the launcher. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "internal.h"
#include "launcher.h"

static int start(barchan_sandbox *sbx, int *channel_fd, barchan_error *err)
{
    int pair[2];
    int rc = bc_launcher_ensure(sbx->room, err);
    if (rc < 0) return rc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return bc_error_set_os(err, errno, "create a socket pair");
    }
    *channel_fd = pair[0];
    sbx->guest_fd = pair[1];
    sbx->tag = ++sbx->room->last_tag;
    bc_launcher_serve(sbx->room->launcher);
    return 0;
}

static void kill_sandbox(barchan_sandbox *sbx)
{
    if (sbx->tag == 0) return; /* never started */
    sbx->want_kill = 1;
    if (sbx->room->launcher != NULL) bc_launcher_serve(sbx->room->launcher);
}

static void extend(barchan_sandbox *sbx)
{
    sbx->want_extend = 1;
    if (sbx->room->launcher != NULL) bc_launcher_serve(sbx->room->launcher);
}

const bc_backend bc_backend_namespace = {
    .name = "namespace",
    .start = start,
    .kill = kill_sandbox,
    .extend = extend,
};
