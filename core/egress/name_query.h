/*
 * DNS messages (RFC 1035, EDNS of RFC 6891): reading a query of one question, and writing the
 * answer with at most one address. Nothing is resolved here.
 */
#ifndef BC_EGRESS_NAME_QUERY_H
#define BC_EGRESS_NAME_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "egress/address.h"

enum { BC_NAME_TYPE_A = 1, BC_NAME_TYPE_PTR = 12, BC_NAME_TYPE_AAAA = 28, BC_NAME_TYPE_OPT = 41 };
enum { BC_NAME_TYPE_SVCB = 64, BC_NAME_TYPE_HTTPS = 65, BC_NAME_TYPE_ANY = 255 };
enum { BC_NAME_CLASS_IN = 1 };
enum {
    BC_NAME_NOERROR = 0,
    BC_NAME_FORMERR = 1,
    BC_NAME_SERVFAIL = 2,
    BC_NAME_NXDOMAIN = 3,
    BC_NAME_NOTIMP = 4,
    BC_NAME_REFUSED = 5,
    BC_NAME_BADVERS = 16 /* only to a query with EDNS */
};

/* What we answer with at most: header, the longest question, an address, EDNS. Below the 512 bytes
 * that every client takes, so no answer is ever cut. */
#define BC_NAME_ANSWER_MAX 512
/* Queries are a question and options; a longer one is none of a stub resolver's. */
#define BC_NAME_QUERY_MAX 4096

typedef struct bc_name_query {
    uint16_t id;
    uint16_t flags; /* as sent */
    uint16_t type, cls;
    char name[254];      /* canonical; "" when `rcode` is not BC_NAME_NOERROR, or for the root */
    bool edns;           /* the query has an OPT record, so the answer gets one */
    size_t question_len; /* its bytes after the header, echoed in the answer; 0: none is */
    unsigned rcode;      /* BC_NAME_NOERROR: a question to decide upon; otherwise answer this */
} bc_name_query;

/* 0: answer it, with `rcode` if that is an error. -1: drop it (no header, or itself an answer). */
int bc_name_query_read(const unsigned char *data, size_t len, bc_name_query *out);

/* The answer: `rcode`, the question, and the address if `ipv4` is not NULL and the question is for
 * one (A, IN). `query` is what `q` was read from. The bytes written, 0 when `cap` is too small or
 * the arguments do not fit each other. BC_NAME_ANSWER_MAX is always enough. */
size_t bc_name_answer_write(unsigned char *out, size_t cap, const unsigned char *query,
                            size_t query_len, const bc_name_query *q, unsigned rcode,
                            const unsigned char ipv4[4], uint32_t ttl);

/* Whether the question is for an IPv4 address of an internet host, the only kind with records. */
bool bc_name_query_wants_address(const bc_name_query *q);
/* What a name that exists answers to every other type: nothing (BC_NAME_NOERROR without a record)
 * for AAAA, HTTPS, SVCB and other records of hosts, so that clients go on to ask for A;
 * BC_NAME_REFUSED for ANY, transfers, and classes other than IN. */
unsigned bc_name_query_other_rcode(const bc_name_query *q);
/* Whether it is a reverse lookup (below in-addr.arpa or ip6.arpa). `address` is the IPv4 address
 * when it asks for a whole one, otherwise its family is 0. */
bool bc_name_query_is_reverse(const bc_name_query *q, bc_address *address);

#endif
