/* Secrets as a sandbox's commands see them: placeholders, and whom to trust. What becomes of their
 * requests is in core/egress. */
#include <barchan/secret.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "internal.h"

/* On the sandbox's own /run, in every template. Its user may change them: whom its programs trust
 * is for them to say. */
#define CA_FILE "/run/barchan/ca.pem"
#define BUNDLE_FILE "/run/barchan/ca-bundle.pem"
#define WGET_FILE "/run/barchan/wgetrc"

static const char *const trust[] = {
    "SSL_CERT_FILE=" BUNDLE_FILE,      /* OpenSSL, Python, Go, Ruby, httpx */
    "CURL_CA_BUNDLE=" BUNDLE_FILE,     /* curl */
    "REQUESTS_CA_BUNDLE=" BUNDLE_FILE, /* Python's requests, in certifi's stead */
    "PIP_CERT=" BUNDLE_FILE,           "GIT_SSL_CAINFO=" BUNDLE_FILE,
    "AWS_CA_BUNDLE=" BUNDLE_FILE,      "CARGO_HTTP_CAINFO=" BUNDLE_FILE,
    "NODE_EXTRA_CA_CERTS=" CA_FILE, /* adds to its own */
    "npm_config_cafile=" BUNDLE_FILE,  "WGETRC=" WGET_FILE,
};
#define TRUST (sizeof trust / sizeof *trust)

/* ---- the environment ---- */

static const char *find(char *const *env, const char *name, size_t len)
{
    for (; *env != NULL; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') return *env;
    }
    return NULL;
}

static int add(char **env, size_t *count, const char *name, const char *value)
{
    size_t len = strlen(name) + strlen(value) + 2;
    char *pair = malloc(len);
    if (pair == NULL) return BARCHAN_ENOMEM;
    snprintf(pair, len, "%s=%s", name, value);
    env[(*count)++] = pair;
    env[*count] = NULL;
    return 0;
}

/* Programs would take the placeholder for what they look for there. */
static int is_taken(const char *name)
{
    static const char *const others[] = {"PATH",    "HOME",  "LANG", "USER", "TMPDIR",
                                         "BARCHAN", "PWD",   "IFS",  "ENV",  "BASH_ENV",
                                         "TERM",    "SHELL", NULL};
    int taken = strncmp(name, "LD_", 3) == 0 || strncmp(name, "LC_", 3) == 0;
    for (size_t i = 0; !taken && others[i] != NULL; i++)
        taken = strcmp(name, others[i]) == 0;
    for (size_t i = 0; !taken && i < TRUST; i++)
        taken = strncmp(trust[i], name, strlen(name)) == 0 && trust[i][strlen(name)] == '=';
    return taken;
}

static int fill(const bc_secrets *secrets, char **env, size_t count, barchan_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < secrets->count; i++) {
        const bc_secret *secret = &secrets->list[i];
        if (find(env, secret->name, strlen(secret->name)) != NULL) {
            return bc_error_set(err, BARCHAN_EINVAL, "secret %s: env has a variable of this name",
                                secret->name);
        }
        if (is_taken(secret->name)) {
            return bc_error_set(err, BARCHAN_EINVAL,
                                "secret %s: programs take this variable for something else; the "
                                "name that yours reads the key from is needed",
                                secret->name);
        }
        rc = add(env, &count, secret->name, secret->placeholder);
    }
    for (size_t i = 0; rc == 0 && i < TRUST; i++) {
        size_t name = strcspn(trust[i], "=");
        if (find(env, trust[i], name) != NULL) continue; /* the profile knows better */
        env[count] = strdup(trust[i]);
        if (env[count] == NULL) rc = BARCHAN_ENOMEM;
        if (rc == 0) env[++count] = NULL;
    }
    return rc < 0 ? bc_error_nomem(err) : 0;
}

