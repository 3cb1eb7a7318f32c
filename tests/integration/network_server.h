/* A server on the loopback of the tests' host, in threads: the world that a sandbox may reach. */
#ifndef NETWORK_SERVER_H
#define NETWORK_SERVER_H

typedef enum net_kind {
    NET_HTTP,   /* one request, answered with "served by <name>\n" */
    NET_ECHO,   /* gives back what it gets, until the end of that */
    NET_SWITCH, /* agrees to another protocol when something comes, then echoes */
    NET_GREET,  /* says "220 hello\n" first, then echoes */
    NET_SOURCE, /* reads a number and a newline, sends so many bytes: 0 to 250, again and again */
    NET_BREAK,  /* says "220 so far\n" first, and resets when something comes */
    NET_DEAF    /* reads nothing, until the client has ended */
} net_kind;

typedef struct net_server net_server;

/* Listens on 127.0.0.1. `name` is borrowed. */
net_server *net_start(net_kind kind, const char *name);
/* At another address; in a network namespace of the test's own only. */
net_server *net_start_at(net_kind kind, const char *name, const char *address);
int net_port(const net_server *server);
/* Connections so far, and those that it has not seen the end of. */
int net_accepted(const net_server *server);
int net_open(const net_server *server);
/* Bytes that it has read. */
long net_received(const net_server *server);
/* Clients that have reset their connection, rather than ended it. */
int net_resets(const net_server *server);
/* Whether "other.example" was among them, in one piece. */
int net_heard_other(const net_server *server);
/* Ends it and its connections. */
void net_stop(net_server *server);

#endif
