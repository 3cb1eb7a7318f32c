/*
 * Text that arrives in pieces of a JSON string. The pieces are kept as the provider escaped them,
 * so that they can be echoed byte for byte, and decoded as soon as they are whole: a character
 * may be split over two pieces, as bytes or as a pair of \u escapes.
 */
#ifndef BC_PROVIDER_TEXT_H
#define BC_PROVIDER_TEXT_H

#include "base/json_scan.h"

typedef struct bc_text {
    bc_buf raw;     /* a quote, then the escaped pieces */
    bc_buf plain;   /* what is decoded of them */
    size_t settled; /* how much of raw that is */
} bc_text;

void bc_text_init(bc_text *text);
void bc_text_clear(bc_text *text);
void bc_text_reset(bc_text *text);
/* Appends a string's span, with its quotes. Anything else appends nothing. */
int bc_text_append(bc_text *text, bc_json_span string);
/* Decodes what has become whole, at the end (`final`) everything. `fresh`, which may be NULL, is
 * what was added to `plain`. */
int bc_text_settle(bc_text *text, int final, bc_json_span *fresh);
/* The pieces joined, as the contents of one JSON string without its quotes. */
bc_json_span bc_text_escaped(const bc_text *text);
int bc_text_is_empty(const bc_text *text);

#endif
