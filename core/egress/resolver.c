#include "egress/resolver.h"

#include <ares.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* c-ares asks a server or two over one socket each; it opens more only for TCP. */
#define MAX_SOCKETS 16u
#define TIMEOUT_MS 3000
#define TRIES 2

struct bc_lookup {
    bc_lookup *next, *prev;
    bc_defer defer;
    bc_resolver *resolver; /* NULL: that is gone */
    bc_lookup_fn fn;
    void *ud;
    int asked;     /* c-ares still holds it */
    int cancelled; /* nobody wants to know */
    char why[128];
    size_t count;
    bc_address found[BC_RESOLVE_MAX];
};

struct watched {
    bc_resolver *resolver;
    ares_socket_t fd; /* ARES_SOCKET_BAD: free */
    bc_watch *watch;
};

struct bc_resolver {
    barchan_runtime *rt;
    ares_channel channel;
    bc_timer *timer;
    bc_lookup *lookups;
    struct watched sockets[MAX_SOCKETS];
};

static void free_lookup(bc_lookup *lookup)
{
    if (lookup->prev != NULL) lookup->prev->next = lookup->next;
    if (lookup->next != NULL) lookup->next->prev = lookup->prev;
    bc_resolver *resolver = lookup->resolver;
    if (resolver != NULL && resolver->lookups == lookup) resolver->lookups = lookup->next;
    bc_defer_cancel(&lookup->defer);
    free(lookup);
}

/* ---- c-ares in the loop ---- */

static void set_timer(bc_resolver *resolver)
{
    struct timeval most = {.tv_sec = TIMEOUT_MS / 1000}, room;
    const struct timeval *next = ares_timeout(resolver->channel, &most, &room);
    int64_t ms = (int64_t)next->tv_sec * 1000 + next->tv_usec / 1000 + 1;
    bc_timer_set(resolver->timer, resolver->lookups == NULL ? -1 : ms);
}

static void on_timer(void *ud)
{
    bc_resolver *resolver = ud;
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(resolver);
}

static void on_ready(void *ud, unsigned events)
{
    struct watched *socket = ud;
    bc_resolver *resolver = socket->resolver;
    ares_process_fd(resolver->channel, events & BC_READABLE ? socket->fd : ARES_SOCKET_BAD,
                    events & BC_WRITABLE ? socket->fd : ARES_SOCKET_BAD);
    set_timer(resolver);
}

static struct watched *find_socket(bc_resolver *resolver, ares_socket_t fd)
{
    for (size_t i = 0; i < MAX_SOCKETS; i++) {
        if (resolver->sockets[i].fd == fd) return &resolver->sockets[i];
    }
    return NULL;
}

/* A socket that cannot be watched is answered by the timeout. */
static void on_socket_state(void *ud, ares_socket_t fd, int readable, int writable)
{
    bc_resolver *resolver = ud;
    struct watched *socket = find_socket(resolver, fd);
    if (!readable && !writable) {
        if (socket == NULL) return;
        bc_watch_close(socket->watch);
        *socket = (struct watched){.resolver = resolver, .fd = ARES_SOCKET_BAD};
        return;
    }
    if (socket == NULL) {
        socket = find_socket(resolver, ARES_SOCKET_BAD);
        if (socket == NULL) return;
        if (bc_watch_open(&socket->watch, resolver->rt, fd, on_ready, socket, NULL) < 0) return;
        socket->fd = fd;
    }
    bc_watch_set(socket->watch, (readable ? BC_READABLE : 0u) | (writable ? BC_WRITABLE : 0u),
                 NULL);
}

