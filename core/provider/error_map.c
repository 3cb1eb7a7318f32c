/* What a server's error means for the caller: which status, and whether asking again can help. */
#include "provider.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct meaning {
    const char *code;
    int status, retryable;
} meaning;

/* By the provider's own code. The first entry wins: quota before rate, because providers report
 * both as 429 and only one of them passes. */
static const meaning by_code[] = {
    {"enforced_spend_limit_reached", BARCHAN_EQUOTA, 0},
    {"insufficient_quota", BARCHAN_EQUOTA, 0},
    {"credit_balance_exhausted", BARCHAN_EQUOTA, 0},
    {"organization_spend_limit_exceeded", BARCHAN_EQUOTA, 0},
    {"project_spend_limit_exceeded", BARCHAN_EQUOTA, 0},
    {"organization_usage_limit_exceeded", BARCHAN_EQUOTA, 0},
    {"billing_error", BARCHAN_EQUOTA, 0},
    {"context_length_exceeded", BARCHAN_ECONTEXT, 0},
    {"request_too_large", BARCHAN_ECONTEXT, 0},
    {"content_filter", BARCHAN_EFILTERED, 0},
    {"content_policy_violation", BARCHAN_EFILTERED, 0},
    {"invalid_api_key", BARCHAN_EAUTH, 0},
    {"authentication_error", BARCHAN_EAUTH, 0},
    {"permission_error", BARCHAN_EPERMISSION, 0},
    {"model_not_found", BARCHAN_ENOTFOUND, 0},
    {"not_found_error", BARCHAN_ENOTFOUND, 0},
    {"overloaded_error", BARCHAN_EOVERLOADED, 1},
    {"server_is_overloaded", BARCHAN_EOVERLOADED, 1},
    {"slow_down", BARCHAN_EOVERLOADED, 1},
    {"rate_limit_error", BARCHAN_ERATE, 1},
    {"rate_limit_exceeded", BARCHAN_ERATE, 1},
    {"timeout_error", BARCHAN_ETIMEDOUT, 1},
    {"api_error", BARCHAN_ESERVER, 1},
    {"server_error", BARCHAN_ESERVER, 1},
    {"internal_server_error", BARCHAN_ESERVER, 1},
    {"conflict_error", BARCHAN_EREQUEST, 1},
    /* The model wrote a bad call and the server refused it: the next try may be better. */
    {"tool_use_failed", BARCHAN_EREQUEST, 1},
    {"invalid_request_error", BARCHAN_EREQUEST, 0},
    /* Google's names. */
    {"API_KEY_INVALID", BARCHAN_EAUTH, 0},
    {"UNAUTHENTICATED", BARCHAN_EAUTH, 0},
    {"PERMISSION_DENIED", BARCHAN_EPERMISSION, 0},
    {"NOT_FOUND", BARCHAN_ENOTFOUND, 0},
    {"RESOURCE_EXHAUSTED", BARCHAN_ERATE, 1},
    {"UNAVAILABLE", BARCHAN_EOVERLOADED, 1},
    {"DEADLINE_EXCEEDED", BARCHAN_ETIMEDOUT, 1},
    {"INTERNAL", BARCHAN_ESERVER, 1},
};

/* Limits that come as a plain invalid_request_error and are told by their words only. */
static const meaning by_words[] = {
    {"You have reached your specified API usage limits", BARCHAN_EQUOTA, 0},
    {"credit balance is too low", BARCHAN_EQUOTA, 0},
    {"prompt is too long", BARCHAN_ECONTEXT, 0},
    {"maximum context length", BARCHAN_ECONTEXT, 0},
};

static meaning by_http(int status)
{
    switch (status) {
    case 401: return (meaning){NULL, BARCHAN_EAUTH, 0};
    case 402: return (meaning){NULL, BARCHAN_EQUOTA, 0};
    case 403: return (meaning){NULL, BARCHAN_EPERMISSION, 0};
    case 404: return (meaning){NULL, BARCHAN_ENOTFOUND, 0};
    case 408: return (meaning){NULL, BARCHAN_ETIMEDOUT, 1};
    case 409: return (meaning){NULL, BARCHAN_EREQUEST, 1};
    case 413: return (meaning){NULL, BARCHAN_ECONTEXT, 0};
    case 429: return (meaning){NULL, BARCHAN_ERATE, 1};
    case 503:
    case 529: return (meaning){NULL, BARCHAN_EOVERLOADED, 1};
    case 504: return (meaning){NULL, BARCHAN_ETIMEDOUT, 1};
    default: break;
    }
    if (status >= 500 && status <= 599) return (meaning){NULL, BARCHAN_ESERVER, 1};
    if (status >= 400) return (meaning){NULL, BARCHAN_EREQUEST, 0};
    return (meaning){NULL, BARCHAN_ESERVER, 0};
}

