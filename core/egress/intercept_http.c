/* What passes between the two ends: requests one way, answers the other. */
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/limits.h"
#include "egress/intercept.h"
#include "egress/relay.h"
#include "egress/secret_memory.h"

/* A head with the values in it. */
#define MAX_HEAD (BC_REQUEST_HEAD_MAX + (24u << 10))

/* ---- the end ---- */

static void say_goodbye(bc_intercept *x)
{
    if (x->up[INNER]) SSL_shutdown(x->ssl[INNER]);
    x->closing = true;
}

/* Answers in the server's stead, as relay->verdict says, and ends the connection. */
static void respond(bc_intercept *x, barchan_network_event_kind kind)
{
    char text[2048];
    bc_relay *relay = x->relay;
    relay->verdict.allowed = kind == BARCHAN_NETWORK_FAILED;
    bc_relay_tell(relay, kind, relay->verdict.rule);
    size_t len = bc_relay_write_response(relay, text, sizeof text);
    if (x->response.begun || !x->up[INNER] || bc_intercept_write(x, INNER, text, len) < 0) {
        bc_relay_abort(relay);
        return;
    }
    say_goodbye(x);
}

static void fail(bc_intercept *x, const char *why)
{
    bc_relay *relay = x->relay;
    if (x->response.broken) { /* what came before it may be read, and no goodbye */
        bc_relay_tell(relay, BARCHAN_NETWORK_FAILED, why);
        x->closing = true;
        return;
    }
    snprintf(relay->verdict.rule, sizeof relay->verdict.rule, "%s", why);
    respond(x, BARCHAN_NETWORK_FAILED);
}

static void deny(bc_intercept *x, const char *why)
{
    bc_relay_deny(x->relay, why, "");
    respond(x, BARCHAN_NETWORK_DENIED);
}

/* ---- requests ---- */

static bool may_pass(bc_intercept *x, const bc_request_head *head)
{
    const char *why = NULL;
    if (bc_relay_look_at_request(x->relay, head) == BC_SNIFF_BAD) {
        respond(x, BARCHAN_NETWORK_DENIED);
        return false;
    }
    /* Its answers have no end that could be told from one that was cut off, within a value, say. */
    if (head->minor == 0) why = "HTTP/1.0 on a host with secrets; HTTP/1.1 is needed";
    if (head->absolute) why = "a request with a whole URL, as for a proxy, on a host with secrets";
    if (head->upgrade) why = "a request for another protocol on a host with secrets";
    if (strcmp(head->method, "TRACE") == 0) why = "TRACE on a host with secrets";
    if (why != NULL) {
        deny(x, why);
    } else if (x->failed[0] != '\0') {
        fail(x, x->failed);
    }
    return why == NULL && x->failed[0] == '\0';
}

/* What was noted, and the refusal if it is one. */
static bool report_on(bc_intercept *x, const bc_secret_report *report)
{
    char text[512];
    const bc_relay *relay = x->relay;
    for (size_t i = 0; i < report->count; i++) {
        bc_secret_note note = report->notes[i].note;
        if (!report->refused || bc_secret_is_stray(note))
            bc_secret_tell(relay, report->notes[i].secret, note);
        if (bc_secret_is_stray(note)) {
            x->strays_told |= 1u << (report->notes[i].secret - relay->egress->secrets->list);
        }
    }
    if (!report->refused) return true;
    bc_secret_note_text(report->notes[report->cause].secret, report->notes[report->cause].note,
                        text, sizeof text);
    deny(x, text);
    return false;
}

/* The value is in `memory` from here to the encryption, and nowhere else. */
static void pass_head(bc_intercept *x, const bc_request_head *head, const char *data)
{
    bc_secret_report report;
    const bc_secrets *secrets = x->relay->egress->secrets;
    const bc_secret_choice choice = {x->host->secrets, x->host->count, secrets->list,
                                     secrets->count, x->host->port};
    char *memory = bc_secret_alloc(MAX_HEAD + 1);
    bc_buf out = {.mem = memory, .cap = MAX_HEAD + 1, .max = MAX_HEAD}; /* so it never grows */
    x->strays_told = 0;
    x->last = head->chunked || head->body_len > 0;
    x->rest_waits_since_ms = 0;
    bc_redactor_forget(&x->strays);
    if (memory == NULL) {
        deny(x, "out of memory");
    } else if (bc_secret_head_rewrite(&choice, head, data, &out, &report) < 0) {
        deny(x, "the request's head is too long");
    } else if (report_on(x, &report)) {
        bc_response_expect(&x->response, strcmp(head->method, "HEAD") == 0, x->last);
        if (bc_intercept_write(x, OUTER, bc_buf_data(&out), out.len) < 0) bc_relay_abort(x->relay);
    }
    bc_secret_free(memory, MAX_HEAD + 1);
}

