#include "tls_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/base64.h"

#define MAX_CONNECTIONS 256

struct tls_server {
    int fd, port, count;
    SSL_CTX *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    char *seen;
    size_t seen_len;
    int handshakes, records;
    char dir[64], cert[96], key[96];
    struct peer {
        tls_server *server;
        int fd;
        pthread_t thread;
    } peers[MAX_CONNECTIONS];
};

/* ---- what it was sent ---- */

static void remember(tls_server *server, const char *data, size_t len)
{
    pthread_mutex_lock(&server->lock);
    server->seen = realloc(server->seen, server->seen_len + len + 1);
    memcpy(server->seen + server->seen_len, data, len);
    server->seen_len += len;
    pthread_mutex_unlock(&server->lock);
}

int tls_has_seen(tls_server *server, const char *text)
{
    int count = 0;
    pthread_mutex_lock(&server->lock);
    const char *at = server->seen, *end = at + server->seen_len;
    while (at != NULL && (at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
        count++;
        at++;
    }
    pthread_mutex_unlock(&server->lock);
    return count;
}

/* ---- answers ---- */

static void put(SSL *ssl, const char *data, size_t len)
{
    if (len > 0) SSL_write(ssl, data, (int)len);
}

static void put_text(SSL *ssl, const char *text)
{
    put(ssl, text, strlen(text));
}

static void put_whole(SSL *ssl, const char *field, const char *body, size_t len)
{
    char head[8192];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n", field, len);
    put_text(ssl, head);
    put(ssl, body, len);
}

static void put_chunks(SSL *ssl, const char *body, size_t len)
{
    put_text(ssl, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < len; i++) {
        char chunk[16];
        snprintf(chunk, sizeof chunk, "1\r\n%c\r\n", body[i]);
        put_text(ssl, chunk);
    }
    put_text(ssl, "0\r\nX-Trailer: yes\r\n\r\n");
}

/* The value of Authorization, copied. */
static size_t authorization(const char *request, char *out, size_t cap)
{
    const char *field = strcasestr(request, "\r\nAuthorization: ");
    size_t len = field == NULL ? 0 : strcspn(field + 17, "\r");
    snprintf(out, cap, "%.*s", (int)len, field == NULL ? "" : field + 17);
    return strlen(out);
}

static void put_base64(SSL *ssl, const char *request)
{
    char text[512] = "xx", body[4096] = "";
    size_t len = authorization(request, text + 2, sizeof text - 2);
    for (size_t skew = 0; skew < 3; skew++) {
        size_t at = strlen(body);
        at += bc_base64_encode(text + 2 - skew, len + skew, body + at);
        snprintf(body + at, sizeof body - at, "\n");
    }
    put_whole(ssl, "", body, strlen(body));
}

/* More than the buffers on its way hold; without a length, its end is the connection's. */
static void put_big(SSL *ssl, int with_length)
{
    static char body[3000000];
    memset(body, 'b', sizeof body);
    if (with_length) {
        put_whole(ssl, "", body, sizeof body);
    } else {
        put_text(ssl, "HTTP/1.1 200 OK\r\n\r\n");
        put(ssl, body, sizeof body);
    }
}

/* An answer that goes on until somebody asks for /now. */
static void put_log(SSL *ssl, tls_server *server)
{
    put_text(ssl, "HTTP/1.1 200 OK\r\n\r\nso far\n");
    for (int i = 0; i < 1000 && tls_has_seen(server, "GET /now") == 0; i++)
        usleep(10000);
    pthread_mutex_lock(&server->lock);
    size_t len = server->seen_len;
    char *copy = memcpy(malloc(len + 1), server->seen, len);
    pthread_mutex_unlock(&server->lock);
    put(ssl, copy, len);
    free(copy);
}

enum { END, GO_ON, END_AT_NEXT };

/* What comes of the connection. */
static int answer(struct peer *peer, SSL *ssl, const char *request, size_t len)
{
    const char *path = strchr(request, '/');
    char field[4096], value[512];
    if (strncmp(path, "/echo/length", 12) == 0) {
        put_whole(ssl, "", request, len);
    } else if (strncmp(path, "/echo/chunks", 12) == 0) {
        put_chunks(ssl, request, len);
    } else if (strncmp(path, "/echo/end", 9) == 0) {
        put_text(ssl, "HTTP/1.1 200 OK\r\n\r\n");
        put(ssl, request, len);
        return END;
    } else if (strncmp(path, "/echo/header", 12) == 0) {
        authorization(request, value, sizeof value);
        snprintf(field, sizeof field, "X-You-Are: %s\r\n", value);
        put_whole(ssl, field, "", 0);
    } else if (strncmp(path, "/echo/base64", 12) == 0) {
        put_base64(ssl, request);
    } else if (strncmp(path, "/coded", 6) == 0) {
        put_whole(ssl, "Content-Encoding: gzip\r\n", request, len);
    } else if (strncmp(path, "/redirect", 9) == 0) {
        snprintf(field, sizeof field,
                 "HTTP/1.1 302 Found\r\nLocation: https://other.example:%d/\r\n"
                 "Content-Length: 0\r\n\r\n",
                 peer->server->port);
        put_text(ssl, field);
    } else if (strncmp(path, "/unread", 7) == 0) {
        put_whole(ssl, "", request, strncmp(request, "HEAD", 4) == 0 ? 0 : len);
    } else if (strncmp(path, "/broken", 7) == 0) {
        authorization(request, value, sizeof value);
        put_text(ssl, "HTTP/1.1 200 OK\r\n\r\nthe value: ");
        put(ssl, value, strlen(value) - 2);
        SSL_set_quiet_shutdown(ssl, 1);
        return END;
    } else if (strncmp(path, "/endless", 8) == 0) { /* many a small server is one of these */
        put_text(ssl, "HTTP/1.0 200 OK\r\n\r\n{\"items\": [1, 2],\n \"next\": null}");
        SSL_set_quiet_shutdown(ssl, strncmp(path, "/endless/silent", 15) == 0);
        return END;
    } else if (strncmp(path, "/big", 4) == 0) {
        put_big(ssl, strncmp(path, "/big/endless", 12) != 0);
        return END;
    } else if (strncmp(path, "/hurried", 8) == 0) {
        authorization(request, value, sizeof value);
        put_text(ssl, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        snprintf(field, sizeof field, "%zx\r\n%.*s\r\n", strlen(value) - 2, (int)strlen(value) - 2,
                 value);
        put_text(ssl, field);
        SSL_read(ssl, value, sizeof value); /* until its client says more, or no more */
        put_text(ssl, "0\r\n\r\n");
        return END;
    } else if (strncmp(path, "/early", 6) == 0) {
        put_text(ssl, "HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n");
        usleep(300000);
        put_text(ssl, "11\r\n\"error\":\"no key\"}\r\n0\r\n\r\n");
        while (SSL_read(ssl, value, sizeof value) > 0) {}
        return END;
    } else if (strncmp(path, "/wait", 5) == 0) {
        if (SSL_read(ssl, value, sizeof value) <= 0) remember(peer->server, "<gone>", 6);
        return END;
    } else if (strncmp(path, "/log", 4) == 0) {
        put_log(ssl, peer->server);
        return END;
    } else {
        put_whole(ssl, "", "served\n", 7);
        return strncmp(path, "/once", 5) == 0 ? END_AT_NEXT : GO_ON;
    }
    return GO_ON;
}

/* A head, and the body that its Content-Length tells of. */
static size_t whole_request(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");
    if (end == NULL) return 0;
    const char *field = strcasestr(text, "\r\nContent-Length: "), *path = strchr(text, '/');
    static const char *const head_only[] = {"/unread", "/hurried", "/early"};
    bool is_head_only = false;
    for (int i = 0; path != NULL && i < 3; i++)
        is_head_only |= strncmp(path, head_only[i], strlen(head_only[i])) == 0;
    if (is_head_only) return (size_t)(end - text) + 4;
    size_t body = field != NULL && field < end ? strtoul(field + 18, NULL, 10) : 0;
    size_t head = (size_t)(end - text) + 4;
    const char *chunked = strcasestr(text, "\r\nTransfer-Encoding: chunked\r\n");
    if (chunked != NULL && chunked < end) {
        const char *last = strstr(end, "\r\n0\r\n\r\n");
        return last == NULL ? 0 : (size_t)(last - text) + 7;
    }
    return strlen(text) >= head + body ? head + body : 0;
}

static void talk_to(struct peer *peer, SSL *ssl)
{
    static const size_t room = 1u << 20;
    char *text = calloc(1, room);
    size_t len = 0;
    for (int go = GO_ON; go != END;) {
        int n = SSL_read(ssl, text + len, (int)(room - 1 - len));
        if (n <= 0 || go == END_AT_NEXT) break;
        __atomic_add_fetch(&peer->server->records, 1, __ATOMIC_SEQ_CST);
        remember(peer->server, text + len, (size_t)n);
        len += (size_t)n;
        text[len] = '\0';
        size_t whole;
        while (go == GO_ON && (whole = whole_request(text)) > 0) {
            char *one = strndup(text, whole);
            go = answer(peer, ssl, one, whole);
            free(one);
            memmove(text, text + whole, len + 1 - whole);
            len -= whole;
        }
    }
    SSL_shutdown(ssl);
    free(text);
}

static void *serve(void *ud)
{
    struct peer *peer = ud;
    SSL *ssl = SSL_new(peer->server->ctx);
    SSL_set_fd(ssl, peer->fd);
    if (SSL_accept(ssl) == 1) {
        __atomic_add_fetch(&peer->server->handshakes, 1, __ATOMIC_SEQ_CST);
        talk_to(peer, ssl);
    }
    SSL_free(ssl);
    shutdown(peer->fd, SHUT_RDWR);
    return NULL;
}

static void *accept_all(void *ud)
{
    tls_server *server = ud;
    int fd;
    sigset_t pipe; /* of these threads only: the library must do without */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    while (server->count < MAX_CONNECTIONS && (fd = accept(server->fd, NULL, NULL)) >= 0) {
        struct peer *peer = &server->peers[server->count];
        *peer = (struct peer){.server = server, .fd = fd};
        if (pthread_create(&peer->thread, NULL, serve, peer) != 0) abort();
        server->count++;
    }
    return NULL;
}

/* ---- its life ---- */

static void make_certificate(tls_server *server)
{
    char command[512];
    snprintf(server->dir, sizeof server->dir, "/tmp/barchan-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(server->dir));
    snprintf(server->cert, sizeof server->cert, "%s/cert.pem", server->dir);
    snprintf(server->key, sizeof server->key, "%s/key.pem", server->dir);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
             "-subj /CN=tests -addext subjectAltName=DNS:served.example,DNS:other.example "
             "-keyout %s -out %s 2>/dev/null",
             server->key, server->cert);
    ck_assert_int_eq(system(command), 0);
}

tls_server *tls_start(void)
{
    tls_server *server = calloc(1, sizeof *server);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.0.1")};
    socklen_t len = sizeof at;
    pthread_mutex_init(&server->lock, NULL);
    make_certificate(server);
    server->ctx = SSL_CTX_new(TLS_server_method());
    ck_assert_int_eq(SSL_CTX_use_certificate_file(server->ctx, server->cert, SSL_FILETYPE_PEM), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(server->ctx, server->key, SSL_FILETYPE_PEM), 1);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(server->fd, 128), 0);
    getsockname(server->fd, (struct sockaddr *)&at, &len);
    server->port = ntohs(at.sin_port);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, accept_all, server), 0);
    return server;
}

int tls_port(const tls_server *server)
{
    return server->port;
}

const char *tls_ca_file(const tls_server *server)
{
    return server->cert;
}

int tls_handshakes(const tls_server *server)
{
    return __atomic_load_n(&server->handshakes, __ATOMIC_SEQ_CST);
}

int tls_records(const tls_server *server)
{
    return __atomic_load_n(&server->records, __ATOMIC_SEQ_CST);
}

void tls_stop(tls_server *server)
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
    SSL_CTX_free(server->ctx);
    unlink(server->cert);
    unlink(server->key);
    rmdir(server->dir);
    pthread_mutex_destroy(&server->lock);
    free(server->seen);
    free(server);
}
