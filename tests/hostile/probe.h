/* What the files of the hostile program share. Each group of probes ends with a NULL name. */
#ifndef PROBE_H
#define PROBE_H

#include <stddef.h>

enum expectation { DENIED, WORKS };

struct probe {
    const char *name;
    int (*try)(void); /* 0 or -errno; runs in a process of its own */
    enum expectation expected;
};
#define PROBE(function, expected)     \
    {                                 \
#function, function, expected \
    }

extern const struct probe probes_files[], probes_kernel[], probes_reach[], probes_world[];

/* The value of NAME=VALUE on the command line, "" when it was not given. */
const char *parameter(const char *name);
/* 0 or -errno, of a system call's return value. */
int answer(long rc);
/* The same, where this error also shows that the call was let through. */
int answer_or(long rc, int fine);
int can_open(const char *path, int flags);
/* Whether there is something to read. */
int can_read(const char *path);

/* Sends copies of descriptors, 100 at most: sendmsg's answer. */
enum { MOST_SENT = 100 };
long send_descriptors(int socket, const int *fds, size_t count);

/* probe_storm.c: exit codes. */
int storm(const char *seconds, const char *seed);
int exchange(const char *a, const char *b);
int churn(const char *dir);

/* probe_self.c: exit codes. */
int self(const char *what);
int fill_up(const char *kind);

#endif