static void look_for_strays(bc_intercept *x, const char *data, size_t len)
{
    const bc_secrets *secrets = x->relay->egress->secrets;
    bc_redactor_look(&x->strays, data, len);
    for (size_t i = 0; x->strays.hits != 0 && i < secrets->count; i++) {
        uint32_t bit = 1u << i;
        if ((x->strays.hits & bit & ~x->strays_told) == 0) continue;
        bc_secret_tell(x->relay, &secrets->list[i], BC_SECRET_OUTSIDE);
        x->strays_told |= bit;
    }
    x->strays.hits = 0;
}

int64_t bc_intercept_rest_waits_ms(const bc_intercept *x)
{
    if (x->rest_waits_since_ms == 0 || !bc_response_can_be_hurried(&x->response)) return 0;
    int64_t left = x->rest_waits_since_ms + BC_EGRESS_BODY_WAITS_MS - bc_clock_ms();
    return left > 0 ? left : 0;
}

/* A server may end its answer with the body that it answers, or where its client says no more, and
 * so the program could choose that end. Most that have begun have no use for either: it waits, but
 * not for long. */
static bool rest_has_to_wait(bc_intercept *x)
{
    if (!bc_response_can_be_hurried(&x->response)) return false;
    if (x->rest_waits_since_ms == 0) x->rest_waits_since_ms = bc_clock_ms();
    return bc_intercept_rest_waits_ms(x) > 0;
}

static void pass_body(bc_intercept *x, const char *data, size_t len)
{
    if (x->response.begun) bc_response_hurry(&x->response);
    if (bc_intercept_write(x, OUTER, data, len) < 0) bc_relay_abort(x->relay);
}

/* How much of a body there is, up to a record of TLS: chunks can be as small as a byte. */
static size_t measure_body(bc_intercept *x, bc_sniff *seen)
{
    const char *data = bc_buf_data(&x->request);
    size_t all = 0, used, len = x->request.len;
    while (all < len && all < BC_INTERCEPT_PIECE && !bc_request_stream_is_between(&x->requests)) {
        bool is_data = bc_request_stream_in_data(&x->requests);
        *seen = bc_request_stream_step(&x->requests, data + all, len - all, &used);
        if (*seen == BC_SNIFF_BAD || used == 0) break;
        if (is_data) look_for_strays(x, data + all, used);
        all += used;
    }
    return all;
}

/* A piece of a body. False: it has to wait. */
static bool pass_more(bc_intercept *x)
{
    bc_sniff seen = BC_SNIFF_MORE;
    if (rest_has_to_wait(x)) return false;
    size_t used = measure_body(x, &seen);
    if (used > 0) pass_body(x, bc_buf_data(&x->request), used);
    if (x->relay->stage != STAGE_OPEN) return true;
    bc_buf_consume(&x->request, used);
    if (seen != BC_SNIFF_BAD) return used > 0;
    /* In the body of one that has its answer: another would belong to no request. */
    if (!x->response.waiting) x->response.begun = true;
    deny(x, "a malformed HTTP request");
    return true;
}

/* A head, or a piece of a body. False: it has to wait. */
static bool pass_request(bc_intercept *x)
{
    size_t used;
    if (!bc_request_stream_is_between(&x->requests)) return pass_more(x);
    if (x->response.waiting || x->last) return false; /* one after another */
    if (!bc_egress_can_tell(x->relay->egress)) return false;
    const char *data = bc_buf_data(&x->request);
    bc_sniff seen = bc_request_stream_step(&x->requests, data, x->request.len, &used);
    if (seen == BC_SNIFF_BAD) {
        deny(x, "a malformed HTTP request");
        return true;
    }
    if (used == 0) return false;
    if (seen == BC_SNIFF_DONE && may_pass(x, &x->requests.head))
        pass_head(x, &x->requests.head, data);
    if (x->relay->stage == STAGE_OPEN) bc_buf_consume(&x->request, used);
    return true;
}

/* Empty lines are no request. */
static bool has_rest(const bc_intercept *x)
{
    const char *data = bc_buf_data(&x->request);
    for (size_t i = 0; i < x->request.len; i++) {
        if (data[i] != '\r' && data[i] != '\n') return true;
    }
    return false;
}

