/*
 * Limits that the kernel does not hold by itself: process 1 looks at what the commands use, every
 * WATCH_US while any runs, and ends the one that is over its limit. What happens between two looks
 * is not seen; status() says which limits are held this way.
 */
#include "census.h"
#include "init.h"

#include <errno.h>

static struct census census;

static bool has_limits(const struct init *init)
{
    return init->memory_by == BY_WATCH || init->pids_by == BY_RLIMIT || init->limits.cpu_us > 0;
}

int64_t watch_interval(const struct init *init)
{
    for (unsigned i = 0; i < init->job_count; i++) {
        const struct job *job = init->jobs[i];
        if (job->kind != JOB_EXEC || job->pid == 0) continue;
        /* Where there is much to look at it takes a tenth of the time, not all of it. */
        int64_t rest = init->look_cost_us * 10;
        return !has_limits(init) ? SAMPLE_US : rest > WATCH_US ? rest : WATCH_US;
    }
    return 0;
}

static uint64_t sum_memory(const struct init *init, uint64_t storage, bool exactly,
                           uint64_t *of_job)
{
    uint64_t total = storage;
    for (int i = 0; i < census.count; i++) {
        const struct person *person = &census.of[i];
        if (census_is_supervisor(init, person)) continue; /* its memory is process 1's */
        uint64_t bytes = exactly ? usage_memory_of(person) : person->rss_bytes;
        total += bytes;
        if (person->job >= 0) of_job[person->job] += bytes;
    }
    return total;
}

static void watch_memory(struct init *init)
{
    static uint64_t of_job[MAX_JOBS];
    uint64_t storage = 0;
    bool full;
    meter_storage(&storage, &full);
    memset(of_job, 0, sizeof of_job);
    uint64_t total = sum_memory(init, storage, false, of_job);
    if (total > init->limits.memory_bytes) {
        memset(of_job, 0, sizeof of_job);
        total = sum_memory(init, storage, true, of_job);
    }
    if (total > init->usage.memory_peak) init->usage.memory_peak = total;
    if (total <= init->limits.memory_bytes) return;
    unsigned largest = 0;
    for (unsigned i = 1; i < init->job_count; i++) {
        if (of_job[i] > of_job[largest]) largest = i;
    }
    if (init->job_count > 0) job_over_limit(init->jobs[largest], BC_EXIT_OOM);
}

static void watch_pids(struct init *init)
{
    uint32_t threads = 0;
    for (int i = 0; i < census.count; i++) {
        const struct person *person = &census.of[i];
        if (!census_is_supervisor(init, person)) threads += (uint32_t)person->threads;
    }
    if (threads >= init->limits.pids) init->pids_full++;
}

static void watch_cpu(struct init *init)
{
    uint64_t user = 0, system = 0;
    bool counted = meter_cpu(init, &user, &system);
    for (unsigned i = 0; i < init->job_count; i++) {
        struct job *job = init->jobs[i];
        uint64_t used = 0;
        for (int k = 0; k < census.count; k++) {
            if (census.of[k].job == (int)i) used += census.of[k].user_us + census.of[k].system_us;
        }
        if (counted && exec_is_counted(job))
            used = user + system - job->cpu_before.user_us - job->cpu_before.system_us;
        if (used > init->limits.cpu_us) job_over_limit(job, BC_EXIT_CPU_TIME);
    }
}

void watch_look(struct init *init)
{
    int64_t began_us = sys_boot_us();
    if (began_us - init->usage.sampled_us >= SAMPLE_US) usage_sample(init);
    if (has_limits(init) && census_take(init, &census, CENSUS_MAX)) {
        if (init->memory_by == BY_WATCH) watch_memory(init);
        if (init->pids_by == BY_RLIMIT) watch_pids(init);
        if (init->limits.cpu_us > 0) watch_cpu(init);
    }
    init->look_cost_us = sys_boot_us() - began_us;
}