static const meaning *find_code(const char *code)
{
    for (size_t i = 0; i < sizeof by_code / sizeof *by_code; i++) {
        if (strcmp(by_code[i].code, code) == 0) return &by_code[i];
    }
    return NULL;
}

/* Quota is looked for first, then the narrower of code and type. */
static meaning judge(int http_status, const char *const *codes, size_t count, const char *message)
{
    const meaning *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const meaning *m = find_code(codes[i]);
        if (m != NULL && m->status == BARCHAN_EQUOTA) return *m;
        if (found == NULL) found = m;
    }
    /* The catch-all type says less than the status does. */
    int vague = found != NULL && strcmp(found->code, "invalid_request_error") == 0;
    /* Only then do words count: they may be quoted from what the caller sent. */
    for (size_t i = 0; (found == NULL || vague) && i < sizeof by_words / sizeof *by_words; i++) {
        if (strstr(message, by_words[i].code) != NULL) return by_words[i];
    }
    if (found != NULL && (!vague || http_status < 400)) return *found;
    return by_http(http_status);
}

int bc_provider_incomplete(int begun, barchan_error *err)
{
    int rc = bc_error_set(err, BARCHAN_ENETWORK, "the stream ended before the turn %s",
                          begun ? "was complete" : "began");
    if (err != NULL) err->retryable = 1;
    return rc;
}

/* Google's details: why, which quota, and how long to wait ("34.4s"; -1: not told). A quota of the
 * day does not come back after the time that is named with it. */
typedef struct google_details {
    const char *reason;
    int is_daily;
    long retry_ms;
} google_details;

static long duration_ms(const char *text)
{
    bc_json_scan scan;
    size_t len = strlen(text);
    if (len < 2 || text[len - 1] != 's') return -1;
    bc_json_scan_init(&scan, text, len - 1);
    int token = bc_json_scan_next(&scan, NULL);
    double seconds = token == BC_JSON_INTEGER ? (double)scan.integer : scan.real;
    if ((token != BC_JSON_INTEGER && token != BC_JSON_REAL) || seconds < 0) return -1;
    return (long)(seconds < BC_HTTP_MAX_RETRY_AFTER_S ? seconds * 1000
                                                      : BC_HTTP_MAX_RETRY_AFTER_S * 1000.0);
}

static google_details read_details(const json_t *error)
{
    google_details d = {.reason = "", .retry_ms = -1};
    size_t i, j;
    const json_t *detail, *violation;
    json_array_foreach(bc_json_get_array(error, "details"), i, detail)
    {
        const char *reason = bc_json_get_string(detail, "reason", NULL);
        const char *delay = bc_json_get_string(detail, "retryDelay", NULL);
        if (reason != NULL) d.reason = reason;
        if (delay != NULL) d.retry_ms = duration_ms(delay);
        json_array_foreach(bc_json_get_array(detail, "violations"), j, violation)
        {
            const char *quota = bc_json_get_string(violation, "quotaId", NULL);
            d.is_daily |= quota != NULL && strstr(quota, "PerDay") != NULL;
        }
    }
    return d;
}

