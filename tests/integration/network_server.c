#include "network_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 2048

struct net_server {
    net_kind kind;
    const char *name;
    int fd, port;
    pthread_t thread;
    int accepted, open; /* atomic */
    long received;      /* likewise */
    int heard_other;    /* likewise */
    int resets;         /* likewise */
    int count;
    struct peer {
        net_server *server;
        int fd;
        pthread_t thread;
    } peers[MAX_CONNECTIONS];
};

static int send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0) return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static ssize_t receive(const struct peer *peer, char *data, size_t cap)
{
    ssize_t n = recv(peer->fd, data, cap, 0);
    if (n < 0) __atomic_add_fetch(&peer->server->resets, 1, __ATOMIC_SEQ_CST);
    if (n <= 0) return n;
    __atomic_add_fetch(&peer->server->received, n, __ATOMIC_SEQ_CST);
    if (memmem(data, (size_t)n, "other.example", 13) != NULL) {
        __atomic_store_n(&peer->server->heard_other, 1, __ATOMIC_SEQ_CST);
    }
    return n;
}

static void serve_http(const struct peer *peer)
{
    char text[16384], body[128];
    size_t len = 0;
    while (len < sizeof text - 1) {
        ssize_t n = receive(peer, text + len, sizeof text - 1 - len);
        if (n <= 0) return;
        len += (size_t)n;
        text[len] = '\0';
        if (strstr(text, "\r\n\r\n") != NULL) break;
    }
    int body_len = snprintf(body, sizeof body, "served by %s\n", peer->server->name);
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
                     body_len, body);
    send_all(peer->fd, text, (size_t)n);
}

static void echo(const struct peer *peer)
{
    char data[65536];
    ssize_t n;
    while ((n = receive(peer, data, sizeof data)) > 0) {
        if (send_all(peer->fd, data, (size_t)n) < 0) return;
    }
}

/* Each byte tells its place: the remainder by 251. */
static void give(const struct peer *peer)
{
    char data[251 * 256], text[32] = "";
    ssize_t n = receive(peer, text, 31);
    size_t left = n <= 0 ? 0 : strtoul(text, NULL, 10);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i % 251);
    }
    while (left > 0) {
        size_t part = left < sizeof data ? left : sizeof data;
        if (send_all(peer->fd, data, part) < 0) return;
        left -= part;
    }
}

/* A reset once it is asked to go on. */
static void break_off(const struct peer *peer)
{
    char data[64];
    send_all(peer->fd, "220 so far\n", 11);
    if (receive(peer, data, sizeof data) <= 0) return;
    connect(peer->fd, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr));
}

static void *serve(void *ud)
{
    struct peer *peer = ud;
    switch (peer->server->kind) {
    case NET_HTTP: serve_http(peer); break;
    case NET_SWITCH:
        (void)!recv(peer->fd, &(char){0}, 1, MSG_PEEK);
        send_all(peer->fd, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 36);
        echo(peer);
        break;
    case NET_GREET: send_all(peer->fd, "220 hello\n", 10); /* fall through */
    case NET_ECHO: echo(peer); break;
    case NET_SOURCE: give(peer); break;
    case NET_BREAK: break_off(peer); break;
    case NET_DEAF: poll(&(struct pollfd){.fd = peer->fd, .events = POLLRDHUP}, 1, -1); break;
    }
    shutdown(peer->fd, SHUT_RDWR);
    __atomic_sub_fetch(&peer->server->open, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Waits for descriptors that are short; -1 at the end. */
static int accept_next(const net_server *server)
{
    int fd;
    while ((fd = accept(server->fd, NULL, NULL)) < 0 && errno == EMFILE) {
        poll(NULL, 0, 10);
    }
    return fd;
}

static void *accept_all(void *ud)
{
    net_server *server = ud;
    int fd;
    while (server->count < MAX_CONNECTIONS && (fd = accept_next(server)) >= 0) {
        struct peer *peer = &server->peers[server->count];
        *peer = (struct peer){.server = server, .fd = fd};
        __atomic_add_fetch(&server->open, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&server->accepted, 1, __ATOMIC_SEQ_CST);
        if (pthread_create(&peer->thread, NULL, serve, peer) != 0) abort();
        server->count++;
    }
    return NULL;
}

net_server *net_start(net_kind kind, const char *name)
{
    return net_start_at(kind, name, "127.0.0.1");
}

net_server *net_start_at(net_kind kind, const char *name, const char *address)
{
    net_server *server = calloc(1, sizeof *server);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
    socklen_t len = sizeof at;
    server->kind = kind;
    server->name = name;
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(server->fd, 1024), 0);
    getsockname(server->fd, (struct sockaddr *)&at, &len);
    server->port = ntohs(at.sin_port);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, accept_all, server), 0);
    return server;
}

int net_port(const net_server *server)
{
    return server->port;
}

int net_accepted(const net_server *server)
{
    return __atomic_load_n(&server->accepted, __ATOMIC_SEQ_CST);
}

int net_open(const net_server *server)
{
    return __atomic_load_n(&server->open, __ATOMIC_SEQ_CST);
}

long net_received(const net_server *server)
{
    return __atomic_load_n(&server->received, __ATOMIC_SEQ_CST);
}

int net_resets(const net_server *server)
{
    return __atomic_load_n(&server->resets, __ATOMIC_SEQ_CST);
}

int net_heard_other(const net_server *server)
{
    return __atomic_load_n(&server->heard_other, __ATOMIC_SEQ_CST);
}

void net_stop(net_server *server)
{
    if (server == NULL) return;
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    for (int i = 0; i < server->count; i++) {
        shutdown(server->peers[i].fd, SHUT_RDWR);
        pthread_join(server->peers[i].thread, NULL);
        close(server->peers[i].fd);
    }
    close(server->fd);
    free(server);
}
