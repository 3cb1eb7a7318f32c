/* What process 1 knows of every process of the sandbox, from /proc. */
#ifndef GUEST_CENSUS_H
#define GUEST_CENSUS_H

#include "init.h"

/* Processes and supervisors that a sandbox can have, and some. */
#define CENSUS_MAX 2560

struct person {
    int pid, parent;
    int job; /* index of its job; -1: of none */
    int threads;
    char state;
    uint64_t user_us, system_us; /* its own and of the children it waited for */
    uint64_t rss_bytes;
};

struct census {
    int count;
    struct person of[CENSUS_MAX];
};

/* False: there is no /proc, or there are more than `most`, at most CENSUS_MAX. */
bool census_take(const struct init *init, struct census *census, int most);
bool census_is_supervisor(const struct init *init, const struct person *person);
/* Reads a small file of a process as a string: its length, or -errno. */
long census_read(int pid, const char *file, char *text, size_t cap);

#endif
