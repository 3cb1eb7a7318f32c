/* Answers every question for the address of a name with one that stands for it, so that nothing is
 * learned from an answer and nothing leaves by a question. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "base/limits.h"
#include "egress/internal.h"
#include "egress/name_query.h"

/* Programs may keep it: while the sandbox lives the name keeps its address, but for thousands of
 * others. */
#define TTL_S 60

size_t bc_egress_answer_name(bc_egress *egress, const unsigned char *query, size_t len,
                             unsigned char *answer, size_t cap)
{
    bc_name_query q;
    if (bc_name_query_read(query, len, &q) < 0) return 0;
    unsigned rcode = q.rcode;
    uint32_t address = 0;
    if (rcode == BC_NAME_NOERROR && bc_name_query_wants_address(&q)) {
        address = bc_names_address(egress->names, q.name);
        if (address == 0) rcode = BC_NAME_SERVFAIL;
    } else if (rcode == BC_NAME_NOERROR) {
        rcode = bc_name_query_other_rcode(&q);
    }
    uint32_t wire = htonl(address);
    unsigned char ipv4[4];
    memcpy(ipv4, &wire, sizeof ipv4);
    return bc_name_answer_write(answer, cap, query, len, &q, rcode, address == 0 ? NULL : ipv4,
                                TTL_S);
}

void bc_egress_answer_names(bc_egress *egress)
{
    unsigned char query[BC_NAME_QUERY_MAX], answer[BC_NAME_ANSWER_MAX];
    struct sockaddr_in from;
    for (int i = 0; i < BC_EGRESS_MAX_QUERIES; i++) {
        socklen_t from_len = sizeof from;
        ssize_t n = recvfrom(egress->name_fd, query, sizeof query, MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *)&from, &from_len);
        if (n < 0) return;
        if ((size_t)n > sizeof query) continue;
        size_t len = bc_egress_answer_name(egress, query, (size_t)n, answer, sizeof answer);
        if (len == 0) continue;
        sendto(egress->name_fd, answer, len, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&from,
               from_len);
    }
}
