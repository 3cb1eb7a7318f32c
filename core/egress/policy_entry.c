#include "policy_entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "base/error.h"

/* The longest entry with room for what a person adds by mistake, a scheme or a path. */
#define MAX_TEXT 512

static int malformed(char *why, const char *format, ...) BC_PRINTF(2, 3);

static int malformed(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, BC_POLICY_ENTRY_WHY, format, args);
    va_end(args);
    return -1;
}

/* 1 to 65535 without leading zeros, 0 when it is none. */
static unsigned read_number(const char *text, unsigned max)
{
    unsigned value = 0;
    if (text[0] < '1' || text[0] > '9' || strlen(text) > 5) return 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (unsigned)(*text - '0');
    return *text == '\0' && value <= max ? value : 0;
}

static int read_port(const char *text, bool allow, bc_policy_entry *out, char *why)
{
    if (strcmp(text, "*") == 0) {
        if (!allow) return 0;
        return malformed(why, "an allow entry names its port; write one entry for each");
    }
    if (strpbrk(text, ",-") != NULL) {
        return malformed(why, "an entry has one port; write one entry for each");
    }
    out->port = read_number(text, 65535);
    if (out->port == 0) return malformed(why, "a port is a number from 1 to 65535");
    return 0;
}

static bool has_host_bits(const bc_address *address, unsigned prefix, bc_address *net)
{
    *net = *address;
    for (unsigned bit = prefix; bit < bc_address_bits(address); bit++)
        net->bytes[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
    return !bc_address_equal(address, net);
}

/* A range that lies in ::ffff:0:0/96 is one of IPv4 addresses. */
static void unmap_range(bc_policy_entry *out)
{
    if (out->net.family != AF_INET6 || out->prefix < 96) return;
    bc_address_unmap(&out->net);
    if (out->net.family == AF_INET) out->prefix -= 96;
}

/* `text` is an address with or without a prefix length, no port. */
static int read_range(char *text, bool allow, bc_policy_entry *out, char *why)
{
    char *slash = strchr(text, '/');
    if (slash != NULL) *slash++ = '\0';
    out->kind = BC_POLICY_RANGE;
    if (bc_address_parse(text, &out->net) != 0) {
        return malformed(why, strchr(text, ':') != NULL
                                  ? "it is no IPv6 address; one with a port stands in brackets, "
                                    "as in '[fd00::1]:443'"
                                  : "it is no IPv4 address of four decimal numbers");
    }
    out->prefix = bc_address_bits(&out->net);
    if (slash != NULL) {
        unsigned prefix = read_number(slash, out->prefix);
        if (prefix == 0 && strcmp(slash, "0") != 0) {
            return malformed(why, "the length of a range is a number from 0 to %u", out->prefix);
        }
        out->prefix = prefix;
    }
    bc_address net;
    if (has_host_bits(&out->net, out->prefix, &net)) {
        bc_address_print(&net, text);
        return malformed(why, "the range's address has bits behind its length; write '%s/%u'", text,
                         out->prefix);
    }
    unmap_range(out);
    if (out->prefix == 0 && allow) {
        return malformed(why, "it is every address; network = \"open\" allows every public host");
    }
    return 0;
}

static int read_name(const char *text, bool allow, bc_policy_entry *out, char *why)
{
    bool below = strncmp(text, "*.", 2) == 0;
    const char *name = below ? text + 2 : text;
    bc_address address;
    if (strchr(name, '*') != NULL) {
        return malformed(why, "'*' stands only for the names below a host, as in '*.example.org'");
    }
    out->kind = below ? BC_POLICY_BELOW : BC_POLICY_NAME;
    if (bc_host_name_canonical(name, strlen(name), out->host) != 0) {
        return malformed(why, "it is no host name, and no address in its usual spelling");
    }
    if (bc_address_parse(out->host, &address) == 0) {
        return malformed(why, "an address has no names below it");
    }
    if (below && allow && strchr(out->host, '.') == NULL) {
        return malformed(why, "'*.' needs a host of two labels or more; nobody owns all of '%s'",
                         out->host);
    }
    return 0;
}

/* What a person who wrote a URL meant. */
static int is_url(const char *text, const char *host, char *why)
{
    const char *at = strpbrk(host, "/?#");
    size_t len = at == NULL ? strlen(host) : (size_t)(at - host);
    const char *what = host != text ? "a URL" : "a path";
    const char *user = memchr(host, '@', len);
    if (user != NULL) {
        len -= (size_t)(user + 1 - host);
        host = user + 1;
    }
    return malformed(why, "an entry is a host name, not %s; write '%.*s'", what,
                     (int)(len < 200 ? len : 200), host);
}

/* Mistakes whose cure can be told. */
static int check_text(const char *text, char *why)
{
    size_t len = strnlen(text, MAX_TEXT + 1);
    if (len == 0) return malformed(why, "an entry is a host name or an address");
    if (len > MAX_TEXT) return malformed(why, "it is longer than %d bytes", MAX_TEXT);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) return malformed(why, "international names are written as xn--");
        if (c <= ' ' || c == 0x7f) return malformed(why, "it has a space or control character");
    }
    if (strcmp(text, "*") == 0) {
        return malformed(why, "network = \"open\" allows every public host");
    }
    const char *scheme = strstr(text, "://");
    if (scheme != NULL) return is_url(text, scheme + 3, why);
    if (strchr(text, '@') != NULL) return malformed(why, "an entry has no user name");
    return 0;
}

