/* Shared by the tests of networks: a server, and sandboxes that may reach it by some names. */
#ifndef NETWORK_SUPPORT_H
#define NETWORK_SUPPORT_H

#include "network_server.h"
#include "sandbox_support.h"

extern net_server *server;

/* Checked fixtures: a runtime and an HTTP server; the sandbox is the test's to make. */
void setup_network(void);
void teardown_network(void);
/* Another kind of server instead. */
void serve_kind(net_kind kind);

/* A list of at most 16 entries, each a format of the server's port; borrowed until the next setup.
 */
const char *const *entries(const char *first, ...);
#define NO_ENTRIES ((const char *const[]){NULL})

/* Makes `sbx`, with "served.example" and "other.example" known as 127.0.0.1. `rules` lacks just
 * that. */
void make_sandbox(barchan_network mode, barchan_network_rules rules);
/* That allows served.example at the server's port, and its address. */
void make_usual_sandbox(void);

/* A shell command that sends `text` to a host and prints the answer, by bash. */
barchan_exec_result talk(const char *host, int port, const char *text);
/* Its output must have these words. */
void talk_says(const char *host, int port, const char *text, const char *words);
/* The result tells one refusal, of this host, by a rule with these words. Clears it. */
void was_denied(barchan_exec_result *result, const char *host, int port, const char *rule);
void was_not_denied(barchan_exec_result *result);
/* The same of one failure, and no refusal. */
void was_unreached(barchan_exec_result *result, const char *host, int port, const char *why);

/* Puts a script of tests/hostile into the sandbox and runs it with python3; the words after its
 * name are its arguments. */
void put_script(const char *name);
barchan_exec_result run_script(const char *name, const char *arguments);
/* Each line of its output is a case and its outcome: all of them must end with one of these, of
 * which there may be two. */
void each_was(const barchan_exec_result *result, const char *outcome, const char *or_outcome,
              int at_least);

#define GET(host) "GET / HTTP/1.1\\r\\nHost: " host "\\r\\n\\r\\n"

#endif
