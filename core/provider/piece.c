#include "piece.h"

#include <string.h>

void bc_piece_init(bc_piece *piece)
{
    bc_buf_init(&piece->bytes, BC_MODEL_MAX_PATTERN_BYTES);
    piece->before = 0;
}

void bc_piece_clear(bc_piece *piece)
{
    bc_buf_clear(&piece->bytes);
    piece->before = 0;
}

void bc_piece_forget(bc_piece *piece)
{
    piece->before = 0;
}

void bc_piece_learn(bc_piece *piece, bc_json_span event, bc_json_span string)
{
    size_t before = (size_t)(string.data - event.data);
    const char *after = string.data + string.len;
    bc_buf_reset(&piece->bytes);
    piece->before = 0;
    if (bc_buf_append(&piece->bytes, event.data, before) == 0 &&
        bc_buf_append(&piece->bytes, after, event.len - before - string.len) == 0) {
        piece->before = before;
    }
}

int bc_piece_match(const bc_piece *piece, bc_json_span event, bc_json_span *string)
{
    const char *bytes = bc_buf_data(&piece->bytes);
    size_t before = piece->before, after = piece->bytes.len - before;
    if (before == 0 || event.len < piece->bytes.len + 2 || event.data[before] != '"') return 0;
    if (memcmp(event.data, bytes, before) != 0) return 0;
    if (memcmp(event.data + event.len - after, bytes + before, after) != 0) return 0;
    *string = (bc_json_span){event.data + before, event.len - before - after};
    /* Blanks around a value are JSON, too. */
    if (string->data[string->len - 1] != '"') return 0;
    return bc_json_validate(string->data, string->len, NULL) == 0;
}
