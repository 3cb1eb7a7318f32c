/*
 * Secrets: commands use them, and never have them.
 *
 * A sandbox gets a placeholder in the environment variable `name`. A program sends it as it would
 * send the secret. For the hosts of secrets, and no others, this library stands in the middle of
 * TLS: it has a certificate authority of its own for each sandbox, whose key exists in the memory
 * of this process only, and whose certificate the programs in the sandbox trust. It reads each
 * request, and where the placeholder stands in the secret's header, in the secret's form, it puts
 * the value there and sends the request on to the real server, whose certificate it has verified
 * before. The value is never in the sandbox, nor in any error, event, log or result.
 *
 *     const char *hosts[] = {"api.example.com", NULL};
 *     barchan_secret secret = {.struct_size = sizeof secret, .name = "API_TOKEN", .value = token,
 *                              .value_len = strlen(token), .hosts = hosts};
 *     profile.secrets = &secret; profile.secret_count = 1;
 *     sandbox$ curl -H "Authorization: Bearer $API_TOKEN" https://api.example.com/user
 *
 * When. A value is put in only over verified TLS, for a host and port of `hosts`, a method of
 * `methods` and a path of `paths`, in the place of `header`, when what the program sent there is
 * `format` with the placeholder in it. A program that sends no such header gets none added. A
 * placeholder elsewhere (URL, body, another header, plain HTTP) stays what it is: a word that is
 * worth nothing. Redirects are the program's to follow, and each request is looked at anew.
 * Each use, and each attempt that was none, is an event (BARCHAN_NETWORK_SECRET, barchan/network.h;
 * requests wait while there is no room for more of them) and what is refused also one that is
 * denied. What goes to other hosts over TLS cannot be seen.
 *
 * The program's own authorization. On the hosts of secrets the field Authorization and every
 * secret's `header` are ours: what is there and is not a placeholder in its form and place is taken
 * out, or the request refused with 403 (`on_guest_authorization`), so that commands cannot act
 * there as somebody else. One field of a request holds one value: a request with two lines of one
 * field that both are to hold one is refused with 403.
 *
 * Requests. HTTP/1.1, one after another; HTTP/1.0, whose answers may break off unnoticed, HTTP/2,
 * upgrades, TRACE, absolute URLs, a missing Host, trailers, extensions of chunks and malformed
 * heads are refused, and at these hosts and ports whatever is not TLS. A request with a body is
 * the last of its connection, and both sides are told so: a server that answers without reading the
 * body takes it for further requests. Host, the framing of the body and Expect are written anew.
 * They ask for no content coding or charset (an Accept that has one is taken out), and not for a
 * part of a body (Range), so that answers can be searched. Fields by which some servers take
 * another method, host or path than the request line's (X-HTTP-Method-Override, X-Original-URL,
 * X-Forwarded-*, Script-Name, …) are taken out. Field names are compared as many servers do:
 * "X_Api_Key" is X-Api-Key. What the body and the query say to a server cannot be judged, a
 * "_method=DELETE" for one, nor can fields with a meaning of their own, such as WebDAV's
 * Destination: `methods` and `paths` hold for servers that go by the request line, and read the
 * bodies of requests or end the connection where they are asked to.
 *
 * A program that says no more is passed on as such, and its request given up when the answer then
 * pauses for 30 s; of one whose further words wait to be read it cannot be seen, so that its
 * request is given up when nothing has moved for 300 s. That it says no more, and what it still has
 * to send of a body, waits for the end of an answer without a length that has begun to come here,
 * but no longer than 2 s. An answer that ends after the server has heard of that, and had no length
 * before, is broken off before what may be the end of a value: where it ends could be the program's
 * choice. So uploads and answers that go both ways at once are slow to begin and may lose their
 * last words.
 *
 * An answer without a length is passed on in chunks, so that a program sees whether it is whole:
 * where it was broken off, the last chunk is missing, which clients report (curl: 18), and there is
 * an event BARCHAN_NETWORK_FAILED that says why. That is so, too, where a server ends such an
 * answer without TLS's goodbye (close_notify), for it may have been cut off; most clients do not
 * mind that where nobody stands in the middle. A server that gives a Content-Length, or says
 * goodbye, is read to its end.
 *
 * Answers. They have every byte of a value, and of its base64 forms but for characters that hold
 * bits of what stands beside it, replaced by '*'; those with a content coding, a part only, or in
 * a charset that is not known to be like ASCII (UTF-16, EBCDIC), where Content-Type names it, are
 * refused. An answer that pauses in the midst of a line passes up to there but for as many
 * characters as the longest such form has, and these never pass when it breaks off. A server that
 * shows a value in another form (hexadecimal, escaped, in pieces, or in an answer without a length
 * that it ends early, in good order), or keeps it and shows it elsewhere, is not held back: bind
 * secrets to hosts, methods and paths that do not. How long a value is can be learnt.
 *
 * Trust. /run/barchan/ca-bundle.pem in the sandbox holds the certificates that this machine trusts
 * and the sandbox's own, /run/barchan/ca.pem the latter only. SSL_CERT_FILE, CURL_CA_BUNDLE,
 * REQUESTS_CA_BUNDLE, PIP_CERT, GIT_SSL_CAINFO, AWS_CA_BUNDLE, CARGO_HTTP_CAINFO,
 * npm_config_cafile, WGETRC (by /run/barchan/wgetrc) and, for the latter, NODE_EXTRA_CA_CERTS name
 * them, unless the profile's `env` sets these. Programs with
 * another idea of trust (Java's, pinned certificates) cannot talk to hosts with secrets.
 *
 * The profile needs a network that allows each host; a secret is no permission to connect. A
 * detached sandbox has none, but for those that a program which holds it itself
 * (barchan_sandbox_hold) gave it; whoever connects cannot set them (BARCHAN_EUNSUPPORTED). A
 * sandbox with secrets is not forked; a snapshot of it has its files, and no values.
 *
 * Refused when the sandbox is made: a value under 16 bytes or with control characters, no hosts, a
 * wildcard, an address, a host that the network refuses, a header that frames requests, a `name`
 * that is taken.
 */