int bc_provider_error(barchan_error *err, int http_status, const json_t *error,
                      const bc_secrets *secrets)
{
    char status_text[BC_JSON_LABEL_BYTES];
    google_details details = read_details(error);
    char code_text[BC_JSON_LABEL_BYTES], type_text[BC_JSON_LABEL_BYTES],
        detail_text[BC_JSON_LABEL_BYTES], name[BC_JSON_LABEL_BYTES], line[BC_MODEL_MAX_ERROR_TEXT];
    size_t len = 0;
    const char *message = bc_json_get_string(error, "message", &len);
    if (json_is_string(error)) {
        message = json_string_value(error);
        len = json_string_length(error);
    }
    if (message == NULL) message = "";
    const char *codes[] = {
        bc_json_get_label(bc_json_get_object(error, "details"), "error_code", detail_text),
        bc_json_get_label(error, "code", code_text), bc_json_get_label(error, "type", type_text),
        find_code(details.reason) != NULL ? details.reason
                                          : bc_json_get_label(error, "status", status_text)};
    /* Gateways put the HTTP status into `code`, as a number or as text. */
    int64_t number = bc_json_get_integer(error, "code", 0);
    if (number >= 400 && number <= 599) {
        codes[1] = "";
        if (http_status < 400) http_status = (int)number;
    }
    enum { CODES = sizeof codes / sizeof *codes };
    meaning m = judge(http_status, codes, CODES, message);
    if (details.is_daily) m = (meaning){NULL, BARCHAN_EQUOTA, 0};
    const char *code = "";
    for (size_t i = 0; i < CODES && *code == '\0'; i++)
        code = codes[i];
    bc_secret_line(secrets, name, sizeof name, code, strlen(code));
    bc_secret_line(secrets, line, sizeof line, message, len);
    bc_error_set(err, m.status, "%s%s%s", name, *name != '\0' && *line != '\0' ? ": " : "",
                 *line != '\0' || *name != '\0' ? line : "the provider reported an error");
    if (err == NULL) return m.status;
    err->http_status = http_status >= 400 ? http_status : 0;
    err->retryable = m.retryable;
    if (m.retryable && details.retry_ms >= 0) err->retry_after_ms = details.retry_ms;
    snprintf(err->provider_code, sizeof err->provider_code, "%s", name);
    return m.status;
}

static int is_html(const char *content_type, const char *body, size_t len)
{
    size_t at = 0;
    while (at < len && strchr(" \t\r\n", body[at]) != NULL && body[at] != '\0')
        at++;
    return strncasecmp(content_type, "text/html", 9) == 0 || (at < len && body[at] == '<');
}

/* {"error": {…} | "…"}, {"detail": …}, {"message": …}, each maybe alone in a list. */
static const json_t *find_error(const json_t *view)
{
    if (json_is_array(view)) view = json_array_get(view, 0);
    const json_t *error = json_object_get(view, "error");
    if (json_is_object(error) || json_is_string(error)) return error;
    const json_t *detail = json_object_get(view, "detail");
    if (json_is_object(detail) || json_is_string(detail)) return detail;
    return json_is_object(view) ? view : NULL;
}

int bc_provider_http_error(barchan_error *err, int http_status, const char *content_type,
                           const char *body, size_t len, const bc_secrets *secrets)
{
    cleanup_json json_t *view = NULL;
    barchan_error inner;
    if (len >= 3 && memcmp(body, "\xEF\xBB\xBF", 3) == 0) {
        body += 3;
        len -= 3;
    }
    int rc;
    if (bc_json_view(&view, body, len, 0, &inner) == 0 && find_error(view) != NULL) {
        rc = bc_provider_error(err, http_status, find_error(view), secrets);
        char id[BC_JSON_LABEL_BYTES];
        const char *request_id = bc_json_get_label(view, "request_id", id);
        if (err != NULL) {
            bc_secret_line(secrets, err->request_id, sizeof err->request_id, request_id,
                           strlen(request_id));
        }
    } else {
        meaning m = by_http(http_status);
        /* Not even an error: something else than the API answers there. */
        if (http_status < 400) m = (meaning){NULL, BARCHAN_EPROTOCOL, 0};
        char line[BC_MODEL_MAX_ERROR_DETAIL];
        bc_secret_line(secrets, line, sizeof line, body, len);
        if (is_html(content_type, body, len)) {
            snprintf(line, sizeof line,
                     "a page of HTML, no API answer; check base_url and proxies");
        }
        rc = bc_error_set(err, m.status, "%s", *line != '\0' ? line : "an empty answer");
        if (err != NULL) err->retryable = m.retryable;
        if (err != NULL) err->http_status = http_status;
    }
    bc_error_context(err, "HTTP %d", http_status);
    return rc;
}
