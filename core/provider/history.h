/*
 * What a model remembers of the conversations that it sent: a request that begins with the same
 * bytes as one before is read and rendered only from where it goes on.
 *
 * It rests on two facts. The same bytes leave a JSON reader in the same state. And what an adapter
 * makes of a turn and of the messages that answer it depends on nothing outside of them: what does
 * (a cache mark, which moves on as the conversation grows) is told by the adapter and not kept.
 */
#ifndef BC_PROVIDER_HISTORY_H
#define BC_PROVIDER_HISTORY_H

#include "provider.h"

/* The end of a message that an assistant turn followed, or of the last one. */
typedef struct bc_known_end {
    size_t text, rendered; /* how many bytes end there */
    size_t count;          /* of messages */
    int is_turn;           /* of the assistant */
} bc_known_end;

typedef struct bc_conversation {
    bc_buf text;     /* the request, up to the end of its last message */
    bc_buf rendered; /* its messages, as they went out */
    size_t first;    /* where the first message begins in the text */
    bc_known_end *ends;
    size_t end_count, end_capacity;
    uint64_t used; /* when */
} bc_conversation;

typedef struct bc_history {
    bc_conversation conversations[BC_MODEL_KEPT_CONVERSATIONS];
    uint64_t clock;
} bc_history;

void bc_history_init(bc_history *history);
void bc_history_clear(bc_history *history);
/* As bc_request_parse, but `messages` may hold only the last of them; the request then has the
 * others as they went out. The text must outlive the request, which must be rendered before
 * another is read. */
int bc_history_read(bc_history *history, bc_request *request, const char *text, size_t len,
                    barchan_error *err);
/* As the provider's `render`, and remembers it. */
int bc_history_render(bc_history *history, const bc_provider *provider, const bc_model_info *model,
                      bc_request *request, bc_buf *body, barchan_error *err);

#endif
