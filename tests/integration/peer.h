/* Servers that tests start: a python3 program of tests/support that prints its port. */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include <sys/types.h>

typedef struct peer {
    pid_t pid;
    int input; /* it ends when this is closed */
    int port;
} peer;

/* 0, or -1 when there is no python3 or the program did not start. */
int peer_start(peer *p, const char *const *argv);
void peer_stop(peer *p);
/* Runs a program to its end, quietly; its exit code, -1 when it was killed or is missing. */
int peer_run(const char *const *argv);
/* A number out of the byte server's statistics, over a connection of its own; -1 when it fails. */
long peer_stat(const peer *p, const char *name);

#endif