#ifndef BARCHAN_SECRET_H
#define BARCHAN_SECRET_H

#include <stddef.h>
#include <barchan/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BARCHAN_SECRET_MIN_BYTES 16
#define BARCHAN_SECRET_MAX_BYTES 4096

typedef enum barchan_guest_authorization {
    BARCHAN_GUEST_AUTHORIZATION_STRIP = 0, /* the field is taken out of the request */
    BARCHAN_GUEST_AUTHORIZATION_REFUSE = 1 /* the request is answered with 403 */
} barchan_guest_authorization;

/* All of it is copied. The caller should wipe its own copy of the value. */
typedef struct barchan_secret {
    size_t struct_size;
    const char *name;  /* of the variable: letters, digits and '_'; none that the profile's env, a
                          shell (PATH, HOME, …), the loader (LD_*) or TLS (SSL_CERT_FILE, …) has */
    const char *value; /* 16 to 4096 printable ASCII characters, no space at either end */
    size_t value_len;
    const char *const *hosts; /* "api.example.com" or "api.example.com:8443", exactly; 443 if no
                                 port; 1 to 16, NULL-terminated; not port 80 */
    const char *header;       /* NULL: "Authorization" */
    const char *format;       /* with one "{}"; NULL: "Bearer {}", with `user` "Basic {}" */
    const char *user;         /* not NULL: "{}" is the base64 form of user:value, and programs send
                                 that of any user name with the placeholder */
    const char *const *methods; /* NULL: all; "GET", …, in capitals; at most 16 */
    const char *const *paths;   /* NULL: all; "/repos" is that and what is below it; at most 16. One
                                   that servers read in several ways is none of them: with "//",
                                   "." or what begins with ".." as a part, '\\' or ';', and escapes
                                   of '.', '/', '\\', ';', '%', controls, spaces or non-ASCII */
    const char *ca_file; /* verifies the server with these certificates (PEM) instead of those
                            that this machine trusts; one for each host */
    /* Of all secrets of a host the strictest holds. An int's worth each, so that none is padding.
     */
    size_t on_guest_authorization; /* a barchan_guest_authorization */
} barchan_secret;

/* Another value under the same placeholder, for requests from now on; it and the last seven are
 * taken out of answers, of those under way, too. The same value changes nothing. BARCHAN_ENOTFOUND:
 * the sandbox has no secret of this name. */
BARCHAN_API int barchan_sandbox_set_secret(barchan_sandbox *sbx, const char *name,
                                           const char *value, size_t value_len, barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
