/* From a profile's limits to what the launcher and the guest are told. */
#include <inttypes.h>
#include "base/limits.h"
#include "internal.h"

/* In words for who writes C and for who writes Lua. */
static int below(barchan_error *err, const char *name, const char *unit, uint64_t value,
                 uint64_t least)
{
    if (value == 0 || value >= least) return 0;
    return bc_error_set(err, BARCHAN_EINVAL,
                        "limits: %s: %" PRIu64 "%s given; the least is %" PRIu64, name, value, unit,
                        least);
}

static int above(barchan_error *err, const char *name, const char *unit, uint64_t value,
                 uint64_t most)
{
    if (value <= most) return 0;
    if (value == UINT32_MAX) { /* also what was more than the field holds */
        return bc_error_set(err, BARCHAN_EINVAL, "limits: %s: the most is %" PRIu64 "%s", name,
                            most, unit);
    }
    return bc_error_set(err, BARCHAN_EINVAL,
                        "limits: %s: %" PRIu64 "%s given; the most is %" PRIu64, name, value, unit,
                        most);
}

static int check(const barchan_limits *l, barchan_error *err)
{
    const struct {
        const char *name, *unit;
        uint64_t value, least, most;
    } bounds[] = {
        {"memory", " bytes", l->memory_bytes, BC_LIMIT_MIN_MEMORY_BYTES, INT64_MAX},
        {"disk", " bytes", l->disk_bytes, BC_SANDBOX_MIN_STORAGE_BYTES, INT64_MAX},
        {"files", "", l->files, 1, BC_LIMIT_MAX_FILES},
        {"cpus", " thousandths", l->cpus_milli, BC_LIMIT_MIN_CPUS_MILLI, BC_LIMIT_MAX_CPUS_MILLI},
        {"pids", "", l->pids, 1, BC_LIMIT_MAX_PIDS},
        {"open_files", "", l->open_files, BC_LIMIT_MIN_OPEN_FILES, BC_LIMIT_MAX_OPEN_FILES},
        {"output", " bytes", l->output_bytes, 1, INT64_MAX},
    };
    if (l->cpu_ms < 0 || l->wall_ms < 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "limits: a time is negative");
    }
    int rc = above(err, "processor time", " ms", (uint64_t)l->cpu_ms, BC_SANDBOX_MAX_LEASE_MS);
    if (rc == 0)
        rc = above(err, "time of a command", " ms", (uint64_t)l->wall_ms, BC_SANDBOX_MAX_LEASE_MS);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds && rc == 0; i++) {
        rc = below(err, bounds[i].name, bounds[i].unit, bounds[i].value, bounds[i].least);
        if (rc == 0)
            rc = above(err, bounds[i].name, bounds[i].unit, bounds[i].value, bounds[i].most);
    }
    /* The storage is memory: with as much of it, a full disk would be told as too little memory. */
    if (rc == 0 && l->memory_bytes != 0 && l->disk_bytes >= l->memory_bytes) {
        rc =
            bc_error_set(err, BARCHAN_EINVAL,
                         "limits: disk must be less than memory, because files are held in memory");
    }
    return rc;
}

int bc_limits_read(barchan_sandbox *sbx, const barchan_limits *l, barchan_error *err)
{
    int rc = check(l, err);
    if (rc < 0) return rc;
    uint64_t disk = l->disk_bytes == 0 ? BC_SANDBOX_DEFAULT_STORAGE_BYTES : l->disk_bytes;
    if (l->disk_bytes == 0 && l->memory_bytes != 0 && l->memory_bytes / 2 < disk) {
        disk = l->memory_bytes / 2;
    }
    sbx->disk_default = l->disk_bytes == 0;
    sbx->wall_ms = l->wall_ms;
    sbx->limits = (bc_limits){
        .memory_bytes = l->memory_bytes,
        .disk_bytes = disk,
        .files = l->files,
        .output_bytes = l->output_bytes,
        .cpu_us = (uint64_t)l->cpu_ms * 1000,
        .cpus_milli = l->cpus_milli,
        .pids = l->pids,
        .open_files = l->open_files,
    };
    return 0;
}