int bc_resolver_create(bc_resolver **out, barchan_runtime *rt, barchan_error *err)
{
    bc_resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL) return bc_error_nomem(err);
    resolver->rt = rt;
    for (size_t i = 0; i < MAX_SOCKETS; i++) {
        resolver->sockets[i] = (struct watched){.resolver = resolver, .fd = ARES_SOCKET_BAD};
    }
    struct ares_options options = {.timeout = TIMEOUT_MS,
                                   .tries = TRIES,
                                   .lookups = (char[]){"fb"}, /* hosts file, then servers */
                                   .flags = ARES_FLAG_NOSEARCH,
                                   .sock_state_cb = on_socket_state,
                                   .sock_state_cb_data = resolver};
    int rc = ares_init_options(&resolver->channel, &options,
                               ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                   ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
    if (rc != ARES_SUCCESS) {
        free(resolver);
        return bc_error_set(err, BARCHAN_EIO, "set up the resolver: %s", ares_strerror(rc));
    }
    rc = bc_timer_open(&resolver->timer, rt, on_timer, resolver, err);
    if (rc < 0) {
        bc_resolver_destroy(resolver);
        return rc;
    }
    *out = resolver;
    return 0;
}

void bc_resolver_destroy(bc_resolver *resolver)
{
    if (resolver == NULL) return;
    for (bc_lookup *lookup = resolver->lookups; lookup != NULL; lookup = lookup->next) {
        lookup->cancelled = 1;
    }
    ares_destroy(resolver->channel); /* calls on_found for all that it holds */
    while (resolver->lookups != NULL) {
        free_lookup(resolver->lookups);
    }
    for (size_t i = 0; i < MAX_SOCKETS; i++) {
        bc_watch_close(resolver->sockets[i].watch);
    }
    bc_timer_close(resolver->timer);
    free(resolver);
}

/* ---- lookups ---- */

static void deliver(bc_defer *defer)
{
    bc_lookup *lookup = owner_of(defer, bc_lookup, defer);
    bc_lookup done = *lookup;
    free_lookup(lookup);
    if (!done.cancelled) done.fn(done.ud, done.found, done.count, done.why);
}

static void take_address(bc_lookup *lookup, const struct ares_addrinfo_node *node)
{
    bc_address *to = &lookup->found[lookup->count];
    if (lookup->count == BC_RESOLVE_MAX) return;
    *to = (bc_address){.family = node->ai_family};
    if (node->ai_family == AF_INET) {
        memcpy(to->bytes, &((const struct sockaddr_in *)(const void *)node->ai_addr)->sin_addr, 4);
    } else if (node->ai_family == AF_INET6) {
        memcpy(to->bytes, &((const struct sockaddr_in6 *)(const void *)node->ai_addr)->sin6_addr,
               16);
    } else {
        return;
    }
    lookup->count++;
}

/* May run inside ares_getaddrinfo, so it only queues. */
static void on_found(void *ud, int status, int timeouts, struct ares_addrinfo *result)
{
    bc_lookup *lookup = ud;
    (void)timeouts;
    lookup->asked = 0;
    if (status == ARES_SUCCESS) {
        for (const struct ares_addrinfo_node *node = result->nodes; node != NULL;
             node = node->ai_next) {
            take_address(lookup, node);
        }
        ares_freeaddrinfo(result);
    }
    const char *why = status == ARES_SUCCESS ? "no address" : ares_strerror(status);
    strncpy(lookup->why, why, sizeof lookup->why - 1);
    if (status != ARES_EDESTRUCTION) {
        bc_defer_schedule(lookup->resolver->rt, &lookup->defer, deliver);
    }
}

int bc_lookup_start(bc_lookup **out, bc_resolver *resolver, const char *host, bc_lookup_fn fn,
                    void *ud, barchan_error *err)
{
    bc_lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL) return bc_error_nomem(err);
    lookup->resolver = resolver;
    lookup->fn = fn;
    lookup->ud = ud;
    lookup->asked = 1;
    lookup->next = resolver->lookups;
    if (lookup->next != NULL) lookup->next->prev = lookup;
    resolver->lookups = lookup;
    struct ares_addrinfo_hints hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NOSORT};
    ares_getaddrinfo(resolver->channel, host, NULL, &hints, on_found, lookup);
    set_timer(resolver);
    *out = lookup;
    return 0;
}

void bc_lookup_cancel(bc_lookup *lookup)
{
    if (lookup == NULL) return;
    lookup->cancelled = 1;
    if (!lookup->asked) free_lookup(lookup);
}
