/*
 * Pieces of a stream that differ in one string alone. Servers write hundreds of events after one
 * pattern, so an event that begins and ends with the same bytes as the one before, with one JSON
 * string between them, says the same with other words: the same bytes leave a JSON reader in the
 * same state. It is not taken apart again.
 */
#ifndef BC_PROVIDER_PIECE_H
#define BC_PROVIDER_PIECE_H

#include "base/json_scan.h"

typedef struct bc_piece {
    bc_buf bytes;  /* what stands before the string, then what stands after it */
    size_t before; /* 0: no pattern is known */
} bc_piece;

void bc_piece_init(bc_piece *piece);
void bc_piece_clear(bc_piece *piece);
void bc_piece_forget(bc_piece *piece);
/* Takes the pattern from an event that was read; `string` is a string's span inside of it. Without
 * memory there is none. */
void bc_piece_learn(bc_piece *piece, bc_json_span event, bc_json_span string);
/* 1 and the string, with its quotes, of an event of the pattern; otherwise 0. */
int bc_piece_match(const bc_piece *piece, bc_json_span event, bc_json_span *string);

#endif
