/* Both ends of TLS, over memory. */
#include "intercept.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "egress/relay.h"

/* One read of OpenSSL's takes in all that are there, so only what looks as if the peer had said its
 * last ends it in between. */
static void on_message(int written, int version, int type, const void *data, size_t len, SSL *ssl,
                       void *ud)
{
    bc_intercept *x = ud;
    (void)version;
    if (written || type != SSL3_RT_HANDSHAKE || len == 0) return;
    if (*(const unsigned char *)data != SSL3_MT_KEY_UPDATE) return;
    if (++x->key_updates > BC_INTERCEPT_KEY_UPDATES) SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
}

static int open_end(bc_intercept *x, int side, SSL_CTX *ctx)
{
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (ssl == NULL || in == NULL || out == NULL) {
        SSL_free(ssl);
        BIO_free(in);
        BIO_free(out);
        return -1;
    }
    BIO_set_mem_eof_return(in, -1);
    BIO_set_mem_eof_return(out, -1);
    SSL_set_bio(ssl, in, out); /* owns both */
    SSL_set_msg_callback(ssl, on_message);
    SSL_set_msg_callback_arg(ssl, x);
    x->ssl[side] = ssl;
    x->in[side] = in;
    x->out[side] = out;
    return 0;
}

/* The name is verified by the handshake, and nothing is written before it is over. */
static int aim(bc_intercept *x)
{
    SSL *ssl = x->ssl[OUTER];
    SSL_set_accept_state(x->ssl[INNER]);
    SSL_set_connect_state(ssl);
    SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    return SSL_set1_host(ssl, x->host->name) == 1 &&
                   SSL_set_tlsext_host_name(ssl, x->host->name) == 1
               ? 0
               : -1;
}

int bc_intercept_create(bc_intercept **out, bc_relay *relay, bc_bound_host *host)
{
    bc_secrets *secrets = relay->egress->secrets;
    bc_intercept *x = calloc(1, sizeof *x);
    if (x == NULL) return -1;
    x->relay = relay;
    relay->egress->intercepted++;
    x->host = host;
    bc_buf_init(&x->request, BC_INTERCEPT_BYTES);
    bc_buf_init(&x->answer, 4 * BC_INTERCEPT_BYTES);
    ERR_clear_error();
    if (bc_secrets_prepare(secrets, host, NULL) < 0 || open_end(x, INNER, host->serves) < 0 ||
        open_end(x, OUTER, host->verifies) < 0 || aim(x) < 0 ||
        bc_redactor_init(&x->strays, secrets->placeholders) < 0 ||
        bc_response_init(&x->response, secrets->values) < 0) {
        bc_intercept_destroy(x);
        return -1;
    }
    *out = x;
    return 0;
}

void bc_intercept_destroy(bc_intercept *x)
{
    if (x == NULL) return;
    x->relay->egress->intercepted--;
    SSL_free(x->ssl[INNER]);
    SSL_free(x->ssl[OUTER]);
    bc_redactor_clear(&x->strays);
    bc_response_clear(&x->response);
    bc_buf_clear(&x->request);
    bc_buf_clear(&x->answer);
    free(x);
}

/* ---- handshakes ---- */

static void explain_server(bc_intercept *x)
{
    long verified = SSL_get_verify_result(x->ssl[OUTER]);
    unsigned long code = ERR_peek_last_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    if (verified != X509_V_OK) {
        snprintf(x->failed, sizeof x->failed, "the server's certificate was refused: %s",
                 X509_verify_cert_error_string(verified));
    } else {
        snprintf(x->failed, sizeof x->failed, "TLS with the server failed: %s",
                 reason == NULL ? "it closed the connection" : reason);
    }
}

/* 1: over, 0: goes on, -1: failed */
static int shake(bc_intercept *x, int side)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(x->ssl[side]);
    if (rc == 1) {
        x->up[side] = true;
        return 1;
    }
    int what = SSL_get_error(x->ssl[side], rc);
    return what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static void fail_inside(bc_intercept *x)
{
    char rule[256];
    unsigned long code = ERR_peek_last_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    snprintf(rule, sizeof rule, "TLS with the program failed: %s",
             reason == NULL ? "it closed the connection" : reason);
    bc_relay_tell(x->relay, BARCHAN_NETWORK_FAILED, rule);
    x->closing = true; /* an alert may wait */
}

bool bc_intercept_shake(bc_intercept *x)
{
    if (!x->up[OUTER] && x->failed[0] == '\0') {
        int rc = shake(x, OUTER);
        if (rc < 0) explain_server(x);
        if (rc != 0) bc_timer_set(x->relay->timer, -1);
    }
    if (!x->up[INNER] && !x->closing && shake(x, INNER) < 0) fail_inside(x);
    ERR_clear_error();
    return x->relay->stage == STAGE_OPEN;
}

/* ---- bytes ---- */

int bc_intercept_read(bc_intercept *x, int side, char *to, size_t room)
{
    size_t n = 0;
    if (!x->up[side] || x->ended[side]) return 0;
    ERR_clear_error();
    int rc = SSL_read_ex(x->ssl[side], to, room, &n);
    if (rc == 1) return (int)n;
    int what = SSL_get_error(x->ssl[side], rc);
    ERR_clear_error();
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) return 0;
    x->ended[side] = true;
    bool goodbye = what == SSL_ERROR_ZERO_RETURN && x->key_updates <= BC_INTERCEPT_KEY_UPDATES;
    return goodbye ? -1 : -2;
}

int bc_intercept_write(bc_intercept *x, int side, const char *data, size_t len)
{
    size_t n = 0;
    if (len == 0) return 0;
    ERR_clear_error();
    int rc = SSL_write_ex(x->ssl[side], data, len, &n);
    ERR_clear_error();
    return rc == 1 && n == len ? 0 : -1; /* memory always takes all of it */
}

void bc_intercept_leave(bc_intercept *x)
{
    if (x->left) return;
    x->left = true;
    bc_response_hurry(&x->response);
    ERR_clear_error();
    SSL_shutdown(x->ssl[OUTER]);
    ERR_clear_error();
}

size_t bc_intercept_waiting(const bc_intercept *x, int side)
{
    return BIO_ctrl_pending(x->out[side]);
}
