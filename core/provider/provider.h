/*
 * One table per provider. The model (model.c, completion.c) owns connections, time and callbacks;
 * a table only turns neutral requests into bytes and bytes into neutral replies, without I/O, so
 * that each can be tested and fuzzed alone. A new provider is a new table in provider.c.
 */
#ifndef BC_PROVIDER_PROVIDER_H
#define BC_PROVIDER_PROVIDER_H

#include "json_out.h"
#include "message.h"
#include "reply.h"
#include "secret.h"

/* What a table may know of the model. */
typedef struct bc_model_info {
    const char *name;
    const char *base_url;       /* without a slash at its end */
    const char *api_key;        /* NULL: none */
    int64_t max_tokens;         /* default of the model's options, 0: none */
    const char *const *headers; /* the caller's own, NULL-terminated; may be NULL */
} bc_model_info;

/* A header line into the list of a request. */
typedef int (*bc_put_header_fn)(const char *name, const char *value, void *ud);

/* How far a stream has come. What follows the end is read as well: a gateway may begin again. */
typedef enum bc_progress {
    BC_PROGRESS_OPEN = 0,
    BC_PROGRESS_COMPLETE, /* the turn is whole, its counts may still come */
    BC_PROGRESS_ENDED     /* the provider's last word */
} bc_progress;

typedef struct bc_provider {
    const char *name;
    const char *default_base_url;

    /* The request: where it goes, how it is signed, what it says. */
    int (*endpoint)(const bc_model_info *model, const bc_request *request, bc_buf *url,
                    barchan_error *err);
    int (*headers)(const bc_model_info *model, bc_put_header_fn put, void *ud);
    int (*render)(const bc_model_info *model, bc_request *request, bc_buf *body,
                  barchan_error *err);

    /* The answer. A reader fills its reply from events (`event`, then `end`) or from one body. The
     * error it is given is zeroed. */
    void *(*reader_create)(bc_reply *reply);
    void (*reader_destroy)(void *reader);
    int (*event)(void *reader, const char *name, bc_json_span data, barchan_error *err);
    bc_progress (*progress)(const void *reader);
    int (*end)(void *reader, barchan_error *err);
    int (*body)(void *reader, bc_json_span body, barchan_error *err);

    /* The header that carries the provider's id of the request. */
    const char *request_id_header;
} bc_provider;

extern const bc_provider bc_provider_anthropic, bc_provider_openai, bc_provider_openai_responses,
    bc_provider_gemini;

/* NULL when there is none. The `replay` provider is no table: it has no wire (replay.h). */
const bc_provider *bc_provider_find(const char *name);

/* One event's data: what is no JSON is tried line by line, because some servers forget the blank
 * line between events; blank data and comments sent as data are dropped. Calls the table's
 * `event` for each JSON object. `may_be_cut`: the stream ended without ending this event; its last
 * line is dropped when it does not parse, and the reader's `end` says what that means. */
int bc_provider_event(const bc_provider *provider, void *reader, const char *name,
                      bc_json_span data, int may_be_cut, barchan_error *err);

/* Joins base, version ("/v1") and tail ("/messages"). A base that ends with the tail is complete,
 * one that ends with the version does not get it again, and with `bare_only` neither does one that
 * has a path of its own. A query of the base stays at the end. */
int bc_provider_url(const char *base_url, const char *version, int bare_only, const char *tail,
                    bc_buf *url, barchan_error *err);
/* The header "authorization: Bearer KEY", the scheme only when the key has none. */
int bc_provider_put_bearer(const char *key, bc_put_header_fn put, void *ud);
/* A table's `headers`: the key as a bearer, unless the caller's own headers have the name. */
int bc_provider_bearer(const bc_model_info *model, bc_put_header_fn put, void *ud);
/* Whether the caller's own headers have this name. */
int bc_provider_has_header(const bc_model_info *model, const char *name);
/* Whether the base URL's host is this one or below it. */
int bc_provider_host_is(const bc_model_info *model, const char *host);
/* The body will have a list of tools that is not empty, from wherever. */
int bc_body_has_tools(const bc_request *request);
/* Begins a member of the body: 1, or 0 when `extra` has it and its value must not be written. */
int bc_body_key(bc_out *out, const bc_request *request, const char *key);
/* Around the messages of a body, after its list was opened: what is settled of them; each one that
 * is to be written; the end. What `bc_body_mark` is told of is left out when they are kept. */
void bc_body_settled(bc_out *out, bc_request *request);
void bc_body_message(const bc_out *out, bc_request *request, size_t index);
void bc_body_mark(bc_request *request, size_t at, size_t len);
void bc_body_messages_end(const bc_out *out, bc_request *request);
/* Writes `extra` after the body's own members: a null removes a member, anything else replaces it.
 */
void bc_body_extra(bc_out *out, const bc_request *request);

/* The declarations as one value, in the form of that name (tools_render.c). */
void bc_tools_put(bc_out *out, const char *format, const bc_tool *tools, size_t count);

/* ---- errors of servers ---- */

/* From an error object of a body or a stream, {"message", "type", "code"}, and the HTTP status
 * (200 in a stream). `secrets`, which may be NULL, are hidden. Returns the status it put into err.
 */
int bc_provider_error(barchan_error *err, int http_status, const json_t *error,
                      const bc_secrets *secrets);
/* A stream that ended before its turn was complete, or before it began. Returns the status. */
int bc_provider_incomplete(int begun, barchan_error *err);
/* From a whole answer that is no success: JSON of any known shape, HTML, or nothing. */
int bc_provider_http_error(barchan_error *err, int http_status, const char *content_type,
                           const char *body, size_t len, const bc_secrets *secrets);

#endif