int bc_secrets_env(barchan_sandbox *sbx, barchan_error *err)
{
    const bc_secrets *secrets = bc_egress_secrets(sbx->egress);
    size_t count = 0;
    if (secrets == NULL) return 0;
    while (sbx->env[count] != NULL)
        count++;
    char **env = realloc(sbx->env, (count + secrets->count + TRUST + 1) * sizeof *env);
    if (env == NULL) return bc_error_nomem(err);
    sbx->env = env;
    return fill(secrets, env, count, err);
}

/* ---- trust ---- */

static void finish(barchan_sandbox *sbx, const barchan_error *err)
{
    if (!sbx->installing) return; /* it has ended meanwhile */
    if (err == NULL) {
        sbx->installing = 0;
        bc_created_succeed(sbx);
        return;
    }
    barchan_error why = *err;
    bc_error_context(&why, "certificates for secrets");
    bc_sandbox_end(sbx, BARCHAN_END_CREATE_FAILED, &why);
}

static int put(barchan_sandbox *sbx, const char *path, const char *data, size_t len,
               barchan_file_done_fn done, barchan_error *err)
{
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_WRITE,
                                          .path = path,
                                          .data = data,
                                          .data_len = len};
    bc_sandbox_ref(sbx);
    int rc = barchan_sandbox_file_start(NULL, sbx, &request, done, sbx, err);
    if (rc < 0) bc_sandbox_unref(sbx);
    return rc;
}

static void on_wgetrc(barchan_file_result *result, const barchan_error *err, void *ud)
{
    barchan_sandbox *sbx = ud;
    (void)result;
    finish(sbx, err);
    bc_sandbox_unref(sbx);
}

static void on_bundle(barchan_file_result *result, const barchan_error *err, void *ud)
{
    static const char text[] = "ca_certificate = " BUNDLE_FILE "\n";
    barchan_sandbox *sbx = ud;
    barchan_error why;
    (void)result;
    int rc = sbx->installing && err == NULL ? 0 : -1;
    if (rc == 0) {
        rc = put(sbx, WGET_FILE, text, sizeof text - 1, on_wgetrc, &why);
        err = &why;
    }
    if (rc < 0) finish(sbx, err);
    bc_sandbox_unref(sbx);
}

static void on_ca(barchan_file_result *result, const barchan_error *err, void *ud)
{
    barchan_sandbox *sbx = ud;
    barchan_error why;
    (void)result;
    cleanup_free char *pem = NULL;
    size_t len;
    int rc = sbx->installing && err == NULL ? 0 : -1;
    if (rc == 0) {
        rc = bc_secrets_bundle(bc_egress_secrets(sbx->egress), &pem, &len, &why);
        if (rc == 0) rc = put(sbx, BUNDLE_FILE, pem, len, on_bundle, &why);
        if (rc < 0) err = &why;
    }
    if (rc < 0) finish(sbx, err);
    bc_sandbox_unref(sbx);
}

void bc_secrets_install(barchan_sandbox *sbx)
{
    barchan_error why;
    const char *pem = bc_ca_pem(bc_egress_secrets(sbx->egress)->ca);
    sbx->installing = 1;
    if (put(sbx, CA_FILE, pem, strlen(pem), on_ca, &why) < 0) finish(sbx, &why);
}

/* ---- rotation ---- */

int barchan_sandbox_set_secret(barchan_sandbox *sbx, const char *name, const char *value,
                               size_t value_len, barchan_error *err)
{
    BC_OPERATION("sandbox.set_secret");
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && sbx->connection != NULL) {
        rc = bc_error_set(err, BARCHAN_EUNSUPPORTED,
                          "a detached sandbox has no secrets that a connection could set");
    }
    bc_secrets *secrets = rc < 0 ? NULL : bc_egress_secrets(sbx->egress);
    if (rc == 0 && secrets == NULL) {
        rc = bc_error_set(err, BARCHAN_ENOTFOUND, "the sandbox has no secrets");
    }
    if (rc == 0) rc = bc_secrets_set(secrets, name, value, value_len, err);
    if (rc < 0) {
        bc_error_context(err, "set secret");
    }
    return rc;
}
