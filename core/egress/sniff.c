/* What a program says must be for the host that it connected to; and how it is told that it may
 * not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "egress/relay.h"
#include "egress/request_head.h"

bc_sniff bc_relay_deny(bc_relay *relay, const char *rule, const char *name)
{
    relay->verdict.allowed = false;
    snprintf(relay->verdict.rule, sizeof relay->verdict.rule, "%s%s", rule, name);
    return BC_SNIFF_BAD;
}

/* A host that was reached by its number has no name to compare with, but what is named must be
 * it. */
bc_sniff bc_relay_look_at_hello(bc_relay *relay, const unsigned char *data, size_t len)
{
    bc_client_hello hello;
    bc_address address;
    bc_sniff seen = bc_client_hello_read(data, len, &hello);
    if (seen == BC_SNIFF_MORE) return seen;
    if (seen == BC_SNIFF_BAD) return bc_relay_deny(relay, "a malformed TLS ClientHello", "");
    if (hello.early_data) relay->early_data = 1;
    if (hello.encrypted) return bc_relay_deny(relay, "TLS with an encrypted ClientHello", "");
    if (hello.server_name[0] == '\0') {
        if (bc_address_parse(relay->host, &address) == 0) return BC_SNIFF_DONE;
        return bc_relay_deny(relay, "TLS without a server name", "");
    }
    if (strcmp(hello.server_name, relay->host) == 0) return BC_SNIFF_DONE;
    return bc_relay_deny(relay, "the TLS server name is another host: ", hello.server_name);
}

bc_sniff bc_relay_look_at_request(bc_relay *relay, const bc_request_head *head)
{
    if (head->http2_preface) return bc_relay_deny(relay, "HTTP/2 without TLS", "");
    if (head->connect) return bc_relay_deny(relay, "HTTP CONNECT to ", head->host);
    if (head->host[0] == '\0') return BC_SNIFF_DONE; /* HTTP/1.0 */
    if (strcmp(head->host, relay->host) != 0) {
        return bc_relay_deny(relay, "the HTTP Host is another host: ", head->host);
    }
    if (head->port != 0 && head->port != relay->port) {
        return bc_relay_deny(relay, "the HTTP Host has another port", "");
    }
    return BC_SNIFF_DONE;
}

bc_sniff bc_relay_look_at_requests(bc_relay *relay)
{
    bc_flow *flow = &relay->flows[INNER];
    bc_sniff seen = BC_SNIFF_DONE;
    size_t used = 1;
    while (used > 0 && flow->cleared < flow->len) {
        const char *data = (const char *)flow->held + flow->from + flow->cleared;
        seen = bc_request_stream_step(relay->requests, data, flow->len - flow->cleared, &used);
        if (seen == BC_SNIFF_BAD) return bc_relay_deny(relay, "a malformed HTTP request", "");
        if (seen == BC_SNIFF_DONE) seen = bc_relay_look_at_request(relay, &relay->requests->head);
        if (seen == BC_SNIFF_BAD) return seen;
        flow->cleared += used;
    }
    if (flow->ended && flow->cleared < flow->len)
        return bc_relay_deny(relay, "a part of a request", "");
    return BC_SNIFF_DONE;
}

static bc_sniff begin_requests(bc_relay *relay)
{
    relay->requests = calloc(1, sizeof *relay->requests);
    return relay->requests == NULL ? bc_relay_deny(relay, "out of memory", "") : BC_SNIFF_DONE;
}

/* On ports that are nobody's in particular only what begins like a known method is taken for HTTP:
 * any word could be a method, and the client of another protocol may say one and wait. */
static bc_sniff looks_like_http(const bc_relay *relay, const char *data, size_t len)
{
    /* Those of RFC 9110, 4918, 3744, 3253, 4791, 5323, 5789, of UPnP and of caches. */
    static const char *const methods[] = {"GET ",         "POST ",       "HEAD ",
                                          "PUT ",         "DELETE ",     "OPTIONS ",
                                          "PATCH ",       "TRACE ",      "PRI ",
                                          "CONNECT ",     "PROPFIND ",   "PROPPATCH ",
                                          "MKCOL ",       "COPY ",       "MOVE ",
                                          "LOCK ",        "UNLOCK ",     "REPORT ",
                                          "SEARCH ",      "PURGE ",      "QUERY ",
                                          "M-SEARCH ",    "MKACTIVITY ", "MKCALENDAR ",
                                          "MKWORKSPACE ", "MERGE ",      "CHECKOUT ",
                                          "CHECKIN ",     "UNCHECKOUT ", "VERSION-CONTROL ",
                                          "UPDATE ",      "LABEL ",      "BASELINE-CONTROL ",
                                          "ACL ",         "BIND ",       "REBIND ",
                                          "UNBIND ",      "LINK ",       "UNLINK ",
                                          "NOTIFY ",      "SUBSCRIBE ",  "UNSUBSCRIBE ",
                                          "SOURCE ",      "ORDERPATCH ", "BAN ",
                                          "REFRESH "};
    if (relay->port == 80) return bc_looks_like_request(data, len);
    while (len > 0 && (*data == '\r' || *data == '\n')) {
        data++;
        len--;
    }
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        size_t whole = strlen(methods[i]), part = len < whole ? len : whole;
        if (memcmp(data, methods[i], part) != 0) continue;
        return part == whole ? BC_SNIFF_DONE : BC_SNIFF_MORE;
    }
    return BC_SNIFF_BAD;
}

