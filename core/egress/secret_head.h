/*
 * A request's head on its way to a host with secrets: placeholders become values here, and nowhere
 * else. The head has been read by request_head.h before: its lines are lines, its names are names.
 *
 * Taken out of every head, in every spelling (bc_same_field): the program's own authorization; what
 * asks for an answer that could not be searched (Accept-Encoding becomes identity; Accept-Charset,
 * A-IM, *-Range, TE) or is for one hop (Connection, Keep-Alive, Proxy-*, Max-Forwards); what makes
 * some servers take the request for another one (X-HTTP-Method-Override, X-Original-URL,
 * X-Forwarded-*, Script-Name), which `methods` and `paths` have not seen.
 *
 * Written anew: Host, as the host's canonical name and a port that is not 443, and the framing of
 * the body, so that a server reads there what was read here; of Expect only 100-continue is left. A
 * request with a body asks for the end of the connection.
 */
#ifndef BC_EGRESS_SECRET_HEAD_H
#define BC_EGRESS_SECRET_HEAD_H

#include "egress/request_head.h"
#include "egress/secret.h"

/* What has happened to one secret, or to none in particular. */
typedef enum bc_secret_note {
    BC_SECRET_USED,      /* the value was put in */
    BC_SECRET_OUTSIDE,   /* the placeholder stands in another place of the head */
    BC_SECRET_NO_METHOD, /* in its place, but the request is none that it is for */
    BC_SECRET_NO_PATH,
    BC_SECRET_MALFORMED, /* in its header, but not in its form */
    BC_SECRET_TWICE,     /* in its place, but this field has a value already; always refused */
    BC_SECRET_UNSAFE,    /* the placeholder is sent without TLS, or to another host */
    BC_SECRET_OWN,       /* authorization of the program's own; secret NULL */
    BC_SECRET_NOTE_COUNT
} bc_secret_note;

/* Whether it is of a placeholder where no value could be put in, which is told and refuses nothing.
 */
static inline bool bc_secret_is_stray(bc_secret_note note)
{
    return note == BC_SECRET_OUTSIDE || note == BC_SECRET_UNSAFE;
}

/* Each once: one that is lost could be the refusal. */
#define BC_SECRET_MAX_NOTES (BC_SECRET_MAX * BC_SECRET_NOTE_COUNT)

typedef struct bc_secret_report {
    struct {
        const bc_secret *secret;
        bc_secret_note note;
    } notes[BC_SECRET_MAX_NOTES]; /* each once */
    size_t count;
    bool refused; /* by on_guest_authorization, or for BC_SECRET_TWICE: what was written is to go
                     nowhere */
    size_t cause; /* of the refusal: the index of its note */
} bc_secret_report;

/* "GITHUB_TOKEN was put into Authorization", …; one line, without any value. */
void bc_secret_note_text(const bc_secret *secret, bc_secret_note note, char *text, size_t cap);

/* Whether a field of this name can carry no secret: it is taken out of every request. */
bool bc_secret_is_never_sent(const char *field, size_t len);

typedef struct bc_secret_choice {
    const bc_secret *const *bound; /* to the host, which the head names, and port; at least one */
    size_t bound_count;
    const bc_secret *all; /* of the sandbox, these among them */
    size_t all_count;
    unsigned port;
} bc_secret_choice;

/* Appends the head to send to `out`, whose memory the caller wipes. `data`: head->head_len bytes.
 * 0, or the buffer's failure. */
int bc_secret_head_rewrite(const bc_secret_choice *choice, const bc_request_head *head,
                           const char *data, bc_buf *out, bc_secret_report *report);

#endif
