/* Who is in the sandbox: every process, what it uses, and which job it belongs to. */
#include "init.h"

#include "census.h"

/* As getdents64 writes it. */
struct entry {
    uint64_t ino;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* The kernel's unit of time in /proc, on both architectures. */
#define TICK_US 10000u

static int number_of(const char *name)
{
    int number = 0;
    for (; *name >= '0' && *name <= '9' && number < 100000000; name++) {
        number = number * 10 + (*name - '0');
    }
    return *name == '\0' ? number : 0;
}

static char *path_of(char path[64], int pid, const char *file)
{
    char digits[12];
    int n = 0, at = 0;
    for (; pid > 0; pid /= 10) {
        digits[n++] = (char)('0' + pid % 10);
    }
    memcpy(path, "/proc/", 6);
    for (at = 6; n > 0;) {
        path[at++] = digits[--n];
    }
    path[at++] = '/';
    memcpy(path + at, file, strlen(file) + 1); /* the names are ours and short */
    return path;
}

long census_read(int pid, const char *file, char *text, size_t cap)
{
    char path[64];
    int fd = (int)sys_openat(AT_FDCWD, path_of(path, pid, file), O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    long n = sys_read(fd, text, cap - 1);
    sys_close(fd);
    if (n >= 0) text[n] = '\0';
    return n;
}

/* /proc/PID/stat: after the name in parentheses, numbered from 3, come state, parent, …; 14 to 17
 * are the times, 20 threads, 24 pages. */
static bool read_person(int pid, struct person *person)
{
    char text[768];
    if (census_read(pid, "stat", text, sizeof text) <= 0) return false;
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') return false;
    uint64_t value[25] = {0};
    at += 2;
    *person = (struct person){.pid = pid, .state = *at, .job = -1};
    for (int field = 3; field < 25 && *at != '\0'; field++) {
        for (; *at != ' ' && *at != '\0'; at++) {
            if (*at >= '0' && *at <= '9') value[field] = value[field] * 10 + (uint64_t)(*at - '0');
        }
        if (*at == ' ') at++;
    }
    person->parent = (int)value[4];
    person->user_us = (value[14] + value[16]) * TICK_US;
    person->system_us = (value[15] + value[17]) * TICK_US;
    person->threads = (int)value[20];
    person->rss_bytes = value[24] * 4096u;
    return true;
}

static int index_of(const struct census *census, int pid)
{
    int low = 0, high = census->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (census->of[middle].pid < pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < census->count && census->of[low].pid == pid ? low : -1;
}

/* Up to the child of process 1: a supervisor or a worker. */
static int job_of(const struct init *init, const struct census *census, int at)
{
    for (int steps = 0; at >= 0 && steps < census->count; steps++) {
        const struct person *person = &census->of[at];
        if (person->job >= 0) return person->job;
        if (person->parent == 1) {
            for (unsigned i = 0; i < init->job_count; i++) {
                if (init->jobs[i]->pid == person->pid) return (int)i;
            }
            return -1;
        }
        at = index_of(census, person->parent);
    }
    return -1;
}

bool census_take(const struct init *init, struct census *census, int most)
{
    _Alignas(8) char entries[4096];
    int fd = (int)sys_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    census->count = 0;
    if (fd < 0) return false;
    long n;
    while ((n = SYS3(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < n;) {
            const struct entry *entry = (const struct entry *)(entries + at);
            at += entry->size;
            int pid = number_of(entry->name); /* in rising order */
            if (pid <= 1) continue;
            if (census->count == most) {
                sys_close(fd);
                return false;
            }
            if (read_person(pid, &census->of[census->count])) census->count++;
        }
    }
    sys_close(fd);
    for (int i = 0; i < census->count; i++) {
        census->of[i].job = job_of(init, census, i);
    }
    return true;
}

bool census_is_supervisor(const struct init *init, const struct person *person)
{
    return person->parent == 1 && person->job >= 0 && init->jobs[person->job]->pid == person->pid;
}