/* By the first bytes of a record of any kind, or of the hello of SSL 2, which servers that still
 * know it take: what begins so must be whole and right, or it is refused. */
static bc_sniff looks_like_tls(const unsigned char *data, size_t len)
{
    if (len > 0 && data[0] >= 20 && data[0] <= 24) {
        return len < 2 ? BC_SNIFF_MORE : data[1] == 3 ? BC_SNIFF_DONE : BC_SNIFF_BAD;
    }
    if (len > 0 && (data[0] & 0x80) != 0) {
        if (len > 2 && data[2] != 1) return BC_SNIFF_BAD;
        return len < 4 ? BC_SNIFF_MORE : data[3] <= 3 ? BC_SNIFF_DONE : BC_SNIFF_BAD;
    }
    return len == 0 ? BC_SNIFF_MORE : BC_SNIFF_BAD;
}

bc_sniff bc_relay_look(bc_relay *relay, const unsigned char *data, size_t len, int ended)
{
    bc_sniff tls = looks_like_tls(data, len);
    bc_sniff request = looks_like_http(relay, (const char *)data, len);
    bc_sniff seen = BC_SNIFF_DONE; /* any other protocol */
    if (len == 0 && ended) return BC_SNIFF_DONE;
    if (tls == BC_SNIFF_DONE && relay->port != 80) {
        seen = bc_relay_look_at_hello(relay, data, len);
        relay->tls = relay->records = seen == BC_SNIFF_DONE;
    } else if (request == BC_SNIFF_DONE && relay->port != 443) {
        seen = begin_requests(relay);
    } else if (tls == BC_SNIFF_MORE || request == BC_SNIFF_MORE) {
        seen = BC_SNIFF_MORE;
    } else if (relay->port == 443 || relay->port == 80) {
        return bc_relay_deny(
            relay, relay->port == 443 ? "port 443 is for TLS only" : "port 80 is for HTTP only",
            "");
    }
    if (seen == BC_SNIFF_MORE && ended)
        return bc_relay_deny(relay, "it ended within its first words", "");
    return seen;
}

size_t bc_relay_write_response(const bc_relay *relay, char *text, size_t cap)
{
    char body[1024];
    int refused = !relay->verdict.allowed;
    int body_len = snprintf(body, sizeof body, "This sandbox %s %s:%u: %s\n",
                            refused ? "may not reach" : "could not reach", relay->host, relay->port,
                            relay->verdict.rule);
    int n = snprintf(text, cap,
                     "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: %d\r\nConnection: close\r\nX-Barchan-Egress: %s\r\n\r\n%s",
                     refused ? "403 Forbidden" : "502 Bad Gateway", body_len,
                     refused ? "denied" : "failed", body);
    return n < 0 || (size_t)n >= cap ? 0 : (size_t)n;
}

bc_sniff bc_relay_refusal(const bc_relay *relay, char *text, size_t cap, size_t *len)
{
    /* Fatal: access_denied, or internal_error where it was not refused. */
    const unsigned char alert[] = {21, 3, 3, 0, 2, 2, relay->verdict.allowed ? 80 : 49};
    const bc_flow *flow = &relay->flows[INNER];
    const unsigned char *data =
        flow->held == NULL ? (const unsigned char *)"" : flow->held + flow->from;
    bc_sniff tls = looks_like_tls(data, flow->len);
    bc_sniff request = looks_like_http(relay, (const char *)data, flow->len);
    *len = 0;
    if (tls == BC_SNIFF_DONE) {
        *len = sizeof alert;
        memcpy(text, alert, sizeof alert);
    } else if (request == BC_SNIFF_DONE) {
        *len = bc_relay_write_response(relay, text, cap);
    } else if (!flow->ended && (tls == BC_SNIFF_MORE || request == BC_SNIFF_MORE)) {
        return BC_SNIFF_MORE;
    }
    return *len > 0 ? BC_SNIFF_DONE : BC_SNIFF_BAD;
}
