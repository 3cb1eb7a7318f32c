/* Whether a file of the destination has the bytes of the source's, a part at a time: large files
 * must not hold up whatever else runs on the loop. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "apply.h"
#include "base/cleanup.h"
#include "base/limits.h"

void bc_apply_compare_end(barchan_apply_call *call)
{
    struct compare *compare = &call->compare;
    for (int i = 0; i < 2; i++) {
        if (compare->fds[i] >= 0) close(steal_fd(&compare->fds[i]));
    }
    compare->at = 0;
}

/* One block: 1 when they are the same so far, 0 when they differ, 2 when both end here. */
static int compare_block(struct compare *compare)
{
    char bytes[2][16384];
    ssize_t n[2];
    for (int i = 0; i < 2; i++) {
        do {
            n[i] = pread(compare->fds[i], bytes[i], sizeof bytes[i], compare->at);
        } while (n[i] < 0 && errno == EINTR);
    }
    if (n[0] < 0 || n[0] != n[1] || memcmp(bytes[0], bytes[1], (size_t)n[0]) != 0) return 0;
    compare->at += n[0];
    return n[0] == 0 ? 2 : 1;
}

int bc_apply_compare(barchan_apply_call *call, const char *path)
{
    struct compare *compare = &call->compare;
    if (compare->fds[0] < 0) {
        compare->fds[0] = bc_host_tree_open_file(&call->dest, path);
        compare->fds[1] = bc_host_tree_open_file(&call->source, path);
    }
    int rc = compare->fds[0] < 0 || compare->fds[1] < 0 ? 0 : 1;
    for (int i = 0; rc == 1 && i < BC_APPLY_COMPARE_BLOCKS; i++) {
        rc = compare_block(compare);
    }
    if (rc == 1) return -1;
    bc_apply_compare_end(call);
    return rc == 2;
}
