#include "hold_check.h"

#include "base/limits.h"

#define EXEC_FLAGS \
    (BC_EXEC_DETACH | BC_EXEC_INPUT | BC_EXEC_STREAMING | BC_EXEC_PTY | BC_EXEC_NETWORK_OFF)

static uint32_t skip_strings(bc_wire_reader *in)
{
    uint32_t count = bc_wire_u32(in);
    if (count > BC_FRAME_MAX_STRINGS) in->bad = 1;
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        bc_wire_string(in, BC_FRAME_MAX_TO_GUEST);
    }
    return count;
}

/* -1 for none, or up to the longest lease. */
static int is_time(int64_t ms)
{
    return ms >= -1 && ms <= BC_SANDBOX_MAX_LEASE_MS;
}

int bc_hold_exec_is_valid(bc_wire_reader in)
{
    uint32_t flags = bc_wire_u32(&in);
    int64_t timeout_ms = (int64_t)bc_wire_u64(&in), grace_ms = (int64_t)bc_wire_u64(&in);
    uint64_t out_limit = bc_wire_u64(&in), err_limit = bc_wire_u64(&in);
    uint32_t columns = bc_wire_u32(&in), rows = bc_wire_u32(&in);
    bc_wire_string(&in, BC_FRAME_MAX_PATH - 1);
    uint32_t argc = skip_strings(&in);
    skip_strings(&in);
    if (!bc_wire_done(&in) || argc == 0 || (flags & ~EXEC_FLAGS) != 0) return 0;
    if ((flags & BC_EXEC_PTY) != 0 && (columns == 0 || rows == 0)) return 0;
    return columns <= 0xFFFF && rows <= 0xFFFF && is_time(timeout_ms) && is_time(grace_ms) &&
           out_limit <= BC_FRAME_MAX_OUTPUT_LIMIT && err_limit <= BC_FRAME_MAX_OUTPUT_LIMIT;
}

int bc_hold_file_is_valid(bc_wire_reader in)
{
    uint32_t op = bc_wire_u32(&in), flags = bc_wire_u32(&in);
    bc_wire_u32(&in); /* mode and depth, offset and limit: any number is one */
    bc_wire_u32(&in);
    bc_wire_u64(&in);
    bc_wire_u64(&in);
    bc_wire_string(&in, BC_FRAME_MAX_PATH - 1);
    bc_wire_string(&in, BC_FRAME_MAX_PATH - 1);
    return bc_wire_done(&in) && op >= BC_FILE_OP_READ && op <= BC_FILE_OP_PACK &&
           (flags & ~(uint32_t)(BC_FILE_RECURSIVE | BC_FILE_WHOLE)) == 0;
}
