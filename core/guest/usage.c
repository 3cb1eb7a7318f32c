/*
 * What the sandbox has used so far. Processor time and memory by the kernel's counts where there
 * is a control group for them; else by what supervisors have seen die and what /proc tells of the
 * living, which misses children that nobody waited for.
 */
#include "census.h"
#include "init.h"

/* Process 1 does not spend its time on a storm of processes, which it may have to end. */
#define SAMPLE_MOST 64

static struct census census;

static void add(struct cpu_time *sum, uint64_t user_us, uint64_t system_us)
{
    sum->user_us += user_us;
    sum->system_us += system_us;
}

void usage_add_ended(struct init *init, const struct job *job)
{
    const struct rusage *usage = &job->reaper->usage;
    add(&init->usage.ended, us_of(usage->ru_utime), us_of(usage->ru_stime));
    uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;
    if (rss > init->usage.memory_peak) init->usage.memory_peak = rss;
}

uint64_t usage_memory_of(const struct person *person)
{
    char text[2048];
    if (census_read(person->pid, "smaps_rollup", text, sizeof text) <= 0) return person->rss_bytes;
    const char *at = strstr(text, "\nPss:");
    uint64_t kib = 0;
    for (at = at == NULL ? "" : at + 5; *at != '\0' && *at != 'k'; at++) {
        if (*at >= '0' && *at <= '9') kib = kib * 10 + (uint64_t)(*at - '0');
    }
    return kib * 1024;
}

/* Adds what was used since the last sample, as if it had been what it was then. */
static void take_sample(struct init *init, uint64_t now_bytes, uint64_t peak_bytes)
{
    struct usage *usage = &init->usage;
    int64_t now_us = sys_boot_us();
    uint64_t ms = (uint64_t)(now_us - usage->sampled_us) / 1000;
    usage->memory_kib_ms += usage->memory_now / 1024 * ms;
    usage->sampled_us += (int64_t)ms * 1000;
    usage->memory_now = now_bytes;
    if (peak_bytes > usage->memory_peak) usage->memory_peak = peak_bytes;
}

bool usage_sample_counted(struct init *init)
{
    uint64_t now_bytes, peak_bytes;
    if (!meter_memory(init, &now_bytes, &peak_bytes)) return false;
    take_sample(init, now_bytes, peak_bytes);
    return true;
}

/* With the census already taken; adds up the times of the living. */
static struct cpu_time sample_by_census(struct init *init)
{
    struct cpu_time living = {0};
    uint64_t bytes = 0;
    bool full;
    meter_storage(&bytes, &full);
    for (int i = 0; i < census.count; i++) {
        const struct person *person = &census.of[i];
        if (person->job >= 0) add(&living, person->user_us, person->system_us);
        if (!census_is_supervisor(init, person)) bytes += usage_memory_of(person);
    }
    take_sample(init, bytes, bytes);
    return living;
}

void usage_sample(struct init *init)
{
    if (!usage_sample_counted(init) && census_take(init, &census, SAMPLE_MOST)) {
        sample_by_census(init);
    }
}

bc_usage usage_now(struct init *init)
{
    bc_usage u = {0};
    struct cpu_time living = {0};
    bool full;
    u.memory_counted = usage_sample_counted(init);
    u.cpu_counted = meter_cpu(init, &u.user_us, &u.system_us);
    if ((!u.memory_counted || !u.cpu_counted) && census_take(init, &census, CENSUS_MAX)) {
        living = sample_by_census(init);
    }
    if (!u.cpu_counted) {
        for (unsigned i = 0; i < init->job_count; i++) { /* over, but its output is not taken */
            const struct job *job = init->jobs[i];
            if (job->reaper == NULL || job->pid != 0) continue;
            const struct rusage *usage = &job->reaper->usage;
            add(&living, us_of(usage->ru_utime), us_of(usage->ru_stime));
        }
        u.user_us = init->usage.ended.user_us + living.user_us;
        u.system_us = init->usage.ended.system_us + living.system_us;
    }
    u.memory_bytes = init->usage.memory_now;
    u.memory_peak_bytes = init->usage.memory_peak;
    u.memory_kib_ms = init->usage.memory_kib_ms;
    meter_storage(&u.disk_bytes, &full);
    return u;
}

size_t usage_command_line(int pid, char *text, size_t cap)
{
    long n = census_read(pid, "cmdline", text, cap);
    if (n <= 0) {
        n = census_read(pid, "comm", text + 1, cap - 2);
        if (n <= 1) return 0;
        text[0] = '[';
        text[n] = ']'; /* in place of the newline */
        return (size_t)n + 1;
    }
    while (n > 0 && text[n - 1] == '\0') {
        n--;
    }
    for (long i = 0; i < n; i++) {
        if (text[i] == '\0') text[i] = ' ';
    }
    return (size_t)n;
}

static void put_person(const struct init *init, const struct person *person, bc_wire_writer *out)
{
    char command[BC_PROCESS_MAX_COMMAND + 1];
    const bc_process process = {
        .pid = (uint32_t)person->pid,
        .parent = (uint32_t)person->parent,
        .threads = (uint32_t)person->threads,
        .state = (uint32_t)person->state,
        .exec = person->job < 0 ? 0 : init->jobs[person->job]->stream,
        .cpu_us = person->user_us + person->system_us,
        .memory_bytes = person->rss_bytes,
    };
    bc_wire_put_process(out, &process);
    bc_wire_put_string(out, command, usage_command_line(person->pid, command, sizeof command));
}

void usage_list(struct init *init, bc_wire_writer *out)
{
    uint32_t total = 0, listed = 0;
    bool seen = census_take(init, &census, CENSUS_MAX);
    for (int i = 0; seen && i < census.count; i++) {
        if (!census_is_supervisor(init, &census.of[i])) total++;
    }
    bc_wire_put_u32(out, total);
    bc_wire_put_u32(out, total < BC_PROCESS_MAX_LISTED ? total : BC_PROCESS_MAX_LISTED);
    for (int i = 0; seen && i < census.count && listed < BC_PROCESS_MAX_LISTED; i++) {
        if (census_is_supervisor(init, &census.of[i])) continue;
        put_person(init, &census.of[i], out);
        listed++;
    }
}
