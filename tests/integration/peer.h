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

#endif
