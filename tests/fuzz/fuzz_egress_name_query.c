/* A query that is read has a name in its one form, and the answer to it is read back by rules of
 * our own writing: the question as it was asked, at most one address, nothing behind it. */
#include "fuzz.h"

#include <string.h>
#include "egress/host_name.h"
#include "egress/name_query.h"

static void check_name(const bc_name_query *q)
{
    char again[BC_HOST_NAME_MAX + 1];
    size_t len = strlen(q->name);
    if (len == 0) return;
    CLAIM(q->rcode == BC_NAME_NOERROR);
    CLAIM(bc_host_name_canonical(q->name, len, again) == 0 && strcmp(again, q->name) == 0);
    /* The question has its labels and no more. */
    CLAIM(q->question_len == len + 2 + 4);
}

static void check_answer(const uint8_t *data, size_t size, const bc_name_query *q, unsigned rcode)
{
    static const unsigned char ipv4[4] = {10, 1, 2, 3};
    unsigned char out[BC_NAME_ANSWER_MAX];
    bc_address reverse;
    size_t len = bc_name_answer_write(out, sizeof out, data, size, q, rcode, ipv4, 60);
    CLAIM(len > 0 && len <= BC_NAME_ANSWER_MAX);
    bool address = rcode == BC_NAME_NOERROR && bc_name_query_wants_address(q);
    CLAIM(len == 12 + q->question_len + (address ? 16 : 0) + (q->edns ? 11 : 0));
    CLAIM(memcmp(out, data, 2) == 0 && (out[2] & 0x80) != 0 && (out[3] & 15) == (rcode & 15));
    CLAIM(memcmp(out + 12, data + 12, q->question_len) == 0);
    CLAIM(bc_name_answer_write(out, len - 1, data, size, q, rcode, ipv4, 60) == 0);
    /* An answer is no query. */
    bc_name_query again;
    CLAIM(bc_name_query_read(out, len, &again) == -1);
    bc_name_query_is_reverse(q, &reverse);
    bc_name_query_other_rcode(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bc_name_query q;
    if (bc_name_query_read(data, size, &q) != 0) return 0;
    CLAIM(12 + q.question_len <= size);
    check_name(&q);
    check_answer(data, size, &q, q.rcode);
    if (q.rcode == BC_NAME_NOERROR) check_answer(data, size, &q, BC_NAME_NXDOMAIN);
    return 0;
}
