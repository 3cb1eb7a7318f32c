#include "secrets.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "egress/secret_memory.h"

/* ---- hosts ---- */

static int check_host(const bc_secret *secret, const bc_secret_host *host, const bc_policy *policy,
                      bool may_ask, barchan_error *err)
{
    bc_verdict verdict;
    bc_policy_decide_name(policy, host->name, host->port, &verdict);
    if (verdict.allowed || (verdict.unlisted && may_ask)) return 0;
    return bc_error_set(err, BARCHAN_EINVAL,
                        "secret %s: the network refuses its host %s:%u (%s); allow it there, too",
                        secret->name, host->name, host->port, verdict.rule);
}

static int bind_host(bc_secrets *secrets, const bc_secret *secret, const bc_secret_host *host,
                     barchan_error *err)
{
    bc_bound_host *bound = bc_secrets_bound(secrets, host->name, host->port);
    if (bound == NULL) {
        bound = &secrets->hosts[secrets->host_count++];
        memcpy(bound->name, host->name, sizeof bound->name);
        bound->port = host->port;
    }
    if (bound->count > 0 && bound->secrets[bound->count - 1] == secret) return 0; /* named twice */
    if (secret->ca_file != NULL && bound->ca_file != NULL &&
        strcmp(secret->ca_file, bound->ca_file) != 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "secret %s: ca_file of %s:%u differs from that of %s", secret->name,
                            host->name, host->port, bound->secrets[0]->name);
    }
    if (secret->ca_file != NULL) bound->ca_file = secret->ca_file;
    bound->secrets[bound->count++] = secret;
    return 0;
}

bc_bound_host *bc_secrets_bound(bc_secrets *secrets, const char *host, unsigned port)
{
    for (size_t i = 0; secrets != NULL && i < secrets->host_count; i++) {
        bc_bound_host *bound = &secrets->hosts[i];
        if (bound->port == port && strcmp(bound->name, host) == 0) return bound;
    }
    return NULL;
}

static int bind_all(bc_secrets *secrets, const bc_policy *policy, bool may_ask, barchan_error *err)
{
    int rc = 0;
    secrets->hosts = calloc((size_t)BC_SECRET_MAX * BC_SECRET_MAX_LIST, sizeof *secrets->hosts);
    if (secrets->hosts == NULL) return bc_error_nomem(err);
    for (size_t i = 0; i < secrets->count; i++) {
        const bc_secret *secret = &secrets->list[i];
        for (size_t k = 0; rc == 0 && k < secret->host_count; k++) {
            rc = check_host(secret, &secret->hosts[k], policy, may_ask, err);
            if (rc == 0) rc = bind_host(secrets, secret, &secret->hosts[k], err);
        }
    }
    /* A file that cannot be read is told now, and not to a program in the sandbox. */
    for (size_t i = 0; rc == 0 && i < secrets->host_count; i++) {
        bc_bound_host *bound = &secrets->hosts[i];
        if (bound->ca_file != NULL) rc = bc_ca_verify(&bound->verifies, bound->ca_file, err);
        if (rc < 0) bc_error_context(err, "secret %s", bound->secrets[0]->name);
    }
    return rc;
}

int bc_secrets_prepare(bc_secrets *secrets, bc_bound_host *host, barchan_error *err)
{
    int64_t now = bc_clock_ms();
    int rc = 0;
    if (host->serves != NULL && now - host->served_ms > BC_CA_LEAF_MS) {
        SSL_CTX_free(host->serves); /* connections keep theirs */
        host->serves = NULL;
    }
    if (host->serves == NULL) {
        rc = bc_ca_serve(&host->serves, secrets->ca, host->name, err);
        host->served_ms = now;
    }
    if (rc == 0 && host->verifies == NULL) rc = bc_ca_verify(&host->verifies, NULL, err);
    return rc;
}

/* ---- what is looked for ---- */

static int learn(bc_secrets *secrets, barchan_error *err)
{
    bc_pattern_source values[BC_SECRET_MAX * (1 + BC_SECRET_OLDER)] = {{0}};
    bc_pattern_source placeholders[BC_SECRET_MAX] = {{0}};
    size_t count = 0;
    for (size_t i = 0; i < secrets->count; i++) {
        const bc_secret *s = &secrets->list[i];
        unsigned tag = (unsigned)i;
        values[count++] = (bc_pattern_source){s->value.data, s->value.len, tag, 1};
        for (size_t k = 0; k < BC_SECRET_OLDER && s->older[k].len > 0; k++)
            values[count++] = (bc_pattern_source){s->older[k].data, s->older[k].len, tag, 1};
        placeholders[i] = (bc_pattern_source){s->placeholder, BC_PLACEHOLDER_LENGTH, tag, 0};
    }
    bc_patterns *learnt = bc_patterns_create(values, count, true);
    if (secrets->placeholders == NULL) {
        secrets->placeholders = bc_patterns_create(placeholders, secrets->count, false);
    }
    if (learnt == NULL || secrets->placeholders == NULL) {
        bc_patterns_unref(learnt);
        return bc_error_nomem(err);
    }
    bc_patterns_unref(secrets->values);
    secrets->values = learnt;
    return 0;
}

