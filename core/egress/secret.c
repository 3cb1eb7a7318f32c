#include "secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/cleanup.h"
#include "base/options.h"
#include "egress/address.h"
#include "egress/request_head.h"
#include "egress/secret_head.h"
#include "egress/secret_memory.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_printable(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~') return false;
    }
    return true;
}

/* RFC 9110, 5.6.2 */
static bool is_token(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        if (!is_letter(text[i]) && !is_digit(text[i]) && strchr("!#$%&'*+-.^_`|~", text[i]) == NULL)
            return false;
    }
    return len > 0 && len <= BC_SECRET_MAX_NAME;
}

static int copy_text(char **to, const char *text, barchan_error *err)
{
    *to = strdup(text);
    return *to == NULL ? bc_error_nomem(err) : 0;
}

/* ---- the parts ---- */

static int read_name(bc_secret *secret, const char *name, barchan_error *err)
{
    size_t len = name == NULL ? 0 : strlen(name);
    bool good = len > 0 && len <= BC_SECRET_MAX_NAME && !is_digit(name[0]);
    for (size_t i = 0; good && i < len; i++)
        good = is_letter(name[i]) || is_digit(name[i]) || name[i] == '_';
    if (!good) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "name '%.80s': a variable's name of letters, digits and '_' is needed",
                            name == NULL ? "" : name);
    }
    return copy_text(&secret->name, name, err);
}

/* 1 to 65535, 0 when it is none. */
static unsigned read_port(const char *text)
{
    unsigned port = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 5 || text[0] == '0') return 0;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i])) return 0;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* host or host:port, nothing else */
static int read_host(bc_secret_host *host, const char *text, barchan_error *err)
{
    bc_address address;
    const char *colon = strchr(text, ':');
    size_t len = colon == NULL ? strlen(text) : (size_t)(colon - text);
    if (strchr(text, '*') != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "host '%.80s': a secret is for exact hosts, not for a wildcard", text);
    }
    host->port = colon == NULL ? 443 : read_port(colon + 1);
    if (host->port == 0 || host->port == 80 || bc_host_name_canonical(text, len, host->name) != 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "host '%.80s': write \"api.example.com\" or "
                            "\"api.example.com:8443\"; port 80 has no TLS",
                            text);
    }
    if (bc_address_parse(host->name, &address) == 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "host '%.80s': a name is needed, not an address",
                            text);
    }
    return 0;
}

static int count_list(const char *const *list, const char *what, size_t *count, barchan_error *err)
{
    *count = 0;
    while (list != NULL && list[*count] != NULL) {
        if (++*count > BC_SECRET_MAX_LIST) {
            return bc_error_set(err, BARCHAN_ELIMIT, "%s: at most %u", what, BC_SECRET_MAX_LIST);
        }
    }
    return 0;
}

static int read_hosts(bc_secret *secret, const char *const *hosts, barchan_error *err)
{
    size_t count;
    int rc = count_list(hosts, "hosts", &count, err);
    if (rc < 0) return rc;
    if (count == 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "hosts: a secret needs at least one host");
    }
    secret->hosts = calloc(count, sizeof *secret->hosts);
    if (secret->hosts == NULL) return bc_error_nomem(err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = read_host(&secret->hosts[i], hosts[i], err);
        secret->host_count++;
    }
    return rc;
}

/* Not those that say where a request ends or for whom it is, nor those that are never sent. */
static int read_header(bc_secret *secret, const char *header, barchan_error *err)
{
    static const char *const ours[] = {
        "host",          "content-length", "transfer-encoding", "upgrade", "content-encoding",
        "content-range", "expect",         "if-range",          "trailer", NULL};
    if (header == NULL) header = "Authorization";
    bool good = is_token(header) && !bc_secret_is_never_sent(header, strlen(header));
    for (size_t i = 0; good && ours[i] != NULL; i++)
        good = !bc_same_field(header, strlen(header), ours[i]);
    if (!good) {
        return bc_error_set(err, BARCHAN_EINVAL, "header '%.80s' cannot carry a secret", header);
    }
    return copy_text(&secret->header, header, err);
}

static int read_format(bc_secret *secret, const char *format, barchan_error *err)
{
    if (format == NULL) format = secret->user == NULL ? "Bearer {}" : "Basic {}";
    const char *hole = strstr(format, "{}");
    size_t len = strlen(format);
    if (hole == NULL || strstr(hole + 2, "{}") != NULL || len > BC_SECRET_MAX_TEXT ||
        !is_printable(format, len) || format[0] == ' ' || format[len - 1] == ' ') {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "format: one \"{}\" in a line of printable characters is needed, as in "
                            "\"Bearer {}\"");
    }
    secret->before = strndup(format, (size_t)(hole - format));
    secret->after = strdup(hole + 2);
    return secret->before == NULL || secret->after == NULL ? bc_error_nomem(err) : 0;
}

static int read_user(bc_secret *secret, const char *user, barchan_error *err)
{
    if (user == NULL) return 0;
    size_t len = strlen(user);
    if (len > BC_SECRET_MAX_TEXT || !is_printable(user, len) || strchr(user, ':') != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "user: printable characters without a colon are needed");
    }
    return copy_text(&secret->user, user, err);
}

