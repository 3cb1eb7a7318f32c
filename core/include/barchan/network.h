/*
 * What a sandbox can reach.
 *
 * A sandbox has no interface but its own loopback. With a network profile other than `off` its name
 * service, which is this library, gives every name that is asked for an address of 198.18.0.0/15,
 * and a connection to such an address ends at this library, which decides by the name, finds the
 * real address, checks that too, connects to it and passes bytes on. No query for a name leaves the
 * machine before the name is allowed; no datagram ever does. Programs need no proxy settings. What
 * the profile does not name is refused with a reason that the program shows (an HTTP 403 with a
 * body, a TLS alert), that the result of the command tells (barchan_exec_result.denied), and that
 * an event tells the host. So is what is allowed and cannot be reached: an HTTP 502 or an alert,
 * barchan_exec_result.unreached, an event.
 *
 * off         no name is answered; nothing is reachable
 * allow       the hosts of the lists, at the ports of their entries
 * restricted  the package registries that this machine's pip, npm and apt are configured to use, at
 *             theirs, and the lists
 * open        any host but those of `deny`, at 22, 80, 443, 8080, 8443 and 9418, and the lists
 *
 * UDP, ICMP and addresses by number are unreachable, but for IPv4 addresses that an entry names:
 * TCP at its port. A port that no entry names, 80 and 443 apart, looks closed (ECONNREFUSED), which
 * is no refusal that could be told: list it, with ":port". 127.0.0.1 and localhost are the
 * sandbox's own: a server on this machine is reached by another name, of `hosts`, and entries for
 * the name and for the address. The sandbox's own servers cannot listen at the ports of the
 * entries, nor at 80, 443 and those of `open`.
 *
 * In every mode an address that is not public (loopback, private, link-local, metadata, shared, …)
 * is refused, whatever name led to it, unless an entry of `allow` names that address or a range
 * that holds it, with the port.
 *
 * An entry is a host name, "*.example.org" (names below it, not itself), an address or a range
 * ("10.1.2.0/24"), each with ":port" or for 80 and 443. Of IPv6 addresses write "[…]:port"; they
 * are matched when a name leads there, a program that connects to one by number finds it
 * unreachable. `deny` wins over `allow`.
 *
 * A name must match what the program says inside: the server name of TLS (encrypted ones are
 * refused) and the Host of each HTTP request. On ports 80 and 443 nothing else is let through;
 * on others, any other protocol is. A registry that this machine's configuration names, at a
 * private address, needs an entry for that address, too.
 *
 * Threads: callbacks run inside a pump of the runtime's thread.
 */
#ifndef BARCHAN_NETWORK_H
#define BARCHAN_NETWORK_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum barchan_network_event_kind {
    BARCHAN_NETWORK_CONNECTED = 1, /* "connected" */
    BARCHAN_NETWORK_CLOSED = 2,    /* "closed": the bytes are known */
    BARCHAN_NETWORK_DENIED = 3,    /* "denied": by the rule */
    BARCHAN_NETWORK_FAILED = 4,    /* "failed": allowed, but not reached; the rule says why */
    BARCHAN_NETWORK_SECRET = 5     /* "secret": one was used, or was not; the rule says which and
                                      why (barchan/secret.h) */
} barchan_network_event_kind;

/* Strings are borrowed for the call. */
typedef struct barchan_network_event {
    size_t struct_size;
    int64_t time_ms;     /* of the wall clock, since 1970 */
    const char *host;    /* as it was asked for; an address when no name was */
    const char *rule;    /* "allow: *.example.org:443", "not in the allow-list", … */
    const char *address; /* that was connected to; "" if none was */
    uint64_t bytes_sent; /* by the sandbox; of connected and closed ones */
    uint64_t bytes_received;
    barchan_network_event_kind kind;
    int port;
    uint64_t dropped; /* events before this one for which there was no room, nor memory */
} barchan_network_event;

typedef void (*barchan_network_event_fn)(barchan_sandbox *sbx, const barchan_network_event *event,
                                         void *ud);
