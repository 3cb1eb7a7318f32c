#include "client_hello.h"

#include <stdint.h>
#include <string.h>
#include "address.h"
#include "host_name.h"

enum { RECORD_HEADER = 5, RECORD_HANDSHAKE = 22, RECORD_MAX = 1 << 14 };
enum { MESSAGE_HEADER = 4, MESSAGE_CLIENT_HELLO = 1 };
enum { EXT_SERVER_NAME = 0, EXT_ALPN = 16, EXT_EARLY_DATA = 42 };

/* What is left of a message or of a part of it. Reading beyond its end makes it `bad`. */
typedef struct span {
    const unsigned char *data;
    size_t len;
    bool bad;
} span;

static const unsigned char *take(span *from, size_t len)
{
    const unsigned char *data = from->data;
    if (from->bad || len > from->len) {
        from->bad = true;
        return NULL;
    }
    from->data += len;
    from->len -= len;
    return data;
}

/* A number of one or two bytes. */
static size_t take_number(span *from, size_t width)
{
    const unsigned char *at = take(from, width);
    if (at == NULL) return 0;
    return width == 1 ? at[0] : (size_t)at[0] << 8 | at[1];
}

/* A part that begins with its own length. */
static span take_part(span *from, size_t width)
{
    size_t len = take_number(from, width);
    const unsigned char *data = take(from, len);
    return (span){.data = data, .len = data == NULL ? 0 : len, .bad = data == NULL};
}

static bool is_version(const unsigned char *at)
{
    return at[0] == 3 && at[1] >= 1 && at[1] <= 3;
}

/* RFC 6066, 3: one name, of type host_name, that is no address and has no trailing dot. */
static bool read_server_name(span extension, bc_client_hello *out)
{
    bc_address address;
    span list = take_part(&extension, 2);
    size_t type = take_number(&list, 1);
    span name = take_part(&list, 2);
    if (extension.bad || list.bad || name.bad) return false;
    if (extension.len > 0 || list.len > 0 || type != 0 || name.len == 0) return false;
    const char *text = (const char *)name.data;
    if (text[name.len - 1] == '.') return false;
    if (bc_host_name_canonical(text, name.len, out->server_name) != 0) return false;
    return bc_address_parse(out->server_name, &address) != 0;
}

static bool is_text(span name, const char *text)
{
    return name.len == strlen(text) && memcmp(name.data, text, name.len) == 0;
}

static bool read_alpn(span extension, bc_client_hello *out)
{
    span list = take_part(&extension, 2);
    if (extension.bad || list.bad || extension.len > 0 || list.len == 0) return false;
    out->alpn = true;
    while (list.len > 0) {
        span name = take_part(&list, 1);
        if (name.bad || name.len == 0) return false;
        if (is_text(name, "h2")) out->alpn_h2 = true;
        if (is_text(name, "http/1.1") || is_text(name, "http/1.0")) out->alpn_http1 = true;
    }
    return true;
}

/* Encrypted names: ECH (RFC 9849) with its drafts, and what it grew out of. */
static bool hides_name(size_t type)
{
    return (type >= 0xfe02 && type <= 0xfe0d) || type == 0xffce || type == 0xfd00;
}

static bool read_extensions(span extensions, bc_client_hello *out)
{
    unsigned char seen[65536 / 8] = {0};
    while (extensions.len > 0) {
        size_t type = take_number(&extensions, 2);
        span extension = take_part(&extensions, 2);
        if (extensions.bad || extension.bad) return false;
        /* RFC 8446, 4.2: each at most once. Of two, who knows which one counts. */
        if (seen[type / 8] & 1u << type % 8) return false;
        seen[type / 8] |= (unsigned char)(1u << type % 8);
        if (type == EXT_SERVER_NAME && !read_server_name(extension, out)) return false;
        if (type == EXT_ALPN && !read_alpn(extension, out)) return false;
        if (type == EXT_EARLY_DATA) out->early_data = true;
        if (hides_name(type)) out->encrypted = true;
    }
    return true;
}

