/* Writing JSON objects and arrays with the commas put in. The first failure sticks in `rc`, so
 * that a whole body is written without a check at every step. */
#ifndef BC_PROVIDER_JSON_OUT_H
#define BC_PROVIDER_JSON_OUT_H

#include "base/json_scan.h"
#include "base/json_write.h"

typedef struct bc_out {
    bc_buf *buf;
    int rc;
} bc_out;

void bc_out_open(bc_out *out, char bracket);  /* '{' or '[' */
void bc_out_close(bc_out *out, char bracket); /* '}' or ']' */
void bc_out_key(bc_out *out, const char *key);
void bc_out_string(bc_out *out, const char *text, size_t len);
void bc_out_integer(bc_out *out, int64_t value);
/* A value, or a member's key, that is JSON text already. */
void bc_out_raw(bc_out *out, const char *text, size_t len);
void bc_out_raw_key(bc_out *out, bc_json_span key);

static inline void bc_out_word(bc_out *out, const char *word) /* true, false, null, literal JSON */
{
    bc_out_raw(out, word, __builtin_strlen(word));
}

/* A string whose contents are escaped already. */
void bc_out_escaped(bc_out *out, bc_json_span contents);
/* A member with a string value. */
void bc_out_member(bc_out *out, const char *key, const char *text);
/* The name of a call that goes back, whatever the model wrote: letters, digits, _ and -, at most
 * `max`. Any other name a server would refuse, and with it the whole conversation. */
void bc_out_tool_name(bc_out *out, const char *name, size_t len, size_t max);
/* Whether it is written unchanged. */
int bc_tool_name_is_plain(const char *name, size_t len, size_t max);

#endif
