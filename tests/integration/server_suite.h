/* A suite of tests against a server on loopback, each with a runtime of its own. */
#ifndef TESTS_SERVER_SUITE_H
#define TESTS_SERVER_SUITE_H

#include <check.h>
#include <barchan/runtime.h>
#include "peer.h"

extern peer server;
extern barchan_runtime *rt;

void server_suite_set_up(void);
void server_suite_tear_down(void);

/* tests/support/byte_server.py without TLS. */
extern const char *const byte_server[];

/*
 * Starts the server, runs the NULL-terminated tests in this process, each with _i from 0 to rounds
 * - 1, stops the server. Returns the exit code of the program: 77 where the server cannot be
 * started.
 */
int server_suite_run(const char *name, const char *const *serve, const TTest *const *tests,
                     int rounds);

#endif
