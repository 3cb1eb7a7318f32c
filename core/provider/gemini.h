/* The parts of the Gemini adapter (generateContent, of Google's own API and of Vertex). */
#ifndef BC_PROVIDER_GEMINI_H
#define BC_PROVIDER_GEMINI_H

#include "provider.h"
#include "text.h"

int bc_gemini_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                     barchan_error *err);
/* Models before the third generation: they know no signatures, and no images in results. */
int bc_gemini_is_old(const char *model);

/* A call whose arguments arrive by their paths. */
typedef struct bc_gemini_partial {
    json_t *args;  /* NULL: no such call is open */
    bc_buf before; /* the part's other members, as they came, each with a comma after it */
    bc_buf name, id;
    char path[256]; /* of the string that is open; "": none is */
    bc_buf string;
} bc_gemini_partial;

typedef struct bc_gemini_reader {
    bc_reply *reply;
    bc_buf parts; /* those that are whole, with commas between */
    size_t part_count;
    bc_text run; /* unsigned text that is still being joined */
    int run_is_thought;
    bc_gemini_partial partial;
    size_t total_bytes;
    int begun;
    int ended; /* a reason to stop was given */
} bc_gemini_reader;

/* gemini_parts.c */
int bc_gemini_take_parts(bc_gemini_reader *reader, bc_json_span parts, barchan_error *err);
/* No part goes on: closes what is open. */
int bc_gemini_finish_parts(bc_gemini_reader *reader, barchan_error *err);
int bc_gemini_add_part(bc_gemini_reader *reader, const char *text, size_t len, barchan_error *err);
/* {"content":{…},"calls":[{"id","name","given"}]}: the content to send back, and which of its calls
 * had an id of the server's. */
int bc_gemini_turn(bc_gemini_reader *reader, barchan_error *err);

/* gemini_partial.c */
void bc_gemini_partial_init(bc_gemini_partial *partial);
void bc_gemini_partial_clear(bc_gemini_partial *partial);
/* A piece of a call; `part` is the whole part, `call` its functionCall. */
int bc_gemini_take_piece(bc_gemini_reader *reader, bc_json_span part, bc_json_span call,
                         barchan_error *err);
/* The call is whole: it becomes a part and a call of the reply. Nothing when none is open. */
int bc_gemini_end_partial(bc_gemini_reader *reader, barchan_error *err);

#endif