/* The program says no more, and all of it that could be has been passed on. */
static void end_inside(bc_intercept *x)
{
    bool between = bc_request_stream_is_between(&x->requests);
    bool rest = has_rest(x), waits_to_begin = rest && x->relay->egress->hushed;
    if (between && x->response.waiting && (!rest || x->last)) bc_intercept_leave(x);
    if (between && (x->response.waiting || waits_to_begin)) return;
    if (between && !rest) {
        say_goodbye(x);
    } else {
        bc_relay_abort(x->relay);
    }
}

static bool pass_requests(bc_intercept *x)
{
    bool moved = false;
    char *to;
    while (x->request.len < BC_INTERCEPT_BYTES - BC_INTERCEPT_PIECE &&
           (to = bc_buf_reserve(&x->request, BC_INTERCEPT_PIECE)) != NULL) {
        int n = bc_intercept_read(x, INNER, to, BC_INTERCEPT_PIECE);
        if (n <= 0) break;
        bc_buf_commit(&x->request, (size_t)n);
        moved = true;
    }
    if (!x->up[OUTER] && x->failed[0] == '\0') return moved;
    while (x->request.len > 0 && bc_intercept_waiting(x, OUTER) < BC_INTERCEPT_BYTES) {
        if (!pass_request(x)) break;
        moved = true;
        if (x->relay->stage != STAGE_OPEN || x->closing) return moved;
    }
    bool may_end = x->ended[INNER] && bc_intercept_waiting(x, OUTER) < BC_INTERCEPT_BYTES;
    if (may_end && !rest_has_to_wait(x)) end_inside(x);
    return moved;
}

/* ---- answers ---- */

static void write_answer(bc_intercept *x)
{
    bc_buf *answer = &x->answer;
    if (bc_intercept_write(x, INNER, bc_buf_data(answer), answer->len) < 0) {
        bc_relay_abort(x->relay);
    } else {
        bc_buf_reset(answer);
    }
}

/* The server says no more: between two answers, or at the end of one that has no length. One that
 * is cut off must look like that to the program, too. */
static void end_outside(bc_intercept *x, bool goodbye)
{
    /* It had waited long enough for another request, as one came: programs try again. */
    if (bc_response_is_silent(&x->response) && x->response.answers > 0) {
        bc_relay_tell(x->relay, BARCHAN_NETWORK_FAILED, "the server ended before it answered");
        say_goodbye(x);
        return;
    }
    if (bc_response_end(&x->response, !goodbye, &x->answer) < 0) {
        fail(x, x->response.why);
        return;
    }
    write_answer(x);
    if (x->relay->stage == STAGE_OPEN) say_goodbye(x);
}

static void pass_answer(bc_intercept *x, const char *data, size_t len)
{
    int rc = bc_response_mask(&x->response, x->relay->egress->secrets->values, &x->answer);
    if (rc == 0) rc = bc_response_feed(&x->response, data, len, &x->answer);
    write_answer(x);
    if (x->relay->stage != STAGE_OPEN) return;
    if (rc < 0 && x->response.waiting) {
        fail(x, x->response.why);
    } else if (!x->response.waiting && (rc < 0 || x->last)) {
        say_goodbye(x); /* or "408, you have been silent for so long", say */
    }
}

static bool pass_answers(bc_intercept *x)
{
    char plain[BC_INTERCEPT_PIECE];
    bool moved = false;
    while (x->up[INNER] && x->up[OUTER] && !x->closing && !x->ended[OUTER] &&
           bc_intercept_waiting(x, INNER) < BC_INTERCEPT_BYTES) {
        int n = bc_intercept_read(x, OUTER, plain, sizeof plain);
        if (n == 0) break;
        moved = true;
        if (n < 0) {
            end_outside(x, n == -1);
        } else {
            pass_answer(x, plain, (size_t)n);
            bc_secret_wipe(plain, (size_t)n); /* a value may have been in it */
        }
        if (x->relay->stage != STAGE_OPEN) break;
    }
    return moved;
}

bool bc_intercept_pass(bc_intercept *x)
{
    if (x->closing || !bc_intercept_shake(x) || x->closing) return false;
    /* Answers first: a request's rest may have to wait for one that has begun. */
    bool moved = pass_answers(x);
    if (x->relay->stage != STAGE_OPEN || x->closing) return true;
    return (x->up[INNER] && pass_requests(x)) || moved;
}
