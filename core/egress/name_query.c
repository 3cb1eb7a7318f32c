#include "name_query.h"

#include <string.h>
#include "address.h"
#include "host_name.h"

enum { HEADER = 12, NAME_MAX_WIRE = 255, EDNS_BYTES = 1232 };
enum { FLAG_ANSWER = 0x8000, FLAG_RECURSION_WANTED = 0x0100, FLAG_CHECKING_OFF = 0x0010 };
enum { FLAG_RECURSION_OFFERED = 0x0080, OPCODE_MASK = 0x7800 };

static unsigned read16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static unsigned char *put16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
    return at + 2;
}

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    return put16(put16(at, value >> 16), value & 0xffff);
}

/* The labels of a name as text with dots. The bytes of the name on the wire, 0 when it is malformed
 * or has a pointer, which a question has nothing to point at. A name that no host has gives `text`
 * as "" and *sound as false. */
static size_t read_name(const unsigned char *data, size_t len, char text[254], bool *sound)
{
    char dotted[NAME_MAX_WIRE];
    size_t at = 0, out = 0;
    bool plain = true;
    while (at < len && data[at] != 0) {
        size_t label = data[at];
        if (label > BC_HOST_LABEL_MAX || at + 1 + label >= len) return 0;
        if (at + 1 + label + 1 > NAME_MAX_WIRE) return 0;
        /* A dot within a label would be read as two labels. */
        if (memchr(data + at + 1, '.', label) != NULL) plain = false;
        if (out > 0) dotted[out++] = '.';
        memcpy(dotted + out, data + at + 1, label);
        out += label;
        at += 1 + label;
    }
    if (at >= len) return 0;
    bc_address address;
    text[0] = '\0';
    *sound = out == 0 || (plain && bc_host_name_canonical(dotted, out, text) == 0 &&
                          bc_address_parse(text, &address) != 0);
    if (!*sound) text[0] = '\0';
    return at + 1;
}

/* The one record that a query may have besides its question. */
static unsigned read_edns(const unsigned char *at, size_t len, bc_name_query *out)
{
    if (len < 11 || at[0] != 0 || read16(at + 1) != BC_NAME_TYPE_OPT) return BC_NAME_FORMERR;
    if (len != 11 + (size_t)read16(at + 9)) return BC_NAME_FORMERR;
    out->edns = true;
    return at[6] == 0 ? BC_NAME_NOERROR : BC_NAME_BADVERS;
}

static unsigned read_body(const unsigned char *data, size_t len, bc_name_query *out)
{
    bool sound;
    if (out->flags & OPCODE_MASK) return BC_NAME_NOTIMP;
    if (len > BC_NAME_QUERY_MAX || read16(data + 4) != 1) return BC_NAME_FORMERR;
    if (read16(data + 6) != 0 || read16(data + 8) != 0) return BC_NAME_FORMERR;
    unsigned additional = read16(data + 10);
    const unsigned char *question = data + HEADER;
    size_t left = len - HEADER;
    size_t name_len = read_name(question, left, out->name, &sound);
    if (name_len == 0 || left < name_len + 4) return BC_NAME_FORMERR;
    out->type = (uint16_t)read16(question + name_len);
    out->cls = (uint16_t)read16(question + name_len + 2);
    out->question_len = name_len + 4;
    left -= out->question_len;
    if (additional > 1 || (additional == 0 && left > 0)) return BC_NAME_FORMERR;
    if (additional == 1) {
        unsigned rcode = read_edns(question + out->question_len, left, out);
        if (rcode != BC_NAME_NOERROR) return rcode;
    }
    return sound ? BC_NAME_NOERROR : BC_NAME_NXDOMAIN;
}

int bc_name_query_read(const unsigned char *data, size_t len, bc_name_query *out)
{
    *out = (bc_name_query){.rcode = BC_NAME_FORMERR};
    if (len < HEADER) return -1;
    out->id = (uint16_t)read16(data);
    out->flags = (uint16_t)read16(data + 2);
    if (out->flags & FLAG_ANSWER) return -1;
    out->rcode = read_body(data, len, out);
    if (out->rcode != BC_NAME_NOERROR) out->name[0] = '\0';
    return 0;
}

bool bc_name_query_wants_address(const bc_name_query *q)
{
    return q->type == BC_NAME_TYPE_A && q->cls == BC_NAME_CLASS_IN && q->name[0] != '\0';
}

unsigned bc_name_query_other_rcode(const bc_name_query *q)
{
    /* 249 to 255 are transfers, keys and ANY; 0 and OPT are no questions. */
    bool meta = q->type == 0 || q->type == BC_NAME_TYPE_OPT || (q->type >= 249 && q->type <= 255);
    return q->cls != BC_NAME_CLASS_IN || meta ? BC_NAME_REFUSED : BC_NAME_NOERROR;
}

bool bc_name_query_is_reverse(const bc_name_query *q, bc_address *address)
{
    static const char suffix[] = ".in-addr.arpa";
    *address = (bc_address){0};
    if (q->type != BC_NAME_TYPE_PTR || q->cls != BC_NAME_CLASS_IN) return false;
    if (bc_host_name_below(q->name, "ip6.arpa")) return true;
    if (!bc_host_name_below(q->name, suffix + 1)) return false;
    /* The numbers stand in reverse: read the literal, then turn it. */
    char text[BC_ADDRESS_TEXT];
    size_t len = strlen(q->name) - (sizeof suffix - 1);
    if (len >= sizeof text) return true;
    memcpy(text, q->name, len);
    text[len] = '\0';
    bc_address turned;
    if (bc_address_parse(text, &turned) != 0) return true;
    address->family = turned.family;
    for (int i = 0; i < 4; i++)
        address->bytes[i] = turned.bytes[3 - i];
    return true;
}

size_t bc_name_answer_write(unsigned char *out, size_t cap, const unsigned char *query,
                            size_t query_len, const bc_name_query *q, unsigned rcode,
                            const unsigned char ipv4[4], uint32_t ttl)
{
    bool address = ipv4 != NULL && rcode == BC_NAME_NOERROR && q->question_len > 0 &&
                   bc_name_query_wants_address(q);
    size_t total = HEADER + q->question_len + (address ? 16 : 0) + (q->edns ? 11 : 0);
    if (query_len < HEADER + q->question_len || cap < total) return 0;
    if (rcode > 15 && !q->edns) return 0;
    unsigned kept = q->flags & (OPCODE_MASK | FLAG_RECURSION_WANTED | FLAG_CHECKING_OFF);
    unsigned char *at = put16(out, q->id);
    at = put16(at, FLAG_ANSWER | FLAG_RECURSION_OFFERED | kept | (rcode & 15));
    at = put16(at, q->question_len > 0);
    at = put16(at, address);
    at = put16(at, 0);
    at = put16(at, q->edns);
    memcpy(at, query + HEADER, q->question_len);
    at += q->question_len;
    if (address) {
        at = put16(at, 0xc000 | HEADER);
        at = put16(at, BC_NAME_TYPE_A);
        at = put16(at, BC_NAME_CLASS_IN);
        at = put32(at, ttl & 0x7fffffff); /* RFC 2181: the first bit is none of it */
        at = put16(at, 4);
        memcpy(at, ipv4, 4);
        at += 4;
    }
    if (q->edns) {
        *at++ = 0;
        at = put16(at, BC_NAME_TYPE_OPT);
        at = put16(at, EDNS_BYTES);
        at = put32(at, (uint32_t)(rcode >> 4 & 0xff) << 24);
        at = put16(at, 0);
    }
    return (size_t)(at - out);
}
