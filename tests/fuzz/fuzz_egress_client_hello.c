/* A verdict stays as more bytes come, a name is in its one form and stands in the bytes, and the
 * same message in other records has the same verdict. */
#include "fuzz.h"

#include <string.h>
#include "egress/client_hello.h"
#include "egress/host_name.h"

static bc_sniff read_exactly(const uint8_t *data, size_t len, bc_client_hello *out)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (copy == NULL) abort();
    if (len > 0) memcpy(copy, data, len);
    bc_sniff sniff = bc_client_hello_read(copy, len, out);
    free(copy);
    return sniff;
}

static void check_growing(const uint8_t *data, size_t size)
{
    bc_client_hello last = {.alpn = false}, now;
    bc_sniff sniff = BC_SNIFF_MORE;
    size_t step = size > 256 ? size / 64 : 1;
    for (size_t len = 0; len <= size; len += step) {
        bc_sniff next = read_exactly(data, len, &now);
        CLAIM(sniff == BC_SNIFF_MORE || next == sniff);
        if (sniff == BC_SNIFF_DONE) CLAIM(memcmp(&now, &last, sizeof now) == 0);
        if (next == BC_SNIFF_DONE) CLAIM(bc_looks_like_client_hello(data, len) == BC_SNIFF_DONE);
        sniff = next;
        last = now;
    }
}

/* The input as the message itself, in one record and in small ones. */
static void check_records(const uint8_t *data, size_t size)
{
    static uint8_t whole[8192 + 5], parts[8192 * 2];
    bc_client_hello a, b;
    if (size == 0 || size > 4096) return;
    size_t len = 0;
    const uint8_t header[] = {22, 3, 1, (uint8_t)(size >> 8), (uint8_t)size};
    memcpy(whole, header, 5);
    memcpy(whole + 5, data, size);
    size_t most = 3 + data[0] % 60;
    if (size / most * 5 + size + 5 > sizeof parts) return;
    for (size_t at = 0; at < size; at += most) {
        size_t n = size - at < most ? size - at : most;
        const uint8_t small[] = {22, 3, 3, 0, (uint8_t)n};
        memcpy(parts + len, small, 5);
        memcpy(parts + len + 5, data + at, n);
        len += 5 + n;
    }
    bc_sniff one = read_exactly(whole, size + 5, &a), many = read_exactly(parts, len, &b);
    /* A message that ends within its only record is refused for that, and in parts perhaps not
     * seen: where both are whole, both are the same. */
    if (one == BC_SNIFF_DONE) CLAIM(many == BC_SNIFF_DONE && memcmp(&a, &b, sizeof a) == 0);
    if (many == BC_SNIFF_MORE) CLAIM(one == BC_SNIFF_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bc_client_hello hello;
    char again[BC_HOST_NAME_MAX + 1];
    bc_sniff sniff = read_exactly(data, size, &hello);
    size_t len = strlen(hello.server_name);
    if (sniff != BC_SNIFF_DONE) CLAIM(len == 0 && !hello.encrypted && !hello.alpn);
    if (len > 0) CLAIM(bc_host_name_canonical(hello.server_name, len, again) == 0);
    if (len > 0) CLAIM(strcmp(again, hello.server_name) == 0);
    check_growing(data, size);
    check_records(data, size);
    return 0;
}
