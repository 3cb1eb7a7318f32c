/*
 * An HTTPS server on the loopback of the tests' host, in threads, with a certificate that it makes.
 * What a request's path says, it does:
 *
 *     /echo/<how>   answers with all that it was sent; how: length, chunks (of 1 byte), end
 *                   (without a length), header, base64 (of Authorization, behind 0 to 2 bytes)
 *     /coded        says that its answer is gzip
 *     /redirect     to https://other.example:<port>/
 *     /unread…      as /echo/length, but reads no body: what follows the head is a request
 *     /log          "so far", and after a request for /now all that it was sent, by anybody
 *     /once         "served", and ends when the next request comes
 *     /broken       as /echo/end, but breaks off two bytes before the end of Authorization
 *     /hurried      Authorization but for two bytes, and the answer's end when its client says more
 *     /early        a refusal in two pieces, and reads the body only then
 *     /wait         says nothing until its client has gone, and then has seen "<gone>"
 *     anything else "served"
 */
#ifndef TLS_SERVER_H
#define TLS_SERVER_H

#include <stddef.h>

typedef struct tls_server tls_server;

/* Of served.example and other.example, on 127.0.0.1. */
tls_server *tls_start(void);
int tls_port(const tls_server *server);
/* A file with the certificate to verify it with. */
const char *tls_ca_file(const tls_server *server);
/* Handshakes that were completed, and connections. */
int tls_handshakes(const tls_server *server);
/* Records of TLS that it was sent. */
int tls_records(const tls_server *server);
/* How often `text` stands in all that it was sent so far. */
int tls_has_seen(tls_server *server, const char *text);
void tls_stop(tls_server *server);

#endif
