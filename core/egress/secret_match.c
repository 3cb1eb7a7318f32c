/* What of a request must fit a secret. */
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "egress/base64.h"
#include "egress/secret.h"
#include "egress/secret_memory.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool bc_same_word(const char *a, size_t a_len, const char *b)
{
    if (strlen(b) != a_len) return false;
    for (size_t i = 0; i < a_len; i++) {
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

bool bc_secret_is_bound(const bc_secret *secret, const char *host, unsigned port)
{
    for (size_t i = 0; i < secret->host_count; i++) {
        if (secret->hosts[i].port == port && strcmp(secret->hosts[i].name, host) == 0) return true;
    }
    return false;
}

bool bc_secret_has_method(const bc_secret *secret, const char *method)
{
    char **list = secret->methods;
    if (list == NULL) return true;
    while (*list != NULL && strcmp(*list, method) != 0)
        list++;
    return *list != NULL;
}

static int hex_digit(char c)
{
    c = lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Only of what is visible ASCII, once decoded, and divides or changes no path: servers cut a path
 * at a NUL, trim spaces, decode twice, or take a long form of a dot in UTF-8 for one. */
static bool is_plain_escape(const char *text, size_t len)
{
    if (len < 3) return false;
    int high = hex_digit(text[1]), low = hex_digit(text[2]);
    if (high < 0 || low < 0) return false;
    int c = high << 4 | low;
    return c > ' ' && c < 0x7f && strchr("%./;\\", c) == NULL;
}

/* What follows a slash: not another, not "." alone, and not "..", whatever stands behind it. */
static bool is_plain_segment(const char *text, size_t len)
{
    if (len == 0) return true;
    if (text[0] == '/') return false;
    if (text[0] != '.') return true;
    return len > 1 && text[1] != '/' && text[1] != '.';
}

/* What servers read in more ways than one is below nothing. */
static bool is_plain_path(const char *path, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr("\\;#", path[i]) != NULL) return false;
        if (path[i] == '/' && !is_plain_segment(path + i + 1, len - i - 1)) return false;
        if (path[i] == '%' && !is_plain_escape(path + i, len - i)) return false;
    }
    return true;
}

static bool is_below(const char *path, size_t len, const char *entry)
{
    size_t entry_len = strlen(entry);
    if (len < entry_len || memcmp(path, entry, entry_len) != 0) return false;
    return len == entry_len || entry[entry_len - 1] == '/' || path[entry_len] == '/';
}

bool bc_secret_has_path(const bc_secret *secret, const char *target, size_t len)
{
    if (secret->paths == NULL) return true;
    size_t end = 0;
    while (end < len && target[end] != '?')
        end++;
    if (end == 0 || target[0] != '/' || !is_plain_path(target, end)) return false;
    for (char **entry = secret->paths; *entry != NULL; entry++) {
        if (is_below(target, end, *entry)) return true;
    }
    return false;
}

/* user:placeholder in base64 */
static bool is_basic(const bc_secret *secret, const char *text, size_t len)
{
    if (len > BC_BASE64_LENGTH(BC_SECRET_MAX_TEXT + 1 + BC_PLACEHOLDER_LENGTH)) return false;
    char plain[BC_BASE64_LENGTH(BC_SECRET_MAX_TEXT + 1 + BC_PLACEHOLDER_LENGTH)];
    long plain_len = bc_base64_decode(text, len, plain);
    if (plain_len < 0) return false;
    const char *colon = memchr(plain, ':', (size_t)plain_len);
    if (colon == NULL) return false;
    size_t rest = (size_t)(plain + plain_len - (colon + 1));
    return rest == BC_PLACEHOLDER_LENGTH && memcmp(colon + 1, secret->placeholder, rest) == 0;
}

bool bc_secret_is_asked_for(const bc_secret *secret, const char *value, size_t len)
{
    size_t before = strlen(secret->before), after = strlen(secret->after);
    if (len < before + after || !bc_same_word(value, before, secret->before)) return false;
    if (!bc_same_word(value + len - after, after, secret->after)) return false;
    value += before;
    len -= before + after;
    if (secret->user != NULL) return is_basic(secret, value, len);
    return len == BC_PLACEHOLDER_LENGTH && memcmp(value, secret->placeholder, len) == 0;
}

static int write_basic(const bc_secret *secret, bc_buf *out)
{
    size_t user = strlen(secret->user), len = user + 1 + secret->value.len;
    char *plain = bc_secret_alloc(len);
    char *to = bc_buf_reserve(out, BC_BASE64_LENGTH(len));
    if (plain != NULL && to != NULL) {
        memcpy(plain, secret->user, user);
        plain[user] = ':';
        memcpy(plain + user + 1, secret->value.data, secret->value.len);
        bc_buf_commit(out, bc_base64_encode(plain, len, to));
    }
    int rc = plain == NULL || to == NULL ? BARCHAN_ENOMEM : 0;
    bc_secret_free(plain, len);
    return rc;
}

int bc_secret_write(const bc_secret *secret, bc_buf *out)
{
    int rc = bc_buf_append_string(out, secret->before);
    if (rc == 0 && secret->user != NULL) rc = write_basic(secret, out);
    if (rc == 0 && secret->user == NULL)
        rc = bc_buf_append(out, secret->value.data, secret->value.len);
    if (rc == 0) rc = bc_buf_append_string(out, secret->after);
    return rc;
}

bool bc_secret_is_in(const bc_secret *secret, const char *text, size_t len)
{
    return memmem(text, len, secret->placeholder, BC_PLACEHOLDER_LENGTH) != NULL;
}
