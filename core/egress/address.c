#include "address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include "address_table.h"

typedef struct range {
    unsigned char net[16];
    unsigned char prefix;
    unsigned char kind;
} range;

#define V4(a, b, c, d, prefix, kind, source) {{a, b, c, d}, prefix, BC_ADDRESS_##kind},
#define HI(group) (unsigned char)((group) >> 8)
#define LO(group) (unsigned char)((group)&0xff)
#define V6(a, b, c, d, e, f, g, h, prefix, kind, source)                                         \
    {{HI(a), LO(a), HI(b), LO(b), HI(c), LO(c), HI(d), LO(d), HI(e), LO(e), HI(f), LO(f), HI(g), \
      LO(g), HI(h), LO(h)},                                                                      \
     prefix,                                                                                     \
     BC_ADDRESS_##kind},

static const range ranges_v4[] = {BC_ADDRESS_TABLE_V4(V4)};
static const range ranges_v6[] = {BC_ADDRESS_TABLE_V6(V6)};

/* Our own, because what counts as strict differs between C libraries. */
static int parse_v4(const char *text, unsigned char out[4])
{
    for (int part = 0; part < 4; part++) {
        unsigned value = 0;
        int digits = 0;
        for (; *text >= '0' && *text <= '9'; text++, digits++) {
            if (digits == 3 || (digits == 1 && value == 0)) return -1;
            value = value * 10 + (unsigned)(*text - '0');
        }
        if (digits == 0 || value > 255 || *text != (part < 3 ? '.' : '\0')) return -1;
        out[part] = (unsigned char)value;
        text++;
    }
    return 0;
}

int bc_address_parse(const char *text, bc_address *out)
{
    *out = (bc_address){.family = AF_INET};
    if (parse_v4(text, out->bytes) == 0) return 0;
    *out = (bc_address){.family = AF_INET6};
    if (strchr(text, ':') != NULL && strlen(text) < BC_ADDRESS_TEXT) {
        /* The IPv4 tail is held to the same rules as a whole address. */
        unsigned char tail[4];
        const char *last = strrchr(text, ':') + 1;
        int fits = strchr(last, '.') == NULL || parse_v4(last, tail) == 0;
        if (fits && inet_pton(AF_INET6, text, out->bytes) == 1) return 0;
    }
    *out = (bc_address){.family = AF_UNSPEC};
    return -1;
}

void bc_address_print(const bc_address *address, char out[BC_ADDRESS_TEXT])
{
    int known = address->family == AF_INET || address->family == AF_INET6;
    if (!known || inet_ntop(address->family, address->bytes, out, BC_ADDRESS_TEXT) == NULL) {
        out[0] = '\0';
    }
}

unsigned bc_address_bits(const bc_address *address)
{
    return address->family == AF_INET ? 32 : 128;
}

bool bc_address_equal(const bc_address *a, const bc_address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, bc_address_bits(a) / 8) == 0;
}

static bool begins_with(const unsigned char *bytes, const unsigned char *net, unsigned prefix)
{
    unsigned whole = prefix / 8, rest = prefix % 8;
    if (memcmp(bytes, net, whole) != 0) return false;
    return rest == 0 || (bytes[whole] ^ net[whole]) >> (8 - rest) == 0;
}

bool bc_address_in_range(const bc_address *address, const bc_address *net, unsigned prefix)
{
    if (address->family != net->family || prefix > bc_address_bits(address)) return false;
    return begins_with(address->bytes, net->bytes, prefix);
}

/* The kind of the longest prefix that holds the address. */
static bc_address_kind look_up(const unsigned char *bytes, const range *ranges, size_t count,
                               bc_address_kind otherwise)
{
    bc_address_kind kind = otherwise;
    int longest = -1;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].prefix <= longest) continue;
        if (!begins_with(bytes, ranges[i].net, ranges[i].prefix)) continue;
        kind = (bc_address_kind)ranges[i].kind;
        longest = ranges[i].prefix;
    }
    return kind;
}

static bc_address embedded_at(const bc_address *address, unsigned at, unsigned char flip)
{
    bc_address out = {.family = AF_INET};
    for (unsigned i = 0; i < 4; i++)
        out.bytes[i] = address->bytes[at + i] ^ flip;
    return out;
}

