/*
 * Recordings of a wire: what a model was sent and what came back, to be played without a network.
 * JSON Lines; the format is in barchan/model.h. No header of a request is recorded, so no key is;
 * where a server quotes the key, it stands as "***".
 */
#ifndef BC_PROVIDER_RECORDED_H
#define BC_PROVIDER_RECORDED_H

#include <stdint.h>
#include "base/json_view.h"
#include "secret.h"

typedef enum bc_recorded_end {
    BC_RECORDED_CLOSED = 0, /* given up by its caller: cancelled, or nothing more was needed */
    BC_RECORDED_COMPLETE,
    BC_RECORDED_FAILED /* `error` says how */
} bc_recorded_end;

enum { BC_ID_SEED_BYTES = 33 };

/* One request and its answer. */
typedef struct bc_recorded {
    bc_buf url, request;            /* when played */
    char id_seed[BC_ID_SEED_BYTES]; /* of which missing ids of calls are made */
    int status;                     /* 0: no answer came */
    long retry_after_ms;            /* -1: not told */
    json_t *headers;                /* those of the answer that are looked at; an object */
    bc_buf body;
    bc_buf pieces; /* uint32_t: the bytes of each piece in which the body came */
    bc_recorded_end end;
    barchan_error error;
    int played;
} bc_recorded;

/* "closed", "complete", "failed"; back: -1 when it is none. */
const char *bc_recorded_end_name(bc_recorded_end end);
int bc_recorded_end_of(const char *name);

void bc_recorded_init(bc_recorded *recorded);
void bc_recorded_clear(bc_recorded *recorded);
/* A piece of the body. */
int bc_recorded_add(bc_recorded *recorded, const char *data, size_t len);

/* ---- recording.c: writing ---- */

typedef struct bc_recording bc_recording;

/* What a model that plays it must be like. */
typedef struct bc_recording_origin {
    const char *provider, *model, *base_url;
    int64_t max_tokens; /* 0: not set */
    int max_retries;
    const char *extra; /* JSON object; NULL: none */
} bc_recording_origin;

/* Makes the file, which must not exist, readable by this user only. `secrets` is borrowed. */
int bc_recording_open(bc_recording **out, const char *path, const bc_recording_origin *origin,
                      const bc_secrets *secrets, barchan_error *err);
/* Fails once a line could not be written: what follows would not be a whole recording. */
int bc_recording_check(const bc_recording *recording, barchan_error *err);
/* Adds a line. A failure is kept for the check: the answer itself is not lost by it. */
void bc_recording_write(bc_recording *recording, bc_json_span url, bc_json_span request,
                        const bc_recorded *recorded);
void bc_recording_close(bc_recording *recording);

/* ---- playback.c: reading ---- */

typedef struct bc_playback bc_playback;

/* Reads and checks the whole file; errors name the line. */
int bc_playback_open(bc_playback **out, const char *path, const char *provider, barchan_error *err);
/* The first exchange that was not played yet and was asked for the same; BARCHAN_ENOTFOUND when
 * there is none, and how the request differs from the next one's. */
int bc_playback_take(bc_playback *playback, bc_json_span url, bc_json_span request,
                     const bc_secrets *secrets, const bc_recorded **out, barchan_error *err);
void bc_playback_close(bc_playback *playback);

/* ---- request_difference.c ---- */

/* Whether two request bodies say the same; if not, `words` tells where they first differ. */
int bc_request_differs(bc_json_span recorded, bc_json_span now, char *words, size_t size);

#endif
