/* The template that a sandbox was made from, for as long as something of it runs. */
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "templates.h"

int bc_template_of_profile(barchan_sandbox *sbx, const char *name, barchan_error *err)
{
    if (name == NULL || strcmp(name, "host") == 0 || name[0] == '/') return 0;
    sbx->template_use = calloc(1, sizeof *sbx->template_use);
    if (sbx->template_use == NULL) return bc_error_nomem(err);
    int rc = bc_template_use_open(sbx->template_use, name, err);
    if (rc == 0) return 0;
    free(sbx->template_use);
    sbx->template_use = NULL;
    return rc;
}

void bc_template_let_go(barchan_sandbox *sbx)
{
    if (sbx->template_use == NULL) return;
    bc_template_release(sbx->template_use);
    free(sbx->template_use);
    sbx->template_use = NULL;
}

const char *bc_template_base(const barchan_sandbox *sbx)
{
    return sbx->template_use == NULL ? sbx->template_name : sbx->template_use->base;
}

static int put_tree(bc_buf *out, const char *folder, const bc_pack_place *place)
{
    bc_buf path cleanup_buf;
    bc_buf_init(&path, BC_FRAME_MAX_PATH - 1);
    int rc = bc_buf_appendf(&path, "%s/%s", folder, place->name);
    if (rc == 0) rc = bc_put_wire_u32(out, BC_MOUNT_TEMPLATE);
    if (rc == 0) rc = bc_put_wire_string(out, bc_buf_data(&path), path.len);
    return rc < 0 ? rc : bc_put_wire_string(out, place->target, strlen(place->target));
}

int bc_mounts_put_all(const barchan_sandbox *sbx, bc_buf *out)
{
    bc_wire_reader given = {.at = (const unsigned char *)bc_buf_data(&sbx->mounts)};
    given.end = given.at + sbx->mounts.len;
    uint32_t count = bc_wire_u32(&given);
    const bc_template_use *use = sbx->template_use;
    int rc = bc_put_wire_u32(out, count + (use == NULL ? 0 : BC_PACK_PLACES));
    for (unsigned i = 0; use != NULL && i < BC_PACK_PLACES && rc == 0; i++) {
        rc = put_tree(out, use->path, bc_pack_place_of(i));
    }
    return rc < 0 ? rc : bc_buf_append(out, given.at, (size_t)(given.end - given.at));
}

/* ---- for those who are connected to it ---- */

int bc_profile_put(const barchan_sandbox *sbx, bc_buf *out)
{
    unsigned char limits[BC_LIMITS_BYTES];
    bc_wire_writer bytes = {.data = limits, .cap = sizeof limits};
    const bc_template_use *use = sbx->template_use;
    const char *base = use == NULL ? "" : use->base;
    uint32_t flags = sbx->best_effort ? BC_START_BEST_EFFORT : 0;
    if (sbx->pause_at_lease_end) flags |= BC_START_PAUSE_AT_LEASE_END;
    bc_wire_put_limits(&bytes, &sbx->limits);
    int rc = bc_buf_append(out, limits, bytes.len);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)sbx->lease_ms);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)sbx->idle_ms);
    if (rc == 0) rc = bc_put_wire_u32(out, flags);
    if (rc == 0) rc = bc_put_wire_string(out, base, strlen(base));
    if (rc == 0) rc = bc_put_wire_u64(out, use == NULL ? 0 : use->entries);
    return rc < 0 ? rc : bc_put_wire_u64(out, use == NULL ? 0 : use->bytes);
}

/* The holder has the template; what is known here is how much may come of it. */
int bc_profile_take(barchan_sandbox *sbx, bc_wire_reader *in)
{
    bc_wire_get_limits(in, &sbx->limits);
    uint64_t lease_ms = bc_wire_u64(in), idle_ms = bc_wire_u64(in);
    uint32_t flags = bc_wire_u32(in);
    const char *base = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
    uint64_t entries = bc_wire_u64(in), bytes = bc_wire_u64(in);
    if (in->bad || lease_ms > BC_SANDBOX_MAX_LEASE_MS || idle_ms > BC_SANDBOX_MAX_LEASE_MS ||
        entries > INT64_MAX || bytes > INT64_MAX || sbx->limits.disk_bytes > INT64_MAX ||
        sbx->limits.files > INT64_MAX) {
        return -1;
    }
    sbx->lease_ms = (int64_t)lease_ms;
    sbx->idle_ms = (int64_t)idle_ms;
    sbx->best_effort = (flags & BC_START_BEST_EFFORT) != 0;
    sbx->pause_at_lease_end = (flags & BC_START_PAUSE_AT_LEASE_END) != 0;
    if (base[0] == '\0') return 0;
    sbx->template_use = calloc(1, sizeof *sbx->template_use);
    if (sbx->template_use == NULL) return -1;
    *sbx->template_use = (bc_template_use){.dir_fd = -1, .fd = -1, .entries = entries};
    sbx->template_use->bytes = bytes;
    sbx->template_use->base = strdup(base);
    return sbx->template_use->base == NULL ? -1 : 0;
}
