#include "ca.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"

/* Clocks in a sandbox are the host's; this is for a host that sets its own back. */
#define BEFORE_S (-600)
/* The authority outlives any lease, however often that is extended; its key does not outlive the
 * sandbox. What it signs is valid for a day, and made anew after half of one. */
#define CA_S (400l * 86400)
#define LEAF_S 86400l

struct bc_ca {
    EVP_PKEY *key;
    X509 *cert;
    char *pem;
};

static int fail(barchan_error *err, const char *what)
{
    char text[160] = "";
    unsigned long code = ERR_get_error();
    if (code != 0) ERR_error_string_n(code, text, sizeof text);
    ERR_clear_error();
    return bc_error_set(err, BARCHAN_EIO, "%s%s%s", what, code != 0 ? ": " : "", text);
}

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    int good = extension != NULL && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return good;
}

static int set_serial(X509 *cert)
{
    unsigned char bytes[16];
    BIGNUM *number = NULL;
    if (RAND_bytes(bytes, sizeof bytes) == 1) {
        bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of one length */
        number = BN_bin2bn(bytes, sizeof bytes, NULL);
    }
    int good = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return good;
}

/* All but its extensions and its signature. */
static X509 *begin_cert(EVP_PKEY *key, const char *name, long valid_s)
{
    X509 *cert = X509_new();
    if (cert == NULL) return NULL;
    X509_NAME *subject = X509_get_subject_name(cert);
    int good = X509_set_version(cert, X509_VERSION_3) && set_serial(cert) &&
               X509_gmtime_adj(X509_getm_notBefore(cert), BEFORE_S) != NULL &&
               X509_gmtime_adj(X509_getm_notAfter(cert), valid_s) != NULL &&
               X509_set_pubkey(cert, key) &&
               X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name,
                                          -1, -1, 0);
    if (good) return cert;
    X509_free(cert);
    return NULL;
}

/* ---- the authority ---- */

static int constrain(X509 *cert, const char *const *names, size_t count)
{
    bc_buf text;
    bc_buf_init(&text, 1u << 20);
    int rc = bc_buf_append_string(&text, "critical");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = bc_buf_appendf(&text, ",permitted;DNS:%s", names[i]);
    int good = rc == 0 && add_extension(cert, cert, NID_name_constraints, bc_buf_data(&text));
    bc_buf_clear(&text);
    return good;
}

static int make_cert(bc_ca *ca, const char *const *names, size_t count)
{
    unsigned char random[8];
    char name[64];
    if (RAND_bytes(random, sizeof random) != 1) return 0;
    int at = snprintf(name, sizeof name, "Barchan sandbox ");
    for (size_t i = 0; i < sizeof random; i++)
        at += snprintf(name + at, sizeof name - (size_t)at, "%02x", random[i]);
    ca->cert = begin_cert(ca->key, name, CA_S);
    return ca->cert != NULL && X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert)) &&
           add_extension(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
           add_extension(ca->cert, ca->cert, NID_subject_key_identifier, "hash") &&
           constrain(ca->cert, names, count) && X509_sign(ca->cert, ca->key, EVP_sha256()) > 0;
}

static int write_pem(bc_ca *ca)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *data;
    long len = bio != NULL && PEM_write_bio_X509(bio, ca->cert) ? BIO_get_mem_data(bio, &data) : 0;
    if (len > 0) ca->pem = strndup(data, (size_t)len);
    BIO_free(bio);
    return ca->pem != NULL;
}

int bc_ca_create(bc_ca **out, const char *const *names, size_t count, barchan_error *err)
{
    bc_ca *ca = calloc(1, sizeof *ca);
    if (ca == NULL) return bc_error_nomem(err);
    ca->key = EVP_EC_gen("P-256");
    if (ca->key == NULL || !make_cert(ca, names, count) || !write_pem(ca)) {
        bc_ca_destroy(ca);
        return fail(err, "make a certificate authority");
    }
    *out = ca;
    return 0;
}

void bc_ca_destroy(bc_ca *ca)
{
    if (ca == NULL) return;
    EVP_PKEY_free(ca->key); /* wipes it */
    X509_free(ca->cert);
    free(ca->pem);
    free(ca);
}

const char *bc_ca_pem(const bc_ca *ca)
{
    return ca->pem;
}

/* ---- towards the sandbox ---- */

static X509 *make_leaf(const bc_ca *ca, EVP_PKEY *key, const char *name)
{
    char alternative[300];
    snprintf(alternative, sizeof alternative, "DNS:%s", name);
    /* The common name has 64 characters at most, and nobody reads it. */
    X509 *cert = begin_cert(key, "Barchan", LEAF_S);
    if (cert != NULL && X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) &&
        add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(cert, ca->cert, NID_key_usage, "critical,digitalSignature") &&
        add_extension(cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
        add_extension(cert, ca->cert, NID_subject_key_identifier, "hash") &&
        add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid") &&
        add_extension(cert, ca->cert, NID_subject_alt_name, alternative) &&
        X509_sign(cert, ca->key, EVP_sha256()) > 0) {
        return cert;
    }
    X509_free(cert);
    return NULL;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *ud)
{
    static const unsigned char ours[] = "\x08http/1.1\x08http/1.0";
    unsigned char *chosen;
    (void)ssl;
    (void)ud;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* What both sides have in common. */
static SSL_CTX *new_context(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (ctx == NULL) return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CLEANSE_PLAINTEXT);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    return ctx;
}

int bc_ca_serve(SSL_CTX **out, const bc_ca *ca, const char *name, barchan_error *err)
{
    SSL_CTX *ctx = new_context(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *leaf = key == NULL ? NULL : make_leaf(ca, key, name);
    int good = ctx != NULL && leaf != NULL && SSL_CTX_use_certificate(ctx, leaf) == 1 &&
               SSL_CTX_use_PrivateKey(ctx, key) == 1;
    X509_free(leaf);
    EVP_PKEY_free(key);
    if (!good) {
        SSL_CTX_free(ctx);
        return fail(err, "make a certificate");
    }
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    *out = ctx;
    return 0;
}

/* ---- towards the world ---- */

int bc_ca_verify(SSL_CTX **out, const char *file, barchan_error *err)
{
    static const unsigned char ours[] = "\x08http/1.1";
    if (file != NULL && faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) < 0) {
        return bc_error_set_os(err, errno, "ca_file '%.200s'", file);
    }
    SSL_CTX *ctx = new_context(TLS_client_method());
    if (ctx == NULL) return fail(err, "TLS");
    int good = file == NULL ? SSL_CTX_set_default_verify_paths(ctx)
                            : SSL_CTX_load_verify_locations(ctx, file, NULL);
    if (good != 1 || SSL_CTX_set_alpn_protos(ctx, ours, sizeof ours - 1) != 0) {
        SSL_CTX_free(ctx);
        if (file == NULL) return fail(err, "no certificates to verify servers with");
        ERR_clear_error();
        return bc_error_set(err, BARCHAN_EINVAL,
                            "ca_file '%.200s': it has no certificate in PEM form", file);
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    *out = ctx;
    return 0;
}

const char *bc_ca_host_bundle(void)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL */
        "/var/lib/ca-certificates/ca-bundle.pem",            /* SUSE */
        "/etc/ssl/cert.pem"};
    const char *named = getenv("SSL_CERT_FILE");
    if (named != NULL && access(named, R_OK) == 0) return named;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (access(files[i], R_OK) == 0) return files[i];
    }
    return NULL;
}
