/*
 * Limits that the kernel does not hold by itself: process 1 looks at what the commands use, every
 * WATCH_US while any runs, and ends the one that is over its limit. What happens between two looks
 * is not seen; status() says which limits are held this way.
 */
#include "census.h"
#include "init.h"

#include <errno.h>

static struct census census;

bool watch_is_needed(const struct init *init)
{
    if (init->memory_by != BY_WATCH && init->pids_by != BY_RLIMIT && init->limits.cpu_us == 0) {
        return false;
    }
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->kind == JOB_EXEC && init->jobs[i]->pid != 0) return true;
    }
    return false;
}

/* Memory that is really its own: shared pages count in part. Where the kernel does not tell (the
 * process has made itself unreadable), all its resident memory. */
static uint64_t memory_of(const struct person *person)
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

static uint64_t sum_memory(const struct init *init, uint64_t storage, bool exactly,
                           uint64_t *of_job)
{
    uint64_t total = storage;
    for (int i = 0; i < census.count; i++) {
        const struct person *person = &census.of[i];
        if (census_is_supervisor(init, person)) continue; /* its memory is process 1's */
        uint64_t bytes = exactly ? memory_of(person) : person->rss_bytes;
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
    if (total > init->memory_peak) init->memory_peak = total;
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
        if (counted && job->alone)
            used = user + system - job->cpu_before.user_us - job->cpu_before.system_us;
        if (used > init->limits.cpu_us) job_over_limit(job, BC_EXIT_CPU_TIME);
    }
}

void watch_look(struct init *init)
{
    if (!census_take(init, &census)) return;
    if (init->memory_by == BY_WATCH) watch_memory(init);
    if (init->pids_by == BY_RLIMIT) watch_pids(init);
    if (init->limits.cpu_us > 0) watch_cpu(init);
}
