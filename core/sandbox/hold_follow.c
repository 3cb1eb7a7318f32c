/* What a detached sandbox's commands have printed: told when asked for, or as soon as it is there.
 */
#include <stdlib.h>
#include "base/limits.h"
#include "hold.h"

void bc_hold_answer_logs(bc_hold_client *client, uint32_t stream, uint64_t cursor)
{
    unsigned char *bytes = malloc(BC_FRAME_MAX_FROM_GUEST);
    if (bytes == NULL) {
        bc_hold_client_cut(client);
        return;
    }
    bc_wire_writer out = {.data = bytes, .cap = BC_FRAME_MAX_FROM_GUEST};
    bc_hold_put_success(&out);
    bc_hold_log_answer(&client->hold->log, cursor, &out);
    bc_hold_send(client, BC_FRAME_ANSWER, stream, bytes, out.len, NULL, 0);
    free(bytes);
}

static void answer_follower(bc_hold_client *client)
{
    uint32_t stream = client->follow_stream;
    client->follow_stream = 0;
    bc_hold_answer_logs(client, stream, client->follow_cursor);
}

void bc_hold_follow(bc_hold_client *client, uint32_t stream, uint64_t cursor)
{
    uint64_t end = client->hold->log.end;
    if (client->follow_stream != 0) answer_follower(client);
    client->follows = 1;
    client->follow_stream = stream;
    client->follow_cursor = cursor < end ? cursor : end;
    if (cursor < end) {
        answer_follower(client);
    } else if (client->hold->over) {
        bc_hold_tell_end(client);
    }
}

void bc_hold_tell_followers(bc_hold *hold)
{
    for (bc_hold_client *client = hold->clients, *next; client != NULL; client = next) {
        next = client->next;
        if (client->follow_stream != 0) answer_follower(client);
    }
}
