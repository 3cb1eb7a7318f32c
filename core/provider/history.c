#include "history.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void bc_history_init(bc_history *history)
{
    memset(history, 0, sizeof *history);
    for (int i = 0; i < BC_MODEL_KEPT_CONVERSATIONS; i++) {
        bc_buf_init(&history->conversations[i].text, BC_MODEL_MAX_KEPT_BYTES);
        bc_buf_init(&history->conversations[i].rendered, BC_MODEL_MAX_KEPT_BYTES);
    }
}

static void forget(bc_conversation *known)
{
    bc_buf_clear(&known->text);
    bc_buf_clear(&known->rendered);
    free(known->ends);
    known->ends = NULL;
    known->end_count = known->end_capacity = 0;
    known->used = 0;
}

void bc_history_clear(bc_history *history)
{
    for (int i = 0; i < BC_MODEL_KEPT_CONVERSATIONS; i++)
        forget(&history->conversations[i]);
}

/* ---- what is known of a request ---- */

static size_t common_bytes(const bc_buf *known, const char *text, size_t len)
{
    enum { BLOCK = 4096 };
    const char *have = bc_buf_data(known);
    size_t at = 0, end = known->len < len ? known->len : len;
    while (at + BLOCK <= end && memcmp(have + at, text + at, BLOCK) == 0)
        at += BLOCK;
    while (at < end && have[at] == text[at])
        at++;
    return at;
}

static bc_conversation *most_alike(bc_history *history, const char *text, size_t len,
                                   size_t *common)
{
    bc_conversation *best = NULL;
    *common = 0;
    for (int i = 0; i < BC_MODEL_KEPT_CONVERSATIONS; i++) {
        bc_conversation *known = &history->conversations[i];
        size_t same = common_bytes(&known->text, text, len);
        if (same <= *common) continue;
        *common = same;
        best = known;
    }
    return best;
}

/* Where the message after this end begins; 0 when none follows. */
static size_t next_message(const char *text, size_t len, size_t at)
{
    while (at < len && memchr(" \t\r\n", text[at], 4) != NULL)
        at++;
    return at < len && text[at] == ',' ? at + 1 : 0;
}

/* What follows is read as a request of its own: the text without the messages up to this end. */
static int read_from(const bc_conversation *known, const bc_known_end *end, bc_request *request,
                     const char *text, size_t len)
{
    size_t next = next_message(text, len, end->text), first = known->first;
    if (next == 0) return BARCHAN_ENOTFOUND;
    size_t rest = len - next;
    char *own = malloc(first + rest + 1);
    if (own == NULL) return BARCHAN_ENOMEM;
    memcpy(own, text, first);
    memcpy(own + first, text + next, rest);
    own[first + rest] = '\0';
    int rc = bc_request_parse(request, own, first + rest, NULL);
    if (rc < 0) {
        free(own);
        return rc;
    }
    request->own_text = own;
    request->whole = (bc_json_span){text, len};
    request->cut_bytes = next - first;
    request->settled = (bc_json_span){bc_buf_data(&known->rendered), end->rendered};
    request->settled_count = end->count;
    request->settled_is_turn = end->is_turn;
    /* What answers the turn before belongs to it. And the list that was read must be the one that
     * was cut: a later member of the same name would have taken its place. */
    const bc_message *message = request->messages;
    size_t blanks = 0;
    while (memchr(" \t\r\n", own[first + blanks], 4) != NULL)
        blanks++;
    if (message->role == BC_ROLE_ASSISTANT && message->text.data == own + first + blanks &&
        end->count + request->message_count <= BC_MODEL_MAX_MESSAGES) {
        return 0;
    }
    bc_request_clear(request);
    return BARCHAN_ENOTFOUND;
}

int bc_history_read(bc_history *history, bc_request *request, const char *text, size_t len,
                    barchan_error *err)
{
    enum { TRIES = 2 }; /* the last turn that is known, and the one before */
    size_t common;
    bc_conversation *known =
        len <= BC_JSON_MAX_BYTES ? most_alike(history, text, len, &common) : NULL;
    size_t at = known != NULL ? known->end_count : 0;
    while (at > 0 && known->ends[at - 1].text > common)
        at--;
    for (int i = 0; i < TRIES && at > 0; i++) {
        if (read_from(known, &known->ends[--at], request, text, len) < 0) continue;
        request->known = known;
        request->known_ends = at + 1;
        request->known_bytes = common;
        return 0;
    }
    int rc = bc_request_parse(request, text, len, err);
    if (rc == 0 && known != NULL && common > known->text.len / 2) request->known = known;
    return rc;
}

/* ---- what is remembered ---- */

static int add_end(bc_conversation *known, bc_known_end end)
{
    if (known->end_count == known->end_capacity) {
        size_t capacity = known->end_capacity * 2 + 16;
        bc_known_end *ends = realloc(known->ends, capacity * sizeof *ends);
        if (ends == NULL) return BARCHAN_ENOMEM;
        known->ends = ends;
        known->end_capacity = capacity;
    }
    known->ends[known->end_count++] = end;
    return 0;
}

