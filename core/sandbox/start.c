/* What whoever makes a sandbox is told of it: the launcher, or a guest that nobody has set up. */
#include <string.h>
#include "internal.h"
#include "templates.h"

static int put_network(bc_buf *out, const barchan_sandbox *sbx)
{
    static const bc_network_plan none;
    unsigned char bytes[BC_NETWORK_PLAN_BYTES];
    bc_wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_network(&writer, sbx->egress == NULL ? &none : bc_egress_plan(sbx->egress));
    return bc_buf_append(out, bytes, writer.len);
}

static uint32_t flags_of(const barchan_sandbox *sbx)
{
    uint32_t flags = 0;
    if (sbx->best_effort) flags |= BC_START_BEST_EFFORT;
    if (sbx->pause_at_lease_end) flags |= BC_START_PAUSE_AT_LEASE_END;
    if (sbx->backend->carries_network) flags |= BC_START_CARRY;
    if (sbx->disk_default) flags |= BC_START_DISK_DEFAULT;
    return flags;
}

int bc_start_put(const barchan_sandbox *sbx, bc_buf *out)
{
    unsigned char limits[BC_LIMITS_BYTES];
    bc_wire_writer writer = {.data = limits, .cap = sizeof limits};
    bc_wire_put_limits(&writer, &sbx->limits);
    int rc = bc_put_wire_u32(out, flags_of(sbx));
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)sbx->lease_ms);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)sbx->idle_ms);
    if (rc == 0) rc = bc_buf_append(out, limits, writer.len);
    if (rc == 0) {
        const char *base = bc_template_base(sbx);
        rc = bc_put_wire_string(out, base, strlen(base));
    }
    if (rc == 0) rc = bc_mounts_put_all(sbx, out);
    if (rc == 0) rc = put_network(out, sbx);
    return rc;
}
