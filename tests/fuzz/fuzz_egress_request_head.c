/* A verdict stays as more bytes come, and a head that is done has exactly one field Host, whose
 * text is the host, by a search of our own. */
#include "fuzz.h"

#include <string.h>
#include <strings.h>
#include "egress/host_name.h"
#include "egress/request_stream.h"

static bc_sniff read_exactly(const uint8_t *data, size_t len, bc_request_head *out)
{
    char *copy = malloc(len > 0 ? len : 1);
    if (copy == NULL) abort();
    if (len > 0) memcpy(copy, data, len);
    bc_sniff sniff = bc_request_head_read(copy, len, out);
    bc_sniff looks = bc_looks_like_request(copy, len);
    if (sniff == BC_SNIFF_DONE) CLAIM(looks == BC_SNIFF_DONE);
    if (looks == BC_SNIFF_BAD) CLAIM(sniff == BC_SNIFF_BAD);
    free(copy);
    return sniff;
}

static void check_growing(const uint8_t *data, size_t size)
{
    bc_request_head last = {.minor = 0}, now;
    bc_sniff sniff = BC_SNIFF_MORE;
    size_t step = size > 256 ? size / 64 : 1;
    for (size_t len = 0; len <= size; len += step) {
        bc_sniff next = read_exactly(data, len, &now);
        CLAIM(sniff == BC_SNIFF_MORE || next == sniff);
        if (sniff == BC_SNIFF_DONE) CLAIM(memcmp(&now, &last, sizeof now) == 0);
        sniff = next;
        last = now;
    }
}

/* How a careless server looks for it: any line that begins with "host", in any case. */
static size_t count_hosts(const char *head, size_t len)
{
    size_t count = 0;
    for (size_t i = 1; i + 5 <= len; i++) {
        bool begins = head[i - 1] == '\n' || head[i - 1] == '\r';
        if (begins && strncasecmp(head + i, "host", 4) == 0 &&
            strchr(": \t\r\n", head[i + 4]) != NULL) {
            count++;
        }
    }
    return count;
}

static void check_head(const uint8_t *data, const bc_request_head *head)
{
    const char *text = (const char *)data;
    char again[BC_HOST_NAME_MAX + 1];
    size_t len = strlen(head->host), hosts = count_hosts(text, head->head_len);
    CLAIM(head->head_len >= 4 && memcmp(text + head->head_len - 4, "\r\n\r\n", 4) == 0);
    CLAIM(memchr(text, '\0', head->head_len) == NULL);
    CLAIM(hosts <= 1 && (head->minor == 0 || hosts == 1));
    CLAIM(head->port <= 65535 && !(head->chunked && head->body_len > 0));
    if (head->minor == 1 || head->connect || head->absolute) CLAIM(len > 0);
    if (len > 0) CLAIM(bc_host_name_canonical(head->host, len, again) == 0);
    if (len > 0) CLAIM(strcmp(again, head->host) == 0);
}

/* What a connection is made of does not depend on how its bytes were cut. */
static uint32_t follow(const uint8_t *data, size_t size, size_t piece)
{
    bc_request_stream stream = {.state = 0};
    uint32_t sum = 2166136261u; /* of what was seen, and where */
    size_t at = 0, have = 0, used;
    while (at < size) {
        bc_sniff sniff = bc_request_stream_step(&stream, (const char *)data + at, have - at, &used);
        CLAIM(used <= have - at && stream.left >= 0);
        CLAIM(sniff == BC_SNIFF_DONE ? used > 0 : sniff == BC_SNIFF_MORE || used == 0);
        at += used;
        if (sniff == BC_SNIFF_BAD) return (sum ^ (uint32_t)at) * 16777619u;
        if (sniff == BC_SNIFF_DONE) {
            sum = (sum ^ (uint32_t)at) * 16777619u;
            for (const char *c = stream.head.host; *c != '\0'; c++)
                sum = (sum ^ (uint8_t)*c) * 16777619u;
        }
        if (used > 0) continue;
        if (have == size) break;
        have = size - have < piece ? size : have + piece;
    }
    return (sum ^ (uint32_t)at) * 16777619u;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bc_request_head head;
    bc_sniff sniff = read_exactly(data, size, &head);
    if (sniff == BC_SNIFF_DONE && !head.http2_preface) {
        CLAIM(head.head_len <= size);
        check_head(data, &head);
    } else {
        CLAIM(head.host[0] == '\0' && head.head_len == 0);
    }
    check_growing(data, size);
    uint32_t whole = follow(data, size, size);
    CLAIM(follow(data, size, 7) == whole);
    if (size <= 512) CLAIM(follow(data, size, 1) == whole);
    return 0;
}