static int read_words(char ***to, const char *const *list, const char *what,
                      bool (*is_good)(const char *), const char *shape, barchan_error *err)
{
    size_t count;
    int rc = count_list(list, what, &count, err);
    if (rc < 0 || list == NULL) return rc;
    if (count == 0) return bc_error_set(err, BARCHAN_EINVAL, "%s: the list is empty", what);
    *to = calloc(count + 1, sizeof **to);
    if (*to == NULL) return bc_error_nomem(err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (!is_good(list[i])) {
            return bc_error_set(err, BARCHAN_EINVAL, "%s: '%.80s' is none: %s", what, list[i],
                                shape);
        }
        rc = copy_text(&(*to)[i], list[i], err);
    }
    return rc;
}

static bool is_path(const char *text)
{
    size_t len = strlen(text);
    return text[0] == '/' && len <= BC_SECRET_MAX_TEXT && is_printable(text, len) &&
           strpbrk(text, "?# ") == NULL;
}

static bool is_method(const char *text)
{
    /* Case counts, and no client sends "get" for GET: it would never be used. */
    return is_token(text) && strlen(text) < 16 &&
           strpbrk(text, "abcdefghijklmnopqrstuvwxyz") == NULL;
}

/* ---- the value ---- */

static int check_value(const char *value, size_t len, barchan_error *err)
{
    if (value == NULL || len < BARCHAN_SECRET_MIN_BYTES || len > BARCHAN_SECRET_MAX_BYTES) {
        return bc_error_set(
            err, BARCHAN_EINVAL,
            "value: %zu bytes; a secret has from %d to %d: shorter ones could not be "
            "told from other text",
            value == NULL ? 0 : len, BARCHAN_SECRET_MIN_BYTES, BARCHAN_SECRET_MAX_BYTES);
    }
    if (!is_printable(value, len) || value[0] == ' ' || value[len - 1] == ' ') {
        return bc_error_set(
            err, BARCHAN_EINVAL,
            "value: it has a character that no header can carry (a line's end, say)");
    }
    return 0;
}

int bc_secret_set(bc_secret *secret, const char *value, size_t len, barchan_error *err)
{
    int rc = check_value(value, len, err);
    if (rc < 0) return rc;
    bc_secret_value *older = secret->older, *oldest = &older[BC_SECRET_OLDER - 1];
    if (secret->value.len == len && bc_secret_equal(secret->value.data, value, len)) return 1;
    char *copy = bc_secret_alloc(len);
    if (copy == NULL) return bc_error_nomem(err);
    memcpy(copy, value, len);
    bc_secret_free(oldest->data, oldest->len);
    memmove(older + 1, older, (BC_SECRET_OLDER - 1) * sizeof *older);
    older[0] = secret->value;
    secret->value = (bc_secret_value){copy, len};
    return 0;
}

static int make_placeholder(bc_secret *secret, barchan_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return bc_error_set(err, BARCHAN_EIO, "no random numbers");
    }
    char *to = secret->placeholder;
    memcpy(to, "barchan-secret-", 15);
    for (size_t i = 0; i < sizeof random; i++) {
        to[15 + 2 * i] = digits[random[i] >> 4];
        to[16 + 2 * i] = digits[random[i] & 15];
    }
    return 0;
}

/* ---- all of it ---- */

int bc_secret_read(bc_secret *secret, const barchan_secret *from, barchan_error *err)
{
    barchan_secret given;
    int rc = bc_options_copy(&given, sizeof given, from, err);
    if (rc == 0) rc = read_name(secret, given.name, err);
    if (rc < 0) return rc;
    rc = read_hosts(secret, given.hosts, err);
    if (rc == 0) rc = read_header(secret, given.header, err);
    if (rc == 0) rc = read_user(secret, given.user, err);
    if (rc == 0) rc = read_format(secret, given.format, err);
    if (rc == 0)
        rc = read_words(&secret->methods, given.methods, "methods", is_method,
                        "capitals as in \"GET\" are needed", err);
    if (rc == 0)
        rc = read_words(&secret->paths, given.paths, "paths", is_path,
                        "a path as in \"/repos\", without query, is needed", err);
    if (rc == 0 && given.ca_file != NULL) rc = copy_text(&secret->ca_file, given.ca_file, err);
    if (rc == 0 && given.on_guest_authorization > BARCHAN_GUEST_AUTHORIZATION_REFUSE) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "unknown on_guest_authorization");
    }
    secret->refuse = given.on_guest_authorization == BARCHAN_GUEST_AUTHORIZATION_REFUSE;
    if (rc == 0) rc = bc_secret_set(secret, given.value, given.value_len, err);
    if (rc == 0) rc = make_placeholder(secret, err);
    if (rc < 0) bc_error_context(err, "secret %s", secret->name);
    return rc;
}

static void free_words(char **list)
{
    for (char **word = list; word != NULL && *word != NULL; word++)
        free(*word);
    free(list);
}

void bc_secret_clear(bc_secret *secret)
{
    bc_secret_free(secret->value.data, secret->value.len);
    for (size_t i = 0; i < BC_SECRET_OLDER; i++)
        bc_secret_free(secret->older[i].data, secret->older[i].len);
    free_words(secret->methods);
    free_words(secret->paths);
    free(secret->hosts);
    free(secret->name);
    free(secret->header);
    free(secret->user);
    free(secret->ca_file);
    free(secret->before);
    free(secret->after);
    *secret = (bc_secret){.name = NULL};
}