/* The value that was there before is there again. */
static void take_back(bc_secret *secret)
{
    bc_secret_value *older = secret->older;
    bc_secret_free(secret->value.data, secret->value.len);
    secret->value = older[0];
    memmove(older, older + 1, (BC_SECRET_OLDER - 1) * sizeof *older);
}

/* A value is used only if it is looked for, too. */
static int replace(bc_secrets *secrets, bc_secret *secret, const char *value, size_t len,
                   barchan_error *err)
{
    bc_secret_value *oldest = &secret->older[BC_SECRET_OLDER - 1], dropped = *oldest;
    *oldest = (bc_secret_value){.data = NULL};
    int rc = bc_secret_set(secret, value, len, err), is_new = rc == 0;
    if (rc < 0) bc_error_context(err, "secret %s", secret->name);
    if (is_new) rc = learn(secrets, err);
    if (is_new && rc == 0) {
        bc_secret_free(dropped.data, dropped.len);
        return 0;
    }
    if (is_new) take_back(secret);
    *oldest = dropped;
    return rc < 0 ? rc : 0;
}

int bc_secrets_set(bc_secrets *secrets, const char *name, const char *value, size_t len,
                   barchan_error *err)
{
    for (size_t i = 0; name != NULL && i < secrets->count; i++) {
        bc_secret *secret = &secrets->list[i];
        if (strcmp(secret->name, name) == 0) return replace(secrets, secret, value, len, err);
    }
    return bc_error_set(err, BARCHAN_ENOTFOUND, "the sandbox has no secret of this name");
}

/* ---- all of it ---- */

static int make_ca(bc_secrets *secrets, barchan_error *err)
{
    const char *names[BC_SECRET_MAX * BC_SECRET_MAX_LIST];
    for (size_t i = 0; i < secrets->host_count; i++)
        names[i] = secrets->hosts[i].name;
    return bc_ca_create(&secrets->ca, names, secrets->host_count, err);
}

static int read_all(bc_secrets *secrets, const barchan_secret *given, size_t count,
                    barchan_error *err)
{
    const char *at = (const char *)given;
    for (size_t i = 0; i < count; i++) {
        /* Of the size that the caller knows. */
        const barchan_secret *one = (const barchan_secret *)(const void *)at;
        int rc = bc_secret_read(&secrets->list[secrets->count++], one, err);
        if (rc < 0) return rc;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(secrets->list[k].name, secrets->list[i].name) == 0) {
                return bc_error_set(err, BARCHAN_EINVAL, "secret %s: there are two of this name",
                                    secrets->list[k].name);
            }
        }
        at += one->struct_size;
    }
    return 0;
}

int bc_secrets_create(bc_secrets **out, const barchan_secret *given, size_t count,
                      const bc_policy *policy, bool may_ask, barchan_error *err)
{
    if (count > BC_SECRET_MAX) {
        return bc_error_set(err, BARCHAN_ELIMIT, "at most %u secrets", BC_SECRET_MAX);
    }
    if (given == NULL) return bc_error_set(err, BARCHAN_EINVAL, "secrets is NULL");
    bc_secrets *secrets = calloc(1, sizeof *secrets);
    if (secrets == NULL) return bc_error_nomem(err);
    int rc = read_all(secrets, given, count, err);
    if (rc == 0) rc = bind_all(secrets, policy, may_ask, err);
    if (rc == 0) rc = learn(secrets, err);
    if (rc == 0) rc = make_ca(secrets, err);
    if (rc < 0) {
        bc_secrets_destroy(secrets);
        return rc;
    }
    *out = secrets;
    return 0;
}

void bc_secrets_destroy(bc_secrets *secrets)
{
    if (secrets == NULL) return;
    for (size_t i = 0; i < secrets->count; i++)
        bc_secret_clear(&secrets->list[i]);
    for (size_t i = 0; i < secrets->host_count; i++) {
        SSL_CTX_free(secrets->hosts[i].serves);
        SSL_CTX_free(secrets->hosts[i].verifies);
    }
    free(secrets->hosts);
    bc_ca_destroy(secrets->ca);
    bc_patterns_unref(secrets->values);
    bc_patterns_unref(secrets->placeholders);
    free(secrets);
}