/* A place of the body among the messages that are kept. */
static size_t kept_place(const bc_rendering *made, size_t place)
{
    if (place < made->begin) return 0;
    size_t kept = place - made->begin;
    return made->mark_len > 0 && place > made->mark ? kept - made->mark_len : kept;
}

static int add_ends(bc_conversation *known, const bc_request *request, const bc_rendering *made)
{
    int rc = 0;
    for (size_t i = 1; i <= request->message_count && rc == 0; i++) {
        int is_last = i == request->message_count;
        if (!is_last && request->messages[i].role != BC_ROLE_ASSISTANT) continue;
        const bc_message *before = &request->messages[i - 1];
        size_t end = (size_t)(before->text.data - request->text.data) + before->text.len;
        size_t place = is_last ? made->end : request->messages[i].place;
        rc = add_end(known, (bc_known_end){.text = end + request->cut_bytes,
                                           .rendered = kept_place(made, place),
                                           .count = request->settled_count + i,
                                           .is_turn = before->role == BC_ROLE_ASSISTANT});
    }
    return rc;
}

static int cut_to(bc_buf *buf, size_t len)
{
    if (len > buf->len) return BARCHAN_EINVAL;
    buf->len = len;
    return 0;
}

/* The messages of the body from `done` on, without the mark. */
static int add_rendered(bc_buf *rendered, const bc_rendering *made, const char *body, size_t done)
{
    size_t from = made->begin + done, to = made->end;
    int rc = cut_to(rendered, done);
    if (rc == 0 && made->mark_len > 0 && made->mark >= from) {
        rc = bc_buf_append(rendered, body + from, made->mark - from);
        from = made->mark + made->mark_len;
    } else if (made->mark_len > 0 && made->mark < from) {
        from += made->mark_len; /* it stands in what is kept already */
    }
    return rc < 0 ? rc : bc_buf_append(rendered, body + from, to - from);
}

static int keep(bc_conversation *known, const bc_request *request, const bc_buf *body)
{
    bc_rendering made = request->rendering;
    const char *bytes = bc_buf_data(body);
    const char *text = request->own_text != NULL ? request->whole.data : request->text.data;
    if (made.begin < made.end && bytes[made.begin] == ',') made.begin++;
    int rc = 0;
    if (request->own_text == NULL) {
        known->end_count = 0;
        known->first = (size_t)(request->messages[0].text.data - request->text.data);
        rc = cut_to(&known->text, 0);
    } else {
        known->end_count = request->known_ends;
        rc = cut_to(&known->text, request->known_bytes);
    }
    if (rc == 0) rc = add_rendered(&known->rendered, &made, bytes, request->settled.len);
    if (rc == 0) rc = add_ends(known, request, &made);
    if (rc < 0) return rc;
    size_t end = known->ends[known->end_count - 1].text;
    if (end < known->text.len) return cut_to(&known->text, end);
    return bc_buf_append(&known->text, text + known->text.len, end - known->text.len);
}

static size_t total_bytes(const bc_history *history)
{
    size_t total = 0;
    for (int i = 0; i < BC_MODEL_KEPT_CONVERSATIONS; i++) {
        const bc_conversation *known = &history->conversations[i];
        total += known->text.cap + known->rendered.cap + known->end_capacity * sizeof *known->ends;
    }
    return total;
}

/* That was used longest ago; with `kept` of those that have a text, NULL if there is none. */
static bc_conversation *oldest(bc_history *history, bool kept)
{
    bc_conversation *found = NULL;
    for (int i = 0; i < BC_MODEL_KEPT_CONVERSATIONS; i++) {
        bc_conversation *known = &history->conversations[i];
        if (kept && known->text.cap == 0) continue;
        if (found == NULL || known->used < found->used) found = known;
    }
    return found;
}

/* All are too much together: those that were used longest ago go. */
static void forget_some(bc_history *history)
{
    bc_conversation *known;
    while (total_bytes(history) > BC_MODEL_MAX_KEPT_BYTES &&
           (known = oldest(history, true)) != NULL)
        forget(known);
}

static void remember(bc_history *history, const bc_request *request, const bc_buf *body)
{
    bc_conversation *known = request->known;
    size_t len = request->own_text != NULL ? request->whole.len : request->text.len;
    if (request->rendering.end == 0) return; /* `extra` has messages of its own */
    if (known == NULL && len < BC_MODEL_MIN_KEPT_BYTES) return;
    if (known == NULL) known = oldest(history, false);
    known->used = ++history->clock;
    if (keep(known, request, body) < 0) forget(known);
    forget_some(history);
}

int bc_history_render(bc_history *history, const bc_provider *provider, const bc_model_info *model,
                      bc_request *request, bc_buf *body, barchan_error *err)
{
    int rc = provider->render(model, request, body, err);
    if (rc < 0 && request->settled_count > 0) {
        /* Its error counts messages from where it went on. */
        bc_json_span whole = request->whole;
        bc_request_clear(request);
        bc_buf_reset(body);
        rc = bc_request_parse(request, whole.data, whole.len, err);
        if (rc == 0) rc = provider->render(model, request, body, err);
    }
    if (rc == 0) remember(history, request, body);
    return rc;
}
