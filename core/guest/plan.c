/* What the library asks for of a sandbox, as it is told to whoever makes it. */
#include "launcher.h"

static void read_mounts(bc_wire_reader *in, struct mount_list *mounts)
{
    uint32_t count = bc_wire_u32(in);
    if (count > BC_FRAME_MAX_MOUNTS + BC_PACK_PLACES) in->bad = 1;
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct mount_request *m = &mounts->of[mounts->count++];
        m->mode = bc_wire_u32(in);
        m->source = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
        m->target = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
        if (m->source[0] != '/' || m->target[0] != '/') in->bad = 1;
        if (m->mode > BC_MOUNT_TEMPLATE) in->bad = 1;
    }
}

bool plan_read(struct plan *plan, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    *plan = (struct plan){.tag = frame->stream,
                          .channel_fd = -1,
                          .out_fd = -1,
                          .alive_fd = -1,
                          .sync_fd = -1,
                          .lock_fd = -1};
    uint32_t flags = bc_wire_u32(&in);
    plan->best_effort = flags & BC_START_BEST_EFFORT;
    plan->pause_at_lease_end = flags & BC_START_PAUSE_AT_LEASE_END;
    plan->carry = flags & BC_START_CARRY;
    plan->disk_default = flags & BC_START_DISK_DEFAULT;
    plan->lease_ms = (int64_t)bc_wire_u64(&in);
    plan->idle_ms = (int64_t)bc_wire_u64(&in);
    bc_wire_get_limits(&in, &plan->limits);
    plan->template_name = bc_wire_string(&in, BC_FRAME_MAX_PATH - 1);
    read_mounts(&in, &plan->mounts);
    bc_wire_get_network(&in, &plan->network);
    return bc_wire_done(&in);
}
