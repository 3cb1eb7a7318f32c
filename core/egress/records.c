/*
 * What a TLS client sends in the clear behind its first hello. A server may ask for a second hello
 * (RFC 8446, 4.1.4), whose server name it may take for the first one's, so that is looked at, too.
 * From the first record of application data on nothing can be one any more, but where early data
 * was offered, which a server may throw away to ask for a second hello then.
 */
#include "egress/relay.h"

enum { CHANGE = 20, ALERT = 21, HANDSHAKE = 22, DATA = 23 };
#define RECORD_HEADER 5u
#define MAX_RECORD (16384u + 256u) /* RFC 8446, 5.2 */
/* Type, length and version of a hello: enough to know one, and never by chance. */
#define HELLO_BEGIN 6u
#define CLIENT_HELLO 1

static bc_sniff malformed(bc_relay *relay)
{
    return bc_relay_deny(relay, "malformed TLS records", "");
}

/* The beginning of what may be a hello: DONE: it is one; BAD: it is not. One that comes in pieces
 * too small to tell is none of a client's that means well. */
static bc_sniff begins_hello(const unsigned char *fragment, size_t len)
{
    if (len == 0 || fragment[0] != CLIENT_HELLO) return BC_SNIFF_BAD;
    if (len < HELLO_BEGIN) return BC_SNIFF_DONE;
    return fragment[1] == 0 && fragment[4] == 3 && fragment[5] <= 4 ? BC_SNIFF_DONE : BC_SNIFF_BAD;
}

/* The records that a whole hello stands in, whatever their size. */
static size_t records_of_hello(const unsigned char *data, size_t len)
{
    unsigned char head[4] = {0};
    size_t at = 0, seen = 0, size = sizeof head;
    while (seen < size && len - at >= RECORD_HEADER) {
        size_t fragment = (size_t)data[at + 3] << 8 | data[at + 4];
        for (size_t i = 0; i < fragment && seen + i < sizeof head; i++) {
            head[seen + i] = data[at + RECORD_HEADER + i];
        }
        seen += fragment;
        if (seen >= sizeof head) {
            size = sizeof head + ((size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3]);
        }
        at += RECORD_HEADER + fragment;
    }
    return at;
}

/* Its records may pass together. */
static bc_sniff look_at_next_hello(bc_relay *relay, const unsigned char *data, size_t len)
{
    bc_sniff seen = bc_relay_look_at_hello(relay, data, len);
    if (seen == BC_SNIFF_DONE) relay->record_left = records_of_hello(data, len);
    return seen;
}

/* One record that begins at `data`: sets how many bytes may pass. */
static bc_sniff look_at_record(bc_relay *relay, const unsigned char *data, size_t len)
{
    if (len < RECORD_HEADER) return BC_SNIFF_MORE;
    size_t fragment = (size_t)data[3] << 8 | data[4];
    if (data[0] < CHANGE || data[0] > DATA || data[1] != 3 || fragment > MAX_RECORD) {
        return malformed(relay);
    }
    if (data[0] == HANDSHAKE) {
        size_t wanted = fragment < HELLO_BEGIN ? fragment : HELLO_BEGIN;
        if (len < RECORD_HEADER + wanted) return BC_SNIFF_MORE;
        if (begins_hello(data + RECORD_HEADER, wanted) == BC_SNIFF_DONE) {
            return look_at_next_hello(relay, data, len);
        }
    }
    relay->record_left = RECORD_HEADER + fragment;
    if (data[0] == DATA && !relay->early_data) relay->records = 0;
    return BC_SNIFF_DONE;
}

bc_sniff bc_relay_look_at_records(bc_relay *relay)
{
    bc_flow *flow = &relay->flows[INNER];
    while (flow->cleared < flow->len) {
        size_t left = flow->len - flow->cleared;
        if (relay->record_left == 0 && relay->records) {
            bc_sniff seen = look_at_record(relay, flow->held + flow->from + flow->cleared, left);
            if (seen == BC_SNIFF_BAD) return seen;
            if (seen == BC_SNIFF_MORE) break;
        }
        if (!relay->records) {
            relay->record_left = 0;
            flow->cleared = flow->len;
            break;
        }
        size_t part = left < relay->record_left ? left : relay->record_left;
        flow->cleared += part;
        relay->record_left -= part;
    }
    if (flow->ended && flow->cleared < flow->len) return malformed(relay);
    return BC_SNIFF_DONE;
}
