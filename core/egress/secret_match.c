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

/* What servers read in more ways than one is below nothing. */
static bool is_plain_path(const char *path, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (path[i] == '\\' || path[i] == ';') return false;
        if (path[i] == '/' && i + 1 < len && path[i + 1] == '/') return false;
        if (path[i] == '/' && i + 1 < len && path[i + 1] == '.') {
            size_t end = i + 2 < len && path[i + 2] == '.' ? i + 3 : i + 2;
            if (end == len || path[end] == '/') return false;
        }
        if (path[i] != '%') continue;
        if (i + 2 >= len) return false;
        char high = path[i + 1], low = lower(path[i + 2]);
        if (high == '2' && (low == 'e' || low == 'f' || low == '5')) return false;
        if (high == '5' && low == 'c') return false;
        if (high == '3' && low == 'b') return false;
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
    while (end < len && target[end] != '?' && target[end] != '#')
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