static int read_bracketed(char *text, bool allow, bc_policy_entry *out, char *why)
{
    char *end = strchr(text, ']'), *colon = strchr(text, ':');
    bool v6 = end != NULL && colon != NULL && colon < end;
    if (!v6 || (end[1] != '\0' && end[1] != ':')) {
        return malformed(why, "brackets hold an IPv6 address, as in '[fd00::1]:443'");
    }
    *end = '\0';
    if (end[1] == ':' && read_port(end + 2, allow, out, why) != 0) return -1;
    return read_range(text + 1, allow, out, why);
}

int bc_policy_entry_read(const char *text, bool allow, bc_policy_entry *out,
                         char why[BC_POLICY_ENTRY_WHY])
{
    char copy[MAX_TEXT + 1];
    *out = (bc_policy_entry){.every_port = !allow};
    why[0] = '\0';
    if (check_text(text, why) != 0) return -1;
    memcpy(copy, text, strlen(text) + 1);
    if (copy[0] == '[') return read_bracketed(copy, allow, out, why);
    char *colon = strchr(copy, ':');
    if (colon != NULL && strchr(colon + 1, ':') != NULL) return read_range(copy, allow, out, why);
    if (colon != NULL) {
        *colon = '\0';
        if (strchr(colon + 1, '/') != NULL) return is_url(text, text, why);
        if (read_port(colon + 1, allow, out, why) != 0) return -1;
    }
    /* Four numbers, or what looks like it was meant to be: a range has a slash behind them. */
    bool numbers = strspn(copy, "0123456789./") == strlen(copy) && copy[0] >= '0' && copy[0] <= '9';
    if (numbers) return read_range(copy, allow, out, why);
    if (strpbrk(copy, "/?#") != NULL) return is_url(text, text, why);
    return read_name(copy, allow, out, why);
}

void bc_policy_entry_print(const bc_policy_entry *entry, char out[BC_POLICY_ENTRY_TEXT])
{
    char port[8] = "", address[BC_ADDRESS_TEXT], prefix[8] = "";
    if (entry->port != 0) snprintf(port, sizeof port, ":%u", entry->port & 0xffff);
    if (entry->kind != BC_POLICY_RANGE) {
        snprintf(out, BC_POLICY_ENTRY_TEXT, "%s%s%s", entry->kind == BC_POLICY_BELOW ? "*." : "",
                 entry->host, port);
        return;
    }
    bc_address_print(&entry->net, address);
    if (entry->prefix != bc_address_bits(&entry->net)) {
        snprintf(prefix, sizeof prefix, "/%u", entry->prefix & 0xff);
    }
    bool brackets = entry->net.family == AF_INET6 && entry->port != 0;
    snprintf(out, BC_POLICY_ENTRY_TEXT, "%s%s%s%s%s", brackets ? "[" : "", address, prefix,
             brackets ? "]" : "", port);
}

bool bc_policy_entry_has_port(const bc_policy_entry *entry, unsigned port)
{
    if (entry->port != 0) return entry->port == port;
    return entry->every_port || port == 80 || port == 443;
}

bool bc_policy_entry_has_name(const bc_policy_entry *entry, const char *canonical_host)
{
    if (entry->kind == BC_POLICY_NAME) return strcmp(canonical_host, entry->host) == 0;
    return entry->kind == BC_POLICY_BELOW && bc_host_name_below(canonical_host, entry->host);
}

bool bc_policy_entry_has_address(const bc_policy_entry *entry, const bc_address *address)
{
    return entry->kind == BC_POLICY_RANGE &&
           bc_address_in_range(address, &entry->net, entry->prefix);
}

bool bc_policy_entry_names(const bc_policy_entry *entry, const bc_address *address)
{
    bc_address_kind kind = bc_address_kind_of(address);
    if (kind == BC_ADDRESS_PUBLIC || entry->prefix == bc_address_bits(address)) return true;
    /* The networks of metadata are single addresses, so no range lies within one. */
    return bc_address_range_within(&entry->net, entry->prefix, kind);
}
