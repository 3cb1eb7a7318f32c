/* What may be asked, and what went wrong. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "http_internal.h"

int bc_http_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;
        return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    }
    return 0;
}

/* By its text alone. What `localhost` resolves to is checked again when the socket is made. */
static int names_loopback(const char *host)
{
    struct in_addr in;
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0) return 1;
    return inet_pton(AF_INET, host, &in) == 1 && ntohl(in.s_addr) >> 24 == 127;
}

static int check_parts(CURLU *parts, int allow_plain, barchan_error *err)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *fragment = NULL;
    int rc = 0;
    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
    curl_url_get(parts, CURLUPART_HOST, &host, 0);
    curl_url_get(parts, CURLUPART_PORT, &port, 0);
    curl_url_get(parts, CURLUPART_FRAGMENT, &fragment, 0);
    int is_http = scheme != NULL && strcmp(scheme, "http") == 0;
    int is_https = scheme != NULL && strcmp(scheme, "https") == 0;
    if (!is_http && !is_https) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "the URL's scheme must be https or http");
    } else if (host == NULL || *host == '\0') {
        rc = bc_error_set(err, BARCHAN_EINVAL, "the URL has no host");
    } else if (fragment != NULL) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "the URL has a fragment ('#')");
    } else if (port != NULL && strtol(port, NULL, 10) == 0) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "the URL's port must be 1 to 65535");
    } else if (is_http && !allow_plain && !names_loopback(host)) {
        rc = bc_error_set(err, BARCHAN_EPERMISSION,
                          "plain http to '%.100s' would send the key in the clear; use https, or "
                          "allow plain http explicitly",
                          host);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(fragment);
    return rc;
}

int bc_http_check_url(const char *url, int allow_plain, barchan_error *err)
{
    if (url == NULL || *url == '\0') return bc_error_set(err, BARCHAN_EINVAL, "the URL is empty");
    if (strlen(url) > BC_HTTP_MAX_URL_BYTES) {
        return bc_error_set(err, BARCHAN_EINVAL, "the URL is longer than %d bytes",
                            BC_HTTP_MAX_URL_BYTES);
    }
    CURLU *parts = curl_url();
    if (parts == NULL) return bc_error_nomem(err);
    CURLUcode code =
        curl_url_set(parts, CURLUPART_URL, url, CURLU_DISALLOW_USER | CURLU_NON_SUPPORT_SCHEME);
    int rc = 0;
    /* The URL itself is not repeated: it may hold what should not be shown. */
    if (code == CURLUE_USER_NOT_ALLOWED) {
        rc = bc_error_set(err, BARCHAN_EINVAL,
                          "the URL has a user or password in it; keys go into headers only");
    } else if (code != CURLUE_OK) {
        rc =
            bc_error_set(err, BARCHAN_EINVAL, "the URL is malformed (%s)", curl_url_strerror(code));
    } else {
        rc = check_parts(parts, allow_plain, err);
    }
    curl_url_cleanup(parts);
    return rc;
}

int bc_http_check_header(const char *line, barchan_error *err)
{
    const char *colon = strchr(line, ':');
    int good = colon != NULL && colon != line;
    for (const char *c = line; good && c < colon; c++)
        good = *c > ' ' && *c < 0x7F;
    for (const char *c = line; good && *c != '\0'; c++) {
        good = (unsigned char)*c >= 0x20 || *c == '\t';
        good = good && *c != 0x7F;
    }
    if (good) return 0;
    /* The value may be a key: only the name is shown. */
    int name = colon != NULL ? (int)(colon - line) : 0;
    for (int i = 0; i < name; i++) {
        if ((unsigned char)line[i] <= ' ' || (unsigned char)line[i] >= 0x7F) name = 0;
    }
    return bc_error_set(err, BARCHAN_EINVAL,
                        "a header ('%.*s') is malformed: it must be \"name: value\" on one line",
                        name < 60 ? name : 60, line);
}

char *bc_http_host(const char *url)
{
    const char *start = strstr(url, "://");
    start = start != NULL ? start + 3 : url;
    return strndup(start, strcspn(start, "/?#"));
}

/* Digits and a point, whatever the locale's decimal sign is; -1 when it is something else. */
static double plain_number(const char *text)
{
    double value = 0, unit = 1;
    int digits = 0, point = 0;
    for (; *text != '\0'; text++) {
        if (*text == '.' && !point) {
            point = 1;
        } else if (*text >= '0' && *text <= '9' && ++digits <= 30) {
            if (point) unit /= 10;
            value = point ? value + unit * (*text - '0') : value * 10 + (*text - '0');
        } else {
            return -1;
        }
    }
    return digits > 0 ? value : -1;
}

long bc_http_retry_after_ms(const bc_http *http)
{
    static const double most_ms = BC_HTTP_MAX_RETRY_AFTER_S * 1000.0;
    const char *text = bc_http_header(http, "retry-after-ms");
    double ms = text != NULL ? plain_number(text) : -1;
    text = bc_http_header(http, "retry-after");
    if (ms < 0 && text != NULL) {
        ms = plain_number(text) * 1000;
        time_t when = ms < 0 && strchr(text, ':') != NULL ? curl_getdate(text, NULL) : (time_t)-1;
        time_t now = time(NULL);
        if (when != (time_t)-1) ms = when > now ? (double)(when - now) * 1000 : 0;
    }
    if (ms < 0) return -1;
    return (long)(ms < most_ms ? ms : most_ms);
}

static int set(barchan_error *err, int code, int retryable, const char *message)
{
    bc_error_set(err, code, "%s", message);
    if (err != NULL) err->retryable = retryable;
    return code;
}

static int explain_timeout(const bc_http *http, barchan_error *err)
{
    curl_off_t connected = 0;
    char line[400];
    curl_easy_getinfo(http->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    if (connected == 0) {
        snprintf(line, sizeof line, "no connection to %.200s within %.3g s", http->host,
                 http->options.connect_timeout_ms / 1000.0);
    } else {
        snprintf(line, sizeof line, "%.200s did not finish its answer within %.3g s", http->host,
                 (double)http->options.timeout_ms / 1000.0);
    }
    return set(err, BARCHAN_ETIMEDOUT, 1, line);
}

int bc_http_explain(const bc_http *http, barchan_error *err)
{
    const char *detail =
        http->curl_message[0] != '\0' ? http->curl_message : curl_easy_strerror(http->result);
    char line[480];
    switch (http->result) {
    case CURLE_OPERATION_TIMEDOUT: return explain_timeout(http, err);
    case CURLE_OUT_OF_MEMORY: return bc_error_nomem(err);
    case CURLE_COULDNT_RESOLVE_HOST:
        snprintf(line, sizeof line,
                 "cannot find the address of %.200s; check the name and the "
                 "network",
                 http->host);
        return set(err, BARCHAN_ENETWORK, 1, line);
    case CURLE_COULDNT_CONNECT:
        snprintf(line, sizeof line, "cannot connect to %.200s: is a server running there? (%.160s)",
                 http->host, detail);
        return set(err, BARCHAN_ENETWORK, 1, line);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        snprintf(line, sizeof line, "the TLS certificate of %.160s is not trusted: %.200s",
                 http->host, detail);
        return set(err, BARCHAN_ENETWORK, 0, line);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        snprintf(line, sizeof line, "%.160s does not speak HTTP as it should: %.200s", http->host,
                 detail);
        return set(err, BARCHAN_EPROTOCOL, 0, line);
    default:
        snprintf(line, sizeof line, "the connection to %.160s failed: %.200s", http->host, detail);
        return set(err, BARCHAN_ENETWORK, 1, line);
    }
}