size_t bc_address_embedded(const bc_address *address, bc_address out[BC_ADDRESS_EMBEDDED_MAX])
{
    static const struct {
        unsigned char net[12];
        unsigned char prefix, at;
    } forms[] = {
        {{[10] = 0xff, [11] = 0xff}, 96, 12},                    /* mapped */
        {{[8] = 0xff, [9] = 0xff}, 96, 12},                      /* translated, RFC 2765 */
        {{[1] = 0x64, [2] = 0xff, [3] = 0x9b}, 96, 12},          /* NAT64, RFC 6052 */
        {{[1] = 0x64, [2] = 0xff, [3] = 0x9b, [5] = 1}, 48, 12}, /* NAT64, RFC 8215 */
        {{[0] = 0x20, [1] = 0x02}, 16, 2},                       /* 6to4, RFC 3056 */
    };
    static const unsigned char compatible[12], teredo[4] = {0x20, 0x01};
    static const unsigned char loopback[16] = {[15] = 1}, unspecified[16];
    const unsigned char *bytes = address->bytes;
    if (address->family != AF_INET6) return 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!begins_with(bytes, forms[i].net, forms[i].prefix)) continue;
        out[0] = embedded_at(address, forms[i].at, 0);
        return 1;
    }
    if (begins_with(bytes, teredo, 32)) {
        out[0] = embedded_at(address, 4, 0);
        out[1] = embedded_at(address, 12, 0xff);
        return 2;
    }
    int own = memcmp(bytes, loopback, 16) == 0 || memcmp(bytes, unspecified, 16) == 0;
    /* ISATAP, RFC 5214: in any network, by the interface's part. */
    int isatap = (bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
    if ((begins_with(bytes, compatible, 96) && !own) || isatap) {
        out[0] = embedded_at(address, 12, 0);
        return 1;
    }
    return 0;
}

void bc_address_unmap(bc_address *address)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (address->family == AF_INET6 && begins_with(address->bytes, mapped, 96)) {
        *address = embedded_at(address, 12, 0);
    }
}

static bc_address_kind kind_of_v4(const bc_address *address)
{
    return look_up(address->bytes, ranges_v4, sizeof ranges_v4 / sizeof *ranges_v4,
                   BC_ADDRESS_PUBLIC);
}

bc_address_kind bc_address_kind_of(const bc_address *address)
{
    if (address->family == AF_INET) return kind_of_v4(address);
    if (address->family != AF_INET6) return BC_ADDRESS_RESERVED;
    bc_address embedded[BC_ADDRESS_EMBEDDED_MAX];
    size_t count = bc_address_embedded(address, embedded);
    for (size_t i = 0; i < count; i++) {
        bc_address_kind kind = kind_of_v4(&embedded[i]);
        if (kind != BC_ADDRESS_PUBLIC) return kind;
    }
    return look_up(address->bytes, ranges_v6, sizeof ranges_v6 / sizeof *ranges_v6,
                   BC_ADDRESS_RESERVED);
}

bool bc_address_range_within(const bc_address *net, unsigned prefix, bc_address_kind kind)
{
    bool v4 = net->family == AF_INET;
    const range *ranges = v4 ? ranges_v4 : ranges_v6;
    size_t count = v4 ? sizeof ranges_v4 / sizeof *ranges_v4 : sizeof ranges_v6 / sizeof *ranges_v6;
    for (size_t i = 0; i < count; i++) {
        /* The row of length 0 is what is in no network. */
        if (ranges[i].kind != kind || ranges[i].prefix > prefix || ranges[i].prefix == 0) continue;
        if (begins_with(net->bytes, ranges[i].net, ranges[i].prefix)) return true;
    }
    return false;
}

const char *bc_address_kind_name(bc_address_kind kind)
{
    switch (kind) {
    case BC_ADDRESS_PUBLIC: return "public";
    case BC_ADDRESS_LOOPBACK: return "loopback";
    case BC_ADDRESS_PRIVATE: return "private";
    case BC_ADDRESS_LINK_LOCAL: return "link-local";
    case BC_ADDRESS_METADATA: return "metadata";
    case BC_ADDRESS_SHARED: return "shared";
    case BC_ADDRESS_MULTICAST: return "multicast";
    case BC_ADDRESS_UNSPECIFIED: return "unspecified";
    case BC_ADDRESS_RESERVED: return "reserved";
    }
    return "unknown";
}