/* `message` is the whole ClientHello without its header. */
static bool read_message(span message, bc_client_hello *out)
{
    const unsigned char *version = take(&message, 2);
    if (version == NULL || !is_version(version)) return false;
    take(&message, 32);
    span session = take_part(&message, 1);
    span ciphers = take_part(&message, 2);
    span compressions = take_part(&message, 1);
    if (message.bad || session.bad || ciphers.bad || compressions.bad) return false;
    if (session.len > 32 || ciphers.len < 2 || ciphers.len % 2 != 0) return false;
    if (compressions.len == 0 || memchr(compressions.data, 0, compressions.len) == NULL) {
        return false;
    }
    if (message.len == 0) return true;
    span extensions = take_part(&message, 2);
    return !extensions.bad && message.len == 0 && read_extensions(extensions, out);
}

typedef struct gathered {
    unsigned char data[BC_CLIENT_HELLO_MAX];
    size_t len;
    size_t total; /* with its header; 0: not known yet */
} gathered;

/* The message's own header, as soon as it is there. */
static bool check_message_header(gathered *message)
{
    if (message->len > 0 && message->data[0] != MESSAGE_CLIENT_HELLO) return false;
    if (message->len < MESSAGE_HEADER) return true;
    const unsigned char *at = message->data;
    size_t body = (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
    message->total = MESSAGE_HEADER + body;
    return message->total <= BC_CLIENT_HELLO_MAX;
}

static bool check_record_header(const unsigned char *at, size_t len)
{
    if (len > 0 && at[0] != RECORD_HANDSHAKE) return false;
    if (len > 1 && at[1] != 3) return false;
    if (len > 2 && !is_version(at + 1)) return false;
    if (len < RECORD_HEADER) return true;
    size_t body = (size_t)at[3] << 8 | at[4];
    return body > 0 && body <= RECORD_MAX;
}

/* Joins the message from its records. DONE: it is whole. */
static bc_sniff gather(const unsigned char *data, size_t len, gathered *message)
{
    size_t at = 0;
    while (message->total == 0 || message->len < message->total) {
        size_t left = len - at;
        if (!check_record_header(data + at, left)) return BC_SNIFF_BAD;
        if (left < RECORD_HEADER) return BC_SNIFF_MORE;
        size_t body = (size_t)data[at + 3] << 8 | data[at + 4];
        size_t have = left - RECORD_HEADER < body ? left - RECORD_HEADER : body;
        if (have > sizeof message->data - message->len) return BC_SNIFF_BAD;
        size_t before = message->len;
        memcpy(message->data + before, data + at + RECORD_HEADER, have);
        message->len += have;
        if (message->total == 0 && !check_message_header(message)) return BC_SNIFF_BAD;
        /* Nothing may follow it in its record (RFC 8446, 5.1). */
        if (message->total > 0 && before + body > message->total) return BC_SNIFF_BAD;
        if (have < body) return BC_SNIFF_MORE;
        at += RECORD_HEADER + body;
    }
    return BC_SNIFF_DONE;
}

bc_sniff bc_client_hello_read(const unsigned char *data, size_t len, bc_client_hello *out)
{
    gathered message;
    message.len = message.total = 0;
    *out = (bc_client_hello){.encrypted = false};
    bool all = len < BC_CLIENT_HELLO_MAX_BYTES;
    bc_sniff sniff = gather(data, all ? len : BC_CLIENT_HELLO_MAX_BYTES, &message);
    if (sniff == BC_SNIFF_MORE && !all) return BC_SNIFF_BAD;
    if (sniff != BC_SNIFF_DONE) return sniff;
    span body = {.data = message.data + MESSAGE_HEADER, .len = message.total - MESSAGE_HEADER};
    if (read_message(body, out)) return BC_SNIFF_DONE;
    *out = (bc_client_hello){.encrypted = false};
    return BC_SNIFF_BAD;
}

bc_sniff bc_looks_like_client_hello(const unsigned char *data, size_t len)
{
    size_t head = len < RECORD_HEADER ? len : RECORD_HEADER;
    if (!check_record_header(data, head)) return BC_SNIFF_BAD;
    if (len <= RECORD_HEADER) return BC_SNIFF_MORE;
    return data[RECORD_HEADER] == MESSAGE_CLIENT_HELLO ? BC_SNIFF_DONE : BC_SNIFF_BAD;
}
