/* Process 1 accepts, and the channel carries the connections, as of sandboxes farther away. */
#include "sandbox_path.h"

#include <string.h>
#include "sandbox/backend.h"
#include "sandbox/internal.h"

/* A window, in a queue of the channel that doubles as it grows. */
const int path_kib = 144;

int create_sandbox(barchan_sandbox **out, barchan_runtime *runtime, const barchan_profile *profile,
                   barchan_error *err)
{
    static bc_backend carried;
    bc_outcome outcome = {0};
    carried = bc_backend_namespace;
    carried.carries_network = 1;
    int rc =
        bc_sandbox_create_with(out, runtime, profile, &carried, bc_created_note, &outcome, err);
    if (rc == 0) rc = bc_created_wait(out, &outcome, err);
    if (rc < 0) return rc;
    barchan_sandbox_info info = {.struct_size = sizeof info};
    rc = barchan_sandbox_status(*out, &info, err);
    if (rc < 0 || strstr(info.layers, "carried by process 1") != NULL) return rc;
    return bc_error_set(err, BARCHAN_EPROTOCOL, "the network is not carried: %s", info.layers);
}
