/* What the kernel has counted: files of control groups that stand open, and the storage. */
#include "init.h"

#include <sys/vfs.h>

static uint64_t number_at(const char *at)
{
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
    }
    return value;
}

/* A file that is one number, or the number behind `key` in a file of lines. */
static bool read_meter(int fd, const char *key, uint64_t *value)
{
    char text[1024];
    long n = fd < 0 ? -1 : SYS4(SYS_pread64, fd, text, sizeof text - 1, 0);
    if (n <= 0) return false;
    text[n] = '\0';
    const char *at = text;
    size_t len = strlen(key);
    while (len > 0 && !(strncmp(at, key, len) == 0 && at[len] == ' ')) {
        at = strchr(at, '\n');
        if (at == NULL) return false;
        at++;
    }
    *value = number_at(len > 0 ? at + len + 1 : at);
    return true;
}

uint64_t meter_oom_kills(const struct init *init)
{
    uint64_t kills = 0;
    read_meter(init->group_files[GROUP_MEMORY_EVENTS], "oom_kill", &kills);
    return kills;
}

uint64_t meter_pid_refusals(const struct init *init)
{
    uint64_t refusals = 0;
    read_meter(init->group_files[GROUP_PIDS_EVENTS], "max", &refusals);
    return refusals;
}

bool meter_cpu(const struct init *init, uint64_t *user_us, uint64_t *system_us)
{
    int fd = init->group_files[GROUP_CPU_STAT];
    return read_meter(fd, "user_usec", user_us) && read_meter(fd, "system_usec", system_us);
}

bool meter_memory(const struct init *init, uint64_t *now, uint64_t *peak)
{
    return read_meter(init->group_files[GROUP_MEMORY_NOW], "", now) &&
           read_meter(init->group_files[GROUP_MEMORY_PEAK], "", peak);
}

bool meter_is_frozen(const struct init *init)
{
    uint64_t frozen = 0;
    return read_meter(init->group_files[GROUP_EVENTS], "frozen", &frozen) && frozen == 1;
}

/* By a place in the storage over which no mount of a profile can stand. */
bool meter_storage(uint64_t *used_bytes, bool *full)
{
    struct statfs fs;
    if (SYS2(SYS_statfs, "/dev/shm", &fs) < 0) return false;
    *used_bytes = ((uint64_t)fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    *full = fs.f_bfree == 0 || fs.f_ffree == 0;
    return true;
}
