/*
 * The first message of a TLS connection (RFC 8446, RFC 5246, RFC 6066), read for the name that it
 * asks for. Called again with all bytes so far whenever more have come.
 *
 * BAD is whatever a server could read in another way than we do: several names, a
 * repeated extension, a name with a trailing dot or that is an address, lengths that do not fit.
 */
#ifndef BC_EGRESS_CLIENT_HELLO_H
#define BC_EGRESS_CLIENT_HELLO_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bc_sniff {
    BC_SNIFF_MORE, /* not decided yet: read on */
    BC_SNIFF_BAD,  /* never going to be one that may pass */
    BC_SNIFF_DONE
} bc_sniff;

/* The handshake message; with post-quantum keys real ones are about 2 KiB. */
#define BC_CLIENT_HELLO_MAX (16u << 10)
/* The bytes on the wire: the message in records, which a hostile client makes small. */
#define BC_CLIENT_HELLO_MAX_BYTES (2 * BC_CLIENT_HELLO_MAX)

typedef struct bc_client_hello {
    char server_name[254]; /* canonical; "" none */
    bool encrypted;        /* encrypted_client_hello: whether real or GREASE cannot be told */
    bool alpn;             /* any protocol list */
    bool alpn_h2;
    bool alpn_http1; /* http/1.1 or http/1.0 */
    bool early_data; /* 0-RTT data follows */
} bc_client_hello;

/* `out` is complete with BC_SNIFF_DONE, otherwise cleared. */
bc_sniff bc_client_hello_read(const unsigned char *data, size_t len, bc_client_hello *out);
/* Whether these first bytes are those of a TLS record with a handshake: DONE yes, BAD no. */
bc_sniff bc_looks_like_client_hello(const unsigned char *data, size_t len);

#endif
