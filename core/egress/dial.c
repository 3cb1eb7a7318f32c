/* From a name to a socket: the addresses one after the other, each judged before it is tried, and
 * what is tried is what was judged. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/limits.h"
#include "egress/relay.h"

static void try_next(bc_relay *relay);

static void fail(bc_relay *relay, const char *what, const char *why)
{
    relay->verdict.allowed = true;
    snprintf(relay->verdict.rule, sizeof relay->verdict.rule, "%s: %.300s", what, why);
    bc_relay_refuse(relay, BARCHAN_NETWORK_FAILED);
}

static void close_outer(bc_relay *relay)
{
    bc_watch_close(relay->watches[OUTER]);
    relay->watches[OUTER] = NULL;
    if (relay->fds[OUTER] >= 0) close(relay->fds[OUTER]);
    relay->fds[OUTER] = -1;
}

static socklen_t sockaddr_of(const bc_address *address, unsigned port, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof *to);
    if (address->family == AF_INET) {
        struct sockaddr_in *v4 = (void *)to;
        v4->sin_family = AF_INET;
        v4->sin_port = htons((unsigned short)port);
        memcpy(&v4->sin_addr, address->bytes, 4);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (void *)to;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((unsigned short)port);
    memcpy(&v6->sin6_addr, address->bytes, 16);
    return sizeof *v6;
}

static void on_outer(void *ud, unsigned events);

/* 0, or an errno. */
static int connect_to(bc_relay *relay, const bc_address *address)
{
    static const int on = 1;
    struct sockaddr_storage at;
    socklen_t len = sockaddr_of(address, relay->port, &at);
    relay->fds[OUTER] = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (relay->fds[OUTER] < 0) return errno;
    setsockopt(relay->fds[OUTER], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(relay->fds[OUTER], SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (bc_watch_open(&relay->watches[OUTER], relay->egress->rt, relay->fds[OUTER], on_outer, relay,
                      NULL) < 0) {
        return ENOMEM;
    }
    if (connect(relay->fds[OUTER], (struct sockaddr *)&at, len) == 0 || errno == EINPROGRESS) {
        bc_watch_set(relay->watches[OUTER], BC_WRITABLE, NULL);
        return 0;
    }
    return errno;
}

static void dial_failed(bc_relay *relay, int os_error)
{
    close_outer(relay);
    relay->dial_error = os_error;
    if (relay->address_next < relay->address_count) {
        try_next(relay);
    } else {
        fail(relay, "connect", strerror(os_error));
    }
}

static bool can_bind(const bc_address *address)
{
    struct sockaddr_storage at;
    socklen_t len = sockaddr_of(address, 0, &at);
    int fd = socket(address->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno != EAFNOSUPPORT; /* who cannot look must not say that it is none */
    int rc = bind(fd, (struct sockaddr *)&at, len);
    close(fd);
    return rc == 0;
}

static bool is_of_an_interface(const bc_address *address)
{
    struct ifaddrs *all, *one;
    bool found = false;
    if (getifaddrs(&all) < 0) return true;
    for (one = all; one != NULL && !found; one = one->ifa_next) {
        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != address->family) continue;
        found = address->family == AF_INET
                    ? memcmp(&((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr,
                             address->bytes, 4) == 0
                    : memcmp(&((struct sockaddr_in6 *)(void *)one->ifa_addr)->sin6_addr,
                             address->bytes, 16) == 0;
    }
    freeifaddrs(all);
    return found;
}

/* A public address may be this machine's own, where its services take the caller for a neighbour.
 * What arrives here can be bound to; where anything can (net.ipv4.ip_nonlocal_bind), the interfaces
 * are asked. */
static bool is_own(const bc_address *address)
{
    bc_address nobodys;
    bc_address_parse(address->family == AF_INET ? "192.0.2.1" : "2001:db8::1", &nobodys);
    if (!can_bind(address)) return false;
    return !can_bind(&nobodys) || is_of_an_interface(address);
}

static void judge(bc_relay *relay, const bc_address *address)
{
    bc_policy *policy = relay->egress->book.policy;
    bc_verdict *verdict = &relay->verdict;
    if (relay->asked) {
        bc_policy_decide_asked(policy, relay->host, relay->port, address, verdict);
    } else {
        bc_policy_decide_address(policy, relay->host, relay->port, address, verdict);
    }
    if (!verdict->allowed || verdict->named || !is_own(address)) return;
    *verdict = (bc_verdict){.rule = "an address of this machine"};
}

/* The first address that may be dialled, from address_next on. */
static const bc_address *next_allowed(bc_relay *relay)
{
    while (relay->address_next < relay->address_count) {
        const bc_address *address = &relay->addresses[relay->address_next++];
        judge(relay, address);
        if (relay->verdict.allowed) return address;
    }
    return NULL;
}

static void try_next(bc_relay *relay)
{
    const bc_address *address = next_allowed(relay);
    if (address == NULL && relay->dial_error != 0) { /* another address of it was allowed */
        fail(relay, "connect", strerror(relay->dial_error));
        return;
    }
    if (address == NULL) {
        bc_relay_refuse(relay, BARCHAN_NETWORK_DENIED);
        return;
    }
    bc_address_print(address, relay->address);
    relay->stage = STAGE_DIALLING;
    bc_timer_set(relay->timer, BC_EGRESS_CONNECT_MS);
    int os_error = connect_to(relay, address);
    if (os_error != 0) dial_failed(relay, os_error);
}

static void on_outer(void *ud, unsigned events)
{
    bc_relay *relay = ud;
    (void)events;
    if (relay->stage != STAGE_DIALLING) {
        bc_relay_move(relay);
        return;
    }
    int os_error = 0;
    socklen_t len = sizeof os_error;
    if (getsockopt(relay->fds[OUTER], SOL_SOCKET, SO_ERROR, &os_error, &len) < 0) os_error = errno;
    if (os_error != 0) {
        dial_failed(relay, os_error);
    } else {
        bc_timer_set(relay->timer, -1);
        bc_relay_dialled(relay);
    }
}

void bc_relay_dial_timeout(bc_relay *relay)
{
    dial_failed(relay, ETIMEDOUT);
}

static void on_found(void *ud, const bc_address *found, size_t count, const char *why)
{
    bc_relay *relay = ud;
    relay->lookup = NULL;
    if (count == 0) {
        fail(relay, "look up the name", why);
        return;
    }
    memcpy(relay->addresses, found, count * sizeof *found);
    relay->address_count = count;
    try_next(relay);
}

void bc_relay_dial(bc_relay *relay)
{
    bc_egress *egress = relay->egress;
    barchan_error err;
    const bc_address *known = bc_egress_known(egress, relay->host);
    relay->stage = STAGE_RESOLVING;
    if (known != NULL) relay->addresses[0] = *known;
    if (known != NULL || bc_address_parse(relay->host, &relay->addresses[0]) == 0) {
        relay->address_count = 1;
        try_next(relay);
        return;
    }
    int rc = 0;
    if (egress->resolver == NULL) rc = bc_resolver_create(&egress->resolver, egress->rt, &err);
    if (rc == 0)
        rc = bc_lookup_start(&relay->lookup, egress->resolver, relay->host, on_found, relay, &err);
    if (rc < 0) fail(relay, "look up the name", err.message);
}
