#include "secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/limits.h"
#include "base/utf8.h"

static void wipe(char *text)
{
    explicit_bzero(text, strlen(text));
    free(text);
}

void bc_secrets_clear(bc_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++)
        wipe(secrets->texts[i]);
    free(secrets->texts);
    *secrets = (bc_secrets){0};
}

/* Longest first: of a key with its scheme, all must go. */
static int add(bc_secrets *secrets, const char *text, size_t len)
{
    if (len < BC_MODEL_MIN_SECRET_BYTES) return 0;
    char *copy = strndup(text, len);
    char **texts = realloc(secrets->texts, (secrets->count + 1) * sizeof *texts);
    if (texts != NULL) secrets->texts = texts;
    if (texts == NULL || copy == NULL) {
        free(copy);
        return BARCHAN_ENOMEM;
    }
    size_t at = secrets->count++;
    for (; at > 0 && strlen(texts[at - 1]) < len; at--)
        texts[at] = texts[at - 1];
    texts[at] = copy;
    return 0;
}

/* As it may stand in JSON or in an address. */
static int add_form(bc_secrets *secrets, const char *text, size_t len, int as_json)
{
    char form[1024];
    size_t at = 0;
    int differs = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        int is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       strchr("-._~", c) != NULL;
        if (at + 4 > sizeof form) return 0; /* no header would take it */
        if (as_json && strchr("/\"\\", c) != NULL) {
            form[at++] = '\\';
            form[at++] = (char)c;
            differs = 1;
        } else if (!as_json && !is_plain) {
            at += (size_t)snprintf(form + at, sizeof form - at, "%%%02X", c);
            differs = 1;
        } else {
            form[at++] = (char)c;
        }
    }
    return differs ? add(secrets, form, at) : 0;
}

static int add_forms(bc_secrets *secrets, const char *text, size_t len)
{
    int rc = len < BC_MODEL_MIN_SECRET_BYTES ? 0 : add_form(secrets, text, len, 1);
    if (rc == 0 && len >= BC_MODEL_MIN_SECRET_BYTES) rc = add_form(secrets, text, len, 0);
    return rc < 0 ? rc : add(secrets, text, len);
}

/* The whole, what follows a scheme ("Bearer …"), and of lists ("a=b; c=d") each element's value. */
static int add_credential(bc_secrets *secrets, const char *text)
{
    text += strspn(text, " \t");
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    int rc = add_forms(secrets, text, len);
    size_t scheme = strcspn(text, " \t");
    if (scheme >= len) scheme = 0;
    size_t at = scheme + strspn(text + scheme, " \t");
    if (rc == 0 && at > 0) rc = add_forms(secrets, text + at, len - at);
    while (rc == 0 && at < len) {
        size_t end = strcspn(text + at, " \t,;=\"");
        if (at + end > len) end = len - at;
        if (end < len) rc = add_forms(secrets, text + at, end);
        at += end + 1;
    }
    return rc;
}

static int carries_credentials(const char *header, size_t name_len)
{
    static const char *const words[] = {"auth", "key", "token", "secret", "cookie", "password"};
    for (size_t at = 0; at < name_len; at++) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            size_t len = strlen(words[i]);
            if (at + len <= name_len && strncasecmp(header + at, words[i], len) == 0) return 1;
        }
    }
    return 0;
}

int bc_secrets_init(bc_secrets *secrets, const char *key, const char *const *headers,
                    barchan_error *err)
{
    *secrets = (bc_secrets){0};
    int rc = key != NULL ? add_credential(secrets, key) : 0;
    for (; rc == 0 && headers != NULL && *headers != NULL; headers++) {
        size_t name_len = strcspn(*headers, ":");
        if ((*headers)[name_len] != ':' || !carries_credentials(*headers, name_len)) continue;
        rc = add_credential(secrets, *headers + name_len + 1);
    }
    if (rc == 0) return 0;
    bc_secrets_clear(secrets);
    return bc_error_nomem(err);
}

/* The length of the secret that begins here; 0 when none does. */
static size_t begins(const bc_secrets *secrets, const char *text, size_t len)
{
    for (size_t i = 0; secrets != NULL && i < secrets->count; i++) {
        size_t secret_len = strlen(secrets->texts[i]);
        if (secret_len <= len && memcmp(text, secrets->texts[i], secret_len) == 0) {
            return secret_len;
        }
    }
    return 0;
}

void bc_secret_line(const bc_secrets *secrets, char *to, size_t size, const char *text, size_t len)
{
    size_t at = 0;
    for (size_t i = 0; i < len && at + 1 < size;) {
        size_t hidden = begins(secrets, text + i, len - i);
        for (int stars = 0; hidden > 0 && stars < 3 && at + 1 < size; stars++)
            to[at++] = '*';
        unsigned char c = (unsigned char)text[i];
        if (hidden == 0) to[at++] = c < 0x20 || c == 0x7F ? ' ' : text[i];
        i += hidden > 0 ? hidden : 1;
    }
    to[bc_utf8_whole(to, at)] = '\0';
}

void bc_secret_error(const bc_secrets *secrets, barchan_error *err)
{
    barchan_error from = *err;
    bc_secret_line(secrets, err->message, sizeof err->message, from.message, strlen(from.message));
    bc_secret_line(secrets, err->provider_code, sizeof err->provider_code, from.provider_code,
                   strlen(from.provider_code));
    bc_secret_line(secrets, err->request_id, sizeof err->request_id, from.request_id,
                   strlen(from.request_id));
}

int bc_secret_hide(const bc_secrets *secrets, bc_buf *to, const char *text, size_t len)
{
    int found = 0, rc = 0;
    size_t from = 0; /* what stands before it is written */
    for (size_t i = 0; i < len && rc == 0;) {
        size_t hidden = begins(secrets, text + i, len - i);
        if (hidden > 0) {
            found = 1;
            rc = bc_buf_append(to, text + from, i - from);
            if (rc == 0) rc = bc_buf_append_string(to, "***");
            from = i + hidden;
        }
        i += hidden > 0 ? hidden : 1;
    }
    if (rc == 0 && found) rc = bc_buf_append(to, text + from, len - from);
    return rc < 0 ? rc : found;
}
