#include "host_name.h"

#include <string.h>
#include "address.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* By inet_aton's and WHATWG's rules a name whose last label is a number is an address. */
static bool is_number(const char *label, size_t len)
{
    bool (*digit)(char) = is_digit;
    if (len >= 2 && label[0] == '0' && label[1] == 'x') {
        digit = is_hex;
        label += 2;
        len -= 2;
    }
    for (size_t i = 0; i < len; i++)
        if (!digit(label[i])) return false;
    return true;
}

/* Checks the labels of a lower-case name without trailing dot. */
static bool is_name(const char *name, size_t len)
{
    size_t begin = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && name[i] != '.') {
            char c = name[i];
            if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_') return false;
            continue;
        }
        size_t label = i - begin;
        if (label == 0 || label > BC_HOST_LABEL_MAX) return false;
        if (name[begin] == '-' || name[i - 1] == '-') return false;
        if (i == len && is_number(name + begin, label)) return false;
        begin = i + 1;
    }
    return len > 0;
}

int bc_host_name_canonical(const char *text, size_t len, char out[BC_HOST_NAME_MAX + 1])
{
    bc_address address;
    out[0] = '\0';
    /* A dot at the end of a name that is as long as names get is the 254th byte. */
    bool dot = len > 0 && text[len - 1] == '.';
    size_t kept = len - (dot ? 1 : 0);
    if (kept == 0 || kept > BC_HOST_NAME_MAX || memchr(text, '\0', len) != NULL) return -1;
    for (size_t i = 0; i < kept; i++) {
        char c = text[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[kept] = '\0';
    if (is_name(out, kept)) return 0;
    if (!dot && bc_address_parse(out, &address) == 0) {
        bc_address_print(&address, out);
        return 0;
    }
    out[0] = '\0';
    return -1;
}

bool bc_host_name_below(const char *host, const char *apex)
{
    size_t host_len = strlen(host), apex_len = strlen(apex);
    if (apex_len == 0 || host_len <= apex_len + 1) return false;
    const char *tail = host + host_len - apex_len;
    return tail[-1] == '.' && memcmp(tail, apex, apex_len) == 0;
}