BARCHAN_API const char *barchan_network_event_name(barchan_network_event_kind kind);

/* A connection that no entry speaks of, waiting for an answer. */
typedef struct barchan_connect barchan_connect;
/* Called once for each host and port of a sandbox, for 256 of them at most; must lead to one
 * barchan_connect_answer, at once or later. Connections wait meanwhile. The answer holds as long as
 * the sandbox lives. */
typedef void (*barchan_connect_fn)(barchan_sandbox *sbx, barchan_connect *connect, const char *host,
                                   int port, void *ud);
/* Frees `connect`; also when the sandbox is gone by now. What is allowed is so for public addresses
 * only. */
BARCHAN_API void barchan_connect_answer(barchan_connect *connect, int allow);

typedef struct barchan_network_rules {
    size_t struct_size;
    const char *const *allow; /* NULL-terminated, may be NULL; at most 1024 entries and 64 ports */
    const char *const *deny;
    const char *const *hosts;  /* "name=address" of hosts that no name service knows; the address is
                                  judged like any other */
    uint64_t max_bytes;        /* both ways, all connections together; 0: no limit */
    uint64_t bytes_per_second; /* likewise */
    barchan_connect_fn on_connect;     /* may be NULL: what no entry allows is refused */
    barchan_network_event_fn on_event; /* may be NULL */
    void *ud;                          /* of both; must outlive the sandbox */
    size_t max_connections;            /* at a time; further ones wait; 0: 256; at most 4096 */
} barchan_network_rules;

/* Other lists for connections that are made from now on; those that stand go on, requests on them,
 * too. `network` is any mode but off; of `rules` the fields allow, deny and hosts are taken, the
 * rest must be zero: caps and callbacks stay, and so do answers that a person gave. Nobody listens
 * at other ports, and no route leads to other ranges of addresses, than those that the first lists
 * named (and 80 and 443): lists that need some are refused (BARCHAN_EUNSUPPORTED), as is a sandbox
 * without a network, or one that another process holds. Nothing changes after a failure. */
BARCHAN_API int barchan_sandbox_set_network(barchan_sandbox *sbx, barchan_network network,
                                            const barchan_network_rules *rules, barchan_error *err);

/* A host that was reached, or refused; see barchan_sandbox_network. */
typedef struct barchan_network_host {
    char *host;
    uint64_t connections, denied, failed;
    uint64_t bytes_sent, bytes_received;
} barchan_network_host;

typedef struct barchan_network_usage {
    barchan_network_host *hosts; /* the first 1024; host "" holds what belongs to others */
    size_t count;
    size_t open; /* connections now */
} barchan_network_usage;

/* What a sandbox has reached so far; does not wait. Clear `usage` when this returned 0.
 * BARCHAN_EUNSUPPORTED: it is a detached one, which has to be asked: see the next. */
BARCHAN_API int barchan_sandbox_network(const barchan_sandbox *sbx, barchan_network_usage *usage,
                                        barchan_error *err);
/* `usage` is cleared after the call, unless the callback has taken it and zeroed it; NULL with err.
 */
typedef void (*barchan_network_usage_fn)(barchan_network_usage *usage, const barchan_error *err,
                                         void *ud);
/* The same of any sandbox: of a detached one its holder is asked. `done` is called exactly once
 * when this returned 0, never inside this call. BARCHAN_ELOST: the detached sandbox has ended, and
 * nobody knows any more; one of this process still tells. */
BARCHAN_API int barchan_sandbox_network_start(barchan_sandbox *sbx, barchan_network_usage_fn done,
                                              void *ud, barchan_error *err);
BARCHAN_API void barchan_network_usage_clear(barchan_network_usage *usage);

/* The list of a mode as it would hold now, as JSON { "mode", "allow": [ … ], "deny": [ … ],
 * "sources": [ { "entry", "from" } ] }; the caller frees it with barchan_free. Needs no sandbox. */
BARCHAN_API int barchan_network_describe(barchan_network network,
                                         const barchan_network_rules *rules, char **json,
                                         barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
